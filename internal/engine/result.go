package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Conditions of a team or a run.
var (
	ErrAssertion = plan.ErrAssertion
	ErrPlan      = errors.New("no valid plan")
	ErrNoAnswer  = errors.New("the coordinator's answer is empty")
	ErrCanceled  = errors.New("run cancelled")
	ErrTimeout   = errors.New("run timed out")
)

// Status says how a run ended.
type Status string

// The statuses of a run.
const (
	StatusOK       Status = "ok"               // every task completed, was not needed, or failed with a failure that it accepts
	StatusError    Status = "error"            // a task failed
	StatusCanceled Status = "cancelled"        // the caller's context ended; spelt as the original does
	StatusTimeout  Status = "timeout"          // RunOptions.Timeout passed
	StatusBudget   Status = "budget_exhausted" // MaxTokenBudget or MaxCostBudget of RunOptions had not enough left for a call

	StatusSuspended Status = "suspended" // everything left waits for the answers of people; it can be resumed

	StatusInterrupted Status = "interrupted" // the process let go of it; it has no end, and can be resumed
)

// Result is the result of a run, as the caller may see it: a value above the caller's
// clearance reads [withheld: secret]. Its JSON form has the names of the original.
type Result struct {
	Command   string // the command that made the run: run, task, or empty from a program
	RunID     string
	Name      string
	Status    Status
	Goal      string       // of RunTeam, gated for the caller
	Output    string       // the answer: the synthesis if a coordinator answers a goal, else the results that nothing depends on
	Tasks     []TaskResult // in the order written
	Steps     []Step       // the coordinator's work, in order; nil without a goal
	Usage     llm.Usage    // of all tasks and steps
	Prior     llm.Usage    // the part of Usage that was spent before the run was resumed
	Context   Context      // what of all context was sent
	Errors    []TaskError  // of tasks, then of the coordinator
	Warnings  []string
	StartedAt time.Time
	EndedAt   time.Time
	Cause     error // why a run was canceled or timed out; nil otherwise

	// Answered says whether an endpoint that knows the model answered any model call.
	// Without one, the run could do nothing.
	Answered bool

	// JournalErr is why the journal of the run failed; nil if it did not. What was done
	// by then is here, and not all of it is in the journal.
	JournalErr error

	// Audit is the head of the chain of decisions in the journal; empty without one.
	Audit string

	behind
}

// behind is what the packages of the engine know of a result.
type behind struct {
	deciding map[task.ID]bool   // see Decides
	recorded *Result            // as records of the run hold it; nil if that is the result as it is
	answer   *envelope.Envelope // of a turn of a session; nil unless it was answered
	calls    []plan.PriorCall   // that this process paid, of such a run
	reads    []record.Read      // what agents were delivered in this process, of such a run
}

// A TaskResult is a task at the end of a run.
type TaskResult struct {
	ID          task.ID
	Key         string
	Title       string
	Name        string // of an instance, by the keys of its items, as the caller may see them; empty without one
	Description string
	Assignee    string
	Role        string
	Priority    task.Priority
	Metadata    map[string]any
	Status      task.Status
	DependsOn   []task.ID
	Label       label.Classification // of the result
	Result      string               // gated for the caller; the reason for a task that was skipped
	Structured  string               // canonical JSON, gated for the caller; empty without a schema
	Truncated   bool                 // a limit on tokens ended the answer, and the task accepted it
	Error       *TaskError           // nil unless the task failed
	Call        llm.CallInfo         // the last model call that answered; zero if models do not report their calls
	Rejected    []RejectedAnswer     // in order, also those that were corrected
	Metrics     Metrics
	Reused      string             // the run that the result was taken from; empty for one that this run made
	Saved       llm.Usage          // what it had taken there
	Repeated    bool               // of a [Replay]: its prompt is that of the run, also if the answer could not be taken any more
	Envelope    *envelope.Envelope // nil unless the task completed
	Files       *envelope.Envelope // its output files; nil if it declares none
	OutputFiles map[string]string  // their texts by path, gated for the caller; nil if the caller may not see them
	Workspace   string             // the folder that was kept for the caller; empty if none was
	WaitingFor  string             // whose answer a task in progress waits for: a person, or an agent that is to reply; empty if none
	Receipts    []*prompt.Receipt  // of each attempt, in order

	// Messages are the conversation of the agent with its model, for the JSON form. A run
	// does not set it; a caller with a [Recorder] may.
	Messages []llm.Message
}

// A RejectedAnswer is an answer that its task did not accept because it was truncated,
// filtered or did not match the schema. It is in the form that the caller may see.
type RejectedAnswer struct {
	Attempt int          `json:"attempt"`
	Text    string       `json:"text"`
	Problem string       `json:"problem,omitempty"` // what is wrong with it, as the corrective call says it; empty if there was none
	Call    llm.CallInfo `json:"call,omitzero"`
}

// A Step is one prompt to the coordinator and its result.
type Step struct {
	Kind    StepKind
	Error   *TaskError   // nil if the coordinator answered
	Call    llm.CallInfo // as of a TaskResult
	Metrics Metrics
	Reused  string    // as of a TaskResult
	Saved   llm.Usage // as of a TaskResult

	WaitingFor string // the person whose approval of the plan is missing; empty if none is

	Repeated bool            // as of a TaskResult
	Receipt  *prompt.Receipt // what it saw; nil if no prompt could be built
	before   bool            // it was taken before the run was interrupted
}

// StepKind is the kind of a step of the coordinator.
type StepKind string

// The steps of a goal.
const (
	StepPlan      StepKind = "plan"      // a plan
	StepRepair    StepKind = "repair"    // the plan again, with everything that is wrong with the one before, or why a person refused that
	StepApproval  StepKind = "approval"  // the question to the person who has to approve the plan
	StepDigest    StepKind = "digest"    // a digest of part of the results
	StepSynthesis StepKind = "synthesis" // the answer
)

// Metrics measures the work on one task. Times are zero for a task that never started.
type Metrics struct {
	Start    time.Time
	End      time.Time
	Usage    llm.Usage // of all attempts; of those that were interrupted what their prompts had, a fourth of the bytes
	Attempts int

	Interrupted int // attempts that a crash ended, which count in the usage and as no retry

	// Partial says that model calls are not counted, because the caller may not see all of
	// their prompts and replies. A caller who accepts every label gets all numbers.
	Partial bool

	TokensSaved int // by the gate, in the prompts that Usage is of; see [Context]

	// ToolCalls are the calls of tools in the attempts that Usage is of, in the order of the
	// calls, those of earlier processes first. Calls that did not reach a tool, or that were cut
	// off, are not among them: no event tells the caller how they ended either.
	ToolCalls []ToolCallMetrics
}

// A TaskError is why a task failed, or the coordinator's work, in the form
// that the caller is cleared for.
type TaskError struct {
	Code    string  `json:"code"`
	Reason  string  `json:"reason,omitempty"` // of the coordinator's: the code of what its step failed with
	Message string  `json:"message"`
	Task    task.ID `json:"task,omitempty"` // empty for the coordinator's work
	Title   string  `json:"-"`
	Name    string  `json:"-"`              // of an instance, by the keys of its items; no log has it
	Root    task.ID `json:"root,omitempty"` // the task whose failure this one follows from; empty for a root

	Accepted bool `json:"failureAccepted,omitempty"` // the run can succeed all the same; see [task.Spec].OnFailure

	cause func() error       // behind a function, which no verb looks into
	said  *envelope.Envelope // what Message is the caller's form of; nil for words of the runtime
	words *ownEndpoints      // of the run's events; nil for an error that was not made in this process
}

// expire takes the words back if they may no longer be read.
func (e *TaskError) expire(now time.Time) {
	if e != nil && e.said != nil && e.said.Fresh(now) != nil {
		e.Message = expired
	}
}

// expired replaces a text that may no longer be read.
const expired = "[withheld: expired]"

// Error names the task, or the coordinator's step, and says what went wrong.
func (e *TaskError) Error() string {
	if e.Task == "" {
		return fmt.Sprintf("coordinator: %s: %s", e.Title, e.Message)
	}
	return fmt.Sprintf("task %q: %s", cmp.Or(e.Name, e.Title), e.Message)
}

// Format writes [TaskError.Error] for every verb, so that no verb prints the
// cause, which is not gated.
func (e TaskError) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.Error()) }

// LogMessage returns Message as the events of the run show it, for logs and screens: without
// the personal data that the caller may read in it.
func (e *TaskError) LogMessage() string {
	words := e.words
	if words == nil {
		words = &ownEndpoints{words: redact.All()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), messageTime)
	defer cancel()
	message, err := words.text(ctx, e.Message)
	if err != nil {
		return cmp.Or(e.Code, "[withheld]")
	}
	return message
}

// LogValue returns the code and [TaskError.LogMessage] for a structured log.
func (e TaskError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("code", e.Code), slog.String("task", e.Title), slog.String("message", e.LogMessage()))
}

// Unwrap returns the cause as the agent gave it. It is not gated: it is for errors.Is and errors.As.
func (e *TaskError) Unwrap() error {
	if e == nil || e.cause == nil {
		return nil
	}
	return e.cause()
}

// errNoResult is the error of a nil *Result: the run did not start.
var errNoResult = errors.New("result: it is nil; the run did not start")

// IsPartial reports whether Usage lacks what the caller may not see.
func (r *Result) IsPartial() bool {
	return slices.ContainsFunc(r.Tasks, func(t TaskResult) bool { return t.Metrics.Partial }) ||
		slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Metrics.Partial })
}

// Outcomes counts the tasks by how they ended.
func (r *Result) Outcomes() (o record.Outcomes) {
	if r == nil {
		return o
	}
	for i := range r.Tasks {
		t, root, accepted := &r.Tasks[i], task.ID(""), false
		if t.Error != nil {
			root, accepted = t.Error.Root, t.Error.Accepted
		}
		o.Add(t.Status, root, t.Metrics.Attempts > 0, accepted)
	}
	return o
}

// Decides reports whether the result of a task says whether another one runs, or for which items, so that a run cannot be
// repeated without it.
func (r *Result) Decides(id task.ID) bool { return r.deciding[id] }

// Success reports whether every task completed, was not needed or accepts its failure, and the coordinator
// answered if there was a goal.
func (r *Result) Success() bool { return r.Status == StatusOK }

// EarlyEnd returns why the run ended early, which wraps [ErrCanceled] or [ErrTimeout], and
// why its journal failed.
func (r *Result) EarlyEnd() (errs []error) {
	switch {
	case r.Status == StatusCanceled:
		errs = append(errs, fmt.Errorf("%w: %w", ErrCanceled, r.Cause))
	case r.Status == StatusTimeout && !errors.Is(r.Cause, ErrTimeout):
		errs = append(errs, fmt.Errorf("%w: %w", ErrTimeout, r.Cause))
	case r.Cause != nil:
		errs = append(errs, r.Cause)
	}
	if r.JournalErr != nil {
		errs = append(errs, r.JournalErr)
	}
	return errs
}

// Err joins [Result.EarlyEnd], the errors of the tasks that failed by themselves, and those
// of the coordinator; it is nil for a success, and for a suspended run in which no task failed.
// Failures that are accepted do not count. A task that failed because of one, and does not accept
// that itself, does.
func (r *Result) Err() error {
	if r == nil {
		return errNoResult
	}
	errs, accepted := r.EarlyEnd(), map[task.ID]bool{}
	for i := range r.Errors {
		accepted[r.Errors[i].Task] = r.Errors[i].Accepted
	}
	for i := range r.Errors {
		if e := &r.Errors[i]; !e.Accepted && (e.Root == "" || accepted[e.Root]) {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// ShownName returns what people know the task by: its name, or its title.
func (t *TaskResult) ShownName() string { return cmp.Or(t.Name, t.Title) }

// Task returns the result of the task with this title, key, id or name.
func (r *Result) Task(name string) (*TaskResult, bool) {
	i, known := taskNames(r.Tasks).Find(name)
	if !known {
		return nil, false
	}
	return &r.Tasks[i], true
}

// taskNames returns what people may call tasks.
func taskNames(tasks []TaskResult) naming.TaskList {
	list := make(naming.TaskList, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		list[i] = naming.TaskNames{Title: t.Title, Key: t.Key, ID: string(t.ID), Name: t.Name}
	}
	return list
}
