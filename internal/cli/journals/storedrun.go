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
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
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

	State *runstate.State  // what the history says
	Tasks []*runstate.Task // in the order of the spec, then the steps of the coordinator
	keys  map[task.ID]string

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
			for _, x := range t.Answered() {
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
	all, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	t, loaded, err := f.Read(ctx)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	return newWholeRun(ctx, all, t, loaded, con.Now())
}

// newWholeRun returns a run that has its short ID, given the runs of its journal. They are read before the run: a later
// summary could say that the run has ended, without its end and its answer.
func newWholeRun(ctx context.Context, all []journal.Summary, t *trace.Trace, loaded *journal.Stored, now time.Time) (*StoredRun, error) {
	i := slices.IndexFunc(all, func(s journal.Summary) bool { return s.Run == loaded.Info.Run })
	if i < 0 {
		return nil, ReadError(ctx, &journal.UnknownRunError{Prefix: loaded.Info.Run}) // removed meanwhile
	}
	k := NewStoredRun(all[i], t, loaded, now)
	k.Summary.Add(k.State)
	k.ShortID = ShortIDs(all)[k.Run]
	return k, nil
}

// LoadOutline reads a run without its prompts, decisions and events if [StoredRun.Tasks] can be known without these,
// and else all of it. The trace of an outline is empty.
func LoadOutline(ctx context.Context, con *console.Console, j *journal.Journal, run journal.Summary) (*StoredRun, error) {
	all, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	loaded, err := j.Load(ctx, run.Run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	if !isOutlined(&loaded.History) {
		return Load(ctx, con, j, run, "")
	}
	return newWholeRun(ctx, all, new(trace.Trace), loaded, con.Now())
}

// isOutlined reports whether a history has all that is known of the tasks of its run. Other events and decisions say what
// became of messages, children and transfers.
func isOutlined(h *record.History) bool {
	return h.HasTaskEvents() && !slices.ContainsFunc(h.Log, func(e record.Entry) bool {
		return e.Sent != nil || e.ToolCall != nil && HasChild(e.ToolCall.Agent) || e.ToolResult != nil && e.ToolResult.TransferredTo != ""
	})
}

// HasChild reports whether calls of a tool have children.
func HasChild(reader string) bool {
	return reader == gate.ToolReader(plan.SpawnAgent) || reader == gate.ToolReader(plan.DelegateToAgent)
}

// NewStoredRun returns what a journal has about a run, in the form for the user of the run, at a time.
func NewStoredRun(run journal.Summary, t *trace.Trace, loaded *journal.Stored, now time.Time) *StoredRun {
	k := &StoredRun{Summary: run, Trace: t, Now: now, keys: map[task.ID]string{}}
	addKeyHints(loaded)
	k.Whole = loaded.History
	hideFromCaller(loaded)
	k.Info, k.History = loaded.Info, loaded.History
	k.collect()
	return k
}

// collect folds the history, and finds the tasks that there are to show.
func (k *StoredRun) collect() {
	k.State = runstate.Of(&k.History)
	k.State.Live = k.Live()
	if !k.Trace.Partial { // else the trace also knows the names of other tasks
		k.Trace.State = k.State
	}
	var order []task.ID
	if n := len(k.History.Begins); n > 0 {
		for _, t := range k.History.Begins[n-1].Tasks {
			k.keys[t.Task], order = t.Key, append(order, t.Task)
		}
	}
	for _, t := range k.State.Planned() {
		order = append(order, t.ID)
	}
	k.Tasks = k.State.Listed(order)
	for _, t := range k.Tasks {
		t.Title = cmp.Or(t.Title, string(t.ID))
	}
}

// Find returns a task of the run, or a step of the coordinator; nil if there is nothing to show of it.
func (k *StoredRun) Find(id task.ID) *runstate.Task {
	if t := k.State.Find(id); t != nil && k.State.IsListed(t) {
		return t
	}
	return nil
}

// Key returns the key of a task; empty if it has none.
func (k *StoredRun) Key(id task.ID) string { return k.keys[id] }

// Title returns what people know a task by: its name, else its title; for one that the run does not have, its ID.
func (k *StoredRun) Title(id task.ID) string { return k.Trace.Title(id) }

// Tasks returns the tasks that the last process of a run began with. For a goal they are the tasks that the
// coordinator planned, which only the record lists.
func Tasks(ctx context.Context, j *journal.Journal, run string, begins []record.RunStart) ([]trace.Task, error) {
	if n := len(begins); n > 0 && len(begins[n-1].Tasks) > 0 {
		return trace.Planned(begins[n-1].Tasks), nil
	}
	t, err := j.Trace(ctx, run)
	if err != nil {
		return nil, ReadError(ctx, err)
	}
	return slices.DeleteFunc(t.Tasks(), func(t trace.Task) bool { return t.Assignee == handoff.Coordinator }), nil
}

// FindTask returns the task, or the step of the coordinator, that a name means.
func (k *StoredRun) FindTask(name string) (*runstate.Task, error) {
	t, err := k.Trace.Find(name)
	if err != nil {
		return nil, &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	return k.State.Task(t.ID, cmp.Or(t.Title, string(t.ID)), ""), nil
}

// WhyNoResult says why a task has no result, such as the task whose failure is the reason.
func (k *StoredRun) WhyNoResult(t *runstate.Task) string {
	status, ended := k.State.Shown(t), k.State.EndOf(t)
	if status == task.NotNeeded {
		return format.WhyNotNeeded(ended.Reason)
	}
	if root := ended.Root; root != "" && root != t.ID {
		how := "failed"
		if status == task.Skipped { // as what depends on a task that is skipped
			how = "was skipped"
		}
		return fmt.Sprintf("because %q %s", k.Title(root), how)
	}
	if why := abortReasons[k.Status]; why != "" && status == task.Skipped && trace.IsWithheld(ended.Reason) {
		return why // these words contain nothing secret
	}
	return ended.Reason
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
