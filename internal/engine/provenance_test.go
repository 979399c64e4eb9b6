package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A planDesk is a team with a coordinator that notes what its agents read.
type planDesk struct {
	*engine.Team
	mu   sync.Mutex // guards read
	read map[string]string
}

func planning(t *testing.T, plan string) *planDesk {
	t.Helper()
	d := &planDesk{read: map[string]string{}}
	worker := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.read[p.Receipt().Agent] = p.System() + "\n" + p.Text()
		return agent.Reply{Text: "done"}, nil
	}
	var err error
	d.Team, err = engine.New(engine.Config{
		Agents:      []engine.Member{cleared("ada", label.Confidential, worker), cleared("bob", label.Confidential, worker)},
		Coordinator: &engine.Coordinator{Agent: &planner{plans: []string{plan}}},
		Policy:      &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Coordinator, To: "bob", Ceiling: new(label.Confidential)}}},
	})
	require.NoError(t, err)
	return d
}

var mailPlan = `[
  {"title": "Find", "description": "Ask ada.one@example.org about card 4111 1111 1111 1111.\nUse token ` + fakeToken + ` <|im_start|>.", "assignee": "ada"},
  {"title": "Tell", "description": "Write to bob.two@example.org.", "assignee": "bob", "dependsOn": ["Find"]}
]`

// TestSavedPlanRunsLikeThePlan runs a plan directly and as it was saved. A
// description was redacted in the first run and raw in the second one.
func TestSavedPlanRunsLikeThePlan(t *testing.T) {
	t.Parallel()
	goal := engine.Goal{Text: "Settle it.", Classification: label.Confidential}
	direct := planning(t, mailPlan)
	first, err := direct.RunTeam(t.Context(), goal, nil)
	require.NoError(t, err)
	require.NoError(t, first.Err())

	planned, err := planning(t, mailPlan).PlanTeam(t.Context(), goal, nil)
	require.NoError(t, err)
	specs := planned.Specs()
	require.Equal(t, handoff.Coordinator, specs[0].Source.Record.From)
	require.Equal(t, "coordinator/plan/1", specs[0].Source.Record.Envelope)
	require.NotEmpty(t, specs[0].Source.Record.Run)
	require.NotZero(t, specs[0].Source.Record.CreatedAt)
	require.Equal(t, label.Confidential, specs[0].Classification)

	saved := planning(t, mailPlan)
	second, err := saved.RunTasks(t.Context(), specs, &engine.RunOptions{Answer: &goal})
	require.NoError(t, err)
	require.NoError(t, second.Err())
	require.Equal(t, direct.read, saved.read, "the same bytes")
	for _, text := range saved.read {
		require.NotContains(t, text, "@example.org")
		require.NotContains(t, text, "4111")
		require.NotContains(t, text, "<|im_start|>")
	}
	for i := range first.Tasks {
		a, b := first.Tasks[i], second.Tasks[i]
		require.Equal(t, a.Description, b.Description)
		require.Equal(t, a.Label, b.Label)
		one, other := a.Receipts[0].Sources, b.Receipts[0].Sources
		require.Len(t, other, len(one))
		for k := range one {
			if one[k].Decision == nil {
				require.Nil(t, other[k].Decision)
				continue
			}
			require.Equal(t, one[k].Decision.Source, other[k].Decision.Source, "explain names the same source")
			require.Equal(t, one[k].Decision.From, other[k].Decision.From)
			require.Equal(t, one[k].Decision.Before, other[k].Decision.Before)
		}
	}
	again, err := saved.Plan(specs, &engine.RunOptions{Answer: &goal})
	require.NoError(t, err)
	require.Equal(t, tableOf(t, planned), tableOf(t, again), "a saved plan derives from its goal, as the plan did")
}

// tableOf is who could see what, as JSON.
func tableOf(t *testing.T, p *engine.Plan) string {
	t.Helper()
	table := p.Flow()
	var rows [][]flow.Reach
	for i := range table.Graph().Sources {
		rows = append(rows, table.Row(i))
	}
	out, err := json.Marshal(rows)
	require.NoError(t, err)
	return string(out)
}

// A provenance only narrows: it can be removed, which makes the text the
// caller's own, and what is written into it opens nothing.
func TestProvenanceGrantsNothing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	of := func(change func(*task.Spec)) []task.Spec {
		s := by("ada", spec("Find"))
		s.Description, s.Source.Record = "Ask ada.one@example.org.", &provenance.Record{From: handoff.Coordinator}
		change(&s)
		return []task.Spec{s}
	}
	run := func(specs []task.Spec) (string, *engine.Result) {
		d := planning(t, "[]")
		res, err := d.RunTasks(t.Context(), specs, nil)
		require.NoError(t, err)
		return d.read["ada"], res
	}
	text, res := run(of(func(*task.Spec) {}))
	require.NoError(t, res.Err())
	require.Contains(t, text, "Ask [REDACTED:email].")
	text, res = run(of(func(s *task.Spec) { s.Source.Record = nil }))
	require.NoError(t, res.Err())
	require.Contains(t, text, "Ask ada.one@example.org.", "an own instruction")
	for name, p := range map[string]*provenance.Record{
		"expired":         {From: handoff.Coordinator, CreatedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(-time.Hour)},
		"from the future": {From: handoff.Coordinator, CreatedAt: now.Add(time.Hour)},
	} {
		text, res := run(of(func(s *task.Spec) { s.Source.Record = p }))
		require.Empty(t, text, name)
		require.Equal(t, gate.CodeWithheld, res.Tasks[0].Error.Code, name)
	}
	for name, tt := range map[string]struct {
		change func(*task.Spec)
		want   fault
	}{
		"another producer": {func(s *task.Spec) { s.Source.Record.From = "runteam" }, fault{"/tasks/0/provenance/from", `"runteam" does not write descriptions`, task.ErrInvalid}},
		"a title":          {func(s *task.Spec) { s.Title = "Ask ada.one@example.org" }, fault{"/tasks/0/title", "its planned title", task.ErrInvalid}},
		"a role":           {func(s *task.Spec) { s.Role = "mail of ada.one@example.org" }, fault{"/tasks/0/role", "its planned role", task.ErrInvalid}},
		"its times":        {func(s *task.Spec) { s.Source.Record.CreatedAt, s.Source.Record.ExpiresAt = now, now }, fault{"/tasks/0/provenance/expiresAt", "it expires before it was made", task.ErrInvalid}},
	} {
		_, err := planning(t, "[]").Plan(of(tt.change), nil)
		require.Error(t, err, name)
		requireFaults(t, err, tt.want)
	}
}
