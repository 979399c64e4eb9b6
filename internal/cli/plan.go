package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// planJob is one look at what a run would do, as flags ask for it.
type planJob struct {
	source
	stage
	limits
	question
	promises
	save newFile
}

func (a *app) planCommand() *cobra.Command {
	j := &planJob{save: newFile{flag: "save", ownMode: true}}
	cmd := &cobra.Command{
		Use:   "plan [SPEC]",
		Short: "Show who would read what, at which label, and which endpoints it goes to; no task is run",
		Long: `plan shows what a run would do, and runs no task. For a list of tasks it needs
no key and no network. With --goal, or with goal: in the spec, the coordinator
makes a plan: one model call, and one more if the first plan cannot be run.

It shows for every input and every result which agent, endpoint and person could
see it: whole, in part, only as retold by others, or never; and which variables of
your environment go where. --assert checks a promise about that, as assert: in the
spec does; the exit status is 1 if it is broken.`,
		Example: `  runteam plan                                 the team.yaml of this folder
  runteam plan claims -o dot | dot -Tsvg -o claims.svg
  runteam plan claims -o mermaid > claims.mmd
  runteam plan claims --from claim             only where the input claim can get to
  runteam plan claims --assert "input claim never derives into service-desk"
  runteam plan --goal "Compare the two offers." --save offers.yaml`,
		Annotations: map[string]string{alsoForms: strings.Join(graphForms, " ")},
		Args:        atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				j.path = args[0]
			}
			return a.plan(cmd, j)
		},
	}
	j.source.flags(cmd)
	j.mergeFlags(cmd)
	j.goalFlags(cmd)
	j.stage.flags(cmd)
	j.limits.flags(cmd, "the planning of a goal")
	j.question.flags(cmd)
	j.promises.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&j.save.path, "save", "", "write the planned tasks as a spec to `FILE`")
	f.BoolVar(&j.save.force, "force", false, "with --save: replace a file that exists")
	return cmd
}

// check refuses flags that ask for nothing without a goal.
func (j *planJob) check(cmd *cobra.Command, file *specfile.File) error {
	changed := cmd.Flags().Changed
	switch {
	case j.save.force && !changed("save"):
		return usageError("--force needs --save")
	case file.Goal != nil && changed("save"):
		return j.writable(file)
	case file.Goal != nil:
		return nil
	case changed("save"):
		return usageError("--save writes what the coordinator plans: add --goal TEXT")
	}
	for _, flag := range []string{"offline", "timeout", "max-token-budget"} {
		if changed(flag) {
			return usageError("--%s is for the coordinator: add --goal TEXT; a list of tasks is planned without any model", flag)
		}
	}
	return nil
}

func (a *app) plan(cmd *cobra.Command, j *planJob) error {
	asks := func(cmd *cobra.Command) error { return j.question.check(cmd, a.settings.output) }
	for _, check := range []func(*cobra.Command) error{j.limits.check, j.stage.check, asks} {
		if err := check(cmd); err != nil {
			return err
		}
	}
	j.noCalls = j.offline
	file, err := j.load(cmd.Context(), a)
	if err != nil {
		return err
	}
	if err := a.checkOutputs(&journaling{}, &j.save); err != nil {
		return err
	}
	if err := j.check(cmd, file); err != nil {
		return err
	}
	plan, err := a.makePlan(cmd.Context(), j, file)
	if err != nil {
		return err
	}
	left, unsaved := j.savePlan(file, plan)
	if err := a.printPlan(cmd.Context(), file, plan, j.question); err != nil {
		return err
	}
	if err := a.saved(j, left, unsaved); err != nil {
		return err
	}
	return a.judged(plan, drawings[a.settings.output] == nil)
}

// makePlan plans what a spec says, and holds the plan to what it and the flags assert.
func (a *app) makePlan(ctx context.Context, j *planJob, file *specfile.File) (plan *team.Plan, err error) {
	if err := j.promises.add(file); err != nil {
		return nil, err
	}
	switch {
	case file.Goal != nil:
		plan, err = a.planGoal(ctx, j, file)
	case len(file.Tasks) == 0:
		err = nothingTo("plan", &j.source, file)
	default:
		plan, err = a.look(ctx, file)
	}
	return plan, j.promises.locate(err)
}

// printPlan prints a plan in the form that was asked for, or of its flow what was asked.
func (a *app) printPlan(ctx context.Context, file *specfile.File, plan *team.Plan, asked question) error {
	found := warnings(file, plan)
	if _, ok := drawings[a.settings.output]; ok {
		a.warn(found)
		return a.printDrawing(a.settings.output, plan)
	}
	view, err := asked.view(plan)
	if err != nil {
		return err
	}
	goal := goalOf(ctx, file, plan.User.Accepts, a.now())
	if a.settings.json() {
		return a.printJSON(planned{plan, goal, view.document(), sent(file, a.lookup), found})
	}
	a.warn(found)
	var b strings.Builder
	if !view.from && !view.to {
		writePlan(&b, plan, goal, file.Run.Strategy)
		if uses := sent(file, a.lookup); len(uses) > 0 {
			fmt.Fprintln(&b, "sends variables of the environment:")
			writeSent(&b, uses, "  ")
		}
	}
	view.write(&b)
	writeFindings(&b, plan.Findings)
	return a.printText(b.String())
}

// planned is a plan in JSON, with the goal as the caller may read it and its
// warnings with their places.
type planned struct {
	*team.Plan
	GoalText    string             `json:"goalText,omitempty"` // goal says whether the coordinator planned the tasks
	Flow        flowDocument       `json:"flow"`
	Environment []specfile.EnvUse  `json:"environment,omitempty"` // which variables go where
	Warnings    []specfile.Problem `json:"warnings"`
}

// writePlan writes a plan for people: its goal, tasks so that each stands after those
// that it depends on, then agents, inputs and the caller.
func writePlan(w io.Writer, p *team.Plan, goal string, s assign.Strategy) {
	title := make(map[task.ID]string, len(p.Tasks))
	for _, t := range p.Tasks {
		title[t.ID] = cleanLine(t.Title)
	}
	what := "nothing was run"
	if p.Goal {
		what = "planned by the coordinator, no task was run"
	}
	fmt.Fprintf(w, "%s%s, %s, %s; %s\n", prefixed(p.Name), plural(len(p.Tasks), "task"), plural(len(p.Agents), "agent"), plural(len(p.Inputs), "input"), what)
	if goal != "" {
		fmt.Fprintf(w, "goal: %s\n", goalLine(goal))
	}
	writeTasks(w, p, s)
	writeAgents(w, p)
	writeInputs(w, p, title)
	writeUser(w, p, title)
	writeCoordinator(w, p)
	writeLowered(w, p)
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
		fmt.Fprintf(w, "   %s%s at %s%s\n", cleanLine(t.Assignee), by, t.Label, leaves(t.LeavesTo, t.Fallback))
		if len(t.Reads) == 0 {
			fmt.Fprint(w, "   reads nothing but the task\n")
		}
		rows := newRows(w, "   ")
		for i := range t.Reads {
			r := &t.Reads[i]
			rows.row("reads", kindOfReading(r), cleanLine(r.Name), "from "+whose(r), r.Label.String(), remarks(r))
		}
		rows.flush()
	}
}

// leaves says where a prompt goes.
func leaves(to string, fallback []string) string {
	if to == "" {
		return ", stays in this process"
	}
	return ", leaves to " + endpoints(to, fallback)
}

// endpoints lists the endpoints of an agent.
func endpoints(to string, fallback []string) string {
	all := []string{cleanLine(to)}
	for _, next := range fallback {
		all = append(all, cleanLine(next))
	}
	return strings.Join(all, ", else to ")
}

func writeAgents(w io.Writer, p *team.Plan) {
	fmt.Fprintln(w)
	rows := newRows(w, "")
	rows.row("agent", "tasks", "accepts", "produces", "clearance", "model", "leaves to")
	for _, a := range p.Agents {
		rows.row(cleanLine(a.Name), number(a.Tasks), a.Accepts.String(), a.Produces.String(), a.Clearance.String(), cmp.Or(cleanLine(a.Model), "-"), cmp.Or(endpoints(a.LeavesTo, a.Fallback), "-"))
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
	kinds := make([]string, len(p.Redacted))
	for i, k := range p.Redacted {
		kinds[i] = string(k)
	}
	fmt.Fprintf(w, "redacted for every agent, but where it says reveals: secrets, %s\n", strings.Join(kinds, ", "))
}

// writeCoordinator writes who plans and answers the goal, as a reader.
func writeCoordinator(w io.Writer, p *team.Plan) {
	if c := p.Coordinator; c != nil {
		fmt.Fprintf(w, "coordinator: accepts %s, cleared for %s, model %s%s\n", c.Accepts, c.Clearance, cmp.Or(cleanLine(c.Model), "-"), leaves(c.LeavesTo, c.Fallback))
	}
}

// writeLowered writes what declassifiers may let cross, and how much it can carry.
func writeLowered(w io.Writer, p *team.Plan) {
	if len(p.Lowered) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := newRows(w, "")
	rows.row("declassifier", "result", "to", "label", "carries at most", "paths")
	for i := range p.Lowered {
		l := &p.Lowered[i]
		paths := make([]task.Path, len(l.Paths))
		for k := range l.Paths {
			paths[k] = l.Paths[k].Path
		}
		to := cleanLine(l.To)
		if l.Task != "" {
			to += " in " + cleanLine(l.Task)
		}
		rows.row(cleanLine(l.By), cleanLine(l.Result), to, l.LowerTo.String()+" (was "+l.Label.String()+")", carried(l.Bytes), cleanLine(gate.PathsString(paths)))
	}
	rows.flush()
	for i := range p.Disclosed {
		d := &p.Disclosed[i]
		fmt.Fprintf(w, "%s can carry %s of %s below its label, in %s\n", cleanLine(d.Producer), carried(d.Bytes), cleanLine(d.Of), plural(len(d.Results), "result"))
	}
}

// carried writes a number of bytes that a declassifier may let cross.
func carried(bytes int) string {
	if bytes == flow.Unbounded {
		return "any number of bytes"
	}
	return plural(bytes, "byte")
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
	room   int // for titles; 0 for any length
}

func newRows(w io.Writer, indent string) rows {
	return rows{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), indent: indent}
}

// within returns rows whose titles have so much room.
func (r rows) within(room int) rows {
	r.room = room
	return r
}

// title is a title as a cell.
func (r rows) title(text string) string {
	if text = cleanLine(text); r.room > 0 {
		text = clip(text, r.room)
	}
	return text
}

// roomForTitles is how long a title may be where a person reads tables: half of
// the terminal; 0 for any length.
func (a *app) roomForTitles() int {
	if !a.isTerminal(a.stdout) {
		return 0
	}
	width, _ := a.size(a.stdout)
	return width / 2
}

func (r rows) row(cells ...string) {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	fmt.Fprintln(r.w, r.indent+strings.Join(cells, "\t"))
}

func (r rows) flush() { _ = r.w.Flush() } // to memory
