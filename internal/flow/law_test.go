package flow_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// TestTableMatchesExplicitPaths compares each cell, each row and each path with all
// paths of a small graph, one by one.
func TestTableMatchesExplicitPaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, true)
		table := d.Table()
		require.Same(t, d.Graph, table.Graph())
		for s := range d.Sources {
			levels, fewest := d.expected(s)
			require.Equal(t, levels, table.Row(s))
			for r := range d.Readers {
				require.Equal(t, levels[r], table.Reach(s, r))
				via := table.Via(s, r)
				require.Equal(t, levels[r] == flow.Never, via == nil, "a way exactly where something flows")
				if via != nil {
					require.Len(t, via.Tasks(), fewest[r])
					d.requireWay(t, via, s, r)
					require.True(t, levels[r] == flow.Derived || d.delivers(via) == levels[r], "a way as whole as that")
				}
				by := d.Sources[s].Task
				require.Equal(t, by >= 0 && d.readsIn(r, by), table.Wrote(s, r))
			}
		}
	})
}

// expected returns from the explicit paths of a source how much of it each reader
// gets, and over how few tasks.
func (d *draw) expected(source int) (levels []flow.Reach, fewest []int) {
	levels, fewest = make([]flow.Reach, len(d.Readers)), slices.Repeat([]int{math.MaxInt}, len(d.Readers))
	for _, w := range d.ways(source) {
		level := flow.Derived
		if d.direct(w) {
			level = w.first.level
		}
		switch r := w.reader; {
		case level > levels[r]:
			levels[r], fewest[r] = level, len(w.tasks)
		case level == levels[r]:
			fewest[r] = min(fewest[r], len(w.tasks))
		}
	}
	return levels, fewest
}

// delivers returns what the last edge or sight of a way delivers.
func (d *draw) delivers(p flow.Path) flow.Reach {
	for i, e := range d.Edges {
		if e.Line == p[len(p)-2].Line {
			return d.edges[i].level
		}
	}
	for i, s := range d.Sights {
		if s.Line == p[len(p)-1].Line {
			return d.sights[i].level
		}
	}
	return flow.Never
}

// requireWay holds each step of a way to an edge that carries something.
func (d *draw) requireWay(t require.TestingT, p flow.Path, source, reader int) {
	require.Equal(t, source, p[0].Index)
	require.Equal(t, d.Sources[source].Name, p[0].Name)
	end := p[len(p)-1]
	require.Equal(t, reader, end.Index)
	require.Equal(t, d.Readers[reader].Name, end.Name)
	delivers := func(s, before int) bool {
		if before < 0 {
			return s == source
		}
		return d.Sources[s].Task == before
	}
	before := -1
	for _, step := range p[1 : len(p)-1] {
		require.Equal(t, d.Tasks[step.Index].Title, step.Name)
		if step.Note == "writes it" {
			require.Equal(t, d.Sources[source].Task, step.Index)
		} else {
			require.True(t, slices.ContainsFunc(d.Edges, func(e flow.Edge) bool {
				return e.Task == step.Index && e.Line == step.Line && e.Rule == step.Rule && e.Reach() != flow.Never && delivers(e.Source, before)
			}), "no edge for %v", step)
		}
		before = step.Index
	}
	if end.Line == "" {
		require.True(t, d.readsIn(reader, before))
		return
	}
	require.True(t, slices.ContainsFunc(d.Sights, func(s flow.Sight) bool {
		return s.Reader == reader && s.Line == end.Line && s.Reach() != flow.Never && delivers(s.Source, before)
	}))
}

// claims lists assertions about everything in a drawn graph, and whether each
// holds by its explicit ways.
func (d *draw) claims(visit func(a flow.Assertion, holds bool)) {
	parts := map[string]func(k delivery) bool{
		"": func(delivery) bool { return true }, "/a": func(k delivery) bool { return k.a }, "/b": func(k delivery) bool { return k.b },
	}
	subjects := map[string][]int{}
	for s := range d.Sources {
		switch src := &d.Sources[s]; {
		case src.Has == nil:
			continue
		case src.Task < 0:
			subjects["input "+src.Name] = []int{s}
		default:
			subjects["task "+strconv.Quote(src.Name)] = []int{s}
		}
		subjects["prop"] = append(subjects["prop"], s)
	}
	for name, sources := range subjects {
		for path, in := range parts {
			text := name + path
			if name == "prop" {
				if text = path[min(1, len(path)):]; text == "" {
					continue
				}
			}
			for r := range d.Readers {
				var reaches, derives bool
				for _, s := range sources {
					for _, w := range d.ways(s) {
						if w.reader != r || !w.wrote && !in(w.first) {
							continue
						}
						derives, reaches = true, reaches || d.direct(w)
					}
				}
				for verb, holds := range map[string]bool{"reaches": !reaches, "derives into": !derives} {
					a, err := flow.ParseAssertion(text + " never " + verb + " " + d.Readers[r].Name)
					if err != nil {
						panic(err)
					}
					visit(a, holds)
				}
			}
		}
	}
}

// TestCheckMatchesExplicitPaths compares every assertion about a small graph
// with all its ways, one by one.
func TestCheckMatchesExplicitPaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, true)
		table := d.Table()
		d.claims(func(a flow.Assertion, holds bool) {
			got, err := table.Check(a)
			require.NoError(t, err)
			require.Equal(t, holds, got.Holds, "%v: %v", a, got)
			require.Equal(t, holds, got.Path == nil)
			if !holds {
				require.NotEmpty(t, got.Why)
				d.requireWay(t, got.Path, got.Path[0].Index, got.Path[len(got.Path)-1].Index)
			}
		})
	})
}

// TestOrderOfEdgesDoesNotMatter permutes edges and sights.
func TestOrderOfEdgesDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, true)
		other := *d.Graph
		other.Edges = rapid.Permutation(d.Edges).Draw(t, "edges")
		other.Sights = rapid.Permutation(d.Sights).Draw(t, "sights")
		a, b := d.Table(), other.Table()
		for s := range d.Sources {
			require.Equal(t, a.Row(s), b.Row(s))
			for r := range d.Readers {
				require.Equal(t, a.Via(s, r), b.Via(s, r))
			}
		}
		d.claims(func(claim flow.Assertion, _ bool) {
			x, err := a.Check(claim)
			require.NoError(t, err)
			y, err := b.Check(claim)
			require.NoError(t, err)
			require.Equal(t, x, y)
		})
	})
}

// TestRemovingAnEdgeNeverAddsReach removes an edge or a sight, or narrows an edge.
func TestRemovingAnEdgeNeverAddsReach(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, true)
		less := *d.Graph
		switch rapid.IntRange(0, 2).Draw(t, "what") {
		case 0:
			if len(d.Edges) == 0 {
				return
			}
			i := rapid.IntRange(0, len(d.Edges)-1).Draw(t, "edge")
			less.Edges = slices.Delete(slices.Clone(d.Edges), i, i+1)
		case 1:
			if len(d.Sights) == 0 {
				return
			}
			i := rapid.IntRange(0, len(d.Sights)-1).Draw(t, "sight")
			less.Sights = slices.Delete(slices.Clone(d.Sights), i, i+1)
		default:
			if len(d.Edges) == 0 {
				return
			}
			i := rapid.IntRange(0, len(d.Edges)-1).Draw(t, "edge")
			less.Edges = slices.Clone(d.Edges)
			less.Edges[i].Delivers = d.Edges[i].Delivers.And(rapid.SampledFrom(deliveries).Draw(t, "by").selection)
		}
		before, after := d.Table(), less.Table()
		for s := range d.Sources {
			for r := range d.Readers {
				require.LessOrEqual(t, after.Reach(s, r), before.Reach(s, r))
			}
		}
		d.claims(func(a flow.Assertion, holds bool) {
			f, err := after.Check(a)
			require.NoError(t, err)
			require.True(t, f.Holds || !holds, "%v held before", a)
		})
	})
}

// TestAssertionsAgreeWithTheTable compares findings about a source as a whole with
// its cells.
func TestAssertionsAgreeWithTheTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, true)
		table := d.Table()
		for s := range d.Sources {
			src := &d.Sources[s]
			if src.Has == nil {
				continue // no assertion is about an error text
			}
			about := flow.Subject{Kind: flow.OfInput, Name: src.Name}
			if src.Task >= 0 {
				about.Kind = flow.OfTask
			}
			for r := range d.Readers {
				level := table.Reach(s, r)
				f, err := table.Check(flow.Assertion{Subject: about, Claim: flow.Reaches, Reader: d.Readers[r].Name})
				require.NoError(t, err)
				require.Equal(t, level < flow.Part, f.Holds)
				f, err = table.Check(flow.Assertion{Subject: about, Claim: flow.Derives, Reader: d.Readers[r].Name})
				require.NoError(t, err)
				require.Equal(t, level == flow.Never, f.Holds)
				about.Path = "/a"
				part, err := table.Check(flow.Assertion{Subject: about, Claim: flow.Derives, Reader: d.Readers[r].Name})
				require.NoError(t, err)
				require.True(t, part.Holds || !f.Holds, "a part comes no further than all of it")
				about.Path = task.Whole
			}
		}
	})
}

// TestUnreachableSourcesChangeNothing runs small graphs twice, with agents that
// are functions of their prompts, and inputs of which one part differs.
//
// Requirement: G54.
func TestUnreachableSourcesChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, false)
		table := d.Table()
		for s := range d.Sources {
			if d.Sources[s].Task >= 0 {
				continue
			}
			for _, part := range []string{"a", "b"} {
				before, after := d.run(-1, ""), d.run(s, part)
				for r := range d.Readers {
					f, err := table.Check(flow.Assertion{
						Subject: flow.Subject{Kind: flow.OfInput, Name: d.Sources[s].Name, Path: task.Path("/" + part)}, Claim: flow.Derives, Reader: d.Readers[r].Name,
					})
					require.NoError(t, err)
					if f.Holds {
						require.Equal(t, before[r], after[r], "%s of %s changed what %s read", part, d.Sources[s].Name, d.Readers[r].Name)
					}
					if table.Reach(s, r) == flow.Never {
						require.True(t, f.Holds)
					}
				}
			}
		}
	})
}

// run returns all that each reader reads. The part of one source is not what
// it is in other runs; every task writes its whole prompt into all that it writes.
func (d *draw) run(changed int, part string) []string {
	value := make([]map[string]any, len(d.Sources))
	read := make([]string, len(d.Readers))
	for s := range d.Sources {
		value[s] = map[string]any{"a": "a" + strconv.Itoa(s), "b": "b" + strconv.Itoa(s)}
	}
	if changed >= 0 {
		value[changed][part] = "changed"
	}
	deliver := func(s int, sel pick.Selection, nothing bool) string {
		if nothing {
			return ""
		}
		out, _ := sel.Apply(map[string]any{"a": value[s]["a"], "b": value[s]["b"]}).Value.(map[string]any)
		a, _ := out["a"].(string)
		b, _ := out["b"].(string)
		return "[" + a + "|" + b + "]"
	}
	for i := range d.Tasks { // edges lead to later tasks only
		var prompt strings.Builder
		prompt.WriteString(d.Tasks[i].Title)
		for _, e := range d.Edges {
			if e.Task == i {
				prompt.WriteString(deliver(e.Source, e.Delivers, e.Withheld || e.Minimal))
			}
		}
		for r := range d.Readers {
			if d.readsIn(r, i) {
				read[r] += prompt.String() + "\n"
			}
		}
		for s := range d.Sources {
			if d.Sources[s].Task == i {
				value[s] = map[string]any{"a": "a" + prompt.String(), "b": "b" + prompt.String()}
			}
		}
	}
	for _, s := range d.Sights {
		read[s.Reader] += deliver(s.Source, s.Delivers, s.Withheld) + "\n"
	}
	return read
}
