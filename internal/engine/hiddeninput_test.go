package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// What the check says of the paths for an input that the caller may not see does not
// depend on which members the input has, in the plan, the events, the result and errors.
//
// Requirement: G54.
func TestWarningsDoNotRevealHiddenInputs(t *testing.T) {
	t.Parallel()
	type told struct{ plan, events, result []string }
	play := func(t *testing.T, level label.Classification, text string) told {
		policy := &handoff.Policy{Rules: []handoff.PairRule{{
			From: handoff.User, To: "a", Mode: handoff.Scoped, Allow: []task.Path{"/name", "/hiv", "/meds/*", "/mail"}, Block: []task.Path{"hiv", "/meds/0"},
			Reveal: map[redact.Kind][]task.Path{redact.Email: {"/mail"}},
		}}}
		s := spec("a")
		s.Uses = []task.Use{{Name: "record", Need: []task.Path{"/name", "/meds/*", "/mail"}}}
		o := &engine.RunOptions{Inputs: []engine.Input{{Name: "record", Text: text, Classification: level}}}
		tm := governed(t, policy, cleared("a", label.Secret, says("done")), member("b", says("an answer for the caller")))
		p, err := tm.Plan([]task.Spec{s, spec("b")}, o)
		require.NoError(t, err)
		var out told
		for _, w := range p.Warnings {
			out.plan = append(out.plan, w.Error())
		}
		var a audience
		res := run(t, tm, a.with(*o), s, spec("b"))
		for _, e := range a.only(event.Warning) {
			out.events = append(out.events, e.Message)
		}
		out.result = res.Warnings
		return out
	}
	const most, least = `{"name": "Ada", "hiv": true, "meds": ["x"], "mail": "a@example.org"}`, `{"name": "Ada", "medz": 1, "males": 2}`
	hidden := play(t, label.Secret, most)
	require.Equal(t, hidden, play(t, label.Secret, least))
	for _, list := range [][]string{hidden.plan, hidden.events, hidden.result} {
		require.Len(t, list, 1)
		require.Contains(t, list[0], `input "record": paths of tasks and rules are not compared with its members: it is secret, and the caller may see confidential`)
	}
	visible := strings.Join(play(t, label.Confidential, least).result, "\n")
	require.Contains(t, visible, "/hiv")
	require.Contains(t, visible, "did you mean")
}
