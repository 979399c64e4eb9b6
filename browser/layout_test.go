package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// graphs is a script with functions that make graphs, the same ones each time.
const graphs = `
	const { layout } = await import("/assets/layout.js?" + performance.now()); // as the browser has not compiled it yet
	let seed = 1;
	const random = (n) => (seed = seed * 48271 % 2147483647) % n;
	// randomGraph makes n nodes, of which each reads some before it; of several, back edges lead to the ones before.
	const randomGraph = (n, reads, from, back = 0) => {
		const nodes = [], edges = [];
		for (let i = 0; i < n; i++) {
			nodes.push({ id: "n" + i, title: "x".repeat(random(40)), kind: random(5) ? "task" : "input" });
			const read = new Set();
			for (let k = 0; i > 0 && k < reads; k++) read.add("n" + from(i));
			for (const id of read) edges.push(random(100) < back ? { from: nodes[i].id, to: id } : { from: id, to: nodes[i].id });
		}
		return { nodes, edges };
	};
`

// scripted returns what a script with the graphs returns.
func scripted[T any](p *tab, script string) T {
	p.t.Helper()
	return eval[T](p, `(async () => {`+graphs+script+`})()`)
}

// Nodes do not overlap, what a node reads is above it unless the edge closes a cycle, lines go from node to node and
// through no other node, and equal graphs have equal pictures.
func TestGraphsAreLaidOut(t *testing.T) {
	t.Parallel()
	p := theClaims(t).look(t, wide, "")
	problems := scripted[[]string](p, `
		const found = [];
		for (let k = 0; k < 300; k++) {
			const g = randomGraph(random(25), random(4), random, k % 3 === 0 ? 20 : 0), same = structuredClone(g), most = k % 4 === 1 ? 500 : Infinity, size = layout(g.nodes, g.edges, most);
			const say = (what) => found.push("graph " + k + ": " + what), at = new Map(g.nodes.map((n) => [n.id, n]));
			const picture = (g, size) => JSON.stringify([size, g.nodes.map((n) => [n.x, n.y, n.w, n.h, n.layer]), g.edges.map((e) => e.points)]);
			if (picture(same, layout(same.nodes, same.edges, most)) !== picture(g, size)) say("another picture");
			g.nodes.forEach((a, i) => {
				if (!(a.x >= 0 && a.y >= 0 && a.x + a.w <= size.width && a.y + a.h <= size.height)) say(a.id + " is outside");
				for (const b of g.nodes.slice(0, i)) if (a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h) say(a.id + " overlaps " + b.id);
			});
			const below = new Map(), widths = Map.groupBy(g.nodes, (n) => n.layer);
			for (const [layer, row] of widths) if (row.length > 1 && row.reduce((w, n) => w + n.w, 0) > most) say("layer " + layer + " is wider than asked for");
			for (const { from, to, points } of g.edges) {
				const a = at.get(from), b = at.get(to), back = a.layer >= b.layer;
				if (points[0].join() !== [a.x + a.w / 2, a.y + a.h].join() || points.at(-1).join() !== [b.x + b.w / 2, b.y].join()) say(from + " to " + to + " ends elsewhere");
				if (back && k % 3 > 0) say(from + " to " + to + " does not go down");
				if (!back) below.set(b, Math.max(below.get(b) ?? 0, a.layer + 1));
				for (let i = 1; i < points.length && !back; i++) {
					const [[x, y], [u, v]] = [points[i - 1], points[i]];
					for (const n of g.nodes) if (n !== a && n !== b && y <= n.y && v >= n.y + n.h && x === u && x > n.x && x < n.x + n.w) say(from + " to " + to + " goes through " + n.id);
				}
			}
			for (const [n, layer] of below) if (most === Infinity && n.layer !== layer) say(n.id + " is in layer " + n.layer + ", not " + layer);
		}
		return found.slice(0, 10);`)
	require.Empty(t, problems)
}

// An edge that closes a cycle goes back in a lane at the right.
func TestEdgesOfCyclesGoBack(t *testing.T) {
	t.Parallel()
	p := theClaims(t).look(t, wide, "")
	got := scripted[struct {
		Layers []int
		Width  float64
		Back   [][]float64
	}](p, `
		const nodes = ["a", "b", "c"].map((id) => ({ id, title: id, kind: "task" })), edges = [["a", "b"], ["b", "c"], ["c", "a"]].map(([from, to]) => ({ from, to }));
		const { width } = layout(nodes, edges);
		return { Layers: nodes.map((n) => n.layer), Width: width, Back: edges[2].points };`)
	require.Equal(t, []int{0, 1, 2}, got.Layers)
	require.Len(t, got.Back, 4)
	require.Equal(t, got.Width, got.Back[1][0])
	require.Equal(t, got.Width, got.Back[2][0])
	require.Greater(t, got.Back[1][1], got.Back[2][1])
}

// In a graph of full layers whose order can be without crossings, no lines cross.
func TestCrossingsThatCanBeAvoided(t *testing.T) {
	t.Parallel()
	p := theClaims(t).look(t, wide, "")
	require.True(t, scripted[bool](p, `
		const nodes = ["a", "b", "c", "d", "e", "f"].map((id) => ({ id, title: id, kind: "task" })), edges = [["a", "f"], ["b", "e"], ["c", "d"]].map(([from, to]) => ({ from, to }));
		layout(nodes, edges);
		return edges.every((e) => e.points[0][0] === e.points[1][0]);`))
}

// BenchmarkLayout measures how long 5,000 nodes take: in layers of 50, each reading three of the 20 nodes before it or
// of all before it, and with a first node that all others read, too.
func BenchmarkLayout(b *testing.B) {
	p := theClaims(b).look(b, wide, "")
	for _, of := range []struct{ name, graph string }{
		{"layers", `randomGraph(5000, 2, (i) => Math.max(0, (Math.floor(i / 50) - 1) * 50) + random(Math.min(i, 50)))`},
		{"near", `randomGraph(5000, 3, (i) => Math.max(0, i - 1 - random(20)))`},
		{"any", `randomGraph(5000, 3, random)`},
		{"chain", `randomGraph(5000, 2, (i) => random(2) ? i - 1 : 0)`},
		{"cycles", `randomGraph(5000, 3, random, 20)`},
	} {
		b.Run(of.name, func(b *testing.B) {
			took := 0.0
			for b.Loop() {
				took += scripted[float64](p, fmt.Sprintf(`
					const g = %s, began = performance.now();
					layout(g.nodes, g.edges);
					return performance.now() - began;`, of.graph))
			}
			b.ReportMetric(took/float64(b.N), "ms/layout")
		})
	}
}
