package flow

import (
	"fmt"
	"slices"
)

// Reach is how much of a source a reader gets. Levels are ordered with < and >.
type Reach uint8

// The levels of reach. If several apply, the highest counts.
const (
	Never   Reach = iota // neither the source nor anything derived from it
	Derived              // only output of tasks that read or wrote it
	Part                 // some of its paths
	Whole                // all of it
)

var reachNames = [...]string{"never", "derived", "part", "whole"}

// String returns the level's name, or "reach(n)" for an unknown level.
func (r Reach) String() string {
	if int(r) < len(reachNames) {
		return reachNames[r]
	}
	return fmt.Sprintf("reach(%d)", uint8(r))
}

// MarshalText writes the level's name.
func (r Reach) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a level's name, strictly. After an error r is Whole, which
// restricts the least.
func (r *Reach) UnmarshalText(text []byte) error {
	at := slices.Index(reachNames[:], string(text))
	if at < 0 {
		*r = Whole
		return fmt.Errorf("unknown reach %q", text)
	}
	*r = Reach(at)
	return nil
}

// A Table holds for every source of a graph how much of it every reader gets.
//
// What is delivered to a task reaches all readers of its prompt, and all that the
// task writes derives from it. Tasks of one agent share nothing but what edges
// deliver, because agents are functions of their prompts. For the same reason, what
// an agent wrote does not reach it; see [Table.Wrote].
//
// A Table may be used concurrently. The graph must not change under it.
type Table struct {
	*ways
	component []int32 // of each task
	derived   []set   // of each component, the readers of its output and of what derives from it
}

// Table computes which readers could see which sources. It takes time proportional
// to the tasks, edges and sights, times the readers over 64, and one bit of memory
// for each task and reader.
func (g *Graph) Table() *Table {
	t := &Table{ways: newWays(g)}
	of, n := t.components()
	t.component, t.derived = of, newSets(n, len(g.Readers))
	members := groupByOwner(n, len(g.Tasks), func(i int) int { return int(of[i]) })
	for c := range n { // the components that it leads to come before it
		for _, i := range members.of(c) {
			for _, s := range t.writes.of(int(i)) {
				t.follow(int(s), t.onward, t.derived[c])
			}
		}
	}
	return t
}

// follow adds the readers that get a source over edges, or anything derived from it.
func (t *Table) follow(source int, edges lists, readers set) {
	for _, s := range t.sights.of(source) {
		readers.add(t.g.Sights[s].Reader)
	}
	last := -1
	for _, e := range edges.of(source) {
		i := t.g.Edges[e].Task
		if i == last {
			continue // edges come in the order of their tasks
		}
		last = i
		tk := &t.g.Tasks[i]
		if tk.Agent != Nobody {
			readers.add(tk.Agent)
		}
		for _, r := range tk.Endpoints {
			readers.add(r)
		}
		readers.grow(t.derived[t.component[i]])
	}
}

// Graph returns the graph of the table.
func (t *Table) Graph() *Graph { return t.g }

// Reach returns how much of a source a reader gets. Both are indexes into the graph.
// For several readers of one source, [Table.Row] is faster.
func (t *Table) Reach(source, reader int) Reach { return t.Row(source)[reader] }

// Row returns how much of a source each reader gets, in time proportional to the
// deliveries of the source and to the readers.
func (t *Table) Row(source int) []Reach {
	row, readers := make([]Reach, len(t.g.Readers)), newSets(1, len(t.g.Readers))[0]
	t.follow(source, t.edges, readers)
	if by := t.g.Sources[source].Task; by >= 0 {
		readers.grow(t.derived[t.component[by]])
	}
	for r := range row {
		if readers.has(r) {
			row[r] = Derived
		}
	}
	for _, s := range t.sights.of(source) {
		row[t.g.Sights[s].Reader] = max(row[t.g.Sights[s].Reader], t.level.sights[s])
	}
	for _, e := range t.edges.of(source) {
		level, tk := t.level.edges[e], &t.g.Tasks[t.g.Edges[e].Task]
		if tk.Agent != Nobody {
			row[tk.Agent] = max(row[tk.Agent], level)
		}
		for _, r := range tk.Endpoints {
			row[r] = max(row[r], level)
		}
	}
	return row
}

// Wrote reports whether a reader reads the task that wrote a source: its agent or
// an endpoint of it. Such a reader knows the source without being reached by it.
func (t *Table) Wrote(source, reader int) bool {
	by := t.g.Sources[source].Task
	return by >= 0 && t.g.Tasks[by].reads(reader)
}

// Via returns a path from a source to a reader. If the source is delivered to the
// reader, the path delivers as much of it as [Table.Reach] says. Otherwise it is the
// path of the fewest tasks that delivers something derived from it. Via returns nil if
// there is no path. The path does not depend on the order of edges. Via takes time
// proportional to the graph.
func (t *Table) Via(source, reader int) Path {
	switch level := t.Reach(source, reader); level {
	case Never:
		return nil
	case Derived:
		return t.derivedPath(&subject{sources: []int{source}}, reader)
	default:
		return t.deliveredPath(&subject{sources: []int{source}, atLeast: level}, reader)
	}
}
