package graphlayout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runteam/runteam/internal/graphlayout"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func ExampleNew() {
	box := graphlayout.Size{W: 100, H: 40}
	l := graphlayout.New([]graphlayout.Size{box, box, box}, []graphlayout.Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 0, To: 2}})
	fmt.Println(l.Nodes, l.Width, l.Height)
	fmt.Println(l.Edges[2])
	// Output:
	// [{0 42 0} {1 0 96} {2 32 192}] 142 232
	// [{92 40} {114 96} {114 136} {82 192}]
}

// drawn returns a random graph whose edges point to nodes of a higher number.
func drawn(rt *rapid.T) ([]graphlayout.Size, []graphlayout.Edge) {
	n := rapid.IntRange(0, 24).Draw(rt, "nodes")
	nodes := make([]graphlayout.Size, n)
	for i := range nodes {
		nodes[i] = graphlayout.Size{W: rapid.IntRange(1, 200).Draw(rt, "width"), H: rapid.IntRange(1, 60).Draw(rt, "height")}
	}
	var edges []graphlayout.Edge
	if n > 1 {
		for range rapid.IntRange(0, 3*n).Draw(rt, "edges") {
			from := rapid.IntRange(0, n-2).Draw(rt, "from")
			edges = append(edges, graphlayout.Edge{From: from, To: rapid.IntRange(from+1, n-1).Draw(rt, "to")})
		}
	}
	return nodes, edges
}

func TestNodesDoNotOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes, edges := drawn(rt)
		l := graphlayout.New(nodes, edges)
		for i, a := range l.Nodes {
			require.True(rt, a.X >= 0 && a.Y >= 0 && a.X+nodes[i].W <= l.Width+1 && a.Y+nodes[i].H <= l.Height, "node %d is not in the drawing", i)
			for j, b := range l.Nodes[:i] {
				apart := a.X+nodes[i].W < b.X || b.X+nodes[j].W < a.X || a.Y+nodes[i].H < b.Y || b.Y+nodes[j].H < a.Y
				require.True(rt, apart, "nodes %d and %d overlap", i, j)
			}
		}
	})
}

func TestEdgesPointDown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes, edges := drawn(rt)
		l := graphlayout.New(nodes, edges)
		for i, e := range edges {
			require.Less(rt, l.Nodes[e.From].Layer, l.Nodes[e.To].Layer)
			points := l.Edges[i]
			require.Equal(rt, graphlayout.Point{X: l.Nodes[e.From].X + nodes[e.From].W/2, Y: l.Nodes[e.From].Y + nodes[e.From].H}, points[0])
			require.Equal(rt, graphlayout.Point{X: l.Nodes[e.To].X + nodes[e.To].W/2, Y: l.Nodes[e.To].Y}, points[len(points)-1])
			require.True(rt, slices.IsSortedFunc(points, func(a, b graphlayout.Point) int { return a.Y - b.Y }))
		}
	})
}

// TestLinesPassBetweenNodes checks that no line goes through a node: where a line is beside nodes of a
// layer, it goes straight down.
func TestLinesPassBetweenNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes, edges := drawn(rt)
		l := graphlayout.New(nodes, edges)
		for i, e := range edges {
			for k := 1; k < len(l.Edges[i]); k++ {
				a, b := l.Edges[i][k-1], l.Edges[i][k]
				for n, at := range l.Nodes {
					if n == e.From || n == e.To || b.Y <= at.Y || a.Y >= at.Y+nodes[n].H {
						continue
					}
					// the part of the segment that is as high as the node
					x := func(y int) float64 {
						if a.Y == b.Y {
							return float64(a.X)
						}
						return float64(a.X) + float64(b.X-a.X)*float64(y-a.Y)/float64(b.Y-a.Y)
					}
					x1, x2 := x(max(a.Y, at.Y)), x(min(b.Y, at.Y+nodes[n].H))
					require.True(rt, max(x1, x2) < float64(at.X) || min(x1, x2) > float64(at.X+nodes[n].W), "edge %d goes through node %d", i, n)
				}
			}
		}
	})
}

func TestLayoutsAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes, edges := drawn(rt)
		require.Equal(rt, graphlayout.New(nodes, edges), graphlayout.New(slices.Clone(nodes), slices.Clone(edges)))
	})
}

// TestCrossingsAreNotMoreThanInTheInput draws graphs of full layers, whose order in the input is known,
// and counts all pairs of lines that cross.
func TestCrossingsAreNotMoreThanInTheInput(t *testing.T) {
	t.Parallel()
	fewer := 0
	rapid.Check(t, func(rt *rapid.T) {
		width, height := rapid.IntRange(1, 6).Draw(rt, "width"), rapid.IntRange(2, 5).Draw(rt, "height")
		nodes := make([]graphlayout.Size, width*height)
		var edges []graphlayout.Edge
		for i := range nodes {
			nodes[i] = graphlayout.Size{W: 10, H: 10}
			if i < width {
				continue
			}
			above := i - i%width - width
			for range rapid.IntRange(1, 3).Draw(rt, "edges") {
				edges = append(edges, graphlayout.Edge{From: above + rapid.IntRange(0, width-1).Draw(rt, "from"), To: i})
			}
		}
		l := graphlayout.New(nodes, edges)
		crossings := func(place func(node int) int) (n int) {
			for i, a := range edges {
				for _, b := range edges[:i] {
					if l.Nodes[a.To].Layer == l.Nodes[b.To].Layer && (place(a.From)-place(b.From))*(place(a.To)-place(b.To)) < 0 {
						n++
					}
				}
			}
			return n
		}
		for i := range nodes {
			if l.Nodes[i].Layer != i/width {
				rt.Skip("a node without readers moved down")
			}
		}
		before, after := crossings(func(i int) int { return i }), crossings(func(i int) int { return l.Nodes[i].X })
		require.Equal(rt, after, l.Crossings)
		require.LessOrEqual(rt, after, before)
		if after < before {
			fewer++
		}
	})
	require.Positive(t, fewer)
}

func TestCrossingsThatCanBeAvoided(t *testing.T) {
	t.Parallel()
	box := slices.Repeat([]graphlayout.Size{{W: 10, H: 10}}, 6)
	l := graphlayout.New(box, []graphlayout.Edge{{0, 5}, {1, 4}, {2, 3}})
	require.Zero(t, l.Crossings)
}

func TestNodesThatAreUsedLateAreDrawnLate(t *testing.T) {
	t.Parallel()
	box := slices.Repeat([]graphlayout.Size{{W: 10, H: 10}}, 5)
	l := graphlayout.New(box, []graphlayout.Edge{{0, 1}, {1, 2}, {2, 3}, {4, 3}})
	require.Equal(t, 2, l.Nodes[4].Layer)
}

func TestCyclesAreDrawn(t *testing.T) {
	t.Parallel()
	box := slices.Repeat([]graphlayout.Size{{W: 10, H: 10}}, 3)
	l := graphlayout.New(box, []graphlayout.Edge{{0, 1}, {1, 2}, {2, 0}, {1, 1}})
	require.Equal(t, []int{0, 1, 2}, []int{l.Nodes[0].Layer, l.Nodes[1].Layer, l.Nodes[2].Layer})
	up := l.Edges[2]
	require.Greater(t, up[0].Y, up[len(up)-1].Y)
	require.Nil(t, l.Edges[3])
}

func TestUnknownNodesPanic(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { graphlayout.New(nil, []graphlayout.Edge{{0, 0}}) })
}

// TestLongEdgesShareALane draws a chain whose first node leads to all others: lines through all layers
// would have millions of points.
func TestLongEdgesShareALane(t *testing.T) {
	t.Parallel()
	const n = 3000
	nodes := slices.Repeat([]graphlayout.Size{{W: 10, H: 10}}, n)
	var edges []graphlayout.Edge
	for i := 1; i < n; i++ {
		edges = append(edges, graphlayout.Edge{From: i - 1, To: i}, graphlayout.Edge{From: 0, To: i})
	}
	l := graphlayout.New(nodes, edges)
	points := 0
	for i := range edges {
		points += len(l.Edges[i])
	}
	require.Less(t, points, 20*n)
	last := l.Edges[len(edges)-1]
	require.Equal(t, l.Width, last[len(last)/2].X)
}

// large returns a graph of n nodes that depend on three nodes before them each: on the nearest ones, or
// on any.
func large(n int, near bool) ([]graphlayout.Size, []graphlayout.Edge) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same graph each time
	nodes := slices.Repeat([]graphlayout.Size{{W: 180, H: 56}}, n)
	var edges []graphlayout.Edge
	for i := 1; i < n; i++ {
		for range 3 {
			from := random.IntN(i)
			if near {
				from = max(0, i-1-random.IntN(20))
			}
			edges = append(edges, graphlayout.Edge{From: from, To: i})
		}
	}
	return nodes, edges
}

func BenchmarkNew(b *testing.B) {
	for _, near := range []bool{false, true} {
		nodes, edges := large(5000, near)
		b.Run(fmt.Sprintf("near=%v", near), func(b *testing.B) {
			for b.Loop() {
				graphlayout.New(nodes, edges)
			}
		})
	}
}
