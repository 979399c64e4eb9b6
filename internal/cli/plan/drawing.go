package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
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

// node is a task, a source of context or an endpoint. Its lines are clean.
type node struct {
	id    string
	kind  handoff.SourceKind // Dependency for a task, Goal for the answer to it, outside for an endpoint
	lines []string
}

// outside is the kind of the nodes of endpoints.
const outside handoff.SourceKind = ""

// edge is what one node reads of another. Both are indices into the nodes.
type edge struct {
	from, to int
	faint    bool   // optional or withheld, as its text says
	leaves   bool   // to an endpoint
	text     string // clean lines that say what is delivered and by which rules
}

// lines returns the lines of the text.
func (e *edge) lines() []string {
	if e.text == "" {
		return nil
	}
	return strings.Split(e.text, "\n")
}

// shortID is the length of the unique part of an ID, unless it must be longer to be unique.
const shortID = 8

// newDrawing turns a plan into a drawing.
func newDrawing(p *engine.Plan) *drawing {
	d := &drawing{name: terminal.CleanLine(p.Name)}
	at := make(map[string]int, len(p.Tasks)+len(p.Inputs))
	var keys []string
	add := func(key string, kind handoff.SourceKind, lines ...string) int {
		if i, ok := at[key]; ok {
			return i
		}
		at[key] = len(d.nodes)
		keys = append(keys, key)
		d.nodes = append(d.nodes, node{kind: kind, lines: lines})
		return len(d.nodes) - 1
	}
	for _, t := range p.Tasks {
		add(taskKey(t.ID), handoff.Dependency, terminal.CleanLine(t.Title), terminal.CleanLine(t.Assignee)+", "+t.Label.String())
	}
	for _, in := range p.Inputs {
		add(inputKey(in.Name), handoff.Input, terminal.CleanLine(in.Name), in.Classification.String())
	}
	drawn := make(map[edge]bool)
	for i, t := range p.Tasks {
		for j := range t.Reads {
			r := &t.Reads[j]
			e := edge{from: add(origin(r)), to: i, faint: r.Optional || r.Withheld != "", text: edgeText(r)}
			if !drawn[e] {
				drawn[e] = true
				d.edges = append(d.edges, e)
			}
		}
	}
	leave := func(from int, to string, fallback []string) {
		for _, to := range append([]string{to}, fallback...) {
			if to == "" {
				continue
			}
			d.edges = append(d.edges, edge{from: from, to: add("endpoint "+to, outside, terminal.CleanLine(to)), leaves: true})
		}
	}
	answer := -1
	if p.Coordinator != nil {
		answer = add("answer", handoff.Goal, "answer", handoff.Coordinator)
		for _, id := range p.Output {
			d.edges = append(d.edges, edge{from: at[taskKey(id)], to: answer})
		}
	}
	for i := range p.Tasks {
		leave(i, p.Tasks[i].LeavesTo, p.Tasks[i].Fallback)
	}
	if answer >= 0 {
		leave(answer, p.Coordinator.LeavesTo, p.Coordinator.Fallback)
	}
	d.identify(keys)
	return d
}

func taskKey(id task.ID) string { return "task " + string(id) }

func inputKey(name string) string { return "input " + strings.ToLower(name) }

// edgeText says how the gate changes what is read, one change per line.
func edgeText(r *engine.Reading) string {
	lines := deliveryNotes(r)
	if rules := ruleNames(r); rules != "" {
		lines = append(lines, rules)
	}
	return strings.Join(lines, "\n")
}

// origin returns the node that a reading comes from.
func origin(r *engine.Reading) (key string, kind handoff.SourceKind, line string) {
	switch r.Kind {
	case handoff.Dependency:
		return taskKey(r.Task), r.Kind, terminal.CleanLine(r.Name)
	case handoff.Input:
		return inputKey(r.Name), r.Kind, terminal.CleanLine(r.Name)
	case handoff.Memory:
		return "memory", r.Kind, "shared team memory"
	}
	return string(r.Kind) + " " + r.From, r.Kind, fmt.Sprintf("%s from %s", r.Kind, terminal.CleanLine(r.From))
}

// letters begin the IDs of nodes.
var letters = map[handoff.SourceKind]string{handoff.Dependency: "t", handoff.Input: "i", handoff.Memory: "m", handoff.Goal: "a", outside: "e"}

// identify gives each node an ID that depends only on what the node represents, so that a change of
// a spec changes few lines of its drawing. IDs become longer if short ones are not unique.
func (d *drawing) identify(keys []string) {
	sums := make([]string, len(keys))
	for i, key := range keys {
		sum := sha256.Sum256([]byte(key))
		sums[i] = hex.EncodeToString(sum[:])
	}
	n := shortID
	for !distinct(sums, n) {
		n *= 2
	}
	for i := range d.nodes {
		letter, ok := letters[d.nodes[i].kind]
		if !ok {
			letter = "s"
		}
		d.nodes[i].id = letter + sums[i][:n]
	}
}

// distinct reports whether the first n characters of all sums differ.
func distinct(sums []string, n int) bool {
	if n >= sha256.Size*2 {
		return true
	}
	seen := make(map[string]bool, len(sums))
	for _, s := range sums {
		if seen[s[:n]] {
			return false
		}
		seen[s[:n]] = true
	}
	return true
}

// Drawings are the forms in which a plan can be drawn.
var Drawings = map[string]func(*drawing, io.Writer) error{"dot": (*drawing).dot, "mermaid": (*drawing).mermaid}

// printDrawing prints a plan as a drawing. Its text is clean, so it can be shown on a terminal too.
func printDrawing(con *console.Console, form string, p *engine.Plan) error {
	return con.Print(func(w io.Writer) error { return Drawings[form](newDrawing(p), w) })
}
