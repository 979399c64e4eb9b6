package plan

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
)

// drawing is a plan as nodes and edges: tasks in the order of the spec, then the other sources that
// they read, then the answer of a coordinator, then endpoints. The answer reads the results of all
// tasks; only results that nothing else reads have an edge to it, to keep the drawing readable.
type drawing struct {
	name  string
	nodes []node
	edges []edge // what each task reads, in the order of its prompt; then to endpoints
}

// node is a task, a source of context or an endpoint.
type node struct {
	key  string // what it represents
	id   string
	kind kind
	text string // clean lines
}

// edge is what one node reads of another. Both are indices into the nodes.
type edge struct {
	from, to int
	faint    bool   // optional, an alternative, a condition or withheld, as its text says
	leaves   bool   // to an endpoint
	text     string // clean lines that say what is delivered and by which rules
}

// kind is how the nodes of one kind are drawn.
type kind struct {
	letter  string    // begins their IDs
	dot     string    // the shape in Graphviz
	mermaid [2]string // the brackets around a label
}

var (
	taskKind     = kind{"t", "", [2]string{"[", "]"}} // with the default shape of the graph
	answerKind   = kind{"a", "ellipse", [2]string{"([", "])"}}
	endpointKind = kind{"e", "box3d", [2]string{"[[", "]]"}}
	inputKind    = kind{"i", "note", [2]string{"[/", "/]"}}
	memoryKind   = kind{"m", "cylinder", [2]string{"[(", ")]"}}
	otherKind    = kind{"s", "cds", [2]string{">", "]"}}
)

// shortID is the length of the unique part of an ID, unless it must be longer to be unique.
const shortID = 8

// newDrawing turns a plan into a drawing.
func newDrawing(p *engine.Plan) *drawing {
	d := &drawing{name: terminal.CleanLine(p.Name)}
	at := make(map[string]int, len(p.Tasks)+len(p.Inputs))
	add := func(key string, kind kind, lines ...string) int {
		i, ok := at[key]
		if !ok {
			i = len(d.nodes)
			at[key] = i
			for k := range lines {
				lines[k] = terminal.CleanLine(lines[k])
			}
			d.nodes = append(d.nodes, node{key: key, kind: kind, text: strings.Join(lines, "\n")})
		}
		return i
	}
	for _, t := range p.Tasks {
		add(taskKey(t.ID), taskKind, t.Title+format.Rounds(t.Rounds), cmp.Or(t.Computed, t.Assignee)+", "+t.Label.String())
	}
	for _, in := range p.Inputs {
		add(inputKey(in.Name), inputKind, in.Name, in.Classification.String())
	}
	drawn := make(map[edge]bool)
	for i, t := range p.Tasks {
		for j := range t.Reads {
			r := &t.Reads[j]
			e := edge{from: add(origin(r)), to: i, faint: r.Optional || r.Withheld != "" || r.Kind == handoff.Condition || len(r.OneOf) > 0, text: edgeText(&t, r)}
			if !drawn[e] && !(t.Rounds > 0 && r.Kind == handoff.Condition && d.extend(e)) {
				drawn[e] = true
				d.edges = append(d.edges, e)
			}
		}
	}
	leave := func(from int, to string, fallback []string) {
		for _, to := range append([]string{to}, fallback...) {
			if to != "" {
				d.edges = append(d.edges, edge{from: from, to: add("endpoint "+to, endpointKind, to), leaves: true})
			}
		}
	}
	answer := 0
	if p.Coordinator != nil {
		answer = add("answer", answerKind, "answer", handoff.Coordinator)
		for _, id := range p.Output {
			d.edges = append(d.edges, edge{from: at[taskKey(id)], to: answer})
		}
	}
	for i, t := range p.Tasks {
		leave(i, t.LeavesTo, t.Fallback)
	}
	if p.Coordinator != nil {
		leave(answer, p.Coordinator.LeavesTo, p.Coordinator.Fallback)
	}
	d.identify()
	return d
}

// extend adds the text of an edge to one between the same nodes, and reports whether there is one. In
// a loop or a list, what decides about a task is often what it reads.
func (d *drawing) extend(e edge) bool {
	i := slices.IndexFunc(d.edges, func(of edge) bool { return of.from == e.from && of.to == e.to && !of.leaves })
	if i < 0 {
		return false
	}
	if have := &d.edges[i].text; !strings.HasPrefix(*have, previousRound) && !strings.Contains("\n"+*have+"\n", "\n"+e.text+"\n") {
		*have = strings.TrimRight(e.text+"\n"+*have, "\n")
	}
	return true
}

func taskKey(id task.ID) string { return "task " + string(id) }

func inputKey(name string) string { return "input " + strings.ToLower(name) }

// edgeText says how the gate changes what a task reads, one change per line.
func edgeText(t *engine.PlannedTask, r *engine.Reading) string {
	var lines []string
	switch {
	case r.Kind == handoff.Condition && t.When != "":
		lines = append(lines, "when "+terminal.CleanLine(t.When))
	case r.Kind == handoff.Condition && t.Until != "":
		lines = append(lines, "until "+terminal.CleanLine(t.Until))
	case r.Kind == handoff.Condition && t.ForEach != "":
		lines = append(lines, "for each")
	case r.Kind == handoff.Condition:
		lines = append(lines, "next round")
	case t.Loop:
		lines = append(lines, "last round")
	case r.Round != "":
		lines = append(lines, previousRound)
	case len(r.OneOf) > 0:
		lines = append(lines, "one of "+strconv.Itoa(len(r.OneOf)))
	}
	if r.Kind != handoff.Condition || r.Withheld != "" {
		lines = append(lines, deliveryNotes(r)...)
	}
	if rules := ruleNames(r); rules != "" {
		lines = append(lines, rules)
	}
	return strings.Join(lines, "\n")
}

// origin returns the node that a reading comes from.
func origin(r *engine.Reading) (key string, kind kind, line string) {
	switch r.Kind {
	case handoff.Dependency, handoff.Files, handoff.Condition:
		return taskKey(r.Task), taskKind, r.Name
	case handoff.Folder:
		if r.Task != "" {
			return taskKey(r.Task), taskKind, r.Name
		}
		return inputKey(r.Name), inputKind, r.Name
	case handoff.Input:
		return inputKey(r.Name), inputKind, r.Name
	case handoff.Memory:
		return "memory", memoryKind, "shared team memory"
	}
	return string(r.Kind) + " " + r.From, otherKind, fmt.Sprintf("%s from %s", r.Kind, r.From)
}

// identify gives each node an ID that depends only on what the node represents, so that a change of
// a spec changes few lines of its drawing. IDs become longer if short ones are not unique.
func (d *drawing) identify() {
	for length := shortID; ; length *= 2 {
		seen := make(map[string]bool, len(d.nodes))
		for i := range d.nodes {
			n := &d.nodes[i]
			n.id = n.kind.letter + fmt.Sprintf("%x", sha256.Sum256([]byte(n.key)))[:length]
			seen[n.id[1:]] = true
		}
		if len(seen) == len(d.nodes) {
			return
		}
	}
}

// Drawings are the forms in which a plan can be drawn.
var Drawings = map[string]func(*drawing) string{"dot": (*drawing).dot, "mermaid": (*drawing).mermaid}

// printDrawing prints a plan as a drawing. Its text is clean, so it can be shown on a terminal too.
func printDrawing(con *console.Console, form string, p *engine.Plan) error {
	return con.Print(func(w io.Writer) error {
		_, err := io.WriteString(w, Drawings[form](newDrawing(p)))
		return err
	})
}
