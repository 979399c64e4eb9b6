package journals

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A StoredRun is all that the journal has about one run.
type StoredRun struct {
	journal.Summary
	Info    journal.Info
	History record.History // as its caller may see it
	Whole   record.History // all of it, for a run that repeats it
	Trace   *trace.Trace
	ShortID string // the shortest unique beginning of its ID; empty if only one task was loaded
	Now     time.Time

	Tasks []*StoredTask // in the order of the spec, then the steps of the coordinator
	ByID  map[task.ID]*StoredTask

	state *runstate.State
	above map[task.ID]bool // see IsAbove
}

// IsPart reports whether only one task was loaded.
func (k *StoredRun) IsPart() bool { return k.ShortID == "" }

// IsAbove reports whether a task read or made something that its caller may not see.
func (k *StoredRun) IsAbove(id task.ID) bool {
	if k.above == nil {
		k.above = map[task.ID]bool{}
		most := k.History.Clearance()
		learn := func(id task.ID, level label.Classification) { k.above[id] = k.above[id] || level > most }
		for i := range k.Trace.Prompts {
			learn(k.Trace.Prompts[i].Receipt.Task, k.Trace.Prompts[i].Receipt.Classification)
		}
		for i := range k.Trace.Handoffs {
			if h := &k.Trace.Handoffs[i]; h.Verdict == gate.Passed {
				learn(h.Task, h.Label.Join(h.Delivered))
			}
		}
		for _, t := range k.Tasks {
			for _, x := range t.Calls {
				if x.Result != nil {
					learn(t.ID, x.Result.Classification)
				}
				k.above[t.ID] = k.above[t.ID] || x.Missing != "" // it may have any label
			}
		}
	}
	return k.above[id]
}

// Load reads a run that was found, or only the task of it with a name, in the form for the user of the run.
func Load(ctx context.Context, con *console.Console, j *journal.Journal, run journal.Summary, name string) (*StoredRun, error) {
	if name != "" {
		t, loaded, err := j.LoadTask(ctx, run.Run, name)
		if err != nil {
			return nil, ReadError(ctx, err)
		}
		return NewStoredRun(run, t, loaded, con.Now()), nil
	}
	f, err := j.Follow(ctx, run.Run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	return LoadNow(ctx, con, j, f)
}

// LoadNow reads what was added to a run that is followed, and returns the run.
func LoadNow(ctx context.Context, con *console.Console, j *journal.Journal, f *journal.Follower) (*StoredRun, error) {
	t, loaded, err := f.Read(ctx)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	run, err := j.Find(ctx, loaded.Info.Run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	return newWholeRun(ctx, j, run, t, loaded, con.Now())
}

// newWholeRun returns a run that has its short ID.
func newWholeRun(ctx context.Context, j *journal.Journal, run journal.Summary, t *trace.Trace, loaded *journal.Stored, now time.Time) (*StoredRun, error) {
	all, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	k := NewStoredRun(run, t, loaded, now)
	k.ShortID = ShortIDs(all)[k.Run]
	return k, nil
}

// LoadOutline reads a run without its prompts, decisions and events if [StoredRun.Tasks] can be known without these,
// and else all of it. The trace of an outline is empty.
func LoadOutline(ctx context.Context, con *console.Console, j *journal.Journal, run journal.Summary) (*StoredRun, error) {
	if run.Ended.IsZero() { // its events say how far it is
		return Load(ctx, con, j, run, "")
	}
	loaded, err := j.Load(ctx, run.Run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	if !isOutlined(&loaded.History) {
		return Load(ctx, con, j, run, "")
	}
	return newWholeRun(ctx, j, run, new(trace.Trace), loaded, con.Now())
}

// isOutlined reports whether a history has all that is known of the tasks of its run. Events and decisions say which
// items have names, and what became of messages, children and transfers.
func isOutlined(h *record.History) bool {
	if h.End == nil {
		return false
	}
	for i := range h.End.Tasks {
		if t := h.End.Tasks[i].Title; naming.WithoutInstance(t) != t {
			return false
		}
	}
	return !slices.ContainsFunc(h.Log, func(e record.Entry) bool {
		return e.Sent != nil || e.ToolCall != nil && hasChild(e.ToolCall.Agent) || e.ToolResult != nil && e.ToolResult.TransferredTo != ""
	})
}

// NewStoredRun returns what a journal has about a run, in the form for the user of the run, at a time.
func NewStoredRun(run journal.Summary, t *trace.Trace, loaded *journal.Stored, now time.Time) *StoredRun {
	k := &StoredRun{Summary: run, Trace: t, Now: now, ByID: map[task.ID]*StoredTask{}}
	addKeyHints(loaded)
	k.Whole = loaded.History
	hideFromCaller(loaded)
	k.Info, k.History = loaded.Info, loaded.History
	k.collect()
	return k
}

// Removed is the status of a task that the spec no longer has, or that a later plan of the
// coordinator replaced.
const Removed task.Status = "removed"

// collect makes the tasks of what the state says of them.
func (k *StoredRun) collect() {
	k.state = runstate.Of(&k.History)
	k.state.Live = k.Live()
	for _, list := range [][]trace.Task{k.Info.Tasks, k.Trace.Tasks} {
		for i := range list {
			if t := &list[i]; t.Assignee != handoff.Coordinator {
				stored := k.taskOf(k.state.Task(t.ID, t.Title, t.Assignee))
				stored.Key, stored.Name = t.Key, t.Name
			}
		}
	}
	if end := k.History.End; end != nil {
		for i := range end.Tasks {
			k.TaskOf(end.Tasks[i].Task)
		}
	}
	for _, t := range k.state.Tasks() {
		k.taskOf(t)
	}
	k.markRemoved()
	slices.SortStableFunc(k.Tasks, func(a, b *StoredTask) int { return cmp.Compare(a.rank(), b.rank()) })
}

// taskOf returns the task that a task of the state is, which it adds if it is new.
func (k *StoredRun) taskOf(of *runstate.Task) *StoredTask {
	t := k.ByID[of.ID]
	if t != nil {
		return t
	}
	t = &StoredTask{
		ID: of.ID, Title: cmp.Or(of.Title, string(of.ID)), Agent: of.Agent, Step: of.Step, Status: k.state.Status(of), Ended: k.state.EndOf(of),
		Calls: of.Answered(), Interrupted: k.state.Interrupted(of), Running: k.state.Running(of), attempts: k.state.Attempts(of), Questions: k.state.QuestionsOf(of), of: of,
	}
	if t.Status == task.InProgress && !k.Live() && (k.History.End == nil || t.Step) {
		t.Status = journal.TaskInterrupted
	}
	k.ByID[t.ID], k.Tasks = t, append(k.Tasks, t)
	return t
}

// Title returns what people know a task by: its name, else its title; for one that the run does not have, its ID.
func (k *StoredRun) Title(id task.ID) string {
	if t := k.ByID[id]; t != nil {
		return cmp.Or(t.Name, t.Title)
	}
	return k.Trace.Title(id)
}

// TaskOf returns a task of the run.
func (k *StoredRun) TaskOf(id task.ID) *StoredTask {
	return k.taskOf(k.state.Task(id, k.Title(id), ""))
}

// FirstCall returns the model call that answered the prompt of x. In the conversation of an attempt or
// of a child, it is that of the first turn, since x has the call that answered last.
func (k *StoredRun) FirstCall(x *record.AgentCall) llm.CallInfo {
	if t := k.state.Find(x.Task); t != nil && x.Part == record.ChildOf(x.Part) {
		if first := t.FirstTurn(x.Session); first != nil {
			return first.Call
		}
	}
	return x.Call
}

// markRemoved marks the tasks that the run no longer has, and deletes those without an attempt.
func (k *StoredRun) markRemoved() {
	k.Tasks = slices.DeleteFunc(k.Tasks, func(t *StoredTask) bool {
		if t.Step || k.state.Has(t.of) {
			return false
		}
		t.Status, t.Ended = Removed, record.TaskEnd{}
		if t.Attempts()+t.Running > 0 {
			return false
		}
		delete(k.ByID, t.ID)
		return true
	})
}

// Tasks returns the tasks that a run began with. For a goal they are the tasks that the
// coordinator planned, which only the record lists.
func Tasks(ctx context.Context, j *journal.Journal, info *journal.Info) ([]trace.Task, error) {
	if len(info.Tasks) > 0 {
		return info.Tasks, nil
	}
	t, err := j.Trace(ctx, info.Run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	return slices.DeleteFunc(t.Tasks, func(t trace.Task) bool { return t.Assignee == handoff.Coordinator }), nil
}

// FindTask returns the task, or the step of the coordinator, that a name means.
func (k *StoredRun) FindTask(name string) (task.ID, error) {
	t, err := k.Trace.Find(name)
	if err != nil {
		err = &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	return t.ID, err
}

// Result returns the result of a completed call as the user of the run may read it now: it is
// withheld above the user's clearance, and if it cannot be decrypted, has expired or was altered.
func (k *StoredRun) Result(x *record.AgentCall) StoredResult {
	if x.Result == nil || x.Missing != "" {
		return withheldResult(label.Secret, label.Secret.String())
	}
	level := x.Result.Classification
	e, err := x.Result.Envelope()
	switch {
	case err != nil || e.Genuine() != nil:
		return withheldResult(level, "it is not what was stored")
	case !e.ExpiresAt().IsZero() && !k.Now.Before(e.ExpiresAt()):
		return withheldResult(level, "expired")
	case x.Shown != nil:
		return StoredResult{x.Shown.Text, x.Shown.Structured, level, IsWithheld(x.Shown.Text)}
	}
	structured := string(x.Result.JSON)
	return StoredResult{cmp.Or(x.Result.Text, structured), structured, level, false}
}

// withheldResult returns a result that cannot be shown, with the reason in place of its text.
func withheldResult(level label.Classification, why string) StoredResult {
	return StoredResult{Text: "[withheld: " + why + "]", Label: level, Hidden: true}
}

// WhyNoResult says why a task has no result, such as the task whose failure is the reason.
func (k *StoredRun) WhyNoResult(t *StoredTask) string {
	if t.Status == task.NotNeeded {
		return format.WhyNotNeeded(t.Ended.Reason)
	}
	if root := t.Ended.Root; root != "" && root != t.ID {
		how := "failed"
		if by := k.ByID[root]; by != nil && by.Status == task.Skipped {
			how = "was skipped"
		}
		return fmt.Sprintf("because %q %s", k.Title(root), how)
	}
	if why := abortReasons[k.Status]; why != "" && t.Status == task.Skipped && IsWithheld(t.Ended.Reason) {
		return why // these words contain nothing secret
	}
	return t.Ended.Reason
}

// abortReasons says why tasks that had not begun were skipped, by the status of the run.
var abortReasons = map[string]string{
	string(engine.StatusCanceled): "the run was cancelled",
	string(engine.StatusTimeout):  "the run timed out",
	string(engine.StatusBudget):   "the budget was spent",
}

// Heading names a run, with the name of its team.
func Heading(name, run string) string {
	return format.NamePrefix(name) + "run " + terminal.CleanLine(run)
}
