package plan

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// dot returns a drawing for Graphviz. A dashed edge is optional, an alternative, a condition or
// withheld; a dotted one leads to an endpoint.
func (d *drawing) dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotQuoted(d.name))
	b.WriteString("  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n")
	for _, n := range d.nodes {
		shape := ""
		if n.kind.dot != "" {
			shape = ", style=solid, shape=" + n.kind.dot
		}
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", n.id, dotQuoted(wrapped(n.text)), shape)
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  %s -> %s%s;\n", d.nodes[e.from].id, d.nodes[e.to].id, e.dotStyle())
	}
	b.WriteString("}\n")
	return b.String()
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
		all = append(all, "label="+dotQuoted(wrapped(e.text)))
	}
	if len(all) == 0 {
		return ""
	}
	return " [" + strings.Join(all, ", ") + "]"
}

// dotEscapes escapes a text in a quoted string of Graphviz. A backslash would begin an escape, an
// ampersand an entity.
var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`, "\n", `\n`)

// dotQuoted returns a text as one quoted string with centered lines.
func dotQuoted(text string) string { return `"` + dotEscapes.Replace(text) + `"` }

// dotWidth is the width at which lines of a label are broken, since Graphviz does not break them.
const dotWidth = 40

// wrapped breaks the lines of a text that are too long between words.
func wrapped(text string) string {
	var all []string
	for l := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(l) {
			if line != "" && terminal.Width(line)+1+terminal.Width(word) > dotWidth {
				all, line = append(all, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}
