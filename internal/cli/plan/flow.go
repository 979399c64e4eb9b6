package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
)

// flowFlags limit the flow that plan shows to one source or one reader.
type flowFlags struct {
	from, to string
	prefix   string // of their names in messages
}

func (q *flowFlags) flags(cmd *cobra.Command) {
	q.prefix = "--"
	f := cmd.Flags()
	f.StringVar(&q.from, "from", "", "show only which readers this input or result reaches, and how: a `NAME`, a task's title or key")
	f.StringVar(&q.to, "to", "", "show only what reaches this `READER`: an agent, coordinator, user or the URL of an endpoint")
	flags.Complete(cmd, "from", nil)
	flags.Complete(cmd, "to", nil)
}

// check refuses the flags for drawings.
func (q *flowFlags) check(cmd *cobra.Command, form string) error {
	for _, flag := range []string{"from", "to"} {
		if cmd.Flags().Changed(flag) && Drawings[form] != nil {
			return exit.Usagef("--%s is for text and json: %s draws the whole plan", flag, form)
		}
	}
	return nil
}

// flowView is the flow of a plan, or the part of it that flags select.
type flowView struct {
	*flow.Table
	sources, readers []int // those to show, in the order of the graph
	from, to         bool  // whether that is only one source, one reader
}

// view computes the flow of a plan and selects the part to show.
func (q *flowFlags) view(p *engine.Plan) (*flowView, error) {
	v := &flowView{Table: p.Flow(), from: q.from != "", to: q.to != ""}
	g := v.Graph()
	v.sources, v.readers = indices(len(g.Sources)), indices(len(g.Readers))
	if !sendsPrompts(p) {
		v.readers = slices.DeleteFunc(v.readers, func(r int) bool { return g.Readers[r].Kind == flow.Endpoint })
	}
	if v.from {
		i, err := findSource(g, q.from)
		if err != nil {
			return nil, exit.Usagef("%sfrom %w", q.prefix, err)
		}
		v.sources = []int{i}
	}
	if v.to {
		i, err := findReader(g, v.readers, q.to)
		if err != nil {
			return nil, exit.Usagef("%sto %w", q.prefix, err)
		}
		v.readers = []int{i}
	}
	return v, nil
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// findSource finds the source that a name means, as an assertion does (input NAME, task TITLE) or by
// the name alone.
func findSource(g *flow.Graph, name string) (int, error) {
	var found []int
	var known []string
	for i := range g.Sources {
		s := &g.Sources[i]
		names := namesOf(g, s)
		known = append(known, names...)
		if slices.ContainsFunc(names, func(n string) bool { return isNamed(s, n, name) }) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("%q: no input and no task has this name; %s", name, naming.Suggest(name, known))
	case 1:
		return found[0], nil
	}
	first, second := &g.Sources[found[0]], &g.Sources[found[1]]
	return 0, fmt.Errorf("%q names several: write %q or %q", name, sourceKindWord(first)+" "+first.Name, sourceKindWord(second)+" "+second.Name)
}

// namesOf returns the names of a source.
func namesOf(g *flow.Graph, s *flow.Source) []string {
	if s.Kind != handoff.Dependency || s.Task < 0 {
		return []string{s.Name}
	}
	t := &g.Tasks[s.Task]
	names := []string{t.Title}
	if t.Key != "" && t.Key != t.Title {
		names = append(names, t.Key)
	}
	return append(names, string(t.ID))
}

// isNamed reports whether a text is one of the names of a source, alone or after the word for its kind,
// where it may be quoted. For tasks, letter case does not matter.
func isNamed(s *flow.Source, name, text string) bool {
	same := func(a, b string) bool { return a == b }
	if s.Kind == handoff.Dependency {
		same = func(a, b string) bool { return naming.Normalize(a) == naming.Normalize(b) }
	}
	kind, rest, _ := strings.Cut(text, " ")
	return same(text, name) || kind == sourceKindWord(s) && (same(rest, name) || same(rest, `"`+name+`"`))
}

// sourceKindWord returns the word of assertions for the kind of a source.
func sourceKindWord(s *flow.Source) string {
	if s.Kind == handoff.Dependency {
		return "task"
	}
	return string(s.Kind)
}

// sendsPrompts reports whether a model of a plan has an endpoint, which none has if a script answers.
func sendsPrompts(p *engine.Plan) bool {
	return p.Coordinator != nil && p.Coordinator.LeavesTo != "" ||
		slices.ContainsFunc(p.Agents, func(a engine.PlannedAgent) bool { return a.LeavesTo != "" })
}

// findReader finds one of several readers by its name.
func findReader(g *flow.Graph, readers []int, name string) (int, error) {
	var known []string
	for _, i := range readers {
		r := &g.Readers[i]
		if r.Name == name || format.Readers(r.Name) == name || r.Kind == flow.Endpoint && strings.TrimRight(r.Name, "/") == strings.TrimRight(name, "/") {
			return i, nil
		}
		known = append(known, format.Readers(r.Name))
	}
	return 0, fmt.Errorf("%q: no reader has this name; %s", name, naming.Suggest(name, known))
}

// flowDocument is the flow in JSON.
type flowDocument struct {
	Readers []flow.Reader `json:"readers"`
	Sources []flowRow     `json:"sources"`
}

// flowRow is a source and how much of it reaches each reader, in their order.
type flowRow struct {
	flow.Source
	Reach []flow.Reach `json:"reach"`
	Wrote []int        `json:"wrote,omitempty"` // the readers that produced it
	Ways  []flow.Path  `json:"ways,omitempty"`  // to each reader, with --from; null if it never reaches the reader
}

// document returns the shown part of the flow for JSON.
func (v *flowView) document() flowDocument {
	g := v.Graph()
	d := flowDocument{Readers: make([]flow.Reader, len(v.readers)), Sources: make([]flowRow, len(v.sources))}
	for k, r := range v.readers {
		d.Readers[k] = g.Readers[r]
	}
	for k, s := range v.sources {
		d.Sources[k] = v.row(s)
	}
	return d
}

func (v *flowView) row(source int) flowRow {
	row := flowRow{Source: v.Graph().Sources[source], Reach: make([]flow.Reach, len(v.readers))}
	all := v.reaches(source)
	for k, r := range v.readers {
		row.Reach[k] = all(r)
		if v.Wrote(source, r) {
			row.Wrote = append(row.Wrote, k)
		}
		if v.from {
			row.Ways = append(row.Ways, v.Via(source, r))
		}
	}
	return row
}

// reaches returns how much of a source reaches a reader, computed in the cheaper of two ways.
func (v *flowView) reaches(source int) func(reader int) flow.Reach {
	if len(v.readers) == 1 {
		return func(reader int) flow.Reach { return v.Reach(source, reader) }
	}
	row := v.Row(source)
	return func(reader int) flow.Reach { return row[reader] }
}

// describeSource returns the kind and the name of a source, such as result and its title.
func describeSource(s *flow.Source) (kind, name string) {
	switch s.Kind {
	case handoff.Dependency:
		return "result", terminal.CleanLine(s.Name) + format.Rounds(s.Rounds)
	case handoff.Fault:
		return "error", terminal.CleanLine(s.Name)
	case handoff.Input, handoff.Condition:
		return string(s.Kind), terminal.CleanLine(s.Name)
	case handoff.ToolResult:
		return "results of", terminal.CleanLine(format.Readers(s.Name))
	case handoff.Conversation:
		return "earlier turns", terminal.CleanLine(strings.TrimPrefix(s.Name, "earlier turns "))
	case handoff.Transferred:
		return "conversation", terminal.CleanLine(strings.TrimPrefix(s.Name, "what "))
	case handoff.Message:
		return "message", terminal.CleanLine(strings.TrimPrefix(s.Name, "message "))
	}
	return strings.TrimPrefix(terminal.CleanLine(s.Name), "the "), "" // there is only one
}

// describeReader names a reader and its clearance.
func describeReader(r *flow.Reader) string {
	if r.Kind == flow.Journal {
		return fmt.Sprintf("%s, %v, encrypted from %v", terminal.CleanLine(r.Name), r.Clearance, r.Clearance+1)
	}
	return fmt.Sprintf("%s, %s", terminal.CleanLine(format.Readers(r.Name)), r.Clearance)
}
