package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/task"
)

// writePlan writes a plan as text: the goal, the tasks in dependency order, then agents, inputs and
// the caller.
func writePlan(w io.Writer, p *engine.Plan, goal string, s assign.Strategy) {
	title := make(map[task.ID]string, len(p.Tasks))
	for _, t := range p.Tasks {
		title[t.ID] = terminal.CleanLine(t.Title)
	}
	what := "nothing was run"
	if p.Goal {
		what = "planned by the coordinator, no task was run"
	}
	fmt.Fprintf(w, "%s%s, %s, %s; %s\n", format.NamePrefix(p.Name), tasksText(p), format.Plural(agentsOf(p), "agent"), format.Plural(len(p.Inputs), "input"), what)
	if goal != "" {
		fmt.Fprintf(w, "goal: %s\n", source.GoalLine(goal))
	}
	writeTasks(w, p, s)
	writeAgents(w, p)
	writeTools(w, p)
	writeEdges(w, p)
	writeUnconfined(w, p)
	writeInputs(w, p, title)
	writeUser(w, p, title)
	writeUsage(w, &p.AtMost)
	writeCoordinator(w, p)
	writeLowered(w, p)
}

// tasksText counts the tasks of a plan, and how often they run at most.
func tasksText(p *engine.Plan) string {
	if len(p.Tasks) == 0 {
		return format.Plural(0, "task")
	}
	return format.TasksThatRun(len(p.Tasks), p.Graph.Len())
}

// agentsOf counts the agents of a plan.
func agentsOf(p *engine.Plan) int {
	n := len(p.Agents)
	if slices.ContainsFunc(p.Agents, func(a engine.PlannedAgent) bool { return a.Name == handoff.Computed }) {
		n--
	}
	return n
}

func writeTasks(w io.Writer, p *engine.Plan, s assign.Strategy) {
	order := slices.Clone(p.Tasks)
	slices.SortStableFunc(order, func(a, b engine.PlannedTask) int { return cmp.Compare(a.Depth, b.Depth) })
	for i, t := range order {
		by := ""
		if t.Computed != "" {
			by = " by " + t.Computed
		}
		if t.Assigned {
			by = " (assigned by " + string(s.Current()) + ")"
		}
		fmt.Fprintf(w, "\n%d. %s\n", i+1, headingOf(&t))
		if t.Loop {
			fmt.Fprintf(w, "   repeats until %s; its last result at %s\n", terminal.CleanLine(t.Until), t.Label)
			continue
		}
		leaves := leavesText(t.LeavesTo, t.Fallback)
		if i := slices.IndexFunc(p.Agents, func(a engine.PlannedAgent) bool { return a.Name == t.Assignee }); i >= 0 {
			leaves = cmp.Or(commandTexts[p.Agents[i].Command], leaves)
			if p.Agents[i].Person {
				leaves = ", read by a person"
			}
		}
		fmt.Fprintf(w, "   %s%s at %s%s\n", terminal.CleanLine(t.Assignee), by, t.Label, leaves)
		if t.When != "" {
			fmt.Fprintf(w, "   when %s\n", terminal.CleanLine(t.When))
		}
		if len(t.Reads) == 0 {
			fmt.Fprint(w, "   reads nothing but the task\n")
		}
		rows, seen := format.NewTable(w, "   "), map[[4]string]bool{}
		for i := range t.Reads {
			r := &t.Reads[i]
			row := [4]string{string(r.Kind), r.Name, r.Label.String(), readingNotes(r)}
			if r.Kind == handoff.Condition && seen[row] {
				continue // of this round and of the one before
			}
			seen[row] = true
			word := "reads"
			if len(r.OneOf) > 0 && r.OneOf[0] != r.Task {
				word = "or"
			}
			rows.Row(word, kindOfReading(r), r.Name, "from "+producerName(r), row[2], row[3])
		}
		for _, m := range t.Lacks {
			row := [4]string{string(m.Kind), m.Name, "lacks", m.Via + m.Why}
			if !seen[row] {
				rows.Row("lacks", row[0], row[1], "from "+terminal.CleanLine(m.From), "", terminal.CleanLine("via "+m.Via+": "+m.Why))
			}
			seen[row] = true
		}
		rows.Flush()
		if len(t.RequiredTags) > 0 {
			fmt.Fprintf(w, "   requires %s\n", format.Tags(t.RequiredTags))
		}
		if t.Tools != nil {
			fmt.Fprintf(w, "   may call %s\n", cmp.Or(strings.Join(format.ToolNames(t.Tools), ", "), "no tools"))
		}
	}
}

// headingOf returns the title of a task, with how often it may run and whether the run can succeed if it fails.
func headingOf(t *engine.PlannedTask) string {
	text := terminal.CleanLine(t.Title) + format.Rounds(t.Rounds)
	if t.ForEach != "" {
		text += ", for each item of " + terminal.CleanLine(t.ForEach)
	}
	if t.OnFailure == task.ContinueRun {
		text += ", its failure is accepted"
	}
	return text
}

// leavesText says which endpoints a prompt is sent to.
func leavesText(to string, fallback []string) string {
	if to == "" {
		return ", stays in this process"
	}
	return ", leaves to " + endpointList(to, fallback)
}

// commandTexts say where the prompts of a command can go, by how it runs.
var commandTexts = map[string]string{
	process.Confined:   ", stays in its workspace",
	process.Unconfined: ", can leave to the network",
}

// writeUnconfined names the commands that are not confined, and what else others may read, and says
// what that means. It also names the MCP servers that are not confined, with the reasons in the spec.
func writeUnconfined(w io.Writer, p *engine.Plan) {
	writeServers(w, p)
	var names []string
	for i := range p.Agents {
		a := &p.Agents[i]
		if a.Command == process.Unconfined {
			names = append(names, "agent "+terminal.CleanLine(a.Name))
		}
		for _, name := range a.Unconfined {
			names = append(names, fmt.Sprintf("tool %s of agent %s", terminal.CleanLine(name), terminal.CleanLine(a.Name)))
		}
	}
	for i := range p.Agents {
		if a := &p.Agents[i]; len(a.Readable) > 0 {
			fmt.Fprintf(w, "\nreadable: commands of agent %s may read and execute %s\n", terminal.CleanLine(a.Name), terminal.CleanLine(strings.Join(a.Readable, ", ")))
		}
	}
	lack := ""
	if missing := process.Missing(); missing != "" {
		lack = "; this system lacks " + missing
	}
	switch len(names) {
	case 0:
		return
	case 1:
		fmt.Fprintf(w, "\nunconfined: %s reaches the network and every other unconfined command, as tool:machine%s\n", names[0], lack)
	default:
		fmt.Fprintf(w, "\nunconfined: %s; each reaches the network and every other unconfined command, as tool:machine%s\n", strings.Join(names, ", "), lack)
	}
}

// writeServers names the MCP servers that are not confined for a reason, each once.
func writeServers(w io.Writer, p *engine.Plan) {
	seen := map[string]bool{}
	for i := range p.Agents {
		for _, t := range p.Agents[i].Tools {
			name, _, _ := strings.Cut(format.ToolName(t.Name), "/")
			if t.Reason == "" || seen[name] {
				continue
			}
			seen[name] = true
			fmt.Fprintf(w, "\nunconfined: MCP server %s has the rights of the user: %s\n", terminal.CleanLine(name), terminal.CleanLine(t.Reason))
		}
	}
}

// endpointList lists the endpoints of an agent.
func endpointList(to string, fallback []string) string {
	all := []string{terminal.CleanLine(to)}
	for _, next := range fallback {
		all = append(all, terminal.CleanLine(next))
	}
	return strings.Join(all, ", else to ")
}

func writeAgents(w io.Writer, p *engine.Plan) {
	fmt.Fprintln(w)
	rows := format.NewTable(w, "")
	rows.Row("agent", "tasks", "accepts", "produces", "clearance", "model", "leaves to")
	for _, a := range p.Agents {
		rows.Row(a.Name, format.Number(a.Tasks), a.Accepts.String(), a.Produces.String(), a.Clearance.String(), cmp.Or(a.Model, "-"), cmp.Or(endpointList(a.LeavesTo, a.Fallback), "-"))
	}
	rows.Flush()
}

// writeTools writes the tools of each agent.
func writeTools(w io.Writer, p *engine.Plan) {
	if !slices.ContainsFunc(p.Agents, func(a engine.PlannedAgent) bool { return len(a.Tools) > 0 }) {
		return
	}
	fmt.Fprintln(w)
	rows := format.NewTable(w, "")
	rows.Row("agent", "tool", "accepts", "produces", "effect", "network", "from untrusted context")
	for _, a := range p.Agents {
		for _, t := range a.Tools {
			network, untrusted := "no", t.Untrusted
			if t.Network {
				network = "may reach it"
			}
			if untrusted == "refused" {
				untrusted = "needs allowUntrusted"
			}
			rows.Row(a.Name, format.ToolName(t.Name), t.Accepts.String(), t.Produces.String(), string(t.Effect), network, untrusted)
		}
	}
	rows.Flush()
}

// writeEdges writes who may send to whom while tasks run, and who may spawn children.
func writeEdges(w io.Writer, p *engine.Plan) {
	if len(p.Edges) > 0 {
		fmt.Fprintln(w)
		rows := format.NewTable(w, "")
		rows.Row("edge", "to", "may carry", "carries at most", "grants")
		for _, e := range p.Edges {
			carries := "nothing: no task uses it"
			if e.Sends != nil {
				carries = e.Sends.String()
			}
			rows.Row(e.From, e.To, e.Label.String(), carries, strings.Join(e.Grants, ", ")+passing(e.Files))
		}
		rows.Flush()
	}
	if !slices.ContainsFunc(p.Agents, func(a engine.PlannedAgent) bool { return a.Spawn != nil }) {
		return
	}
	fmt.Fprintln(w)
	rows := format.NewTable(w, "")
	rows.Row("agent", "children at a task", "depth", "time each", "turns each")
	for _, a := range p.Agents {
		if s := a.Spawn; s != nil {
			rows.Row(a.Name, "at most "+format.Number(s.Max), format.Number(s.Depth), format.Elapsed(time.Duration(s.TimeoutMs)*time.Millisecond), format.Number(s.MaxTurns)+passing(s.Files))
		}
	}
	rows.Flush()
}

// passing says which files may be passed with a goal; empty if none may.
func passing(globs []string) string {
	if len(globs) == 0 {
		return ""
	}
	return " with files " + strings.Join(globs, ", ")
}

func writeInputs(w io.Writer, p *engine.Plan, title map[task.ID]string) {
	if len(p.Inputs) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := format.NewTable(w, "")
	rows.Row("input", "label", "bytes", "read by")
	for _, in := range p.Inputs {
		rows.Row(in.Name, in.Classification.String(), format.Number(in.Bytes), cmp.Or(titles(in.Readers, title), "no task"))
	}
	rows.Flush()
}

func writeUser(w io.Writer, p *engine.Plan, title map[task.ID]string) {
	var unseen []task.ID
	for _, t := range p.Tasks {
		if !t.UserSees {
			unseen = append(unseen, t.ID)
		}
	}
	if p.Coordinator == nil {
		fmt.Fprintf(w, "\nanswer: %s\n", titles(p.Output, title))
	} else {
		fmt.Fprint(w, "\nanswer: written by the coordinator from all results\n")
	}
	fmt.Fprintf(w, "user: accepts %s", p.User.Accepts)
	if len(unseen) > 0 {
		fmt.Fprintf(w, "; does not see %s", titles(unseen, title))
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "redacted for every agent, except where it says reveals: secrets, %s\n", strings.Join(format.Kinds(p.Redacted), ", "))
}

// writeCoordinator writes what the coordinator may read and where its prompts are sent.
func writeCoordinator(w io.Writer, p *engine.Plan) {
	if c := p.Coordinator; c != nil {
		approved := ""
		if c.ApprovedBy != "" {
			approved = ", plans approved by " + c.ApprovedBy
		}
		fmt.Fprintf(w, "coordinator: accepts %s, cleared for %s, model %s%s%s\n", c.Accepts, c.Clearance, cmp.Or(terminal.CleanLine(c.Model), "-"), leavesText(c.LeavesTo, c.Fallback), approved)
	}
}

// writeLowered writes what declassifiers may deliver below its label, and how much.
func writeLowered(w io.Writer, p *engine.Plan) {
	if len(p.Lowered) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := format.NewTable(w, "")
	rows.Row("declassifier", "result", "to", "label", "carries at most", "paths")
	for _, l := range p.Lowered {
		paths := make([]task.Path, len(l.Paths))
		for k := range l.Paths {
			paths[k] = l.Paths[k].Path
		}
		to := terminal.CleanLine(l.To)
		if l.Task != "" {
			to += " in " + terminal.CleanLine(l.Task)
		}
		rows.Row(l.By, l.Result, to, l.LowerTo.String()+" (was "+l.Label.String()+")", byteCount(l.Bytes), gate.PathsString(paths))
	}
	rows.Flush()
	for _, d := range p.Disclosed {
		fmt.Fprintf(w, "%s can carry %s of %s below its label, in %s\n", terminal.CleanLine(d.Producer), byteCount(d.Bytes), terminal.CleanLine(d.Of), format.Plural(len(d.Results), "result"))
	}
}

// byteCount writes a number of bytes that a declassifier may deliver.
func byteCount(bytes int) string {
	if bytes == flow.Unbounded {
		return "any number of bytes"
	}
	return format.Plural(bytes, "byte")
}

func titles(ids []task.ID, title map[task.ID]string) string {
	var all []string
	for _, id := range ids {
		if name := title[id]; name != "" { // a task stands for its instances
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}
