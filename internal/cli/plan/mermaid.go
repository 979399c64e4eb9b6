package plan

import (
	"fmt"
	"strings"
	"unicode"
)

// mermaid returns a drawing as a flowchart for Mermaid, which Markdown pages show. A dotted edge is
// optional, an alternative, a condition or withheld; one with a round end leads to an endpoint.
func (d *drawing) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, n := range d.nodes {
		fmt.Fprintf(&b, "  %s%s%s%s\n", n.id, n.kind.mermaid[0], mermaidQuoted(n.text), n.kind.mermaid[1])
	}
	for _, e := range d.edges {
		arrow := "-->"
		switch {
		case e.leaves:
			arrow = "--o"
		case e.faint:
			arrow = "-.->"
		}
		if e.text != "" {
			arrow += "|" + mermaidQuoted(e.text) + "|"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", d.nodes[e.from].id, arrow, d.nodes[e.to].id)
	}
	return b.String()
}

// mermaidQuoted returns a text as one quoted label. Everything except letters, digits, spaces, commas,
// and a hyphen or an apostrophe inside a word becomes an entity, since the grammars of Mermaid,
// Markdown and HTML all interpret a label.
func mermaidQuoted(text string) string {
	var b strings.Builder
	runes := []rune(text)
	word := func(i int) bool {
		return i >= 0 && i < len(runes) && unicode.In(runes[i], unicode.L, unicode.M, unicode.Nd)
	}
	for i, r := range runes {
		inside := (r == '-' || r == '\'') && word(i-1) && word(i+1)
		switch {
		case r == '\n':
			b.WriteString("<br>")
		case word(i) || inside || r == ' ' || r == ',':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return `"` + b.String() + `"`
}
