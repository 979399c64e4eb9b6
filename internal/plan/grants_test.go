package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A path at which no result can have anything is an error before a run. A
// single path that a given input lacks is a warning: another input may have it.
//
// Requirement: G5.
func TestPathsMustMatchTheSchema(t *testing.T) {
	t.Parallel()
	const closed = `{"type":"object","additionalProperties":false,"properties":{"score":{"type":"number"},"facts":{"type":"object"}}}`
	made := by("a", spec("made"))
	made.OutputSchema = []byte(closed)
	reads := func(need ...task.Path) task.Spec {
		s := by("b", spec("read"))
		s.DependsOn = []task.Ref{{Task: "made", Need: need}}
		return s
	}
	warned := func(r roster, o *plan.Options, specs ...task.Spec) []string {
		p, err := r.plan(specs, o)
		require.NoError(t, err)
		var said []string
		for _, w := range p.Warnings {
			said = append(said, w.Error())
		}
		return said
	}
	plain := newTeam(t, member("a"), member("b"))
	require.Empty(t, warned(plain, nil, made, reads("/score", "/facts/**")))
	_, err := plain.plan([]task.Spec{made, reads("/score", "/scoer", "/fatcs/**")}, nil)
	requireFaults(t, err,
		fault{"/tasks/1/dependsOn/0/need/1", `the result of "made" can have nothing at "/scoer": did you mean "/score"?`, task.ErrUnknown},
		fault{"/tasks/1/dependsOn/0/need/2", `the result of "made" can have nothing at "/fatcs/**": did you mean "/facts/**"?`, task.ErrUnknown})

	open := made
	open.OutputSchema = []byte(`{"type":"object","properties":{"score":{"type":"number"}}}`)
	require.Equal(t, []string{`task "read": no outputSchema names "/scoer" of the result of "made": did you mean "/score"?`}, warned(plain, nil, open, reads("/scoer", "/other")))

	governed, err := newRoster(plan.Config{
		Agents: []plan.Member{member("a"), member("b")},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Allow: []task.Path{"/cheks/**"}, Origin: provenance.Position{File: "team.yaml", Line: 9}}}},
	})
	require.NoError(t, err)
	_, err = governed.plan([]task.Spec{made, reads()}, nil)
	requireFaults(t, err, fault{"/policy/rules/0/allow/0", `rule a→b: no result of "a" matches "/cheks/**": write one of /facts, /score`, task.ErrUnknown})

	use := by("a", spec("use"))
	use.Uses = []task.Use{{Name: "ticket", Need: []task.Path{"/order/number", "/order/nmber"}, Reveal: map[string][]task.Path{string(redact.IBAN): {"/customer/ibn"}}}}
	o := &plan.Options{Inputs: []plan.Input{{Name: "ticket", Text: `{"order":{"number":4711},"customer":{"iban":"x"}}`}}}
	require.Equal(t, []string{
		`task "use": need /order/nmber of input "ticket": nothing can be there: did you mean "/order/number"?`,
		`task "use": reveal iban at /customer/ibn of input "ticket": nothing can be there: did you mean "/customer/iban"?`,
	}, warned(plain, o, use))
	use.Uses[0] = task.Use{Name: "ticket", Need: []task.Path{"/order"}}
	_, err = plain.plan([]task.Spec{use}, o)
	requireFaults(t, err, fault{"/tasks/0/uses/0/need/0", "an object or a list is there, which /order/** grants", task.ErrUnknown})
	o.Inputs[0].Text = "a text"
	require.Empty(t, warned(plain, o, func() task.Spec { s := use; s.Uses[0].Need = nil; return s }()), "of a text nothing is known")
}

// Names are compared as grants and blocks compare them.
//
// Requirement: G10.
func TestPathsOfAnInputInAnotherForm(t *testing.T) {
	t.Parallel()
	r := newTeam(t, member("a"))
	use := by("a", spec("use"))
	use.Uses = []task.Use{{Name: "in", Need: []task.Path{"/caf\u00e9"}}}
	p, err := r.plan([]task.Spec{use}, &plan.Options{Inputs: []plan.Input{{Name: "in", Text: `{"cafe\u0301":1,"list":[{"ＳＳＮ":2}]}`}}})
	require.NoError(t, err)
	require.Empty(t, p.Warnings)
}
