package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Limits on the excerpt of a result in the list of all tasks. A task alone is shown whole.
const maxShownLines = 12

// A longer answer is shown in part.
const (
	maxAnswerLines = 200
	maxAnswerBytes = 16 << 10
)

// write writes a run for people.
func (r *shownRun) write(w io.Writer) {
	fmt.Fprintf(w, "%srun %s: %s\n", prefixed(r.Name), cleanLine(r.Run), cleanLine(r.Status))
	fmt.Fprintf(w, "started %s, %s", moment(r.Started), took(r))
	if r.Processes > 1 {
		fmt.Fprintf(w, ", in %d processes", r.Processes)
	}
	if r.Holder != nil {
		fmt.Fprintf(w, "; %s works on it", cleanLine(r.Holder.String()))
	}
	fmt.Fprintf(w, "\ntasks %s\n", tasksOf(r.summary))
	if r.Spec != "" {
		fmt.Fprintf(w, "spec %s\n", cleanLine(r.Spec))
	}
	for _, in := range r.Inputs {
		if in.FromRun != "" {
			fmt.Fprintf(w, "input %s: the result of task %s in run %s\n", cleanLine(in.Name), cleanLine(cmp.Or(r.titles[in.FromTask], string(in.FromTask))), cleanLine(in.FromRun))
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", cleanLine(warning))
	}
	e := experiment{Of: r.Of, Without: r.Without, WithoutInputs: r.WithoutInputs}
	if r.Command == experimenting {
		fmt.Fprintln(w, e.text(r.Of))
	} else if next := r.journal.nextStep(r.summary, r.short, func() (*journal.Info, error) { return r.info, nil }); next != "" {
		if next != begunByProgram {
			next = "to go on: " + next
		}
		fmt.Fprintln(w, next)
	}
	whole := r.writeAnswer(w)
	fmt.Fprintln(w)
	table := newRows(w, "").within(r.room)
	for _, list := range [][]shownTask{r.Tasks, r.Steps} {
		for i := range list {
			list[i].row(table)
		}
	}
	table.flush()
	for _, e := range r.Errors {
		fmt.Fprintf(w, "\nfailed: coordinator: %s\n", indented(e.Message))
	}
	for i := range r.Tasks {
		if t := &r.Tasks[i]; !whole || !slices.Contains(r.answers, t.ID) {
			t.excerpt(w, r.journal, r.short)
		}
	}
}

// writeAnswer writes the answer of the run, or the beginning of a long one, and
// reports whether it wrote all of it.
func (r *shownRun) writeAnswer(w io.Writer) (whole bool) {
	text := strings.TrimRight(clean(r.Output), "\n")
	if text == "" {
		return false
	}
	fmt.Fprint(w, "\n# The answer\n\n")
	lines := strings.Split(text, "\n")
	if whole = len(lines) <= maxAnswerLines && len(text) <= maxAnswerBytes; whole {
		fmt.Fprintln(w, text)
		return whole
	}
	for _, line := range lines[:min(len(lines), maxShownLines)] {
		fmt.Fprintln(w, clip(line, maxShownLine))
	}
	fmt.Fprintf(w, "… %s in all: %s has it as output\n", label.SizeText(len(r.Output)), r.journal.command("show -o json", r.short))
	return whole
}

func took(r *shownRun) string {
	if r.Ended.IsZero() && r.Status != journal.Running {
		return "not ended"
	}
	return "took " + r.took + tokens(r.Usage, ", "+mark(r.Rounded))
}

// mark stands before numbers of tokens that are estimates or classes.
func mark(rounded bool) string {
	if rounded {
		return "~"
	}
	return ""
}

// outcome is the status for people, in the words of the counts: a task that
// failed or was skipped without an attempt did not run.
func (t *shownTask) outcome() string {
	switch ended := t.Status == task.Failed || t.Status == task.Skipped; {
	case t.step || !ended || t.Error == nil:
	case t.Error.Root != "" || t.Status == task.Skipped && t.Attempts == 0:
		return outcomeNotRun
	case t.Status == task.Skipped:
		return outcomeCancelled
	}
	return statusText(t.Status)
}

// row writes a task as a line of a table.
func (t *shownTask) row(table rows) {
	level := ""
	if t.Label != nil {
		level = t.Label.String()
	}
	taken := ""
	if !t.Ended.IsZero() {
		taken = elapsed(t.Ended.Sub(t.Started))
	}
	table.row(t.outcome(), table.title(t.Title), cleanLine(t.Agent), level, taken, tokens(t.Usage, mark(t.Rounded)), t.remarks())
}

// remarks say what else is worth knowing of a task.
func (t *shownTask) remarks() string {
	var all []string
	if t.Attempts > 1 {
		all = append(all, plural(t.Attempts, "attempt"))
	}
	if t.Interrupted > 0 {
		all = append(all, number(t.Interrupted)+" interrupted")
	}
	if t.Status == removed {
		all = append(all, "no longer in the spec")
	}
	if t.Truncated {
		all = append(all, "truncated")
	}
	if t.Reused != nil {
		all = append(all, "reused from "+cleanLine(t.Reused.Run)+t.Reused.text())
	}
	if t.Error != nil {
		all = append(all, clip(cleanLine(t.Error.text()), maxShownLine))
	}
	return strings.Join(all, "; ")
}

func (r *shownReuse) text() string {
	return tokens(r.Saved, ", saved ")
}

func (e *shownError) text() string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Message), "\n")
	return cmp.Or(first, e.Code)
}

// excerpt writes the beginning of a result.
func (t *shownTask) excerpt(w io.Writer, from *journaling, run string) {
	if t.Status != task.Completed {
		return
	}
	lines := strings.Split(strings.TrimRight(clean(t.Result), "\n"), "\n")
	cut := len(lines) > maxShownLines
	if cut {
		lines = lines[:maxShownLines]
	}
	for i, line := range lines {
		lines[i] = clip(line, maxShownLine)
		cut = cut || lines[i] != line
	}
	fmt.Fprintf(w, "\n# %s\n\n%s\n", cleanLine(t.Title), strings.Join(lines, "\n"))
	if cut {
		name := t.Title
		if cleanLine(name) != name {
			name = string(t.ID)
		}
		fmt.Fprintf(w, "… %s in all: %s\n", label.SizeText(len(t.Result)), from.command("show", run, name))
	}
}

// write writes all of one task for people.
func (t *shownTask) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", t.name)
	table := newRows(w, "")
	t.row(table)
	table.flush()
	for i := range t.Exchanges {
		t.Exchanges[i].write(w)
	}
	if t.reasoning && !slices.ContainsFunc(t.Exchanges, func(e shownExchange) bool { return e.Reasoning != "" }) {
		fmt.Fprintln(w, "reasoning: none; its models reported none")
	}
	if t.Error != nil && t.Error.Message != "" {
		fmt.Fprintf(w, "\n%s: %s\n", statusText(t.Status), indented(t.Error.Message))
	}
	if t.Status == task.Completed {
		fmt.Fprintf(w, "\n# %s\n\n%s\n", cleanLine(t.Title), clean(t.Result))
		if s := string(t.Structured); s != "" && s != t.Result {
			fmt.Fprintf(w, "\nstructured: %s\n", clean(s))
		}
	}
}

func (e *shownExchange) write(w io.Writer) {
	fmt.Fprintf(w, "attempt %d", e.Attempt)
	if e.Part != "" {
		fmt.Fprintf(w, " %s", cleanLine(strings.TrimLeft(e.Part, "/")))
	}
	fmt.Fprintf(w, " · %s", cleanLine(e.Agent))
	if e.Model != "" {
		fmt.Fprintf(w, " · %s", cleanLine(e.Model))
	}
	fmt.Fprintf(w, " · %s · %s", e.State, moment(e.Started))
	if !e.Ended.IsZero() {
		fmt.Fprintf(w, " · %s", elapsed(e.Ended.Sub(e.Started)))
	}
	fmt.Fprint(w, tokens(e.Usage, " · "))
	if e.Estimate {
		fmt.Fprint(w, " (estimated)")
	}
	if e.Reused != "" {
		fmt.Fprintf(w, " · from run %s", cleanLine(e.Reused))
	}
	fmt.Fprintln(w)
	if call := e.callText(); call != "" {
		fmt.Fprintf(w, "         %s\n", call)
	}
	for _, warning := range e.Warnings {
		fmt.Fprintf(w, "         warning: %s\n", cleanLine(warning))
	}
	if e.Error != nil {
		fmt.Fprintf(w, "         %s: %s\n", cleanLine(e.Error.Code), indented(e.Error.Message))
	}
	if r := e.Rejected; r != nil {
		fmt.Fprintf(w, "         rejected answer:\n%s", quotedBlock(r.Text))
		if r.Problem != "" && !withheldText(r.Problem) {
			fmt.Fprintf(w, "         what is wrong with it: %s\n", cleanLine(r.Problem))
		}
	}
	if e.Reasoning != "" {
		fmt.Fprintf(w, "         reasoning:\n%s", quotedBlock(e.Reasoning))
	}
}

// callText identifies the call that gave the answer, in one line; empty if it is unknown.
func (e *shownExchange) callText() string {
	var parts []string
	for _, p := range []struct{ name, word string }{
		{"answered by", e.Call.Model}, {"at", e.Call.Endpoint}, {"request", e.Call.RequestID}, {"finish reason", e.Call.FinishReason},
	} {
		if p.word != "" {
			parts = append(parts, p.name+" "+cleanLine(p.word))
		}
	}
	return strings.Join(parts, " · ")
}

// quotedBlock returns a text with each line indented and marked.
func quotedBlock(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(clean(text), "\n"), "\n") {
		b.WriteString(strings.TrimRight("           │ "+line, " ") + "\n")
	}
	return b.String()
}
