package gate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// Where the policy lets no model translate, what a model has to summarize is withheld, whoever asks for the summary, and
// what is translated without a model is delivered as before. Nothing widens by it.
func TestNoModelTranslates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long story ", 50)
	byModel, excerpt := &handoff.Translation{MaxTokens: 10, ByModel: true}, &handoff.Translation{MaxTokens: 10}
	for _, tt := range []struct {
		name  string
		rules []handoff.PairRule
		own   *handoff.Translation // of the reader
		want  gate.Verdict
		rule  handoff.Rule
		line  string
	}{
		{"no rule", nil, nil, gate.Passed, gate.RuleDependsOn, long},
		{"a summary by a model", []handoff.PairRule{{ID: "short", From: "analyst", To: "writer", Translate: byModel}}, nil, gate.Withheld, "short", ""},
		{"a summary by a model, for everyone", []handoff.PairRule{{ID: "short", From: "*", To: "writer", Translate: byModel}}, nil, gate.Withheld, "short", ""},
		{"a summary by a model, of a whole result", []handoff.PairRule{{ID: "all", From: "analyst", To: "writer", Mode: handoff.Full, Translate: byModel}}, nil, gate.Withheld, "all", ""},
		{"a summary by a model, which the reader asks for", nil, byModel, gate.Withheld, gate.RuleAgentDefault, ""},
		{"an excerpt", []handoff.PairRule{{ID: "short", From: "analyst", To: "writer", Translate: excerpt}}, nil, gate.Passed, "short", "[…]"},
		{"a heading", []handoff.PairRule{{ID: "title", From: "analyst", To: "writer", Mode: handoff.Minimal}}, byModel, gate.Minimized, "title", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			parties := []gate.Party{{Name: "analyst"}, {Name: "writer", Translate: tt.own}, {Name: "critic"}}
			off, err := gate.Compile(&handoff.Policy{Rules: tt.rules, NoTranslationByModel: true}, parties)
			require.NoError(t, err)
			g := gate.WholeOf(upstream, "dependsOn")
			g.Terms = off.Between("analyst", "writer")
			o := offer(t, envelope.Text(long))
			o.Optional = true
			d := decide(t, granted(t, []gate.Grant{g}), o)
			require.Equal(t, tt.want, d.Verdict)
			require.Equal(t, tt.rule, d.Rule)
			s, err := granted(t, []gate.Grant{g}).GateOutbound(t.Context(), o, noon)
			require.NoError(t, err)
			require.Contains(t, s.Payload().Text(), tt.line)
			require.Equal(t, tt.want != gate.Passed, s.Withheld())

			on, err := gate.Compile(&handoff.Policy{Rules: tt.rules}, parties)
			require.NoError(t, err)
			names := []string{"analyst", "writer"}
			require.Empty(t, off.Widens(on, names, nil), "to switch it off narrows")
			widens := on.Between("analyst", "writer").Widens(g.Terms, true)
			require.Equal(t, tt.want == gate.Withheld, len(widens) > 0, "to switch it on widens what is withheld")
			require.NotEqual(t, on.Digest(), off.Digest())
		})
	}
}

// A note is one clean line for people. It is part of the policy and of what applies to a pair.
func TestNoteOfARule(t *testing.T) {
	t.Parallel()
	with := func(note string) (*gate.Rulebook, error) {
		p := exactly(handoff.PairRule{ID: "r", Allow: []task.Path{"/a"}, Note: note})
		return gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer"}})
	}
	noted, err := with("legal has checked it")
	require.NoError(t, err)
	require.Equal(t, []gate.PairRule{{ID: "r", Note: "legal has checked it"}}, noted.Pair("analyst", "writer").Rules)
	require.Equal(t, []gate.Citation{{Rule: "r", Note: "legal has checked it"}}, noted.Between("analyst", "writer").Cited())
	bare, err := with("")
	require.NoError(t, err)
	require.NotEqual(t, bare.Digest(), noted.Digest())
	for _, note := range []string{"two\nlines", "red \x1b[31m", strings.Repeat("x", 501)} {
		_, err := with(note)
		require.ErrorIs(t, err, handoff.ErrPolicy)
		require.ErrorContains(t, err, "note")
	}
}
