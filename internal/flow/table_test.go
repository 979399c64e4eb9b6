package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
)

// chain is tasks in a row, done by agents in turn, of which the first is
// given an input and the user sees the last.
func chain(tasks, agents int) *flow.Graph {
	g := &flow.Graph{Sources: []flow.Source{{Kind: handoff.Input, Name: "in", Task: -1}}}
	for i := range agents {
		g.Readers = append(g.Readers, flow.Reader{Kind: flow.Agent, Name: fmt.Sprintf("agent %d", i)})
	}
	g.Readers = append(g.Readers, flow.Reader{Kind: flow.User, Name: "user"})
	for i := range tasks {
		g.Tasks = append(g.Tasks, flow.Task{Title: fmt.Sprintf("Task %d", i), Agent: i % agents})
		g.Edges = append(g.Edges, flow.Edge{Source: i, Task: i, Delivers: pick.Everything()})
		g.Sources = append(g.Sources, flow.Source{Kind: handoff.Dependency, Name: g.Tasks[i].Title, Task: i})
	}
	g.Sights = []flow.Sight{{Source: tasks, Reader: agents, Delivers: pick.Everything()}}
	return g
}

func TestLongChains(t *testing.T) {
	t.Parallel()
	const n = 30_000
	table := chain(n, 3).Table()
	require.Equal(t, []flow.Reach{flow.Whole, flow.Derived, flow.Derived, flow.Derived}, table.Row(0))
	require.Len(t, table.Via(0, 3).Tasks(), n)
	require.Equal(t, []int{0, 1}, table.Via(0, 1).Tasks())
	require.Equal(t, []flow.Reach{flow.Never, flow.Never, flow.Never, flow.Whole}, table.Row(n))
}

// TestViaPrefersEarlyTasks has two ways of two tasks.
func TestViaPrefersEarlyTasks(t *testing.T) {
	t.Parallel()
	g := chain(4, 4)
	all := pick.Everything()
	g.Edges = []flow.Edge{
		{Source: 0, Task: 2, Delivers: all, Line: "1"}, {Source: 0, Task: 1, Delivers: all, Line: "2"},
		{Source: 2, Task: 3, Delivers: all}, {Source: 3, Task: 3, Delivers: all},
	}
	require.Equal(t, []int{1, 3}, g.Table().Via(0, 3).Tasks())
}

// TestTasksOfAnAgentShareNothing checks that what reaches one task of an agent does
// not come out of another.
func TestTasksOfAnAgentShareNothing(t *testing.T) {
	t.Parallel()
	g := chain(4, 2)
	g.Edges = append(g.Edges[:2], g.Edges[3]) // the third task, of the agent of the first, is given nothing
	table := g.Table()
	require.Equal(t, []flow.Reach{flow.Whole, flow.Derived, flow.Never}, table.Row(0))
	require.Equal(t, []flow.Reach{flow.Never, flow.Whole, flow.Derived}, table.Row(3))
}

// TestTasksOnACycleThroughTheMemory has two tasks read each
// other's results, as through a shared memory, of which a run takes one way.
func TestTasksOnACycleThroughTheMemory(t *testing.T) {
	t.Parallel()
	g := chain(3, 3)
	g.Edges = append(g.Edges, flow.Edge{Source: 2, Task: 0, Delivers: pick.Everything(), Rule: gate.RuleMemory})
	table := g.Table()
	require.Equal(t, []flow.Reach{flow.Derived, flow.Whole, flow.Derived, flow.Derived}, table.Row(1), "its own words come back to it")
	require.Equal(t, []flow.Reach{flow.Whole, flow.Derived, flow.Whole, flow.Derived}, table.Row(2))
	require.Equal(t, `result of "Task 0" → task "Task 1" → task "Task 0" → agent 0`, table.Via(1, 0).String())
}

// TestErrorTextDerivesFromWhatItsTaskRead gives a task a second source, which goes
// where its result does not.
func TestErrorTextDerivesFromWhatItsTaskRead(t *testing.T) {
	t.Parallel()
	g := chain(2, 2)
	g.Sights = nil
	require.Equal(t, flow.Never, g.Table().Reach(0, 2))
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Fault, Name: "Task 0", Task: 0})
	g.Sights = []flow.Sight{{Source: 3, Reader: 2, Delivers: pick.Everything(), Rule: gate.RuleResult}}
	table := g.Table()
	require.Equal(t, flow.Derived, table.Reach(0, 2))
	require.Equal(t, flow.Derived, table.Reach(1, 2), "who wrote the result may tell of it in the error")
	require.Equal(t, flow.Whole, table.Reach(3, 2))
	require.Equal(t, `error of "Task 0" → user`, table.Via(3, 2).String())
}

func TestStepStrings(t *testing.T) {
	t.Parallel()
	for want, step := range map[string]flow.Step{
		`goal`: {Kind: "goal"}, `input "claim"`: {Kind: "input", Name: "claim"}, `result of "T"`: {Kind: "dependency", Name: "T"},
		`error of "T"`: {Kind: "fault", Name: "T"}, `task "T"`: {Kind: "task", Name: "T"}, `coordinator`: {Kind: "coordinator", Name: "coordinator"},
	} {
		require.Equal(t, want, step.String())
	}
}

func TestEmptyGraph(t *testing.T) {
	t.Parallel()
	table := (&flow.Graph{Sources: []flow.Source{{Kind: handoff.Goal, Task: -1}}}).Table()
	require.Empty(t, table.Row(0))
	_, err := table.Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfInput, Name: "in"}, Claim: flow.Reaches, Reader: "user"})
	require.EqualError(t, err, `assertion "input in never reaches user": no input "in": none are defined`)
}

func TestNamesOfLevelsAndKinds(t *testing.T) {
	t.Parallel()
	for _, r := range []flow.Reach{flow.Never, flow.Derived, flow.Part, flow.Whole} {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, `"`+r.String()+`"`, string(text))
		back := flow.Whole - r
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, r, back)
	}
	for _, k := range []flow.ReaderKind{flow.Agent, flow.Coordinator, flow.User, flow.Endpoint} {
		text, err := json.Marshal(k)
		require.NoError(t, err)
		var back flow.ReaderKind
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, k, back)
	}
	r, k := flow.Never, flow.User
	require.Error(t, r.UnmarshalText([]byte("nowhere")))
	require.Equal(t, flow.Whole, r)
	require.Error(t, k.UnmarshalText([]byte("nobody")))
	require.Zero(t, k)
	require.Equal(t, "reach(9) unknown", flow.Reach(9).String()+" "+flow.ReaderKind(9).String())
}

func TestGraphAsJSON(t *testing.T) {
	t.Parallel()
	g := claims()
	text, err := json.Marshal(g.Sources[1])
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "dependency", "name": "Extract facts", "from": "", "task": 0, "label": "internal"}`, string(text))
	text, err = json.Marshal(g.Edges[1])
	require.NoError(t, err)
	require.JSONEq(t, `{"source": 1, "task": 1, "rule": "intake-to-fraud", "line": "team.yaml:31"}`, string(text))
	text, err = json.Marshal(g.Readers[3])
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "user", "name": "user", "clearance": "internal"}`, string(text))
}
