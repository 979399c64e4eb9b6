package plan_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// What an assertion finds about an input or a message that the caller may not see does
// not depend on which members it has: it may have any.
//
// Requirement: G54.
func TestAssertionsDoNotRevealHiddenInputs(t *testing.T) {
	t.Parallel()
	checked := func(t *testing.T, level label.Classification, text string) (told []string) {
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "a", Mode: handoff.Full, Block: []task.Path{"ssn"}}, {From: handoff.User, To: "b", Mode: handoff.Full}}}
		r := governed(t, policy, cleared("a", label.Secret), cleared("b", label.Secret), member("c"))
		first, second := spec("a"), spec("b")
		first.Uses, second.Uses = []task.Use{{Name: "record", Need: []task.Path{"/name"}}}, []task.Use{{Name: "record"}}
		for _, words := range []string{"hiv never reaches a", "hiv never reaches b", "ssn never derives into a", "nmae never reaches b", `input record /hiv never reaches b`, `input record /nmae never reaches a`} {
			a, err := flow.ParseAssertion(words)
			require.NoError(t, err)
			o := &plan.Options{
				Inputs:   []plan.Input{{Name: "record", Text: text, Classification: level}},
				Messages: []plan.Message{{From: handoff.User, To: "b", Text: text, Classification: level}},
				Assert:   []flow.Assertion{a},
			}
			p, err := r.plan([]task.Spec{first, second, spec("c")}, o)
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

// An error about such an input does not say what is in it either.
//
// Requirement: G54.
func TestErrorsDoNotRevealHiddenInputs(t *testing.T) {
	t.Parallel()
	refused := func(level label.Classification, text string) string {
		s := spec("a")
		s.Uses = []task.Use{{Name: "record", Need: []task.Path{"/score"}}}
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "a", Mode: handoff.Full}}}
		_, err := governed(t, policy, cleared("a", label.Secret)).plan([]task.Spec{s}, &plan.Options{Inputs: []plan.Input{{Name: "record", Text: text, Classification: level}}})
		require.Error(t, err)
		return err.Error()
	}
	text := func(level label.Classification) string {
		s := spec("a")
		s.Uses = []task.Use{{Name: "record"}}
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "a", Block: []task.Path{"ssn"}}}}
		_, err := governed(t, policy, cleared("a", label.Secret)).plan([]task.Spec{s}, &plan.Options{Inputs: []plan.Input{{Name: "record", Text: "a text", Classification: level}}})
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

// printed is everything that common ways of printing make of a value.
func printed(v any) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v %+v %#v %s %q", v, v, v, v, v)
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
	return b.String()
}

// Requirement: G42.
func TestPlansAndInputsPrintNoInput(t *testing.T) {
	t.Parallel()
	a := spec("a")
	a.Uses = []task.Use{{Name: "code"}}
	in := plan.Input{Name: "code", Text: "CANARY"}
	r := newTeam(t, member("a"))
	p, err := r.plan([]task.Spec{a}, &plan.Options{Inputs: []plan.Input{in}})
	require.NoError(t, err)
	require.NotContains(t, printed(p), "CANARY")
	require.NotContains(t, printed(*p), "CANARY")
	require.NotContains(t, printed([]*plan.Plan{p}), "CANARY")
	require.NotContains(t, printed(struct{ p *plan.Plan }{p}), "CANARY")
	require.NotContains(t, printed(in), "CANARY")
	require.NotContains(t, printed([]plan.Input{in}), "CANARY")
}

// A text of the caller's of which only parts may cross is refused before a run.
//
// Requirement: G6.
func TestTextInputHasNoParts(t *testing.T) {
	t.Parallel()
	use := by("b", spec("use"))
	use.Uses = []task.Use{{Name: "in", Need: []task.Path{"/pub"}}}
	r := newTeam(t, member("b"))
	for text, why := range map[string]string{"plain words": "only parts may be: /pub", `{"pub":1,"pub":2}`: "only parts may be: /pub (not one strict JSON value: "} {
		_, err := r.plan([]task.Spec{use}, &plan.Options{Inputs: []plan.Input{{Name: "in", Text: text}}})
		requireFaults(t, err, fault{"/tasks/0/uses/0", why, task.ErrInvalid})
	}
}

func TestUnusedInputIsAWarning(t *testing.T) {
	t.Parallel()
	s := spec("a")
	s.Uses = []task.Use{{Name: "used"}}
	p, err := newTeam(t, member("a")).plan([]task.Spec{s}, &plan.Options{Inputs: []plan.Input{{Name: "used"}, {Name: "unused"}}})
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	require.Equal(t, "/inputs/unused", p.Warnings[0].Pointer)
}
