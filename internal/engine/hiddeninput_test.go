package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
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

// An error about such an input does not say what is in it either.
//
// Requirement: G54.
func TestErrorsDoNotRevealHiddenInputs(t *testing.T) {
	t.Parallel()
	refused := func(level label.Classification, text string) string {
		s := spec("a")
		s.Uses = []task.Use{{Name: "record", Need: []task.Path{"/score"}}}
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "a", Mode: handoff.Full}}}
		_, err := governed(t, policy, cleared("a", label.Secret, never(t))).Plan([]task.Spec{s}, &engine.RunOptions{Inputs: []engine.Input{{Name: "record", Text: text, Classification: level}}})
		require.Error(t, err)
		return err.Error()
	}
	text := func(level label.Classification) string {
		s := spec("a")
		s.Uses = []task.Use{{Name: "record"}}
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "a", Block: []task.Path{"ssn"}}}}
		_, err := governed(t, policy, cleared("a", label.Secret, never(t))).Plan([]task.Spec{s}, &engine.RunOptions{Inputs: []engine.Input{{Name: "record", Text: "a text", Classification: level}}})
		require.Error(t, err)
		return err.Error()
	}
	require.Contains(t, text(label.Confidential), "is a text")
	require.Contains(t, text(label.Secret), `nothing of input "record" can be delivered by everything except ssn: name members`)
	texts := []string{`{"scores": 1}`, `{"score": {"x": 1}}`, `a text`, `{"score": `}
	for _, text := range texts {
		require.Equal(t, refused(label.Secret, texts[0]), refused(label.Secret, text))
	}
	require.Contains(t, refused(label.Secret, texts[0]), `nothing of input "record" can be delivered by /score`)
	require.Contains(t, refused(label.Confidential, texts[0]), `did you mean "/scores"?`)
}

// What an assertion finds about an input or a message that the caller may not see does
// not depend on which members it has: it may have any.
//
// Requirement: G54.
func TestAssertionsDoNotRevealHiddenInputs(t *testing.T) {
	t.Parallel()
	checked := func(t *testing.T, level label.Classification, text string) (told []string) {
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "a", Mode: handoff.Full, Block: []task.Path{"ssn"}}, {From: handoff.User, To: "b", Mode: handoff.Full}}}
		tm := governed(t, policy, cleared("a", label.Secret, never(t)), cleared("b", label.Secret, never(t)), member("c", never(t)))
		first, second := spec("a"), spec("b")
		first.Uses, second.Uses = []task.Use{{Name: "record", Need: []task.Path{"/name"}}}, []task.Use{{Name: "record"}}
		for _, words := range []string{"hiv never reaches a", "hiv never reaches b", "ssn never derives into a", "nmae never reaches b", `input record /hiv never reaches b`, `input record /nmae never reaches a`} {
			a, err := flow.ParseAssertion(words)
			require.NoError(t, err)
			o := &engine.RunOptions{
				Inputs:   []engine.Input{{Name: "record", Text: text, Classification: level}},
				Messages: []engine.Message{{From: handoff.User, To: "b", Text: text, Classification: level}},
				Assert:   []flow.Assertion{a},
			}
			p, err := tm.Plan([]task.Spec{first, second, spec("c")}, o)
			if err != nil {
				told = append(told, words+": "+err.Error())
				continue
			}
			f := p.Findings[0]
			told = append(told, fmt.Sprintf("%s: %v %s %v", words, f.Holds, f.Why, f.Path))
		}
		return told
	}
	const most, least = `{"name": "Ada", "hiv": true, "ssn": 1}`, `{"name": "Ada", "nnae": 1}`
	hidden := checked(t, label.Secret, most)
	require.Equal(t, hidden, checked(t, label.Secret, least))
	require.Contains(t, hidden[1], "hiv never reaches b: false b receives property \"hiv\" of input \"record\"")
	require.Contains(t, hidden[1], "only the run will show")
	require.Contains(t, hidden[2], "ssn never derives into a: true")
	require.NotEqual(t, checked(t, label.Confidential, most), checked(t, label.Confidential, least))
}
