package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/flow"
)

// maxColumns is the largest number of agents in a matrix. For more agents there are lists.
const maxColumns = 12

// maxRowTitle is where a title in a matrix is cut, in cells.
const maxRowTitle = 40

// maxDerived is how many readers a list names that get only text derived from the source.
const maxDerived = 8

// write writes the flow as text, in the form that fits its size.
func (v *flowView) write(w io.Writer) {
	switch {
	case v.from:
		v.writeFrom(w, v.sources[0])
	case v.to:
		v.writeTo(w, v.readers[0])
	case v.agents() > maxColumns:
		v.writeLists(w)
	default:
		v.writeMatrix(w)
	}
}

func (v *flowView) agents() (n int) {
	for _, r := range v.readers {
		if v.Graph().Readers[r].Kind == flow.Agent {
			n++
		}
	}
	return n
}

// reachSigns are the cells of the matrix.
var reachSigns = [...]string{flow.Never: "·", flow.Derived: "d", flow.Part: "P", flow.Whole: "W"}

// ownSign is the cell of the reader that produced the source.
const ownSign = "="

// writeMatrix writes a row for each source and a column for each reader. The names of readers are
// above their columns, each on its own line.
func (v *flowView) writeMatrix(w io.Writer) {
	g := v.Graph()
	heads, width := v.heads()
	fmt.Fprint(w, "\nwho can see what\nW whole, P part, d derived text only, = wrote it, · never\n\n")
	for k, r := range v.readers {
		fmt.Fprintf(w, "%*s%s%s\n", width, "", strings.Repeat("│ ", k), describeReader(&g.Readers[r]))
	}
	for k, s := range v.sources {
		fmt.Fprint(w, heads[k], strings.Repeat(" ", width-terminal.Width(heads[k])))
		all, signs := v.reaches(s), make([]string, len(v.readers))
		for i, r := range v.readers {
			signs[i] = v.sign(s, r, all(r))
		}
		fmt.Fprintln(w, strings.Join(signs, " "))
	}
}

func (v *flowView) sign(source, reader int, level flow.Reach) string {
	if level < flow.Part && v.Wrote(source, reader) {
		return ownSign
	}
	return reachSigns[level]
}

// heads returns the beginning of each row and their width. Long titles are cut.
func (v *flowView) heads() (heads []string, width int) {
	var b strings.Builder
	rows := format.NewTable(&b, "")
	for _, s := range v.sources {
		source := &v.Graph().Sources[s]
		kind, name := describeSource(source)
		rows.Row(kind, terminal.Clip(name, maxRowTitle), source.Label.String())
	}
	rows.Flush()
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		heads, width = append(heads, line), max(width, terminal.Width(line))
	}
	return heads, width + 2
}

// writeLists writes for each source which readers it reaches.
func (v *flowView) writeLists(w io.Writer) {
	fmt.Fprint(w, "\nwho can see what: whole, in part, or only text derived from it; see --from NAME and --to READER\n")
	for _, s := range v.sources {
		fmt.Fprintf(w, "\n%s\n", v.title(s))
		v.writeReached(w, s)
	}
}

// title names a source in a line, with its label.
func (v *flowView) title(source int) string {
	s := &v.Graph().Sources[source]
	kind, name := describeSource(s)
	return strings.TrimSuffix(kind+" "+name, " ") + ", " + s.Label.String()
}

// writeReached writes which readers a source reaches, a line for each level.
func (v *flowView) writeReached(w io.Writer, source int) {
	names := v.byReach(source)
	if len(names[flow.Derived])+len(names[flow.Part])+len(names[flow.Whole]) == 0 {
		fmt.Fprint(w, "   reaches no reader\n")
	}
	for _, level := range reachLevels[:len(reachLevels)-1] {
		most := len(v.readers)
		if level == flow.Derived {
			most = maxDerived
		}
		if all := names[level]; len(all) > 0 {
			fmt.Fprintf(w, "   %-8s%s\n", level, format.List(all, most))
		}
	}
}

// byReach returns the names of readers by how much of a source reaches them. The producer is omitted
// unless part of the source itself reaches it.
func (v *flowView) byReach(source int) (names [len(reachSigns)][]string) {
	all := v.reaches(source)
	for _, r := range v.readers {
		if level := all(r); level >= flow.Part || !v.Wrote(source, r) {
			names[level] = append(names[level], format.Readers(v.Graph().Readers[r].Name))
		}
	}
	return names
}

// reachLevels are the levels from the most to the least.
var reachLevels = [...]flow.Reach{flow.Whole, flow.Part, flow.Derived, flow.Never}

// writeFrom writes how much of one source reaches each reader, and by which path.
func (v *flowView) writeFrom(w io.Writer, source int) {
	fmt.Fprintf(w, "from %s\n\n", v.title(source))
	rows, all := format.NewTable(w, ""), v.reaches(source)
	for _, level := range reachLevels {
		for _, r := range v.readers {
			if all(r) == level {
				rows.Row(v.word(source, r, level), describeReader(&v.Graph().Readers[r]), pathText(v.Via(source, r)))
			}
		}
	}
	rows.Flush()
}

// writeTo writes how much of each source reaches one reader.
func (v *flowView) writeTo(w io.Writer, reader int) {
	fmt.Fprintf(w, "to %s\n\n", describeReader(&v.Graph().Readers[reader]))
	rows := format.NewTable(w, "")
	for _, level := range reachLevels {
		for _, s := range v.sources {
			if v.Reach(s, reader) == level {
				source := &v.Graph().Sources[s]
				kind, name := describeSource(source)
				rows.Row(v.word(s, reader, level), kind, name, source.Label.String())
			}
		}
	}
	rows.Flush()
}

func (v *flowView) word(source, reader int, level flow.Reach) string {
	if level < flow.Part && v.Wrote(source, reader) {
		return level.String() + ", wrote it"
	}
	return level.String()
}

// pathText returns the tasks on a path with the rules that deliver the source.
func pathText(p flow.Path) string {
	if p == nil {
		return ""
	}
	var stops []string
	for _, s := range p[1 : len(p)-1] {
		stops = append(stops, terminal.CleanLine(format.Readers(s.Name))+ruleText(s))
	}
	if last := p[len(p)-1]; len(stops) == 0 || last.Rule != "" {
		stops = append(stops, "shown"+ruleText(last))
	}
	return "through " + strings.Join(stops, " → ")
}

// ruleText names the rule of a step and what it does.
func ruleText(s flow.Step) string {
	var all []string
	if s.Rule != "" {
		all = append(all, "rule "+terminal.CleanLine(string(s.Rule)))
		if s.Line != "" {
			all = append(all, terminal.CleanLine(s.Line))
		}
	}
	if s.Note != "" {
		all = append(all, terminal.CleanLine(s.Note))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}
