package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

func TestTaskThatRequiresAToolGoesToAnAgentThatHasIt(t *testing.T) {
	t.Parallel()
	r, err := newRoster(plan.Config{Agents: []plan.Member{
		{Name: "reader", Agent: asksModel},
		{Name: "clerk", Agent: asksModel, Tools: []*tool.Tool{newTool(t, "lookup", tool.Options{Effect: tool.None})}},
	}})
	require.NoError(t, err)
	p, err := r.plan([]task.Spec{{Title: "Age", Description: "?", Requires: &task.Requires{Tools: []string{"lookup"}}}}, nil)
	require.NoError(t, err)
	require.Equal(t, "clerk", p.Tasks[0].Assignee)
	_, err = r.plan([]task.Spec{{Title: "Age", Description: "?", Requires: &task.Requires{Tools: []string{"search"}}}}, nil)
	require.ErrorContains(t, err, "search")
}

func open(title string, deps ...string) task.Spec {
	return task.Spec{Title: title, Description: "Work on it.", DependsOn: task.On(deps...)}
}

func assignees(t *testing.T, p *plan.Plan) (names []string) {
	t.Helper()
	for _, one := range p.Tasks {
		require.Equal(t, one.Assignee, p.Specs()[len(names)].Assignee)
		names = append(names, one.Assignee)
	}
	return names
}

// Clearance is a hard requirement of assignment, before the flow is checked.
//
// Requirement: G48.
func TestAssignmentRespectsClearance(t *testing.T) {
	t.Parallel()
	r := newTeam(t, member("low"), cleared("high", label.Confidential), member("other"))
	first := open("First")
	first.Uses = []task.Use{{Name: "claim"}}
	soft := open("Soft")
	soft.DependsOn = []task.Ref{{Task: "First", Optional: true}}
	specs := []task.Spec{first, open("Second", "First"), soft, open("Free")}
	o := &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x", Classification: label.Confidential}}}
	p, err := r.plan(specs, o)
	require.NoError(t, err)
	names := assignees(t, p)
	require.Equal(t, []string{"high", "high", "high"}, names[:3], "also for what it need not have")
	require.NotEqual(t, "", names[3])

	// If no agent may read all optional context of a task, an agent that may read the required
	// context is enough.
	r = newTeam(t, cleared("only", label.Confidential), member("low"))
	pinned := first
	pinned.Assignee = "only"
	soft.RequiredTags = nil
	soft.Requires = &task.Requires{Capabilities: []string{"prose"}}
	m := member("low")
	m.Capabilities = []string{"prose"}
	r = newTeam(t, cleared("only", label.Confidential), m)
	p, err = r.plan([]task.Spec{pinned, soft}, o)
	require.NoError(t, err)
	require.Equal(t, "low", p.Tasks[1].Assignee)
	require.EqualValues(t, "clearance", p.Tasks[1].Reads[0].Withheld)
}

func TestStrategiesChooseAgents(t *testing.T) {
	t.Parallel()
	sql := member("sql")
	sql.Capabilities = []string{"database", "queries"}
	prose := member("prose")
	prose.Description = "Writes letters to customers."
	r := newTeam(t, sql, prose)
	query, letter, last := open("Query the database"), open("Write letters to customers"), open("Check")
	last.DependsOn = task.On("Write letters to customers")
	specs := []task.Spec{query, letter, last, by("sql", spec("extra"))}
	for _, tt := range []struct {
		strategy assign.Strategy
		want     []string
	}{
		{assign.CapabilityMatch, []string{"sql", "prose", "prose", "sql"}},
		{assign.DependencyFirst, []string{"prose", "sql", "sql", "sql"}},
		{"", []string{"prose", "sql", "sql", "sql"}},
		{"composite", []string{"sql", "prose", "prose", "sql"}},
	} {
		t.Run(string(tt.strategy), func(t *testing.T) {
			t.Parallel()
			p, err := r.plan(specs, &plan.Options{Strategy: tt.strategy})
			require.NoError(t, err)
			require.Equal(t, tt.want, assignees(t, p))
		})
	}
	p, err := r.plan(specs, &plan.Options{Strategy: "least-busy"})
	require.NoError(t, err)
	require.Equal(t, []string{"prose", "sql", "sql", "sql"}, assignees(t, p))
	require.Len(t, p.Warnings, 1)
	require.EqualError(t, p.Warnings[0], `the strategy "least-busy" was removed: tasks are assigned by dependency-first: write dependency-first`)
	require.Equal(t, "/schedulingStrategy", p.Warnings[0].Pointer)
}
