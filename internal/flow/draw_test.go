package flow_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// A delivery is one way in which an edge may deliver a source that has /a and /b,
// and what is known of it by definition.
type delivery struct {
	name                      string
	selection                 pick.Selection
	minimal, held, structured bool
	level                     flow.Reach
	a, b                      bool // whether the part crosses
}

func only(paths ...task.Path) pick.Selection   { return must(pick.Everything().Only(paths...)) }
func except(paths ...task.Path) pick.Selection { return must(pick.Everything().Except(paths...)) }

func must(s pick.Selection, err error) pick.Selection {
	if err != nil {
		panic(err)
	}
	return s
}

var deliveries = []delivery{
	{name: "all", selection: pick.Everything(), level: flow.Whole, a: true, b: true},
	{name: "the whole", selection: only(""), level: flow.Whole, a: true, b: true},
	{name: "the structured part", selection: pick.Everything(), structured: true, level: flow.Part, a: true, b: true},
	{name: "a", selection: only("/a"), level: flow.Part, a: true},
	{name: "b", selection: only("/b"), structured: true, level: flow.Part, b: true},
	{name: "both", selection: only("/*/**"), level: flow.Part, a: true, b: true},
	{name: "no a", selection: except("a"), level: flow.Part, b: true},
	{name: "no b", selection: except("/**/b"), level: flow.Part, a: true},
	{name: "nothing", selection: pick.Selection{}, level: flow.Never},
	{name: "blocked", selection: must(only("/a").Except("a")), level: flow.Never},
	{name: "minimal", selection: pick.Everything(), minimal: true, level: flow.Never},
	{name: "held", selection: pick.Everything(), held: true, level: flow.Never},
}

func hasAB(path []string) flow.Answer {
	if len(path) == 1 {
		return namesAB(path[0])
	}
	return flow.No
}

func namesAB(name string) flow.Answer {
	if name == "a" || name == "b" {
		return flow.Yes
	}
	return flow.No
}

// A draw is a random graph, with the delivery of each edge and sight.
type draw struct {
	*flow.Graph
	edges, sights []delivery
}

// drawn draws a graph in which everything has /a and /b. Without cycles, edges
// lead from what a task writes to later tasks only.
func drawn(t *rapid.T, cycles bool) *draw {
	d := &draw{Graph: &flow.Graph{}}
	pickOne := func(n int, name string) int { return rapid.IntRange(0, n-1).Draw(t, name) }
	for i := range rapid.IntRange(1, 4).Draw(t, "agents") {
		d.Readers = append(d.Readers, flow.Reader{Kind: flow.Agent, Name: fmt.Sprintf("agent %d", i)})
	}
	agents := len(d.Readers)
	d.Readers = append(d.Readers,
		flow.Reader{Kind: flow.User, Name: "user"}, flow.Reader{Kind: flow.Endpoint, Name: "http://one/"}, flow.Reader{Kind: flow.Endpoint, Name: "http://two"})
	for i := range rapid.IntRange(1, 2).Draw(t, "inputs") {
		d.Sources = append(d.Sources, flow.Source{Kind: handoff.Input, Name: fmt.Sprintf("in %d", i), Task: -1, Has: hasAB, Names: namesAB})
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "tasks") {
		tk := flow.Task{Title: fmt.Sprintf("Task %d", i), Key: fmt.Sprintf("t%d", i), Agent: pickOne(agents, "agent")}
		tk.Endpoints = [][]int{nil, {agents + 1}, {agents + 1, agents + 2}}[pickOne(3, "endpoints")]
		d.Tasks = append(d.Tasks, tk)
		d.Sources = append(d.Sources, flow.Source{Kind: handoff.Dependency, Name: tk.Title, Task: i, Has: hasAB, Names: namesAB})
		if rapid.Bool().Draw(t, "error text") {
			d.Sources = append(d.Sources, flow.Source{Kind: handoff.Fault, Name: tk.Title, Task: i})
		}
	}
	for range rapid.IntRange(0, 14).Draw(t, "edges") {
		if len(d.Tasks) == 0 {
			break
		}
		e := flow.Edge{Source: pickOne(len(d.Sources), "source"), Task: pickOne(len(d.Tasks), "task")}
		if !cycles && d.Sources[e.Source].Task >= e.Task {
			continue
		}
		k := deliveries[pickOne(len(deliveries), "delivery")]
		e.Delivers, e.Minimal, e.Withheld, e.Structured = k.selection, k.minimal, k.held, k.structured
		e.Rule, e.Line = handoff.Rule(k.name), fmt.Sprintf("line %d", len(d.Edges))
		d.Edges, d.edges = append(d.Edges, e), append(d.edges, k)
	}
	for range rapid.IntRange(0, 3).Draw(t, "sights") {
		k := deliveries[pickOne(len(deliveries), "delivery")]
		if k.minimal || k.structured {
			continue
		}
		d.Sights = append(d.Sights, flow.Sight{
			Source: pickOne(len(d.Sources), "source"), Reader: agents, Delivers: k.selection, Withheld: k.held,
			Rule: handoff.Rule(k.name), Line: fmt.Sprintf("sight %d", len(d.Sights)),
		})
		d.sights = append(d.sights, k)
	}
	return d
}

// A way is one explicit way of a source to a reader: the tasks between, and the
// delivery that the way begins with.
type way struct {
	reader int
	tasks  []int
	first  delivery
	wrote  bool // it begins with the writer of the source
}

// ways lists every path on which a source, or what derives from it, reaches a
// reader without passing a task twice. It is independent of the table.
func (d *draw) ways(source int) []way {
	var found []way
	var from func(source int, passed []int, first *delivery, wrote bool)
	onward := func(task int, passed []int, first *delivery, wrote bool) {
		for s := range d.Sources {
			if d.Sources[s].Task == task {
				from(s, passed, first, wrote)
			}
		}
	}
	from = func(source int, passed []int, first *delivery, wrote bool) {
		begins := func(k *delivery) delivery {
			if first != nil {
				return *first
			}
			return *k
		}
		for i := range d.Sights {
			if k := &d.sights[i]; d.Sights[i].Source == source && k.level != flow.Never {
				found = append(found, way{d.Sights[i].Reader, passed, begins(k), wrote})
			}
		}
		for i := range d.Edges {
			k, e := &d.edges[i], &d.Edges[i]
			if e.Source != source || k.level == flow.Never || slices.Contains(passed, e.Task) && !(wrote && passed[0] == e.Task && !slices.Contains(passed[1:], e.Task)) {
				continue
			}
			start := begins(k)
			next := append(slices.Clone(passed), e.Task)
			for r := range d.Readers {
				if d.Tasks[e.Task].Agent == r || slices.Contains(d.Tasks[e.Task].Endpoints, r) {
					found = append(found, way{r, next, start, wrote})
				}
			}
			onward(e.Task, next, &start, wrote)
		}
	}
	from(source, nil, nil, false)
	if by := d.Sources[source].Task; by >= 0 {
		onward(by, []int{by}, &delivery{}, true)
	}
	return found
}

// direct reports whether no task is between the source and the reader.
func (d *draw) direct(w way) bool {
	if w.wrote {
		return false
	}
	return len(w.tasks) == 0 || len(w.tasks) == 1 && d.readsIn(w.reader, w.tasks[0])
}

func (d *draw) readsIn(reader, task int) bool {
	return d.Tasks[task].Agent == reader || slices.Contains(d.Tasks[task].Endpoints, reader)
}
