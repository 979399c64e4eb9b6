package history

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// tasksOf counts the tasks of a run by outcome.
func tasksOf(s *journal.Summary) string {
	total := 0
	for _, n := range s.Tasks {
		total += n
	}
	return format.OutcomeCounts(s.Outcomes, format.Number(total))
}

// Limits on what show prints. A task alone is shown whole.
const (
	maxExcerptLines = 12
	MaxAnswerLines  = 200
	maxAnswerBytes  = 16 << 10
)

// A runText writes a run as text.
type runText struct {
	run        *view.Run
	summary    *journal.Summary
	shortID    string
	now        time.Time
	journal    *journals.Flags // the journal that has the run
	outlook    journals.Outlook
	titleWidth int
	titles     map[task.ID]string // of tasks of earlier runs whose results are inputs
}

// nameInputs looks up the titles of the tasks whose results are inputs. It finds none for a run
// that was removed.
func (r *runText) nameInputs(ctx context.Context, j *journal.Journal) {
	r.titles = map[task.ID]string{}
	for _, in := range r.run.Inputs {
		if in.FromRun == "" {
			continue
		}
		from, err := j.LoadStart(ctx, in.FromRun)
		if err != nil {
			continue
		}
		for _, b := range from.History.Begins {
			for n := range b.Tasks {
				if b.Tasks[n].Task == in.FromTask {
					r.titles[in.FromTask] = b.Tasks[n].Title
				}
			}
		}
	}
}

// write writes a run as text.
func (r *runText) write(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", journals.Heading(r.run.Name, r.run.ID), terminal.CleanLine(r.run.Status))
	fmt.Fprintf(w, "started %s, %s", format.Time(r.run.Started), r.spanText())
	if r.run.Processes > 1 {
		fmt.Fprintf(w, ", in %d processes", r.run.Processes)
	}
	if r.run.Holder != nil {
		fmt.Fprintf(w, "; %s works on it", terminal.CleanLine(r.run.Holder.String()))
	}
	fmt.Fprintf(w, "\n%s\n", r.tasksText())
	if r.run.Spec != "" {
		fmt.Fprintf(w, "spec %s\n", terminal.CleanLine(r.run.Spec))
	}
	for _, in := range r.run.Inputs {
		if in.FromRun != "" {
			fmt.Fprintf(w, "input %s: the result of task %s in run %s\n", terminal.CleanLine(in.Name), terminal.CleanLine(cmp.Or(r.titles[in.FromTask], string(in.FromTask))), terminal.CleanLine(in.FromRun))
		}
	}
	for _, warning := range r.run.Warnings {
		fmt.Fprintf(w, "warning: %s\n", terminal.CleanLine(warning))
	}
	for i := range r.run.Commands {
		c := &r.run.Commands[i]
		fmt.Fprintf(w, "%s %s\n", format.Time(c.Time), format.Steered(c.Command, cmp.Or(c.Title, c.Agent), c.By, c.Reason))
	}
	if r.run.Handoffs != nil {
		fmt.Fprintf(w, "%s: %s\n", r.run.Handoffs, r.journal.Command("show --handoffs", r.shortID))
	}
	if e := (journals.Experiment{Of: r.run.Of, Without: r.run.Without, WithoutInputs: r.run.WithoutInputs}); r.run.Command == journals.ExperimentCommand {
		fmt.Fprintln(w, e.Text(r.run.Of))
	} else if next := r.journal.NextStep(r.summary, r.shortID, r.outlook); next != "" {
		switch {
		case next == journals.StartedByProgram, r.outlook.Refused:
		case r.run.Status == journal.Queued:
			next = "it waits " + next
		case r.run.Status == string(engine.StatusSuspended) && !r.outlook.Answered:
			next = "to answer: " + next
		default:
			next = "to resume: " + next
		}
		fmt.Fprintln(w, next)
	}
	whole := r.writeAnswer(w)
	fmt.Fprintln(w)
	table := format.NewTable(w, "").WithTitleWidth(r.titleWidth)
	rows(r.run.Tasks, table)
	rows(r.run.Steps, table)
	table.Flush()
	for _, e := range r.run.Errors {
		fmt.Fprintf(w, "\nfailed: coordinator: %s\n", format.Indent(format.Readers(e.Message)))
	}
	lists := longLists(listsOf(r.run.Tasks))
	for _, t := range r.run.Tasks {
		if lists[listOf(t)] == nil && (!whole || !slices.Contains(r.run.Answers, t)) {
			writeExcerpt(w, t, r.journal, r.shortID)
		}
	}
	r.writeFolded(w, lists)
}

// tasksText counts the tasks of the run by outcome.
func (r *runText) tasksText() string {
	var titles []string
	for _, t := range r.run.Tasks {
		if t.Status != runstate.Removed {
			titles = append(titles, t.Title)
		}
	}
	return format.OutcomeCounts(r.run.Outcomes, format.TaskRuns(titles))
}

// writeAnswer writes the answer of the run, or the beginning of a long one, and reports whether it
// wrote all of it.
func (r *runText) writeAnswer(w io.Writer) (whole bool) {
	text := strings.TrimRight(terminal.Clean(r.run.Output), "\n")
	if text == "" {
		return false
	}
	fmt.Fprint(w, "\n# The answer\n\n")
	lines := strings.Split(text, "\n")
	if whole = len(lines) <= MaxAnswerLines && len(text) <= maxAnswerBytes; whole {
		fmt.Fprintln(w, text)
		return whole
	}
	head, _ := excerptOf(text)
	fmt.Fprintf(w, "%s\n… %s in all: %s has it as output\n", head, bytesize.Text(len(r.run.Output)), r.journal.Command("show -o json", r.shortID))
	return whole
}

func (r *runText) spanText() string {
	if r.run.Ended.IsZero() && r.run.Holder == nil {
		return "not ended"
	}
	return format.Partial("took "+durationText(r.summary, r.now)+format.Tokens(r.run.Usage, ", "+format.ApproximationMark(r.run.Estimate)), r.run.Partial) + savedText(r.run.Saved)
}

// savedText says by how many tokens the gate made context smaller; empty for none.
func savedText(tokens int) string {
	if tokens == 0 {
		return ""
	}
	return ", ~" + format.Number(tokens) + " saved by the gate"
}

// outcomeOf returns the status in the words of the counts: a task that failed because of another
// one, or never began, counts as skipped.
func outcomeOf(t *view.Task) string {
	switch ended := t.Status == task.Failed || t.Status == task.Skipped; {
	case t.IsStep() || !ended || t.Error == nil:
	case t.Error.Root != "" || t.Status == task.Skipped && t.Attempts == 0:
		return format.Skipped
	case t.Status == task.Skipped:
		return format.Cancelled
	case t.Error.Accepted:
		return format.Failed + format.Accepted
	}
	return format.Status(t.Status)
}

// writeRow writes a task as a row of a table.
func writeRow(t *view.Task, table format.Table) {
	level := ""
	if t.Label != nil {
		level = t.Label.String()
	}
	taken := ""
	if !t.Ended.IsZero() && !t.Partial {
		taken = format.Elapsed(time.Duration(t.Took) * time.Millisecond)
	}
	table.Row(outcomeOf(t), table.Title(t.ShownName()), t.Agent, level, taken, format.Partial(format.Tokens(t.Usage, format.ApproximationMark(t.Estimate)), t.Partial), remarksOn(t))
}

// remarksOn lists what else is unusual about a task.
func remarksOn(t *view.Task) string {
	var all []string
	if len(t.Transfers) > 0 {
		all = append(all, "transferred to "+terminal.CleanLine(strings.Join(t.Transfers, ", ")))
	}
	if t.Attempts > 1 {
		all = append(all, format.Plural(t.Attempts, "attempt"))
	}
	if t.Interrupted > 0 {
		all = append(all, format.Number(t.Interrupted)+" interrupted")
	}
	if t.Status == runstate.Removed {
		all = append(all, "no longer in the spec")
	}
	if t.Truncated {
		all = append(all, "truncated")
	}
	if t.Reused != nil {
		all = append(all, "reused from "+terminal.CleanLine(t.Reused.Run)+format.Tokens(t.Reused.Saved, ", saved "))
	}
	if t.Reason != "" {
		all = append(all, terminal.Clip(terminal.CleanLine(t.Reason), format.MaxLine))
	}
	if t.Error != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Error.Message), "\n")
		all = append(all, terminal.Clip(terminal.CleanLine(format.Readers(cmp.Or(first, t.Error.Code))), format.MaxLine))
	}
	return strings.Join(all, "; ")
}

// writeExcerpt writes the beginning of a result.
func writeExcerpt(w io.Writer, t *view.Task, from *journals.Flags, run string) {
	if t.Status != task.Completed || t.Result == "" && t.Label == nil || t.Attempts == 0 && !t.IsStep() { // a loop has the result of another task
		return
	}
	head, isCut := excerptOf(strings.TrimRight(terminal.Clean(t.Result), "\n"))
	fmt.Fprintf(w, "\n# %s\n\n%s\n", terminal.CleanLine(t.ShownName()), head)
	if isCut {
		fmt.Fprintf(w, "… %s in all: %s\n", bytesize.Text(len(t.Result)), from.Command("show", run, journals.TaskName(t.ShownName(), t.ID)))
	}
}

// excerptOf returns the first lines of a text, each cut to a limit.
func excerptOf(text string) (head string, isCut bool) {
	lines := strings.Split(text, "\n")
	lines = lines[:min(len(lines), maxExcerptLines)]
	for i, line := range lines {
		lines[i] = terminal.Clip(line, format.MaxLine)
	}
	head = strings.Join(lines, "\n")
	return head, head != text
}

// writeTask writes one task with its calls as text, below a heading, and says if there is no reasoning to show.
func writeTask(w io.Writer, t *view.Task, heading string, reasoning bool) {
	fmt.Fprintf(w, "%s\n\n", heading)
	table := format.NewTable(w, "")
	writeRow(t, table)
	table.Flush()
	for i := range t.Exchanges {
		writeCall(w, &t.Exchanges[i])
	}
	writeQuestions(w, t)
	writeChildren(w, t)
	if reasoning && !slices.ContainsFunc(t.Exchanges, func(c view.Call) bool { return c.Reasoning != "" }) {
		fmt.Fprintln(w, "reasoning: none; its models reported none")
	}
	if t.Error != nil && t.Error.Message != "" {
		fmt.Fprintf(w, "\n%s: %s\n", outcomeOf(t), format.Indent(format.Readers(t.Error.Message)))
	}
	if t.Status == task.Completed && (t.Result != "" || !t.IsStep()) {
		fmt.Fprintf(w, "\n# %s\n\n%s\n", terminal.CleanLine(t.ShownName()), terminal.Clean(t.Result))
		if s := string(t.Structured); s != "" && s != t.Result {
			fmt.Fprintf(w, "\nstructured: %s\n", terminal.Clean(s))
		}
	}
}

// writeCall writes a call as text.
func writeCall(w io.Writer, e *view.Call) {
	attempt, took := fmt.Sprintf("attempt %d", e.Attempt), ""
	if e.Named != "" {
		attempt += " " + e.Named
	}
	if !e.Ended.IsZero() && !e.Partial {
		took = format.Elapsed(e.Ended.Sub(e.Started))
	}
	fmt.Fprint(w, format.Dotted(attempt, e.Agent, e.Model, e.State, format.Time(e.Started), took, format.Partial(format.Tokens(e.Usage, ""), e.Partial)))
	if e.Estimate {
		fmt.Fprint(w, " (estimated)")
	}
	if e.Reused != "" {
		fmt.Fprintf(w, " · from run %s", terminal.CleanLine(e.Reused))
	}
	fmt.Fprintln(w)
	if call := callText(&e.Call); call != "" {
		fmt.Fprintf(w, "         %s\n", call)
	}
	for _, warning := range e.Warnings {
		fmt.Fprintf(w, "         warning: %s\n", terminal.CleanLine(warning))
	}
	if e.Error != nil {
		fmt.Fprintf(w, "         %s: %s\n", terminal.CleanLine(e.Error.Code), format.Indent(format.Readers(e.Error.Message)))
	}
	if r := e.Rejected; r != nil {
		fmt.Fprintf(w, "         rejected answer:\n%s", format.QuoteBlock(r.Text))
		if r.Problem != "" && !trace.IsWithheld(r.Problem) {
			fmt.Fprintf(w, "         what is wrong with it: %s\n", terminal.CleanLine(r.Problem))
		}
	}
	if e.Reasoning != "" {
		fmt.Fprintf(w, "         reasoning:\n%s", format.QuoteBlock(e.Reasoning))
	}
}

// callText identifies the call that answered, in one line; it is empty if the call is unknown.
func callText(c *llm.CallInfo) string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"answered by", c.Model}, {"at", c.Endpoint}, {"request", c.RequestID}, {"finish reason", c.FinishReason},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	return format.Dotted(parts...)
}

// writeQuestions writes who is to answer, or to reply to a handoff, or who answeret.
func writeQuestions(w io.Writer, t *view.Task) {
	switch {
	case t.Tool != "":
		fmt.Fprintf(w, "a call of %s waits for the approval of %s\n", terminal.CleanLine(t.Tool), terminal.CleanLine(t.WaitingFor))
	case t.WaitingFor != "" && len(t.Replies) > 0:
		fmt.Fprintf(w, "waiting for a reply of %s\n", terminal.CleanLine(t.WaitingFor))
	case t.WaitingFor != "":
		fmt.Fprintf(w, "waiting for the answer of %s\n", terminal.CleanLine(t.WaitingFor))
	}
	for _, also := range t.Also {
		fmt.Fprintf(w, "a call of %s waits for the approval of %s\n", terminal.CleanLine(also.Tool), terminal.CleanLine(also.Agent))
	}
	for _, a := range append(slices.Clip(t.Earlier), t.Answered) {
		if a != nil {
			writeAnswered(w, a)
		}
	}
}

// writeAnswered writes who answered what.
func writeAnswered(w io.Writer, a *view.Answered) {
	if a.Approves != "" {
		fmt.Fprintf(w, "approval of %s ", terminal.CleanLine(a.Approves))
	}
	fmt.Fprintf(w, "answered by %s, %s", terminal.CleanLine(a.By), format.Time(a.Time))
	if a.Decision != "" {
		fmt.Fprintf(w, ": %s", terminal.CleanLine(a.Decision))
	}
	if a.Reason != "" {
		fmt.Fprintf(w, ": %s", terminal.CleanLine(a.Reason))
	}
	fmt.Fprintln(w)
}

// writeChildren writes the holders and the children of a task as text.
func writeChildren(w io.Writer, t *view.Task) {
	for _, h := range t.Holders {
		if h.Turn > 0 {
			fmt.Fprintf(w, "held by %s, who transferred it in turn %d\n", terminal.CleanLine(h.Agent), h.Turn)
		} else {
			fmt.Fprintf(w, "held by %s at the end\n", terminal.CleanLine(h.Agent))
		}
	}
	for i := range t.Children {
		writeChild(w, &t.Children[i])
	}
}

// writeChild writes a child as text.
func writeChild(w io.Writer, c *view.Child) {
	took, attempt, outcome := "", "", c.Status
	if !c.Ended.IsZero() && !c.Partial {
		took = format.Elapsed(c.Ended.Sub(c.Started))
	}
	if c.Attempt > 1 {
		attempt = fmt.Sprintf("attempt %d", c.Attempt)
	}
	if c.Status == view.ChildFailed {
		outcome += " " + c.Code
	}
	name := strings.TrimSpace(strings.ReplaceAll(c.Part, "/", " "))
	fmt.Fprintf(w, "\n%s\n", format.Dotted(name, attempt, c.Agent, outcome, took, format.Partial(format.Tokens(c.Usage, ""), c.Partial)))
	if c.Goal != "" {
		fmt.Fprintf(w, "  goal\n%s", format.QuoteBlock(c.Goal))
	}
	if c.Result != "" {
		fmt.Fprintf(w, "  result\n%s", format.QuoteBlock(c.Result))
	}
}
