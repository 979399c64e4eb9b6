package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// widens returns what one policy delivers beyond another, a line for each pair.
func widens(t require.TestingT, p, than handoff.Policy) (lines []string) {
	for _, w := range rulebook(t, p).Widens(rulebook(t, than), []string{"analyst", "writer", "critic"}, func(name string) bool { return name == "critic" }) {
		lines = append(lines, w.String())
	}
	return lines
}

// Requirement: G61.
func TestWidensNamesThePairAndWhat(t *testing.T) {
	t.Parallel()
	rule := func(r handoff.PairRule) handoff.Policy {
		r.From, r.To = "analyst", "writer"
		return handoff.Policy{Rules: []handoff.PairRule{r}}
	}
	entry := handoff.Entry{Name: "e", From: "analyst", To: "writer", Reason: "it is safe"}
	lowers := func(d handoff.Declassifier) handoff.Policy {
		d.Entry = entry
		return handoff.Policy{Declassify: []handoff.Declassifier{d}}
	}
	score := handoff.Declassifier{Paths: []task.Path{"/score"}, LowerTo: label.Internal}
	approved, more, lower := score, score, score
	approved.Approve, more.Paths, lower.LowerTo = "critic", []task.Path{"/score", "/risk"}, label.Public
	scoped, minimal := rule(handoff.PairRule{Allow: []task.Path{"/a"}}), rule(handoff.PairRule{Mode: handoff.Minimal})
	ceiling := func(of label.Classification) handoff.Policy { return rule(handoff.PairRule{Ceiling: &of}) }
	kinds := rule(handoff.PairRule{Redact: handoff.Redaction{Kinds: []redact.Kind{redact.IP}}})
	patterns := rule(handoff.PairRule{Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "case", Regexp: `CASE-\d+`}}}})
	reveals := func(paths ...task.Path) handoff.Policy {
		return rule(handoff.PairRule{Reveal: map[redact.Kind][]task.Path{redact.Email: paths}})
	}
	cut := func(n int) handoff.Policy {
		return rule(handoff.PairRule{Translate: &handoff.Translation{MaxTokens: n}})
	}
	system := rule(handoff.PairRule{Translate: &handoff.Translation{Recast: "system"}})
	endorsed := func(p handoff.Policy) handoff.Policy {
		p.Endorse = []handoff.Endorser{{Entry: entry}}
		return p
	}
	summary := func(recast string) handoff.Policy {
		return rule(handoff.PairRule{Translate: &handoff.Translation{MaxTokens: 10, ByModel: true, Recast: recast}})
	}
	renew := func(ttl time.Duration) handoff.Policy {
		return handoff.Policy{Renew: []handoff.Renewal{{Entry: entry, TTL: ttl}}}
	}
	for _, tt := range []struct {
		name      string
		now, than handoff.Policy
		want      string // of analyst→writer; empty for nothing anywhere
	}{
		{"nothing changes", scoped, scoped, ""},
		{"a rule goes", handoff.Policy{}, scoped, "mode full in place of scoped, everything in place of /a"},
		{"a rule comes", scoped, handoff.Policy{}, ""},
		{"minimal comes", minimal, scoped, ""},
		{"minimal goes", scoped, minimal, "mode scoped in place of minimal"},
		{"a path comes", rule(handoff.PairRule{Allow: []task.Path{"/a", "/b"}}), scoped, "/a, /b in place of /a"},
		{"a path goes", scoped, rule(handoff.PairRule{Allow: []task.Path{"/a", "/b"}}), ""},
		{"a block comes", rule(handoff.PairRule{Block: []task.Path{"ssn"}}), handoff.Policy{}, ""},
		{"a block goes", handoff.Policy{}, rule(handoff.PairRule{Block: []task.Path{"ssn"}}), "everything in place of "},
		{"the ceiling falls", ceiling(label.Internal), ceiling(label.Confidential), ""},
		{"the ceiling rises", ceiling(label.Confidential), ceiling(label.Internal), "maxClassification confidential in place of internal"},
		{"a kind comes", kinds, handoff.Policy{}, ""},
		{"a kind goes", handoff.Policy{}, kinds, "fewer kinds are redacted"},
		{"a pattern goes", handoff.Policy{}, patterns, "fewer patterns are redacted"},
		{"reveal comes", reveals("/mail"), handoff.Policy{}, "reveal of email"},
		{"reveal gets a path", reveals("/mail", "/cc"), reveals("/mail"), "reveal of email"},
		{"reveal loses a path", reveals("/mail"), reveals("/mail", "/cc"), ""},
		{"a declassifier comes", lowers(score), handoff.Policy{}, `declassify "e"`},
		{"a declassifier goes", handoff.Policy{}, lowers(score), ""},
		{"it lowers more", lowers(more), lowers(score), `declassify "e"`},
		{"it lowers further", lowers(lower), lowers(score), `declassify "e"`},
		{"it needs approval", lowers(approved), lowers(score), ""},
		{"it needs none any more", lowers(score), lowers(approved), `declassify "e"`},
		{"an endorser comes", handoff.Policy{Endorse: []handoff.Endorser{{Entry: entry}}}, handoff.Policy{}, `endorse "e"`},
		{"a renewal comes", renew(time.Minute), handoff.Policy{}, `renew "e"`},
		{"it renews for longer", renew(time.Hour), renew(time.Minute), `renew "e"`},
		{"it renews for less", renew(time.Minute), renew(time.Hour), ""},
		{"a summary comes", cut(10), handoff.Policy{}, ""},
		{"it gets longer", cut(20), cut(10), "it is summarized less"},
		{"it goes", handoff.Policy{}, cut(10), "it is summarized less"},
		{"recast comes", system, handoff.Policy{}, "recast to the system prompt"},
		{"recast goes, which withheld what no entry endorsed", handoff.Policy{}, system, "it is not withheld from the system prompt"},
		{"recast goes, of what is endorsed", endorsed(handoff.Policy{}), endorsed(system), ""},
		{"recast goes, of what a model summarizes", endorsed(summary("")), endorsed(summary("system")), "it is not withheld from the system prompt"},
		{"an endorser of what is recast comes", endorsed(system), system, `endorse "e"`},
		{"a summary by a model comes", summary(""), handoff.Policy{}, ""},
		{"a summary by a model in place of an excerpt", summary(""), cut(10), "it is summarized less"},
		{"all fields", handoff.Policy{}, rule(handoff.PairRule{Translate: &handoff.Translation{Fields: []task.Path{"/*"}}}), "everything in place of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := widens(t, tt.now, tt.than)
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.NotEmpty(t, got)
			require.Contains(t, got[0], "analyst→writer: "+tt.want)
		})
	}
}

func TestWidensKnowsDefaultsAndStrangers(t *testing.T) {
	t.Parallel()
	narrow := handoff.Policy{Default: handoff.Scoped}
	require.Len(t, widens(t, handoff.Policy{}, narrow), 20, "each pair of agents and computed, and what strangers made")
	exact := handoff.Policy{Rules: []handoff.PairRule{{From: "analyst", To: "critic", Allow: []task.Path{"/a"}}}}
	require.Equal(t, []string{"analyst→critic: a rule for the exact pair states a mode, so secret values may pass"}, widens(t, exact, handoff.Policy{}))
	everybody := handoff.Policy{Rules: []handoff.PairRule{{From: "*", To: "writer", Block: []task.Path{"x"}}}}
	require.Contains(t, widens(t, handoff.Policy{}, everybody), "*→writer: everything in place of everything except x")
}

// Of many parties, those of which the policies say the same are compared once.
func TestWidensOfManyParties(t *testing.T) {
	t.Parallel()
	var names []string
	var many []gate.Party
	for i := range 2000 {
		names = append(names, fmt.Sprint("agent", i))
		many = append(many, gate.Party{Name: names[i]})
	}
	compiled := func(p handoff.Policy) *gate.Rulebook {
		b, err := gate.Compile(&p, many)
		require.NoError(t, err)
		return b
	}
	was := compiled(handoff.Policy{Rules: []handoff.PairRule{{From: "agent7", To: "agent1999", Block: []task.Path{"x"}}}})
	unclear := func(string) bool { return false }
	start := time.Now()
	got := compiled(handoff.Policy{}).Widens(was, names, unclear)
	require.Len(t, got, 1)
	require.Equal(t, "agent7", got[0].From)
	require.Less(t, time.Since(start), time.Second)
	require.Empty(t, was.Widens(compiled(handoff.Policy{}), names, unclear))
}

// Requirement: G61.
func TestWhatDoesNotWidenDeliversNoMore(t *testing.T) {
	t.Parallel()
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		before, after, need, o := drawPolicy(t), drawPolicy(t), drawNeed(t), drawOffer(t)
		if rapid.Bool().Draw(t, "alike") {
			after.Rules = append(after.Rules[:0:0], before.Rules...)
			if n := len(after.Rules); n > 0 {
				r := &after.Rules[rapid.IntRange(0, n-1).Draw(t, "rule")]
				r.Block = blocks().Draw(t, "other block")
			}
		}
		if _, err := gate.Compile(&after, parties); err != nil {
			t.Skip("it does not load")
		}
		if len(widens(t, after, before)) > 0 {
			return
		}
		compared++
		_, was := ask(t, before, need, o)
		_, is := ask(t, after, need, o)
		had := numbers(t, was)
		for leaf := range numbers(t, is) {
			require.Contains(t, had, leaf, "%v in place of %v", after.Rules, before.Rules)
		}
	})
	require.Positive(t, compared)
}

// TestWhatDoesNotDifferDeliversTheSame checks that two policies of which neither widens the other deliver the same, so
// that what runs under one of them may continue under the other.
//
// Requirement: G61.
func TestWhatDoesNotDifferDeliversTheSame(t *testing.T) {
	t.Parallel()
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		before, need, o := drawPolicy(t), drawNeed(t), drawOffer(t)
		after := before
		after.Rules = append(before.Rules[:0:0], before.Rules...)
		if n := len(after.Rules); n > 0 {
			r := &after.Rules[rapid.IntRange(0, n-1).Draw(t, "rule")]
			r.Block = blocks().Draw(t, "other block")
		}
		if _, err := gate.Compile(&after, parties); err != nil {
			t.Skip("it does not load")
		}
		if len(widens(t, after, before)) > 0 || len(widens(t, before, after)) > 0 {
			return
		}
		compared++
		_, was := ask(t, before, need, o)
		_, is := ask(t, after, need, o)
		require.Equal(t, numbers(t, was), numbers(t, is), "%v in place of %v", after.Rules, before.Rules)
	})
	require.Positive(t, compared)
}

func TestPair(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{Rules: []handoff.PairRule{
		{ID: "facts", From: "analyst", To: "writer", Allow: []task.Path{"/a"}, Origin: at(4)},
		{From: "*", To: "writer", Block: []task.Path{"ssn"}, Redact: handoff.Redaction{Kinds: []redact.Kind{redact.IP}}, Origin: at(5)},
	}, Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "bounded", Origin: at(6)}, Paths: []task.Path{"/a"}, LowerTo: label.Internal}}}
	b := rulebook(t, p)
	require.Equal(t, gate.PairTerms{
		From: "analyst", To: "writer", Mode: handoff.Scoped, Allow: []task.Path{"/a"}, AndAllow: [][]task.Path{}, Block: []task.Path{"ssn"}, MaxClassification: "secret", Redact: []redact.Kind{redact.IP},
		Declassify: &gate.PairEntry{Name: "d", Reason: "bounded", Line: "team.yaml:6", Paths: []task.Path{"/a"}, LowerTo: "internal"},
		Rules:      []gate.PairRule{{ID: "facts", Line: "team.yaml:4"}, {ID: "*→writer", Line: "team.yaml:5"}},
	}, b.Pair("analyst", "writer"))
	var names []string
	for _, pair := range b.Pairs([]string{"analyst", "writer"}) {
		names = append(names, pair.From+"→"+pair.To)
	}
	require.Equal(t, []string{"analyst→writer", "computed→writer", "coordinator→writer", "user→writer", "writer→writer"}, names)
}
