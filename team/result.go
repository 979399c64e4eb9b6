package team

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// Status says how a run ended.
type Status string

// The statuses of a run.
const (
	StatusOK       Status = "ok"               // every task completed or its failure is accepted, and the coordinator answered if there was a goal
	StatusError    Status = "error"            // a task failed
	StatusCanceled Status = "cancelled"        // the caller's context ended
	StatusTimeout  Status = "timeout"          // [RunOptions].Timeout passed
	StatusBudget   Status = "budget_exhausted" // the budget of the run was too small for a call

	// StatusSuspended says that everything left of the run waits for the answers of people.
	// [Team.Resume] continues it.
	StatusSuspended Status = "suspended"
)

// A Result is the outcome of a run, as far as the user is cleared for it: a value above
// the user's clearance reads [withheld: secret]. Its JSON form also has the settings of
// each task and the answers that were rejected.
type Result struct {
	RunID      string
	Status     Status
	Output     string        // the answer: of the coordinator if there is a goal, else of the tasks that nothing depends on
	Tasks      []TaskResult  // in the order written
	Steps      []TaskResult  // the coordinator's work, in order; titles are plan, repair, approval, digest and synthesis
	Usage      llm.Usage     // of all tasks and steps
	Context    event.Context // how much context was sent
	Errors     []*TaskError  // of tasks, then of the coordinator
	Warnings   []string
	StartedAt  time.Time
	EndedAt    time.Time
	JournalErr error // why the journal failed; nil if it did not

	of *engine.Result
}

// A TaskResult is a task at the end of a run.
type TaskResult struct {
	ID         task.ID
	Title      string
	Assignee   string
	Status     task.Status
	Label      label.Classification // of the result
	Result     string               // the reply; for a task that was skipped, the reason
	Structured string               // canonical JSON; empty without a schema; see [ResultAs]
	Truncated  bool                 // a limit on tokens ended the answer, and the task accepted it
	Error      *TaskError           // nil unless the task failed
	Call       llm.CallInfo         // the last model call that answered; zero if models do not report their calls

	Start    time.Time // zero, as End, for a task that never started
	End      time.Time
	Attempts int
	Usage    llm.Usage // of all attempts
	Partial  bool      // Usage leaves out model calls whose prompts and replies the user may not see

	Reused   string             // ID of the run that the result was taken from; empty if this run made it
	Saved    llm.Usage          // tokens that the reused result had cost in that run
	Repeated bool               // in a replay: the prompt is the same as in the replayed run
	Envelope *envelope.Envelope // nil unless the task completed
	Receipts []*prompt.Receipt  // of each attempt, in order
}

// ToolCallMetrics says of one call of a tool what [event.ToolComplete] says. Arguments and
// results are as sensitive as prompts and not included; a journal stores them.
type ToolCallMetrics struct {
	Tool     string        // its name
	Duration time.Duration // from the start of the call until its result had passed the gate
	Failed   bool          // the result is an error
}

// A TaskError says why a task, or a step of the coordinator, failed. Its fields hold only
// what the user is cleared for. For errors.Is and errors.As it wraps the cause as the
// agent returned it; the gate has not checked the text of that cause, so do not print it.
type TaskError struct {
	Code    string // such as BUDGET_EXCEEDED or MODEL_RATE_LIMITED
	Reason  string // of the coordinator: the code of the step's failure
	Message string
	Task    task.ID // empty for the coordinator
	Title   string
	Root    task.ID // the task whose failure caused this one; empty for a root

	// Accepted says that the run can succeed although the task failed, since it has the OnFailure
	// [task.ContinueRun]. These failures are never accepted: CONTEXT_HELD, REPLY_REFUSED,
	// RECORD_FAILED, JOURNAL_FAILED, NOT_IN_JOURNAL, EFFECTS_UNCERTAIN, CANCELED, INTERNAL_ERROR,
	// and those by a budget of the run.
	Accepted bool

	of *engine.TaskError
}

// Error names the task, or the coordinator's step, and says what went wrong.
func (e *TaskError) Error() string { return e.inner().Error() }

// Format writes [TaskError.Error] for every verb, so that no verb prints the cause.
func (e TaskError) Format(f fmt.State, c rune) { e.inner().Format(f, c) }

// LogValue returns the code and the message for a structured log, without personal data.
func (e TaskError) LogValue() slog.Value { return e.inner().LogValue() }

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error {
	if e == nil || e.of == nil {
		return nil
	}
	return e.of.Unwrap()
}

func (e *TaskError) inner() *engine.TaskError {
	out := &engine.TaskError{Code: e.Code, Reason: e.Reason, Message: e.Message, Task: e.Task, Title: e.Title, Root: e.Root, Accepted: e.Accepted}
	if e.of != nil {
		out.Name = e.of.Name
	}
	return out
}

// inner returns the result of the task with this title, key, ID or name; an empty one if there is none.
func (r *Result) inner(name string) *engine.TaskResult {
	if r != nil && r.of != nil {
		if t, ok := r.of.Task(name); ok {
			return t
		}
	}
	return &engine.TaskResult{}
}

// OutputFiles returns the texts of the output files of the task with this title, key or ID,
// by their paths in the workspace. It is nil if the task has none, or if the user is not
// cleared for them. Files that the task removed are not in it.
func (r *Result) OutputFiles(name string) map[string]string { return r.inner(name).OutputFiles }

// ToolCalls returns the calls of tools in all attempts of the task with this title, key or ID,
// in the order of the calls; nil if there were none. Calls that did not reach the tool, or that
// the end of an attempt cut off, are not among them. In a resumed run the calls of earlier
// processes come first, and a replay has those of the run that it replays.
func (r *Result) ToolCalls(name string) (calls []ToolCallMetrics) {
	for _, c := range r.inner(name).Metrics.ToolCalls {
		calls = append(calls, ToolCallMetrics(c))
	}
	return calls
}

// TokensSaved returns by how many tokens the gate made the context of a task smaller, in all prompts
// of the task, as [event.Context] counts them. The task is named as in [Result.Task].
func (r *Result) TokensSaved(name string) int { return r.inner(name).Metrics.TokensSaved }

// Workspace returns the folder that [RunOptions].KeepWorkspaces left of the task with this
// title, key or ID; empty if it left none.
func (r *Result) Workspace(name string) string { return r.inner(name).Workspace }

// WaitingFor returns the person whose answer the task with this title, key or ID waits for;
// empty if it waits for none. If there are no tasks yet, coordinator is the approval of the plan.
func (r *Result) WaitingFor(name string) string {
	if r == nil || r.of == nil {
		return ""
	}
	if n := len(r.of.Steps); len(r.of.Tasks) == 0 && n > 0 && name == handoff.Coordinator {
		return r.of.Steps[n-1].WaitingFor
	}
	return r.inner(name).WaitingFor
}

// ItemName returns the name of the task with this title, key or ID by the keys of its items, such as
// Mail[ann@x.org] for Mail[3]; empty if the list has no key, or the user may not see it. See
// [task.ForEach].
func (r *Result) ItemName(name string) string { return r.inner(name).Name }

// Task returns the result of the task with this title, key, ID or name. The bool is false if
// there is none.
func (r *Result) Task(name string) (*TaskResult, bool) {
	if r == nil || r.of == nil {
		return nil, false
	}
	t, ok := r.of.Task(name)
	if !ok {
		return nil, false
	}
	for i := range r.Tasks {
		if r.Tasks[i].ID == t.ID {
			return &r.Tasks[i], true
		}
	}
	return nil, false
}

// ResultAs decodes the structured result of the task with this title, key or ID. The task
// must have completed with an output schema, and the user must be cleared for its result.
func ResultAs[T any](r *Result, name string) (value T, err error) {
	t, ok := r.Task(name)
	switch {
	case r == nil || r.of == nil:
		return value, errors.New("result: it is nil or zero; the run did not start")
	case !ok:
		names := make(naming.TaskList, len(r.Tasks))
		for i := range names {
			names[i].Title = r.Tasks[i].Title
		}
		return value, fmt.Errorf("result: %w", names.Unknown(name))
	case t.Error != nil:
		return value, t.Error
	case t.Status != task.Completed:
		return value, fmt.Errorf("task %q: it is %s and has no result", t.Title, t.Status)
	case t.Structured == "":
		return value, fmt.Errorf("task %q: no structured result that the caller may see; give it an output schema, or raise UserAccepts to %v", t.Title, t.Label)
	}
	if err := json.Unmarshal([]byte(t.Structured), &value); err != nil {
		return value, fmt.Errorf("task %q: decode the result: %w", t.Title, err)
	}
	return value, nil
}

// MarshalJSON writes the result with the names of the command's JSON output.
func (r *Result) MarshalJSON() ([]byte, error) {
	if r == nil || r.of == nil {
		return nil, errors.New("result: it is nil or zero; the run did not start")
	}
	return r.of.MarshalJSON()
}

// A RunError reports a run that started and did not succeed; Status says how it ended. It
// wraps the reason for an early end, such as [context.Canceled], the error of the journal,
// and the [*TaskError] of each task or coordinator step that failed by itself.
type RunError struct {
	RunID  string
	Status Status
	causes []error
}

// Error says how the run ended and names everything that failed.
func (e *RunError) Error() string {
	texts := make([]string, len(e.causes))
	for i, cause := range e.causes {
		texts[i] = cause.Error()
	}
	text := "run ended with status " + string(e.Status)
	if len(texts) > 0 {
		text += ": " + strings.Join(texts, "; ")
	}
	return text
}

// Format writes [RunError.Error] for every verb, so that no verb prints the causes, which
// the gate has not checked.
func (e *RunError) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.Error()) }

// Unwrap returns what failed.
func (e *RunError) Unwrap() []error { return e.causes }

// ended returns the result of a run in its public form, and the error of one that did not
// succeed.
func ended(r *engine.Result, err error) (*Result, error) {
	if err != nil {
		return nil, publicError(err)
	}
	out := &Result{
		RunID: r.RunID, Status: Status(r.Status), Output: r.Output, Usage: r.Usage, Context: event.Context(r.Context),
		Warnings: r.Warnings, StartedAt: r.StartedAt, EndedAt: r.EndedAt, JournalErr: r.JournalErr, of: r,
	}
	out.Tasks = make([]TaskResult, len(r.Tasks))
	for i := range r.Tasks {
		out.Tasks[i] = newTaskResult(&r.Tasks[i])
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		step := newTaskResult(&engine.TaskResult{
			Title: string(s.Kind), Assignee: "coordinator", Status: task.Completed, Error: s.Error, Call: s.Call, Metrics: s.Metrics,
			Reused: s.Reused, Saved: s.Saved, Repeated: s.Repeated,
		})
		if step.Error != nil {
			step.Status = task.Failed
		}
		if s.Receipt != nil {
			step.Receipts = []*prompt.Receipt{s.Receipt}
		}
		out.Steps = append(out.Steps, step)
	}
	for i := range r.Errors {
		out.Errors = append(out.Errors, newTaskError(&r.Errors[i]))
	}
	if r.Err() == nil && (out.Status == StatusOK || out.Status == StatusSuspended) {
		return out, nil
	}
	failed := &RunError{RunID: out.RunID, Status: out.Status, causes: r.EarlyEnd()}
	for _, e := range out.Errors {
		if e.Root == "" {
			failed.causes = append(failed.causes, e)
		}
	}
	return out, failed
}

func newTaskResult(t *engine.TaskResult) TaskResult {
	return TaskResult{
		ID: t.ID, Title: t.Title, Assignee: t.Assignee, Status: t.Status, Label: t.Label, Result: t.Result, Structured: t.Structured,
		Truncated: t.Truncated, Error: newTaskError(t.Error), Call: t.Call,
		Start: t.Metrics.Start, End: t.Metrics.End, Attempts: t.Metrics.Attempts, Usage: t.Metrics.Usage, Partial: t.Metrics.Partial,
		Reused: t.Reused, Saved: t.Saved, Repeated: t.Repeated, Envelope: t.Envelope, Receipts: t.Receipts,
	}
}

func newTaskError(e *engine.TaskError) *TaskError {
	if e == nil {
		return nil
	}
	return &TaskError{Code: e.Code, Reason: e.Reason, Message: e.Message, Task: e.Task, Title: e.Title, Root: e.Root, Accepted: e.Accepted, of: e}
}

// publicError returns an error of a run that did not start with the types of this package.
func publicError(err error) error {
	if e, ok := errors.AsType[*engine.TaskError](err); ok {
		return newTaskError(e)
	}
	return err
}

// hintTasks returns err with a hint for programs if an earlier run was named without its tasks.
func hintTasks(err error) error {
	found, _ := errors.AsType[task.Problems](err)
	i := slices.IndexFunc(found, func(p task.Problem) bool { return p.Pointer == "/tasks" && errors.Is(p.Err, plan.ErrNoTasks) })
	if i < 0 {
		return err
	}
	found = slices.Clone(found)
	found[i].Hint = "set RunOptions.Tasks to the tasks of the run, or Answer to its goal"
	return found
}
