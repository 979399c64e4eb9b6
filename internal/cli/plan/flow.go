package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
)

// flowFlags limit the flow that plan shows to one source or one reader; without
// them it shows all.
type flowFlags struct {
	from, to string
}

func (q *flowFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.from, "from", "", "say only where this input or result comes to, and on which way: a `NAME`, a task's title or key")
	f.StringVar(&q.to, "to", "", "say only what comes to this `READER`: an agent, coordinator, user or the URL of an endpoint")
	flags.Complete(cmd, "from", nil)
	flags.Complete(cmd, "to", nil)
}

// check refuses a question that names nothing, or that a drawing cannot answer.
func (q *flowFlags) check(cmd *cobra.Command, form string) error {
	for _, flag := range []string{"from", "to"} {
		if cmd.Flags().Changed(flag) && Drawings[form] != nil {
			return exit.Usagef("--%s is for text and json: %s draws the whole plan", flag, form)
		}
	}
	return nil
}

// flowView is the flow of a plan, or the part of it that was asked for.
type flowView struct {
	*flow.Table
	sources, readers []int // which are shown, in the order of the graph
	from, to         bool  // whether that is one source, one reader
}

// view computes the flow of a plan and finds in it what was asked for.
func (q *flowFlags) view(p *engine.Plan) (*flowView, error) {
	v := &flowView{Table: p.Flow(), from: q.from != "", to: q.to != ""}
	g := v.Graph()
	v.sources, v.readers = indices(len(g.Sources)), indices(len(g.Readers))
	if v.from {
		i, err := findSource(g, q.from)
		if err != nil {
			return nil, err
		}
		v.sources = []int{i}
	}
	if v.to {
		i, err := findReader(g, q.to)
		if err != nil {
			return nil, err
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

// findSource finds what a flag names: as an assertion names it, such as
// input NAME or task TITLE, or by the name alone.
func findSource(g *flow.Graph, name string) (int, error) {
	var found []int
	var known []string
	for i := range g.Sources {
		s := &g.Sources[i]
		names := namesOf(g, s)
		known = append(known, names...)
		kind, alone, two := strings.Cut(name, " ")
		if hasName(s, names, name) || two && kind == sourceKindWord(s) && hasName(s, names, unquote(alone)) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, exit.Usagef("--from %q: no input and no task has this name; %s", name, naming.Suggest(name, known))
	case 1:
		return found[0], nil
	}
	first, second := &g.Sources[found[0]], &g.Sources[found[1]]
	return 0, exit.Usagef("--from %q names several: write %q or %q", name, sourceKindWord(first)+" "+first.Name, sourceKindWord(second)+" "+second.Name)
}

// namesOf lists by what a person may call a source.
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

// hasName reports whether a source has a name. Letter case makes no difference to
// tasks, as in assertions.
func hasName(s *flow.Source, names []string, name string) bool {
	if s.Kind != handoff.Dependency {
		return slices.Contains(names, name)
	}
	name = naming.Normalize(name)
	return slices.ContainsFunc(names, func(n string) bool { return naming.Normalize(n) == name })
}

// sourceKindWord is how an assertion calls the kind of a source.
func sourceKindWord(s *flow.Source) string {
	if s.Kind == handoff.Dependency {
		return "task"
	}
	return string(s.Kind)
}

func unquote(name string) string {
	if len(name) > 1 && name[0] == '"' && name[len(name)-1] == '"' {
		return name[1 : len(name)-1]
	}
	return name
}

func findReader(g *flow.Graph, name string) (int, error) {
	var known []string
	for i := range g.Readers {
		r := &g.Readers[i]
		if r.Name == name || r.Kind == flow.Endpoint && strings.TrimRight(r.Name, "/") == strings.TrimRight(name, "/") {
			return i, nil
		}
		known = append(known, r.Name)
	}
	return 0, exit.Usagef("--to %q: no reader has this name; %s", name, naming.Suggest(name, known))
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
	Wrote []int        `json:"wrote,omitempty"` // the readers where it is written, who know it anyway
	Ways  []flow.Path  `json:"ways,omitempty"`  // to each reader, with --from; null where it never comes
}

// document returns what is shown of the flow, for programs.
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

// reaches returns how far a source comes to a reader, by whichever way of
// asking is shorter.
func (v *flowView) reaches(source int) func(reader int) flow.Reach {
	if len(v.readers) == 1 {
		return func(reader int) flow.Reach { return v.Reach(source, reader) }
	}
	row := v.Row(source)
	return func(reader int) flow.Reach { return row[reader] }
}

// describeSource names a source in two words, such as result and its title.
func describeSource(s *flow.Source) (kind, name string) {
	switch s.Kind {
	case handoff.Dependency:
		return "result", terminal.CleanLine(s.Name)
	case handoff.Fault:
		return "error", terminal.CleanLine(s.Name)
	case handoff.Input:
		return "input", terminal.CleanLine(s.Name)
	case handoff.Message:
		return "message", terminal.CleanLine(strings.TrimPrefix(s.Name, "message "))
	}
	return strings.TrimPrefix(terminal.CleanLine(s.Name), "the "), "" // there is one of each
}

// describeReader names a reader and up to which label it may read.
func describeReader(r *flow.Reader) string {
	return fmt.Sprintf("%s, %s", terminal.CleanLine(r.Name), r.Clearance)
}
