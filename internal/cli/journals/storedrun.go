package journals

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
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

	firstTurns map[string]*record.AgentCall // by session
	childEnds  map[string]*record.AgentCall // results of children, by the call that spawned them
	agents     map[string]string            // by session
	waits      map[task.ID][]StoredWait
	above      map[task.ID]bool // see IsAbove
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

// Load reads a run that was found, or only one task of it.
func Load(ctx context.Context, con *console.Console, j *journal.Journal, run journal.Summary, name string) (*StoredRun, error) {
	k, err := read(ctx, con, j, run, name)
	if err == nil {
		k.collect()
	}
	return k, err
}

// read reads a run or one task of it, in the form for the user of the run.
func read(ctx context.Context, con *console.Console, j *journal.Journal, run journal.Summary, name string) (*StoredRun, error) {
	k := &StoredRun{Summary: run, Now: con.Now(), ByID: map[task.ID]*StoredTask{}}
	read := k.readRun
	if name != "" {
		read = func(ctx context.Context, j *journal.Journal) error { return k.readTask(ctx, j, name) }
	}
	if err := read(ctx, j); err != nil {
		return nil, ReadError(ctx, err)
	}
	return k, nil
}

// readRun reads the whole run, and counts its tasks.
func (k *StoredRun) readRun(ctx context.Context, j *journal.Journal) error {
	t, loaded, err := j.LoadTrace(ctx, k.Run)
	if err != nil {
		return err
	}
	addKeyHints(loaded)
	k.Whole = loaded.History
	hideFromCaller(loaded)
	k.Info, k.History, k.Trace = loaded.Info, loaded.History, t
	if k.Summary, err = j.Find(ctx, k.Run); err != nil {
		return err
	}
	all, err := j.Newest(ctx, "", math.MaxInt)
	k.ShortID = ShortIDs(all)[k.Run]
	return err
}

// readTask reads one task of the run.
func (k *StoredRun) readTask(ctx context.Context, j *journal.Journal, name string) error {
	t, loaded, err := j.LoadTask(ctx, k.Run, name)
	if err != nil {
		return err
	}
	addKeyHints(loaded)
	k.Whole = loaded.History
	hideFromCaller(loaded)
	k.Info, k.History, k.Trace = loaded.Info, loaded.History, t
	return nil
}

// Removed is the status of a task that the spec no longer has, or that a later plan of the
// coordinator replaced.
const Removed task.Status = "removed"

// collect sorts the records by task.
func (k *StoredRun) collect() {
	for _, list := range [][]trace.Task{k.Info.Tasks, k.Trace.Tasks} {
		for i := range list {
			if t := &list[i]; t.Assignee != handoff.Coordinator {
				stored := k.TaskOf(t.ID, t.Title, t.Assignee)
				stored.Key, stored.Name = t.Key, t.Name
			}
		}
	}
	k.statuses()
	collectCalls(k)
	for _, q := range (&journal.Stored{History: k.History}).Questions() {
		t := k.TaskOf(q.Task, q.Title, q.Agent)
		t.Questions, t.Step = append(t.Questions, q), t.Step || strings.HasPrefix(string(q.Task), handoff.Coordinator+"/")
	}
	k.collectChildren()
	k.collectWaits()
	k.steps()
	k.markRemoved()
	slices.SortStableFunc(k.Tasks, func(a, b *StoredTask) int { return cmp.Compare(a.rank(), b.rank()) })
}

// collectCalls gives each task its model calls, transfers and files, in the order of the journal. A call
// that has not ended comes last.
func collectCalls(k *StoredRun) {
	k.firstTurns, k.childEnds, k.agents = map[string]*record.AgentCall{}, map[string]*record.AgentCall{}, map[string]string{}
	unended := map[string]*record.AgentCall{} // by session: first turns of attempts that were interrupted later
	calls, begun := map[string]*record.CallStart{}, map[string]bool{}
	var sessions []string
	for i := range k.History.Log {
		switch e := &k.History.Log[i]; {
		case e.Asked != nil:
			if calls[e.Asked.Session] == nil {
				sessions = append(sessions, e.Asked.Session)
			}
			calls[e.Asked.Session], k.agents[e.Asked.Session] = e.Asked, e.Asked.Agent
		case e.Begun != nil:
			begun[e.Begun.Session] = true
		case e.Turn != nil:
			k.firstTurns[e.Turn.Session], unended[e.Turn.Session] = e.Turn, e.Turn
			delete(calls, e.Turn.Session)
		case e.Rejected != nil:
			k.firstTurns[e.Rejected.Session], unended[e.Rejected.Session] = e.Rejected, e.Rejected
			delete(calls, e.Rejected.Session)
		case e.ToolResult != nil && e.ToolResult.TransferredTo != "":
			if t := k.ByID[e.ToolResult.Task]; t != nil {
				t.transfers = append(t.transfers, e.ToolResult)
			}
		case e.Files != nil && !record.IsInner(e.Files.Session):
			t := k.TaskOf(e.Files.Task, e.Files.Title, e.Files.Agent)
			t.files = append(t.files, e.Files)
		case e.Exchange != nil:
			x := e.Exchange
			delete(calls, x.Session)
			delete(unended, x.Session)
			agent := x.Agent
			if record.ChildOf(x.Session) != "" { // of the agent that works in the attempt of another one
				agent = ""
			}
			t := k.TaskOf(x.Task, x.Title, agent)
			t.Calls = append(t.Calls, x)
		}
	}
	for _, session := range sessions {
		if x := unended[session]; x != nil {
			t := k.TaskOf(x.Task, x.Title, x.Agent)
			t.Calls = append(t.Calls, x)
		}
		if call := calls[session]; call != nil && (!call.Ahead || begun[session]) {
			delete(calls, session)
			k.addOpen(call)
		}
	}
}

// FirstCall returns the model call that answered the prompt of x. In the conversation of an attempt or
// of a child, it is that of the first turn, since x has the call that answered last.
func (k *StoredRun) FirstCall(x *record.AgentCall) llm.CallInfo {
	if first := k.firstTurns[x.Session]; first != nil && x.Part == record.ChildOf(x.Part) {
		return first.Call
	}
	return x.Call
}

// steps sets how each step of the coordinator ended, which no entry of the run says.
func (k *StoredRun) steps() {
	for _, t := range k.Tasks {
		if !t.Step {
			continue
		}
		last := len(t.Calls) - 1
		switch {
		case t.Accepted() != nil, len(t.Questions) > 0 && !slices.ContainsFunc(t.Questions, (*journal.Question).Open):
			t.Status = task.Completed
		case t.Running > 0 || last < 0:
			t.Status = workingIn(k)
		default:
			t.Status = task.Failed
		}
		if t.Status != task.Completed && last >= 0 {
			t.Ended = record.TaskEnd{Code: t.Calls[last].Code, Reason: t.Calls[last].Error}
		}
	}
}

// markRemoved marks the tasks that the run no longer has, and deletes those without an attempt.
func (k *StoredRun) markRemoved() {
	current := map[task.ID]bool{}
	if end := k.History.End; end != nil {
		for i := range end.Tasks {
			current[end.Tasks[i].Task] = true
		}
	} else {
		for i := range k.Info.Tasks {
			current[k.Info.Tasks[i].ID] = true
		}
	}
	if len(current) == 0 { // the tasks of a goal that has no plan are unknown
		return
	}
	k.Tasks = slices.DeleteFunc(k.Tasks, func(t *StoredTask) bool {
		if t.Step || current[t.ID] {
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

// addOpen adds a prompt without a stored answer to its task.
func (k *StoredRun) addOpen(call *record.CallStart) {
	t := k.TaskOf(call.Task, k.Trace.Title(call.Task), call.Agent)
	last := len(k.History.Begins) - 1
	if k.Live() && (last < 0 || !call.Time.Before(k.History.Begins[last].Time)) {
		t.Running++
		return
	}
	t.Interrupted = append(t.Interrupted, call)
}

// TaskOf returns a task, which it adds if it is new.
func (k *StoredRun) TaskOf(id task.ID, title, agent string) *StoredTask {
	t := k.ByID[id]
	if t == nil {
		t = &StoredTask{ID: id, Title: cmp.Or(title, string(id)), Step: agent == handoff.Coordinator, Status: task.Pending}
		k.ByID[id], k.Tasks = t, append(k.Tasks, t)
	}
	t.Agent = cmp.Or(t.Agent, agent)
	return t
}

// statuses sets how each task ended, from the end of the run or from its events.
func (k *StoredRun) statuses() {
	if k.History.End != nil {
		for _, e := range k.History.End.Tasks {
			t := k.TaskOf(e.Task, e.Title, e.Agent)
			t.Status, t.Ended = e.Status, e
		}
		return
	}
	for _, e := range k.Trace.Events {
		t, status := k.ByID[e.Task], record.StatusAfter(e.Type)
		if t != nil && e.Type == event.TaskReady && t.Status.Terminal() {
			status = task.Pending // it runs again
		}
		if t == nil || status == "" {
			continue
		}
		t.Status, t.Ended = status, record.TaskEnd{}
		if status.Terminal() && status != task.Completed {
			t.Ended = record.TaskEnd{Reason: e.Message, Code: e.Code, Root: e.Root}
		}
	}
	for _, t := range k.Tasks {
		if t.Status == task.InProgress {
			t.Status = workingIn(k)
		}
	}
}

// workingIn returns the status of what an event of a run began and none ended.
func workingIn(k *StoredRun) task.Status {
	if k.Live() {
		return task.InProgress
	}
	return journal.TaskInterrupted
}

// FindNotNeeded sets the status of a pending task that was not needed: the end of a run does not list the
// rounds and items that there were not.
func (k *StoredRun) FindNotNeeded(t *StoredTask) {
	for _, e := range slices.Backward(k.Trace.Events) {
		if t.Status != task.Pending || e.Task != t.ID || record.StatusAfter(e.Type) == "" {
			continue
		}
		if e.Type == event.TaskNotNeeded {
			t.Status, t.Ended = task.NotNeeded, record.TaskEnd{Task: t.ID, Title: t.Title, Agent: t.Agent, Status: task.NotNeeded, Reason: e.Message, Root: e.Root}
		}
		return
	}
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
		return fmt.Sprintf("because %q %s", k.Trace.Title(root), how)
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
