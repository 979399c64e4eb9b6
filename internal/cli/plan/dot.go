package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/terminal"
)

// dotShapes are the shapes of nodes by kind; tasks have the default shape of the graph.
var dotShapes = map[handoff.SourceKind]string{handoff.Input: "note", handoff.Memory: "cylinder", handoff.Goal: "ellipse", outside: "box3d"}

// dot writes a drawing for Graphviz. A dashed edge is optional or withheld; a dotted one leads to an
// endpoint.
func (d *drawing) dot(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotQuoted(d.name))
	b.WriteString("  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n")
	for _, n := range d.nodes {
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", n.id, dotQuoted(wrapped(n.lines, dotWidth)...), n.dotShape())
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  %s -> %s%s;\n", d.nodes[e.from].id, d.nodes[e.to].id, e.dotStyle())
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (e *edge) dotStyle() string {
	var all []string
	switch {
	case e.leaves:
		all = append(all, "style=dotted", "arrowhead=open")
	case e.faint:
		all = append(all, "style=dashed")
	}
	if e.text != "" {
		all = append(all, "label="+dotQuoted(wrapped(e.lines(), dotWidth)...))
	}
	if len(all) == 0 {
		return ""
	}
	return " [" + strings.Join(all, ", ") + "]"
}

func (n *node) dotShape() string {
	if n.kind == handoff.Dependency {
		return ""
	}
	shape, ok := dotShapes[n.kind]
	if !ok {
		shape = "cds"
	}
	return ", style=solid, shape=" + shape
}

// dotEscapes escapes a text in a quoted string of Graphviz. A backslash would begin an escape, an
// ampersand an entity.
var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`)

// dotQuoted returns lines as one quoted string with centered lines.
func dotQuoted(lines ...string) string {
	escaped := make([]string, len(lines))
	for i, l := range lines {
		escaped[i] = dotEscapes.Replace(l)
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}

// dotWidth is the width at which lines of a label are broken, since Graphviz does not break them.
const dotWidth = 40

// wrapped breaks lines that are longer than width between words.
func wrapped(lines []string, width int) (all []string) {
	for _, l := range lines {
		line := ""
		for word := range strings.FieldsSeq(l) {
			if line != "" && terminal.Width(line)+1+terminal.Width(word) > width {
				all, line = append(all, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		all = append(all, line)
	}
	return all
}
