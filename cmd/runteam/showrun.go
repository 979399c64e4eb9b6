package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// shownRun is a stored run, in JSON.
type shownRun struct {
	Run         string          `json:"runId"`
	Name        string          `json:"name"`
	Command     string          `json:"command,omitempty"`
	Status      string          `json:"status"`
	Started     time.Time       `json:"startedAt"`
	Ended       time.Time       `json:"endedAt,omitzero"`
	Processes   int             `json:"processes"` // that worked on it, one after another
	Holder      *journal.Holder `json:"holder,omitempty"`
	Spec        string          `json:"spec,omitempty"` // where it was
	Fingerprint string          `json:"fingerprint,omitempty"`

	// Without and WithoutInputs are what replay left out of the run Of that it made again.
	Of            string   `json:"replayed,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`

	Inputs   []event.GivenInput `json:"inputs"`
	Tasks    []shownTask        `json:"tasks"`
	Outcomes event.Outcomes     `json:"outcomes"`
	Steps    []shownTask        `json:"coordinator,omitempty"`
	Output   string             `json:"output,omitempty"` // the answer: of the coordinator, or the results that make it
	Usage    llm.Usage          `json:"totalTokenUsage"`
	Rounded  bool               `json:"rounded,omitempty"` // the tokens of a task are
	Errors   []event.Failure    `json:"errors"`
	Warnings []string           `json:"warnings,omitempty"`

	summary *journal.Summary
	info    *journal.Info
	journal *journaling // the journal that it is in

	took    string
	room    int                // for titles; 0 for any length
	short   string             // of Run, what tells it apart
	answers []task.ID          // whose results make the answer
	titles  map[task.ID]string // of tasks of earlier runs whose results are inputs
}

// nameInputs looks up the titles of the tasks whose results are inputs. A run that was
// removed gives none.
func (r *shownRun) nameInputs(ctx context.Context, j *journal.Journal) {
	r.titles = map[task.ID]string{}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if in.FromRun == "" {
			continue
		}
		info, err := j.LoadInfo(ctx, in.FromRun)
		if err != nil {
			continue
		}
		for n := range info.Tasks {
			if info.Tasks[n].ID == in.FromTask {
				r.titles[in.FromTask] = info.Tasks[n].Title
			}
		}
	}
}

// shownTask is a task of a stored run, in JSON.
type shownTask struct {
	ID          task.ID               `json:"id"`
	Key         string                `json:"key,omitempty"`
	Title       string                `json:"title"`
	Agent       string                `json:"assignee"`
	Status      task.Status           `json:"status"`
	Label       *label.Classification `json:"label,omitempty"` // of the result
	Attempts    int                   `json:"attempts"`
	Interrupted int                   `json:"interrupted,omitempty"` // of the attempts
	Running     int                   `json:"running,omitempty"`
	Usage       llm.Usage             `json:"tokenUsage"`
	Rounded     bool                  `json:"rounded,omitempty"` // the tokens are estimates or classes
	Started     time.Time             `json:"startedAt,omitzero"`
	Ended       time.Time             `json:"endedAt,omitzero"`
	Reused      *shownReuse           `json:"reused,omitempty"`
	Result      string                `json:"result,omitempty"`
	Structured  json.RawMessage       `json:"structured,omitempty"`
	Error       *shownError           `json:"error,omitempty"`
	Exchanges   []shownExchange       `json:"exchanges,omitempty"` // of one task that was asked for

	step bool
	name string // of the run
}

// shownReuse says where a result was taken from, and what it had taken there.
type shownReuse struct {
	Run   string    `json:"runId"`
	Saved llm.Usage `json:"tokenUsage"`
}

type shownError struct {
	Code    string  `json:"code,omitempty"`
	Message string  `json:"message"`
	Root    task.ID `json:"root,omitempty"`
}

// shownExchange is one prompt and what came of it.
type shownExchange struct {
	Session  string         `json:"sessionId"`
	Agent    string         `json:"agent"`
	Model    string         `json:"model,omitempty"`
	Attempt  int            `json:"attempt"`
	Part     string         `json:"part,omitempty"`
	State    string         `json:"state"` // completed, failed, interrupted, reused
	Started  time.Time      `json:"startedAt,omitzero"`
	Ended    time.Time      `json:"endedAt,omitzero"`
	Usage    llm.Usage      `json:"tokenUsage"`
	Estimate bool           `json:"estimated,omitempty"` // the tokens were not counted, or are rounded
	Turns    int            `json:"turns,omitempty"`
	Context  *event.Context `json:"context,omitempty"`
	Reused   string         `json:"reused,omitempty"`
	Error    *shownError    `json:"error,omitempty"`
}

// show says what became of a run.
func (k *storedRun) show() *shownRun {
	asked := k.asked()
	r := &shownRun{
		Of: asked.Of, short: k.begins, Without: asked.Without, WithoutInputs: asked.WithoutInputs,
		Run: k.Run, Name: k.Name, Command: k.Command, Status: k.Status, Started: k.Started, Ended: k.Ended, Processes: len(k.history.Begins), Holder: k.Holder,
		Spec: asked.Found, Fingerprint: k.info.Fingerprint, Inputs: []event.GivenInput{}, Tasks: []shownTask{}, Errors: []event.Failure{}, took: tookOf(&k.Summary, k.now),
		Outcomes: k.Outcomes, summary: &k.Summary, info: &k.info,
	}
	if n := len(k.history.Begins); n > 0 {
		r.Inputs = append(r.Inputs, k.history.Begins[n-1].Inputs...)
	}
	if end := k.history.End; end != nil {
		r.Output, r.Warnings = end.Answer, end.Warnings
		r.Errors = append(r.Errors, end.Errors...)
	}
	for i := range k.tasks {
		t := k.short(&k.tasks[i])
		r.Usage, r.Rounded = r.Usage.Add(t.Usage), r.Rounded || t.Rounded
		if t.step {
			r.Steps = append(r.Steps, t)
		} else {
			r.Tasks = append(r.Tasks, t)
		}
	}
	if end := k.history.End; end != nil && end.Answer == "" {
		r.answer(end.Output)
	}
	return r
}

// answer makes the answer of the results that are it, each under its title if
// there are several.
func (r *shownRun) answer(output []task.ID) {
	var parts, titled []string
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Status == task.Completed && slices.Contains(output, t.ID) {
			r.answers = append(r.answers, t.ID)
			parts, titled = append(parts, t.Result), append(titled, "# "+t.Title+"\n\n"+t.Result)
		}
	}
	if len(parts) > 1 {
		parts = titled
	}
	r.Output = strings.Join(parts, "\n\n")
}

// short says what became of a task.
func (k *storedRun) short(s *storedTask) shownTask {
	t := shownTask{
		ID: s.id, Key: s.key, Title: s.title, Agent: s.agent, Status: s.status, Attempts: s.attempts(), Interrupted: len(s.interrupted), Running: s.running,
		Usage: s.usage(), step: s.step, name: k.title(),
	}
	t.Started, t.Ended = s.took()
	t.Rounded = len(s.interrupted) > 0 || slices.ContainsFunc(s.exchanges, func(x *event.Exchange) bool { return x.Rounded && x.From == "" })
	x := s.answer()
	if s.step {
		t.Status = s.stepStatus(x)
	}
	switch {
	case t.Status == task.Completed && x != nil:
		r := k.read(x)
		t.Result, t.Structured, t.Label = r.text, json.RawMessage(r.structured), &r.label
		if x.From != "" {
			t.Reused = &shownReuse{x.From, savedBy(x)}
		}
	case t.Status == task.Failed || t.Status == task.Skipped:
		t.Error = &shownError{s.ended.Code, k.because(s), s.ended.Root}
		if s.step {
			last := s.exchanges[len(s.exchanges)-1]
			t.Error = &shownError{Code: last.Code, Message: last.Error}
		}
	}
	return t
}

// stepStatus is how a step of the coordinator stands.
func (t *storedTask) stepStatus(answer *event.Exchange) task.Status {
	switch {
	case answer != nil:
		return task.Completed
	case t.running > 0 || len(t.exchanges) == 0:
		return task.InProgress
	}
	return task.Failed
}

// task says all of one task.
func (k *storedRun) task(id task.ID) *shownTask {
	i, ok := k.byID[id]
	if !ok {
		i = len(k.tasks)
		k.of(id, k.trace.Title(id), "")
	}
	s := &k.tasks[i]
	t := k.short(s)
	for _, x := range s.exchanges {
		e := shownExchange{
			Session: x.Session, Agent: x.Agent, Model: x.Model, Attempt: x.Attempt, Part: x.Part, State: stateOf(x), Started: x.Start, Ended: x.End,
			Usage: llm.Usage{InputTokens: x.Input, OutputTokens: x.Output}, Estimate: x.Rounded, Turns: x.Turns, Reused: x.From,
		}
		if x.Part == "" {
			e.Context = &x.Context
		}
		if !x.Completed() {
			e.Error = &shownError{Code: x.Code, Message: x.Error}
		}
		t.Exchanges = append(t.Exchanges, e)
	}
	for _, asked := range s.interrupted {
		t.Exchanges = append(t.Exchanges, shownExchange{
			Session: asked.Session, Agent: asked.Agent, Model: asked.Model, Attempt: asked.Attempt, State: "interrupted", Started: asked.Time,
			Usage: llm.Usage{InputTokens: estimated(asked)}, Estimate: true,
		})
	}
	slices.SortStableFunc(t.Exchanges, func(a, b shownExchange) int { return a.Started.Compare(b.Started) })
	return &t
}

func stateOf(x *event.Exchange) string {
	switch {
	case !x.Completed():
		return string(task.Failed)
	case x.From != "":
		return "reused"
	}
	return string(task.Completed)
}

// Of each result that many lines and cells are shown among others; a task alone is shown whole.
const (
	maxShownLines = 12
	maxShownLine  = 400
)

// An answer with more lines or bytes is long, and only begun.
const (
	maxAnswerLines = 200
	maxAnswerBytes = 16_000
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
	e := experiment{r.Of, r.Without, r.WithoutInputs}
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

// writeAnswer writes the answer of the run, and reports whether it stands there
// whole: one that is long is only begun.
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
	fmt.Fprintf(w, "… %s in all: %s has it as output\n", size(len(r.Output)), r.journal.command("show -o json", r.short))
	return whole
}

func took(r *shownRun) string {
	if r.Ended.IsZero() && r.Status != journal.Running {
		return "not ended"
	}
	return "took " + r.took + tokens(r.Usage.InputTokens, r.Usage.OutputTokens, ", "+mark(r.Rounded))
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
		return "not run"
	case t.Status == task.Skipped:
		return "cancelled"
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
	table.row(t.outcome(), table.title(t.Title), cleanLine(t.Agent), level, taken, tokens(t.Usage.InputTokens, t.Usage.OutputTokens, mark(t.Rounded)), t.remarks())
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
	if t.Reused != nil {
		all = append(all, "reused from "+cleanLine(t.Reused.Run)+t.Reused.text())
	}
	if t.Error != nil {
		all = append(all, clip(cleanLine(t.Error.text()), maxShownLine))
	}
	return strings.Join(all, "; ")
}

func (r *shownReuse) text() string {
	return tokens(r.Saved.InputTokens, r.Saved.OutputTokens, ", saved ")
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
		fmt.Fprintf(w, "… %s in all: %s\n", size(len(t.Result)), from.command("show", run, name))
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
	fmt.Fprint(w, tokens(e.Usage.InputTokens, e.Usage.OutputTokens, " · "))
	if e.Estimate {
		fmt.Fprint(w, " (estimated)")
	}
	if e.Reused != "" {
		fmt.Fprintf(w, " · from run %s", cleanLine(e.Reused))
	}
	fmt.Fprintln(w)
	if e.Error != nil {
		fmt.Fprintf(w, "         %s: %s\n", cleanLine(e.Error.Code), indented(e.Error.Message))
	}
}
