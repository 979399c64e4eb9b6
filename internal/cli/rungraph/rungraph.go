// Package rungraph makes the graph of a stored run: its tasks, the steps of the coordinator, the inputs, and what each
// of them reads. It says in which loops and lists each task is, so that a viewer can fold them.
package rungraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Document is the graph of a run, in JSON.
type Document struct {
	Nodes []*Node `json:"nodes"`
	Edges []Edge  `json:"edges"` // in the order of their kinds
	Folds []*Fold `json:"folds,omitempty"`
	Sent  []Way   `json:"sent,omitempty"`
}

// A Way is a pair of tasks of which one has read a handoff of the other.
type Way struct {
	From task.ID `json:"from"`
	To   task.ID `json:"to"`
}

// The kinds of nodes.
const (
	kindTask  = "task"
	kindLoop  = "loop" // of a fold, or a task that has the result of a loop
	kindList  = "list" // of a fold: a task for each item
	kindStep  = "step" // of the coordinator
	kindInput = "input"
)

// A Node is a task, a step of the coordinator or an input.
type Node struct {
	ID    string                `json:"id"` // the ID of a task or step, or "input:NAME"
	Title string                `json:"title"`
	Name  string                `json:"name,omitempty"` // of an instance, by the keys of its items
	Agent string                `json:"agent,omitempty"`
	Kind  string                `json:"kind"`
	Label *label.Classification `json:"label,omitempty"` // of the result, or of the input; else at most, as planned
	Folds []Part                `json:"folds,omitempty"` // the loops and lists that it is in, the outermost first
}

// A Fold is a loop or a list, whose rounds or items can be shown as one node.
type Fold struct {
	Title string `json:"title"`
	Kind  string `json:"kind"`
	Most  int    `json:"most,omitempty"` // how many rounds or items there may be, if it is known
}

// A Part is the round of a loop or the item of a list that a task belongs to.
type Part struct {
	Fold   string `json:"fold"`             // the title
	Number int    `json:"number,omitempty"` // of the round or item, from 1; zero for the result of a loop
}

// The kinds of edges. If several apply, the first counts.
const (
	edgeResult    = "result"    // the result, the error or the files of a task
	edgeInput     = "input"     // an input
	edgeCondition = "condition" // what a condition compares
	edgeOrder     = "order"     // nothing is delivered
)

var edgeKinds = []string{edgeResult, edgeInput, edgeCondition, edgeOrder}

// An Edge is what one node reads of another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"`
}

// New makes the graph of a stored run, as far as it shows itself. Its edges are those of its plan. If p is nil, they are
// those that the run has recorded: the plan of a coordinator and the decisions so far.
func New(k *journals.StoredRun, p *engine.Plan) *Document {
	g := &graph{run: k, plan: p, index: map[string]int{}, folds: map[string]*Fold{}, document: &Document{Nodes: []*Node{}, Edges: []Edge{}, Sent: ways(k)}}
	g.addTasks()
	g.addInputs()
	if p != nil {
		g.linkPlanned()
	} else {
		g.linkCoordinated()
	}
	g.linkRecorded()
	g.addEdges()
	return g.document
}

// ways returns the pairs of tasks between which handoffs passed, each once.
func ways(k *journals.StoredRun) (list []Way) {
	known := map[Way]bool{}
	for _, h := range sent.Of(k) {
		for i := range h.Meta.Read {
			r := &h.Meta.Read[i]
			if w := (Way{h.Meta.Task, r.Task}); h.Meta.Task != "" && r.Delivered() && !known[w] {
				known[w], list = true, append(list, w)
			}
		}
	}
	return list
}

// A link is an edge between nodes, by index.
type link struct {
	from, to int
	kind     string
}

// A graph is a document while it is made.
type graph struct {
	run      *journals.StoredRun
	plan     *engine.Plan
	document *Document
	index    map[string]int   // of nodes, by ID
	folds    map[string]*Fold // by title
	links    []link
}

// add adds a node, unless there is one with its ID.
func (g *graph) add(n *Node) {
	if _, known := g.index[n.ID]; !known {
		g.index[n.ID] = len(g.document.Nodes)
		g.document.Nodes = append(g.document.Nodes, n)
	}
}

// connect adds a link between two nodes, if both exist.
func (g *graph) connect(from, to, kind string) {
	i, known := g.index[from]
	if j, also := g.index[to]; known && also && i != j {
		g.links = append(g.links, link{i, j, kind})
	}
}

// addTasks adds the tasks and steps that the run has.
func (g *graph) addTasks() {
	for _, t := range g.run.Tasks {
		n := &Node{ID: string(t.ID), Title: t.Title, Name: t.Name, Agent: t.Agent, Kind: kindTask, Label: g.labelOf(t)}
		if t.Step {
			n.Kind = kindStep
		} else if in := g.planned(t.ID); in != nil && in.Instance != nil && in.Instance.Joins {
			n.Kind = kindLoop
		}
		g.add(n)
		g.foldsOf(n)
	}
}

// planned returns a task of the plan, with its condition and its loop; nil if there is none.
func (g *graph) planned(id task.ID) *task.Task {
	if g.plan == nil {
		return nil
	}
	i, ok := g.plan.Graph.Index(id)
	if !ok {
		return nil
	}
	return g.plan.Graph.Task(i)
}

// labelOf returns the label of the result of a task, or what it can be at most; nil if it is unknown.
func (g *graph) labelOf(t *runstate.Task) *label.Classification {
	if x := g.run.State.Accepted(t); x != nil && g.run.State.Shown(t) == task.Completed {
		return new(g.run.Result(x).Label)
	}
	if g.plan != nil {
		if i, ok := g.plan.Graph.Index(t.ID); ok {
			return new(g.plan.Labels[i])
		}
	}
	return nil
}

// addEdges adds one edge for all links between the same nodes, in the order of kinds and nodes.
func (g *graph) addEdges() {
	slices.SortFunc(g.links, func(a, b link) int {
		return cmp.Or(slices.Index(edgeKinds, a.kind)-slices.Index(edgeKinds, b.kind), a.to-b.to, a.from-b.from)
	})
	nodes, known := g.document.Nodes, map[[2]int]bool{}
	for _, l := range g.links {
		if pair := [2]int{l.from, l.to}; !known[pair] {
			known[pair] = true
			g.document.Edges = append(g.document.Edges, Edge{From: nodes[l.from].ID, To: nodes[l.to].ID, Kind: l.kind})
		}
	}
}

// inputID returns the ID of the node of an input. Names of inputs differ in more than their letter case.
func inputID(name string) string { return "input:" + strings.ToLower(name) }
