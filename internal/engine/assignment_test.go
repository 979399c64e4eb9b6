package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func assignees(t *testing.T, p *engine.Plan) (names []string) {
	t.Helper()
	for _, one := range p.Tasks {
		require.Equal(t, one.Assignee, p.Specs()[len(names)].Assignee)
		names = append(names, one.Assignee)
	}
	return names
}

func open(title string, deps ...string) task.Spec {
	return task.Spec{Title: title, Description: "Work on it.", DependsOn: task.On(deps...)}
}

func TestStrategiesChooseAgents(t *testing.T) {
	t.Parallel()
	sql := member("sql", says("x"))
	sql.Capabilities = []string{"database", "queries"}
	prose := member("prose", says("x"))
	prose.Description = "Writes letters to customers."
	tm := newTeam(t, sql, prose)
	query, letter, last := open("Query the database"), open("Write letters to customers"), open("Check")
	last.DependsOn = task.On("Write letters to customers")
	specs := []task.Spec{query, letter, last, by("sql", spec("extra"))}
	for _, tt := range []struct {
		strategy assign.Strategy
		want     []string
	}{
		{assign.RoundRobin, []string{"sql", "prose", "sql", "sql"}},
		{assign.LeastBusy, []string{"prose", "sql", "prose", "sql"}},
		{assign.CapabilityMatch, []string{"sql", "prose", "prose", "sql"}},
		{assign.DependencyFirst, []string{"prose", "sql", "sql", "sql"}},
		{"", []string{"prose", "sql", "sql", "sql"}},
		{assign.Composite, []string{"sql", "prose", "prose", "sql"}},
	} {
		t.Run(string(tt.strategy), func(t *testing.T) {
			t.Parallel()
			p, err := tm.Plan(specs, &engine.RunOptions{Strategy: tt.strategy})
			require.NoError(t, err)
			require.Equal(t, tt.want, assignees(t, p))
		})
	}
}

// Clearance is a hard requirement of assignment, before the flow is checked.
//
// Requirement: G48.
func TestAssignmentRespectsClearance(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("low", says("x")), cleared("high", label.Confidential, says("x")), member("other", says("x")))
	first := open("First")
	first.Uses = []task.Use{{Name: "claim"}}
	soft := open("Soft")
	soft.DependsOn = []task.Ref{{Task: "First", Optional: true}}
	specs := []task.Spec{first, open("Second", "First"), soft, open("Free")}
	o := &engine.RunOptions{Strategy: assign.RoundRobin, Inputs: []engine.Input{{Name: "claim", Text: "x", Classification: label.Confidential}}}
	p, err := tm.Plan(specs, o)
	require.NoError(t, err)
	names := assignees(t, p)
	require.Equal(t, []string{"high", "high", "high"}, names[:3], "also for what it need not have")
	require.NotEqual(t, "", names[3])

	// If no agent may read all optional context of a task, an agent that may read the required
	// context is enough.
	tm = newTeam(t, cleared("only", label.Confidential, says("x")), member("low", says("x")))
	pinned := first
	pinned.Assignee = "only"
	soft.RequiredTags = nil
	soft.Requires = &task.Requires{Capabilities: []string{"prose"}}
	m := member("low", says("x"))
	m.Capabilities = []string{"prose"}
	tm = newTeam(t, cleared("only", label.Confidential, says("x")), m)
	p, err = tm.Plan([]task.Spec{pinned, soft}, o)
	require.NoError(t, err)
	require.Equal(t, "low", p.Tasks[1].Assignee)
	require.EqualValues(t, "clearance", p.Tasks[1].Reads[0].Withheld)
}

func TestNoAgentCanBeAssigned(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("ada", never(t)), member("bob", never(t)))
	wants := func(r task.Requires) task.Spec {
		s := open("A")
		s.Requires = &r
		return s
	}
	above := open("A")
	above.Classification = label.Confidential
	named := wants(task.Requires{Capabilities: []string{"sql"}})
	named.Assignee = "ada"
	for _, tt := range []struct {
		name string
		give task.Spec
		want fault
	}{
		{"a capability", wants(task.Requires{Capabilities: []string{"sql"}}), fault{"/tasks/0/requires", "sql", assign.ErrNoAgent}},
		{"a tool", wants(task.Requires{Tools: []string{"bash"}}), fault{"/tasks/0/requires", "bash", assign.ErrNoAgent}},
		{"a backend", wants(task.Requires{Backend: "docker"}), fault{"/tasks/0/requires", "docker", assign.ErrNoAgent}},
		{"a provider", wants(task.Requires{Provider: "anthropic"}), fault{"/tasks/0/requires", "anthropic", assign.ErrNoAgent}},
		{"a clearance", above, fault{"/tasks/0/assignee", "confidential", assign.ErrNoAgent}},
		{"an agent that lacks it", named, fault{"/tasks/0/requires", "sql", assign.ErrRequires}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tm.RunTasks(t.Context(), []task.Spec{tt.give}, nil)
			requireFaults(t, err, tt.want)
		})
	}
}
