package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Unendorsed context is not put into a system prompt; where that is certain it is
// said before a run.
//
// Requirement: G14.
func TestRecastWithoutAnEndorserIsAWarning(t *testing.T) {
	t.Parallel()
	recast := &handoff.Translation{Recast: gate.RecastSystem}
	made := func(endorse ...handoff.Endorser) roster {
		r, err := newRoster(plan.Config{
			Agents: []plan.Member{member("a"), member("b")},
			Policy: &handoff.Policy{Endorse: endorse, Rules: []handoff.PairRule{{From: handoff.User, To: "b", Translate: recast}, {From: "a", To: "b", Translate: recast}}},
		})
		require.NoError(t, err)
		return r
	}
	use := by("b", spec("use"))
	use.Uses = []task.Use{{Name: "in"}}
	o := &plan.Options{Inputs: []plan.Input{{Name: "in", Text: "x"}}}
	_, err := made().plan([]task.Spec{use}, o)
	requireFaults(t, err, fault{"/tasks/0/uses/0", "it is to stand in the system prompt, and no entry endorses it: endorse it in the policy", task.ErrInvalid})
	_, err = made(handoff.Endorser{Entry: handoff.Entry{Name: "e", From: handoff.User, To: "b", Reason: "read"}}).plan([]task.Spec{use}, o)
	require.NoError(t, err)
	p, err := made().plan([]task.Spec{by("a", spec("first")), by("b", spec("second", "first"))}, nil)
	require.NoError(t, err)
	require.Contains(t, p.Warnings[0].Error(), `the result of "first" will be withheld: it is to stand in the system prompt, and no entry endorses it`)
}

func TestRulesWithoutEffectAreWarnings(t *testing.T) {
	t.Parallel()
	cfg := plan.Config{
		Agents: []plan.Member{member("a"), member("b"), member("c")},
		Policy: &handoff.Policy{
			Rules: []handoff.PairRule{
				{From: "a", To: "b", Block: []task.Path{"notes"}},
				{From: "a", To: "c", Block: []task.Path{"notes"}},
				{From: handoff.User, To: "b", Block: []task.Path{"notes"}},
				{From: handoff.Anyone, To: "c", Ceiling: new(label.Internal)},
				{From: "b", To: handoff.User, Mode: handoff.Minimal},
			},
			Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "n", From: "b", To: "c", Reason: "r"}, Paths: []task.Path{"/n"}, LowerTo: label.Public}},
		},
	}
	r, err := newRoster(cfg)
	require.NoError(t, err)
	specs := []task.Spec{by("a", spec("first")), by("b", spec("second", "first")), by("c", spec("third"))}
	alone := r
	warned := func(o *plan.Options) (list []string) {
		p, err := r.plan(specs, o)
		require.NoError(t, err)
		for _, w := range p.Warnings {
			if w.Pointer != "/tasks/1/dependsOn/0" { // a text under a block
				list = append(list, w.Pointer+" "+w.Error())
			}
		}
		return list
	}
	require.Equal(t, []string{
		`/policy/rules/1 rule a→c: no effect here: "c" receives nothing from "a"`,
		`/policy/rules/2 rule user→b: no effect here: "b" receives nothing from "user"`,
		`/policy/declassify/0 "n": no effect here: "c" receives nothing from "b"`,
	}, warned(nil))
	require.Len(t, warned(&plan.Options{Messages: []plan.Message{{From: handoff.User, To: "b", Text: "x"}}}), 2, "a message is something")
	r, err = newRoster(plan.Config{Agents: cfg.Agents, Policy: cfg.Policy, Edges: edges("a>c")})
	require.NoError(t, err)
	require.Len(t, warned(nil), 2, "so is a handoff")
	r = alone
	specs[2].MemoryScope = task.ScopeAll
	require.Len(t, warned(nil), 1, "so is the shared memory")
}
