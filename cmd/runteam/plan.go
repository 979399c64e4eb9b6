package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/assign"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func (a *app) planCommand() *cobra.Command {
	s := &source{}
	cmd := &cobra.Command{
		Use:   "plan [SPEC]",
		Short: "Show who would read what, at which label, and where it leaves to; nothing is run",
		Example: `  runteam plan                                 the team.yaml of this folder
  runteam plan claims -o dot | dot -Tsvg -o claims.svg
  runteam plan claims -o mermaid > claims.mmd`,
		Annotations: map[string]string{alsoForms: "dot mermaid"},
		Args:        atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				s.path = args[0]
			}
			return a.plan(s)
		},
	}
	s.flags(cmd)
	s.mergeFlags(cmd)
	refuse(cmd, "goal", needsCoordinator)
	return cmd
}

func (a *app) plan(s *source) error {
	file, plan, err := a.look(s)
	if err != nil {
		return err
	}
	if plan == nil {
		return &fault{kind: kindValidation, err: fmt.Errorf("%s: there are no tasks to plan: add tasks:", file.Path)}
	}
	found := warnings(file, plan)
	if a.settings.json() {
		return a.printJSON(planned{plan, found})
	}
	a.warn(found)
	if _, ok := drawings[a.settings.output]; ok {
		return a.printDrawing(a.settings.output, plan)
	}
	var b strings.Builder
	writePlan(&b, plan, file.Run.Strategy)
	return a.printText(b.String())
}

// planned is a plan in JSON, its warnings with their places.
type planned struct {
	*team.Plan
	Warnings []spec.Problem `json:"warnings"`
}

// writePlan writes a plan for people: tasks so that each stands after those
// that it depends on, then agents, inputs and the caller.
func writePlan(w io.Writer, p *team.Plan, s assign.Strategy) {
	title := make(map[task.ID]string, len(p.Tasks))
	for _, t := range p.Tasks {
		title[t.ID] = cleanLine(t.Title)
	}
	what := "nothing was run"
	if p.Goal {
		what = "planned by the coordinator, no task was run"
	}
	fmt.Fprintf(w, "%s%s, %s, %s; %s\n", prefixed(p.Name), plural(len(p.Tasks), "task"), plural(len(p.Agents), "agent"), plural(len(p.Inputs), "input"), what)
	writeTasks(w, p, s)
	writeAgents(w, p)
	writeInputs(w, p, title)
	writeUser(w, p, title)
	writeCoordinator(w, p)
}

func prefixed(name string) string {
	if name == "" {
		return ""
	}
	return cleanLine(name) + ": "
}

func writeTasks(w io.Writer, p *team.Plan, s assign.Strategy) {
	order := slices.Clone(p.Tasks)
	slices.SortStableFunc(order, func(a, b team.PlannedTask) int { return cmp.Compare(a.Depth, b.Depth) })
	for i, t := range order {
		by := ""
		if t.Assigned {
			by = " (assigned by " + string(cmp.Or(s, assign.DependencyFirst)) + ")"
		}
		fmt.Fprintf(w, "\n%d. %s\n", i+1, cleanLine(t.Title))
		fmt.Fprintf(w, "   %s%s at %s%s\n", cleanLine(t.Assignee), by, t.Label, leaves(t.LeavesTo))
		if len(t.Reads) == 0 {
			fmt.Fprint(w, "   reads nothing but the task\n")
		}
		rows := newRows(w, "   ")
		for _, r := range t.Reads {
			rows.row("reads", kindOfReading(r), cleanLine(r.Name), "from "+whose(r), r.Label.String(), remarks(r))
		}
		rows.flush()
	}
}

// whose names who made what is read.
func whose(r team.Reading) string {
	if r.From == handoff.Anyone {
		return "everybody"
	}
	return cleanLine(r.From)
}

// kindOfReading names what is read.
func kindOfReading(r team.Reading) string {
	switch {
	case r.Kind != handoff.Dependency:
		return r.Kind.String()
	case r.As == task.Structured:
		return "structured result"
	case r.As == task.Both:
		return "result and structured"
	}
	return "result"
}

func remarks(r team.Reading) string {
	var all []string
	if r.Optional {
		all = append(all, "optional")
	}
	if r.Withheld != "" {
		all = append(all, "withheld: "+string(r.Withheld))
	}
	return strings.Join(all, ", ")
}

// leaves says where a prompt goes.
func leaves(to string) string {
	if to == "" {
		return ", stays in this process"
	}
	return ", leaves to " + cleanLine(to)
}

func writeAgents(w io.Writer, p *team.Plan) {
	fmt.Fprintln(w)
	rows := newRows(w, "")
	rows.row("agent", "tasks", "accepts", "produces", "clearance", "model", "leaves to")
	for _, a := range p.Agents {
		rows.row(cleanLine(a.Name), number(a.Tasks), a.Accepts.String(), a.Produces.String(), a.Clearance.String(), cmp.Or(cleanLine(a.Model), "-"), cmp.Or(cleanLine(a.LeavesTo), "-"))
	}
	rows.flush()
}

func writeInputs(w io.Writer, p *team.Plan, title map[task.ID]string) {
	if len(p.Inputs) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := newRows(w, "")
	rows.row("input", "label", "bytes", "read by")
	for _, in := range p.Inputs {
		rows.row(cleanLine(in.Name), in.Classification.String(), number(in.Bytes), cmp.Or(titles(in.Readers, title), "nobody"))
	}
	rows.flush()
}

func writeUser(w io.Writer, p *team.Plan, title map[task.ID]string) {
	var unseen []task.ID
	for _, t := range p.Tasks {
		if !t.UserSees {
			unseen = append(unseen, t.ID)
		}
	}
	if p.Coordinator == nil {
		fmt.Fprintf(w, "\nanswer: %s\n", titles(p.Output, title))
	} else {
		fmt.Fprint(w, "\nanswer: of the coordinator, from all results\n")
	}
	fmt.Fprintf(w, "user: accepts %s", p.User.Accepts)
	if len(unseen) > 0 {
		fmt.Fprintf(w, "; does not see %s", titles(unseen, title))
	}
	fmt.Fprintln(w)
}

// writeCoordinator writes who plans and answers the goal, as a reader.
func writeCoordinator(w io.Writer, p *team.Plan) {
	if c := p.Coordinator; c != nil {
		fmt.Fprintf(w, "coordinator: accepts %s, cleared for %s, model %s%s\n", c.Accepts, c.Clearance, cmp.Or(cleanLine(c.Model), "-"), leaves(c.LeavesTo))
	}
}

func titles(ids []task.ID, title map[task.ID]string) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = title[id]
	}
	return strings.Join(all, ", ")
}

// rows writes lines whose cells stand below each other.
type rows struct {
	w      *tabwriter.Writer
	indent string
}

func newRows(w io.Writer, indent string) rows {
	return rows{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), indent}
}

func (r rows) row(cells ...string) {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	fmt.Fprintln(r.w, r.indent+strings.Join(cells, "\t"))
}

func (r rows) flush() { _ = r.w.Flush() } // to memory
