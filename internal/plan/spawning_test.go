package plan_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// TestSettingsOfChildren checks settings that cannot be used.
func TestSettingsOfChildren(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spawn plan.Spawning
		want  string
	}{
		"max":   {plan.Spawning{Max: -1}, "spawn.max is -1: use 1 to 10000, or leave it out for 8"},
		"depth": {plan.Spawning{Depth: 17}, "spawn.depth is 17: use 1 to 16, or leave it out for 1"},
		"turns": {plan.Spawning{MaxTurns: 201}, "spawn.maxTurns is 201: use 1 to 200, or leave it out for 20"},
		"files": {plan.Spawning{Files: []string{"/etc"}}, `"/etc" matches no file; write a path from the folder`},
		"time":  {plan.Spawning{Timeout: -time.Second}, "the time limit of children is negative: use a positive one, or leave it out for 5 minutes"},
	} {
		m := member("a")
		m.Spawn = &tt.spawn
		_, err := newRoster(plan.Config{Agents: []plan.Member{m}})
		require.ErrorContains(t, err, tt.want, name)
	}
	ann := plan.Member{Name: "ann", Agent: person.New(unused)}
	_, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), ann}, Edges: []handoff.Edge{{From: "a", To: "ann", Delegate: true}}})
	require.ErrorContains(t, err, `"ann" is a person, to whom no agent delegates`)
	ann.Spawn = &plan.Spawning{}
	_, err = newRoster(plan.Config{Agents: []plan.Member{ann}})
	require.ErrorContains(t, err, "a person spawns no children")
}

// TestDelegatesCountInThePlan checks labels and the flow table: what the tools of a delegate return raises the task.
func TestDelegatesCountInThePlan(t *testing.T) {
	t.Parallel()
	search := &tool.Tool{Name: "search", Parameters: []byte(`{"type":"object"}`), Options: tool.Options{Effect: tool.None, Accepts: label.Confidential, Produces: new(label.Confidential)}, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}
	make := func(delegate bool) roster {
		a, b := cleared("a", label.Confidential), cleared("b", label.Confidential)
		b.Tools = []*tool.Tool{search}
		r, err := newRoster(plan.Config{Agents: []plan.Member{a, b}, Edges: []handoff.Edge{{From: "a", To: "b", Delegate: delegate}}})
		require.NoError(t, err)
		return r
	}
	for delegate, want := range map[bool]label.Classification{true: label.Confidential, false: label.Internal} {
		o := &plan.Options{Assert: asserting(t, "task work never derives into tool:search")}
		p, err := make(delegate).plan([]task.Spec{by("a", spec("work"))}, o)
		require.NoError(t, err)
		require.Equal(t, want, p.Labels[0])
		require.Equal(t, !delegate, p.Findings[0].Holds)
	}
}

// TestPassedFilesInThePlan checks who has the argument for files, and the rows of the flow table.
func TestPassedFilesInThePlan(t *testing.T) {
	t.Parallel()
	work := newTool(t, "work", tool.Options{Effect: tool.Workspace, Accepts: label.Secret, Produces: new(label.Public)})
	files := []string{"src/**"}
	for name, tt := range map[string]struct {
		tools []*tool.Tool // of the caller
		edge  handoff.Edge
		want  bool
	}{
		"granted":       {[]*tool.Tool{work}, handoff.Edge{Delegate: true, Files: files}, true},
		"not granted":   {[]*tool.Tool{work}, handoff.Edge{Delegate: true}, false},
		"no workspace":  {nil, handoff.Edge{Delegate: true, Files: files}, false},
		"the other way": {[]*tool.Tool{work}, handoff.Edge{Delegate: true, Files: files, Bidirectional: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := member("a"), member("b")
			a.Tools, b.Tools = tt.tools, []*tool.Tool{work}
			a.Spawn = &plan.Spawning{Files: tt.edge.Files}
			tt.edge.From, tt.edge.To = "a", "b"
			r, err := newRoster(plan.Config{Agents: []plan.Member{a, b}, Edges: []handoff.Edge{tt.edge}})
			require.NoError(t, err)
			p, err := r.plan([]task.Spec{by("a", spec("work"))}, nil)
			require.NoError(t, err)
			offered := 0
			for _, f := range plan.RuntimeTools(p, 0) {
				if strings.Contains(string(f.Parameters), `"files"`) {
					require.Contains(t, string(f.Parameters), "within src/**")
					offered++
				}
			}
			require.Equal(t, tt.want, offered == 2, "by %d tools", offered)
			rows := map[string]int{}
			g := plan.FlowOfInstances(p)
			for _, e := range g.Edges {
				if e.Rule == gate.RuleFiles && e.Note == "changed files" {
					rows[g.Tasks[e.Task].Title]++
				}
			}
			if !tt.want {
				require.Empty(t, rows)
				return
			}
			require.Equal(t, map[string]int{"b for work": 1, "children of work": 1, "work": 2}, rows)
		})
	}
	_, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), member("b")}, Edges: []handoff.Edge{{From: "a", To: "b", Delegate: true, Files: []string{"["}}}})
	require.ErrorContains(t, err, `edge 1: "[" is not a valid glob`)
}
