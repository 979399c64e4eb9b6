package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/runstate"
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

// write writes a run as text.
func (r *RunDocument) write(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", journals.Heading(r.Name, r.Run), terminal.CleanLine(r.Status))
	fmt.Fprintf(w, "started %s, %s", format.Time(r.Started), r.spanText())
	if r.Processes > 1 {
		fmt.Fprintf(w, ", in %d processes", r.Processes)
	}
	if r.Holder != nil {
		fmt.Fprintf(w, "; %s works on it", terminal.CleanLine(r.Holder.String()))
	}
	fmt.Fprintf(w, "\ntasks %s\n", tasksOf(&r.stored.Summary))
	if r.Spec != "" {
		fmt.Fprintf(w, "spec %s\n", terminal.CleanLine(r.Spec))
	}
	for _, in := range r.Inputs {
		if in.FromRun != "" {
			fmt.Fprintf(w, "input %s: the result of task %s in run %s\n", terminal.CleanLine(in.Name), terminal.CleanLine(cmp.Or(r.titles[in.FromTask], string(in.FromTask))), terminal.CleanLine(in.FromRun))
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", terminal.CleanLine(warning))
	}
	r.writeCommands(w)
	if r.Handoffs != nil {
		fmt.Fprintf(w, "%s: %s\n", r.Handoffs, r.journal.Command("show --handoffs", r.stored.ShortID))
	}
	if e := journals.Experiment(r.replayOrigin); r.Command == journals.ExperimentCommand {
		fmt.Fprintln(w, e.Text(r.Of))
	} else if next := r.journal.NextStep(&r.stored.Summary, r.stored.ShortID, r.outlook); next != "" {
		switch {
		case next == journals.StartedByProgram, r.outlook.Refused:
		case r.Status == string(engine.StatusSuspended) && !r.outlook.Answered:
			next = "to answer: " + next
		default:
			next = "to resume: " + next
		}
		fmt.Fprintln(w, next)
	}
	whole := r.writeAnswer(w)
	fmt.Fprintln(w)
	table := format.NewTable(w, "").WithTitleWidth(r.titleWidth)
	rows(r.Tasks, table)
	rows(r.Steps, table)
	table.Flush()
	for _, e := range r.Errors {
		fmt.Fprintf(w, "\nfailed: coordinator: %s\n", format.Indent(format.Readers(e.Message)))
	}
	lists := longLists(r.Tasks)
	for i := range r.Tasks {
		if t := &r.Tasks[i]; lists[listOf(t)] == nil && (!whole || !slices.Contains(r.answers, t.ID)) {
			t.excerpt(w, r.journal, r.stored.ShortID)
		}
	}
	r.writeFolded(w, lists)
}

// writeAnswer writes the answer of the run, or the beginning of a long one, and reports whether it
// wrote all of it.
func (r *RunDocument) writeAnswer(w io.Writer) (whole bool) {
	text := strings.TrimRight(terminal.Clean(r.Output), "\n")
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
	fmt.Fprintf(w, "%s\n… %s in all: %s has it as output\n", head, bytesize.Text(len(r.Output)), r.journal.Command("show -o json", r.stored.ShortID))
	return whole
}

func (r *RunDocument) spanText() string {
	if r.Ended.IsZero() && r.Holder == nil {
		return "not ended"
	}
	return format.Partial("took "+durationText(&r.stored.Summary, r.stored.Now)+format.Tokens(r.Usage, ", "+format.ApproximationMark(r.Estimated)), r.Partial) + savedText(r.Saved)
}

// savedText says by how many tokens the gate made context smaller; empty for none.
func savedText(tokens int) string {
	if tokens == 0 {
		return ""
	}
	return ", ~" + format.Number(tokens) + " saved by the gate"
}

// outcome returns the status in the words of the counts: a task that failed because of another
// one, or never began, counts as skipped.
func (t *TaskDocument) outcome() string {
	switch ended := t.Status == task.Failed || t.Status == task.Skipped; {
	case t.isStep || !ended || t.Error == nil:
	case t.Error.Root != "" || t.Status == task.Skipped && t.Attempts == 0:
		return format.Skipped
	case t.Status == task.Skipped:
		return format.Cancelled
	}
	return format.Status(t.Status)
}

// row writes a task as a row of a table.
func (t *TaskDocument) row(table format.Table) {
	level := ""
	if t.Label != nil {
		level = t.Label.String()
	}
	taken := ""
	if !t.Ended.IsZero() && !t.Partial {
		taken = format.Elapsed(time.Duration(t.Took) * time.Millisecond)
	}
	table.Row(t.outcome(), table.Title(t.shownName()), t.Agent, level, taken, format.Partial(format.Tokens(t.Usage, format.ApproximationMark(t.Interrupted > 0)), t.Partial), t.remarks())
}

// remarks lists what else is unusual about a task.
func (t *TaskDocument) remarks() string {
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

// excerpt writes the beginning of a result.
func (t *TaskDocument) excerpt(w io.Writer, from *journals.Flags, run string) {
	if t.Status != task.Completed || t.Result == "" && t.Label == nil { // a loop has the result of another task
		return
	}
	head, isCut := excerptOf(strings.TrimRight(terminal.Clean(t.Result), "\n"))
	fmt.Fprintf(w, "\n# %s\n\n%s\n", terminal.CleanLine(t.shownName()), head)
	if isCut {
		fmt.Fprintf(w, "… %s in all: %s\n", bytesize.Text(len(t.Result)), from.Command("show", run, journals.TaskName(t.shownName(), t.ID)))
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

// write writes one task with its calls as text.
func (t *TaskDocument) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", t.heading)
	table := format.NewTable(w, "")
	t.row(table)
	table.Flush()
	for i := range t.Exchanges {
		t.Exchanges[i].write(w)
	}
	t.writeQuestion(w, len(t.Replies) > 0)
	t.writeChildren(w)
	if t.reasoning && !slices.ContainsFunc(t.Exchanges, func(e promptDocument) bool { return e.Reasoning != "" }) {
		fmt.Fprintln(w, "reasoning: none; its models reported none")
	}
	if t.Error != nil && t.Error.Message != "" {
		fmt.Fprintf(w, "\n%s: %s\n", t.outcome(), format.Indent(format.Readers(t.Error.Message)))
	}
	if t.Status == task.Completed && (t.Result != "" || !t.isStep) {
		fmt.Fprintf(w, "\n# %s\n\n%s\n", terminal.CleanLine(t.shownName()), terminal.Clean(t.Result))
		if s := string(t.Structured); s != "" && s != t.Result {
			fmt.Fprintf(w, "\nstructured: %s\n", terminal.Clean(s))
		}
	}
}

func (e *promptDocument) write(w io.Writer) {
	attempt, took := fmt.Sprintf("attempt %d", e.Attempt), ""
	if e.named != "" {
		attempt += " " + e.named
	}
	if !e.Ended.IsZero() {
		took = format.Elapsed(e.Ended.Sub(e.Started))
	}
	fmt.Fprint(w, format.Dotted(attempt, e.Agent, e.Model, e.State, format.Time(e.Started), took, format.Tokens(e.Usage, "")))
	if e.Estimate {
		fmt.Fprint(w, " (estimated)")
	}
	if e.Reused != "" {
		fmt.Fprintf(w, " · from run %s", terminal.CleanLine(e.Reused))
	}
	fmt.Fprintln(w)
	if call := e.callText(); call != "" {
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
		if r.Problem != "" && !journals.IsWithheld(r.Problem) {
			fmt.Fprintf(w, "         what is wrong with it: %s\n", terminal.CleanLine(r.Problem))
		}
	}
	if e.Reasoning != "" {
		fmt.Fprintf(w, "         reasoning:\n%s", format.QuoteBlock(e.Reasoning))
	}
}

// callText identifies the call that answered, in one line; it is empty if the call is unknown.
func (e *promptDocument) callText() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"answered by", e.Call.Model}, {"at", e.Call.Endpoint}, {"request", e.Call.RequestID}, {"finish reason", e.Call.FinishReason},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	return format.Dotted(parts...)
}
