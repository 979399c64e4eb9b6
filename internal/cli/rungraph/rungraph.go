// Package rungraph makes the drawing of a stored run: its tasks, the steps of the coordinator, the
// inputs, and what each of them reads. Rounds of loops and items of lists are folded into one node
// unless they are expanded.
package rungraph

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/graphlayout"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Document is the drawing of a run, in JSON.
type Document struct {
	Width  int     `json:"width"`
	Height int     `json:"height"`
	Nodes  []*Node `json:"nodes"`
	Edges  []Edge  `json:"edges"`
	Sent   []Way   `json:"sent,omitempty"`
}

// A Way is a pair of tasks of which one has read a handoff of the other.
type Way struct {
	From task.ID `json:"from"`
	To   task.ID `json:"to"`
}

// The kinds of nodes.
const (
	kindTask  = "task"
	kindLoop  = "loop" // rounds, or a task that has the result of a loop
	kindList  = "list" // a task for each item
	kindStep  = "step" // of the coordinator
	kindInput = "input"
)

// A Node is a task, a step of the coordinator, an input, or a fold of several tasks.
type Node struct {
	ID      string                `json:"id"` // the ID of a task or step, "input:NAME" or "fold:TITLE"
	Title   string                `json:"title"`
	Name    string                `json:"name,omitempty"` // of an instance, by the keys of its items
	Agent   string                `json:"agent,omitempty"`
	Kind    string                `json:"kind"`
	Label   *label.Classification `json:"label,omitempty"` // of the result, or of the input; else at most, as planned
	Layer   int                   `json:"layer"`
	X       int                   `json:"x"`
	Y       int                   `json:"y"`
	W       int                   `json:"w"`
	H       int                   `json:"h"`
	Count   int                   `json:"count,omitempty"`   // of a fold: items, or rounds that began
	Most    int                   `json:"most,omitempty"`    // how many there may be, if the run has not ended
	Members []task.ID             `json:"members,omitempty"` // of a fold
	Fold    string                `json:"fold,omitempty"`    // the title of the expanded fold that the node is in
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
	From   string   `json:"from"`
	To     string   `json:"to"`
	Kind   string   `json:"kind"`
	Points [][2]int `json:"points"`
}

// New draws a stored run, as far as it shows itself. Its edges are those of its plan. If p is nil, they are
// those that the run has recorded: the plan of a coordinator and the decisions so far. Folds whose titles
// expand has are drawn as what they consist of.
func New(k *journals.StoredRun, p *engine.Plan, expand []string) *Document {
	return NewCleaned(k, p, expand, func(text string) string { return text })
}

// NewCleaned is [New] with titles and names as clean returns them, so that no size in the drawing depends on what
// they were before.
func NewCleaned(k *journals.StoredRun, p *engine.Plan, expand []string, clean func(string) string) *Document {
	g := &graph{run: k, plan: p, index: map[string]int{}, clean: clean}
	g.addTasks()
	g.addInputs()
	if p != nil {
		g.linkPlanned()
	} else {
		g.linkCoordinated()
	}
	g.linkRecorded()
	slices.SortFunc(g.links, func(a, b link) int { // not as it happened to be recorded
		return cmp.Or(a.to-b.to, a.from-b.from, strings.Compare(a.kind, b.kind))
	})
	g.fold()
	d := g.document(expand)
	d.Sent = ways(k)
	return d
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

// A vertex is a task, a step or an input before tasks are folded.
type vertex struct {
	Node
	within  []*fold // the folds that it is in, the outermost first
	started bool
}

// A link is an edge between vertices.
type link struct {
	from, to int
	kind     string
}

// A graph is a run before it is laid out.
type graph struct {
	run      *journals.StoredRun
	plan     *engine.Plan
	vertices []vertex
	index    map[string]int // by ID
	links    []link
	clean    func(string) string
}

// add adds a vertex, unless there is one with its ID, and returns its index.
func (g *graph) add(v vertex) int {
	i, known := g.index[v.ID]
	if !known {
		i = len(g.vertices)
		g.index[v.ID], g.vertices = i, append(g.vertices, v)
	}
	return i
}

// connect adds a link between two vertices, if both exist.
func (g *graph) connect(from, to, kind string) {
	i, known := g.index[from]
	if j, also := g.index[to]; known && also && i != j {
		g.links = append(g.links, link{i, j, kind})
	}
}

// addTasks adds the tasks and steps that the run has.
func (g *graph) addTasks() {
	absent := absentInstances(g.run)
	for _, t := range g.run.Tasks {
		if absent[t.ID] {
			continue
		}
		v := vertex{Node: Node{ID: string(t.ID), Title: t.Title, Name: t.Name, Agent: t.Agent, Kind: kindTask, Label: g.labelOf(t)}}
		v.started = t.Status != task.Pending && t.Status != task.Blocked && t.Status != task.NotNeeded || t.Attempts()+t.Running > 0
		if t.Step {
			v.Kind = kindStep
		} else if in := g.planned(t.ID); in != nil && in.Instance != nil && in.Instance.Joins {
			v.Kind = kindLoop
		}
		g.add(v)
	}
}

// absentInstances returns the rounds and items that the run does not have. Their tasks end as not needed, for
// this reason or because of another one of them.
func absentInstances(k *journals.StoredRun) map[task.ID]bool {
	absent := map[task.ID]bool{}
	for _, t := range k.Tasks {
		if t.Status == task.NotNeeded && t.Ended.Root == "" && t.Ended.Reason == engine.WhyLeftOut {
			absent[t.ID] = true
		}
	}
	for _, t := range k.Tasks {
		if t.Status == task.NotNeeded && t.Ended.Root != "" && absent[t.Ended.Root] && isInstance(t.Title) {
			absent[t.ID] = true
		}
	}
	return absent
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
func (g *graph) labelOf(t *journals.StoredTask) *label.Classification {
	if x := t.Accepted(); x != nil && t.Status == task.Completed {
		return new(g.run.Result(x).Label)
	}
	if g.plan != nil {
		if i, ok := g.plan.Graph.Index(t.ID); ok {
			return new(g.plan.Labels[i])
		}
	}
	return nil
}

// document draws what is visible.
func (g *graph) document(expand []string) *Document {
	d := &Document{Nodes: []*Node{}, Edges: []Edge{}}
	shown := g.visible(d, expand)
	type pair struct{ from, to int }
	kinds := map[pair]int{}
	var pairs []pair
	for _, l := range g.links {
		of := pair{shown[l.from], shown[l.to]}
		kind := slices.Index(edgeKinds, l.kind)
		known, seen := kinds[of]
		switch {
		case of.from == of.to:
			continue
		case !seen:
			pairs = append(pairs, of)
		case known <= kind:
			continue
		}
		kinds[of] = kind
	}
	sizes := make([]graphlayout.Size, len(d.Nodes))
	for i, n := range d.Nodes {
		n.Title, n.Name, n.Agent = g.clean(n.Title), g.clean(n.Name), g.clean(n.Agent)
		sizes[i] = sizeOf(n)
	}
	edges := make([]graphlayout.Edge, len(pairs))
	for i, of := range pairs {
		edges[i] = graphlayout.Edge{From: of.from, To: of.to}
	}
	l := graphlayout.New(sizes, edges)
	d.Width, d.Height = l.Width, l.Height
	for i, n := range d.Nodes {
		at := l.Nodes[i]
		n.Layer, n.X, n.Y, n.W, n.H = at.Layer, at.X, at.Y, sizes[i].W, sizes[i].H
	}
	for i, of := range pairs {
		e := Edge{From: d.Nodes[of.from].ID, To: d.Nodes[of.to].ID, Kind: edgeKinds[kinds[of]], Points: make([][2]int, len(l.Edges[i]))}
		for k, p := range l.Edges[i] {
			e.Points[k] = [2]int{p.X, p.Y}
		}
		d.Edges = append(d.Edges, e)
	}
	return d
}

// The sizes of nodes, in pixels of a page with 14-pixel letters.
const (
	letterWidth = 8
	leastWidth  = 144
	mostWidth   = 272
	besideTitle = 56  // for the mark of the state, and both sides
	besideAgent = 112 // for the model
	nodeHeight  = 66
	inputHeight = 40
)

// sizeOf returns how large a node is drawn: title, agent with model, and numbers have a line each.
func sizeOf(n *Node) graphlayout.Size {
	title, agent := letterWidth*utf8.RuneCountInString(cmp.Or(n.Name, n.Title)), letterWidth*utf8.RuneCountInString(n.Agent)
	size := graphlayout.Size{W: min(max(title+besideTitle, agent+besideAgent, leastWidth), mostWidth), H: nodeHeight}
	if n.Kind == kindInput {
		size = graphlayout.Size{W: min(max(title+besideTitle, leastWidth), mostWidth), H: inputHeight}
	}
	return size
}

// inputID returns the ID of the node of an input. Names of inputs differ in more than their letter case.
func inputID(name string) string { return "input:" + strings.ToLower(name) }
