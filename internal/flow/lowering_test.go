package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// lowers is a graph: the secrets one and two, a judge that reads them in tasks
// as given, and a reader for each result below their label.
func lowers(reads [][]int, paths ...flow.LoweredPath) *flow.Graph {
	g := &flow.Graph{
		Sources: []flow.Source{
			{Kind: handoff.Input, Name: "one", From: handoff.User, Task: -1, Label: label.Secret},
			{Kind: handoff.Input, Name: "two", From: handoff.User, Task: -1, Label: label.Secret},
		},
		Readers: []flow.Reader{{Kind: flow.Agent, Name: "judge"}, {Kind: flow.Agent, Name: "letters"}},
	}
	for i, list := range reads {
		g.Tasks = append(g.Tasks, flow.Task{Title: "judge", Agent: 0})
		g.Sources = append(g.Sources, flow.Source{Kind: handoff.Dependency, Name: "judge", From: "judge", Task: i, Label: label.Secret})
		for _, s := range list {
			g.Edges = append(g.Edges, flow.Edge{Source: s, Task: i, Delivers: pick.Everything()})
		}
	}
	for i := range reads {
		g.Tasks = append(g.Tasks, flow.Task{Title: "write", Agent: 1})
		g.Edges = append(g.Edges, flow.Edge{Source: 2 + i, Task: len(g.Tasks) - 1, Delivers: pick.Everything(), Lowers: &flow.Lowering{Name: "low", To: label.Internal, Paths: paths}})
	}
	return g
}

func TestDisclosuresAddUpByOrigin(t *testing.T) {
	t.Parallel()
	score := flow.LoweredPath{Path: "/score", Bytes: 8}
	tests := []struct {
		name  string
		reads [][]int
		paths []flow.LoweredPath
		want  flow.Disclosure
	}{
		{"one result", [][]int{{0}}, []flow.LoweredPath{score}, flow.Disclosure{Producer: "judge", Source: 0, Results: []int{2}, Bytes: 8, Safe: 8}},
		{"two of one source", [][]int{{0}, {0}}, []flow.LoweredPath{score}, flow.Disclosure{Producer: "judge", Source: 0, Results: []int{2, 3}, Bytes: 16, Safe: 16}},
		{"two of two sources", [][]int{{0}, {1}}, []flow.LoweredPath{score}, flow.Disclosure{Producer: "judge", Source: 0, Results: []int{2}, Bytes: 8, Safe: 8}},
		{"the source that most carry", [][]int{{0}, {0, 1}, {1}, {1}}, []flow.LoweredPath{score}, flow.Disclosure{Producer: "judge", Source: 1, Results: []int{3, 4, 5}, Bytes: 24, Safe: 24}},
		{"through another task of its own", [][]int{{0}, {2}}, []flow.LoweredPath{score}, flow.Disclosure{Producer: "judge", Source: 0, Results: []int{2, 3}, Bytes: 16, Safe: 16}},
		{"no source above the label", [][]int{{}, {}}, []flow.LoweredPath{score}, flow.Disclosure{Producer: "judge", Source: 2, Results: []int{2}, Bytes: 8, Safe: 8}},
		{"paths that cover each other", [][]int{{0}}, []flow.LoweredPath{score, {Path: "/score", Bytes: 8}, {Path: "/a/**", Bytes: 30}, {Path: "/a/b", Bytes: 4}, {Path: "/*", Bytes: 9}}, flow.Disclosure{Producer: "judge", Source: 0, Results: []int{2}, Bytes: 39, Safe: 39}},
		{"a path without a bound", [][]int{{0}}, []flow.LoweredPath{score, {Path: "/text", Bytes: flow.Unbounded}}, flow.Disclosure{Producer: "judge", Source: 0, Results: []int{2}, Bytes: flow.Unbounded, Safe: flow.Unbounded}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, []flow.Disclosure{tt.want}, lowers(tt.reads, tt.paths...).Table().Disclosures())
		})
	}
	require.Empty(t, (&flow.Graph{}).Table().Disclosures())
}

// What is lowered for several readers counts once, and what is not lowered not at all.
func TestDisclosuresCountAValueOnce(t *testing.T) {
	t.Parallel()
	g := lowers([][]int{{0}}, flow.LoweredPath{Path: "/score", Bytes: 8})
	again := g.Edges[1]
	unsafe := &flow.Lowering{Name: "free", To: label.Internal, Unsafe: true, Paths: []flow.LoweredPath{{Path: task.Path("/text"), Bytes: flow.Unbounded}}}
	g.Tasks = append(g.Tasks, flow.Task{Title: "again", Agent: 1})
	again.Task = len(g.Tasks) - 1
	g.Edges = append(g.Edges, again)
	g.Sights = append(g.Sights, flow.Sight{Source: 2, Reader: 1, Delivers: pick.Everything(), Withheld: true, Lowers: unsafe})
	require.Equal(t, []flow.Disclosure{{Producer: "judge", Source: 0, Results: []int{2}, Bytes: 8, Safe: 8}}, g.Table().Disclosures())
	g.Sights[0].Withheld = false
	require.Equal(t, []flow.Disclosure{{Producer: "judge", Source: 0, Results: []int{2}, Bytes: flow.Unbounded, Safe: 8}}, g.Table().Disclosures())
	require.Equal(t, flow.Unbounded, unsafe.Bytes())
}
