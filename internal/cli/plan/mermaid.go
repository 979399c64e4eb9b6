package plan

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/runteam/runteam/handoff"
)

// mermaidShapes are the brackets around a label, by kind; tasks are boxes.
var mermaidShapes = map[handoff.SourceKind][2]string{
	handoff.Dependency: {"[", "]"}, handoff.Input: {"[/", "/]"}, handoff.Memory: {"[(", ")]"}, handoff.Goal: {"([", "])"},
	outside: {"[[", "]]"},
}

// mermaid writes a drawing as a flowchart for Mermaid, which Markdown pages show. A dotted edge is
// optional or withheld; one with a round end leads to an endpoint.
func (d *drawing) mermaid(w io.Writer) error {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, n := range d.nodes {
		around, ok := mermaidShapes[n.kind]
		if !ok {
			around = [2]string{">", "]"}
		}
		fmt.Fprintf(&b, "  %s%s%s%s\n", n.id, around[0], mermaidQuoted(n.lines...), around[1])
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  %s %s %s\n", d.nodes[e.from].id, e.mermaidArrow(), d.nodes[e.to].id)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (e *edge) mermaidArrow() string {
	arrow := "-->"
	switch {
	case e.leaves:
		arrow = "--o"
	case e.faint:
		arrow = "-.->"
	}
	if e.text != "" {
		arrow += "|" + mermaidQuoted(e.lines()...) + "|"
	}
	return arrow
}

// mermaidQuoted returns lines as one quoted label. Everything except letters, digits, spaces, commas,
// and a hyphen or an apostrophe inside a word becomes an entity, since the grammars of Mermaid,
// Markdown and HTML all interpret a label.
func mermaidQuoted(lines ...string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br>")
		}
		mermaidText(&b, []rune(l))
	}
	b.WriteByte('"')
	return b.String()
}

func mermaidText(b *strings.Builder, text []rune) {
	word := func(i int) bool {
		return i >= 0 && i < len(text) && unicode.In(text[i], unicode.L, unicode.M, unicode.Nd)
	}
	for i, r := range text {
		inside := (r == '-' || r == '\'') && word(i-1) && word(i+1)
		if word(i) || inside || r == ' ' || r == ',' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(b, "#%d;", r)
		}
	}
}
