package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// folder offers a folder with these files: pairs of a path and a text.
func folder(t *testing.T, pairs ...string) *gate.Offer {
	t.Helper()
	tree := filetree.Tree{}
	for i := 0; i < len(pairs); i += 2 {
		tree[pairs[i]] = &pairs[i+1]
	}
	o := offer(t, envelope.Text(tree.JSON()))
	o.As, o.Folder = gate.AsFiles, "repo"
	return o
}

// texts returns the files of a sealed folder.
func texts(s *gate.Sealed) map[string]string {
	tree, _ := s.Files()
	out := map[string]string{}
	for path, text := range tree {
		out[path] = *text
	}
	return out
}

// A file system may give the name of a file in other letters than the policy has.
func TestBlockedFilesInOtherSpellings(t *testing.T) {
	t.Parallel()
	s := seal(t, under(t, exactly(handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"/caf\u00e9/secret.txt", ".env"}})),
		folder(t, "cafe\u0301/Secret.TXT", "s", "src/.Env", "KEY=1", "src/.e\u200bnv", "KEY=2", "doc.md", "d"))
	require.Equal(t, map[string]string{"doc.md": "d"}, texts(&s))
	require.NotContains(t, strings.ToLower(s.Payload().Text()), "secret")
}

// Requirement: G57.
func TestFilesAreRedactedOneByOne(t *testing.T) {
	t.Parallel()
	o := folder(t, "a.txt", "mail ann@x.org", "conf.json", `{"password": "hunter2hunter2", "n": 1}`, "sub/plain.go", "package sub <|im_start|>", "of ann@x.org.txt", "x")
	s := seal(t, newCompartment(t), o)
	require.Equal(t, map[string]string{
		"a.txt": "mail [REDACTED:email]", "conf.json": `{"password": "[REDACTED:password]", "n": 1}`, "sub/plain.go": "package sub <|im_start|>", "of [REDACTED:email]": "x",
	}, texts(&s))
	require.Equal(t, "repo/a.txt (21 bytes)\nrepo/conf.json (43 bytes)\nrepo/of [REDACTED:email] (1 bytes)\nrepo/sub/plain.go (24 bytes)", s.Payload().Text())
	require.NotContains(t, s.Payload().Text(), "ann@")
	require.Equal(t, redact.Counts{"email": 2, "password": 1}, s.Decision().Redacted)
	require.Equal(t, gate.Passed, s.Decision().Verdict)
	require.Equal(t, handoff.Rule("dependsOn"), s.Decision().Rule)
}

func TestFilesThatAreGranted(t *testing.T) {
	t.Parallel()
	files := []string{"src/a.go", "a", "src/b/.env", "KEY=1", "doc.md", "d"}
	for name, tt := range map[string]struct {
		rule handoff.PairRule
		need []task.Path
		want map[string]string
	}{
		"all":                {handoff.PairRule{Mode: handoff.Full}, nil, map[string]string{"src/a.go": "a", "src/b/.env": "KEY=1", "doc.md": "d"}},
		"needed":             {handoff.PairRule{Mode: handoff.Full}, []task.Path{"/src/**"}, map[string]string{"src/a.go": "a", "src/b/.env": "KEY=1"}},
		"blocked by name":    {handoff.PairRule{Mode: handoff.Full, Block: []task.Path{".env"}}, nil, map[string]string{"src/a.go": "a", "doc.md": "d"}},
		"allowed":            {handoff.PairRule{Mode: handoff.Scoped, Allow: []task.Path{"/doc.md"}}, nil, map[string]string{"doc.md": "d"}},
		"needed and blocked": {handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"/src/b"}}, []task.Path{"/src/**"}, map[string]string{"src/a.go": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := under(t, exactly(tt.rule))
			if tt.need != nil {
				c = needing(t, exactly(tt.rule), tt.need...)
			}
			s := seal(t, c, folder(t, files...))
			require.Equal(t, tt.want, texts(&s))
			for _, path := range []string{"src/a.go", "src/b/.env", "doc.md"} {
				require.Equal(t, tt.want[path] != "", strings.Contains(s.Payload().Text(), "repo/"+path), path)
			}
		})
	}
}

func TestFoldersThatAreWithheld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		c    *gate.Compartment
		o    *gate.Offer
		rule handoff.Rule
	}{
		"no granted file":      {needing(t, exactly(handoff.PairRule{Mode: handoff.Full}), "/none"), folder(t, "a", "a"), "analyst→writer"},
		"no grant":             {newCompartment(t, func(k *gate.Contract) { k.Grants = nil }), folder(t, "a", "a"), gate.RuleGrant},
		"above the reader":     {newCompartment(t, func(k *gate.Contract) { k.Clearance = label.Internal }), folder(t, "a", "a"), gate.RuleClearance},
		"names become equal":   {newCompartment(t), folder(t, "ann@x.org", "a", "bob@x.org", "b"), gate.RuleRedact},
		"a translation":        {under(t, exactly(handoff.PairRule{Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 5}})), folder(t, "a", "a"), "analyst→writer"},
		"a text and no folder": {newCompartment(t), func() *gate.Offer { o := offer(t, envelope.Text("text")); o.As = gate.AsFiles; return o }(), gate.RulePayload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.o.Optional = true
			s, err := tt.c.GateOutbound(t.Context(), tt.o, noon)
			require.NoError(t, err)
			require.True(t, s.Withheld())
			tree, _ := s.Files()
			require.Nil(t, tree)
			require.Empty(t, s.Payload().Text())
			require.Equal(t, tt.rule, s.Decision().Rule)
		})
	}
}

func TestPersonalDataOfOneFileIsRevealed(t *testing.T) {
	t.Parallel()
	g := gate.WholeOf(upstream, "")
	g.Reveal = map[redact.Kind][]task.Path{"email": {"/contacts/ann.txt"}}
	s := seal(t, granted(t, []gate.Grant{g}), folder(t, "contacts/ann.txt", "ann@x.org", "contacts/bob.txt", "bob@x.org"))
	require.Equal(t, map[string]string{"contacts/ann.txt": "ann@x.org", "contacts/bob.txt": "[REDACTED:email]"}, texts(&s))
	require.Equal(t, redact.Counts{"email": 1}, s.Decision().Revealed)
}

func TestNamesOfFilesThatBecomeAFileAndAFolderAreWithheld(t *testing.T) {
	t.Parallel()
	o := folder(t, "ann@x.org", "a", "bob@x.org/notes", "b")
	o.Optional = true
	d, err := newCompartment(t).Decide(t.Context(), o, time.Now())
	require.NoError(t, err)
	require.Equal(t, gate.RuleRedact, d.Rule)
}

// A layer of a folder that has none of the granted files gives its reader neither a label nor a source nor a time at
// which the result expires.
func TestEmptyLayersOfFolders(t *testing.T) {
	t.Parallel()
	source := gate.Source{Kind: handoff.Folder, Name: "x"}
	for path, isEmpty := range map[task.Path]bool{"/none": true, "/a": false} {
		c := newCompartment(t, func(k *gate.Contract) {
			k.Grants = []gate.Grant{{Source: source, Paths: []task.Path{path}}}
		})
		o := folder(t, "a", "a")
		o.Source, o.Optional = source, true
		h := o.Envelope.Header()
		h.ExpiresAt = noon.Add(time.Hour)
		made, err := envelope.New(h, o.Envelope.Open())
		require.NoError(t, err)
		o.Envelope = made
		require.Equal(t, isEmpty, c.Contract.Grants[0].IsEmptyLayer(o))

		s := seal(t, c, o)
		result, _, err := c.GateInbound(gate.Reply{ID: "r", Text: "done"}, []gate.Sealed{s}, nil, noon)
		require.NoError(t, err)
		require.Equal(t, isEmpty, result.Header().ExpiresAt.IsZero())
		require.Equal(t, isEmpty, len(result.Header().DerivedFrom) == 0)

		c.Contract.MaxInput = label.Public
		s, err = c.GateOutbound(t.Context(), o, noon)
		require.NoError(t, err)
		require.Equal(t, isEmpty, !s.Withheld())
	}
}
