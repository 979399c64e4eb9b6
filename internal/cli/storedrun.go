package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A storedRun is all that the journal has of one run.
type storedRun struct {
	journal.Summary
	info    journal.Info
	history record.History
	trace   *trace.Trace
	begins  string // how its id begins, as no other does
	now     time.Time

	tasks []storedTask // in the order written, then the coordinator's steps
	byID  map[task.ID]int
}

// A storedTask is what there is of one task, or of one step of the coordinator.
type storedTask struct {
	id          task.ID
	key         string
	title       string
	agent       string
	step        bool
	status      task.Status
	ended       record.TaskEnd      // how, if the run came to its end
	exchanges   []*record.AgentCall // in order, those of retellings among them
	interrupted []*record.CallStart // that a crash ended
	running     int                 // that are under way
}

// stored reads a run.
func (a *app) stored(ctx context.Context, j *journal.Journal, run string) (*storedRun, error) {
	run, err := meant(ctx, j, run)
	if err != nil {
		return nil, err
	}
	found, err := j.Find(ctx, run)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	loaded, err := j.Load(ctx, found.Run)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	t, err := j.Trace(ctx, found.Run)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	all, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	k := &storedRun{Summary: found, begins: shortIDs(all)[found.Run], info: loaded.Info, history: loaded.History, trace: t, now: a.now(), byID: map[task.ID]int{}}
	k.collect()
	return k, nil
}

// storedTask reads what there is of one task of a run, and not of the others.
func (a *app) storedTask(ctx context.Context, j *journal.Journal, run, name string) (*storedRun, error) {
	run, err := meant(ctx, j, run)
	if err != nil {
		return nil, err
	}
	found, err := findUncounted(ctx, j, run)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	t, loaded, err := j.LoadTask(ctx, found.Run, name)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	if _, err := t.Find(name); err != nil {
		return nil, &fault{kind: kindUsage, err: err}
	}
	k := &storedRun{Summary: found, info: loaded.Info, history: loaded.History, trace: t, now: a.now(), byID: map[task.ID]int{}}
	k.collect()
	return k, nil
}

// findUncounted finds a run as [journal.Journal.Find] does, but does not read the
// run to count the tasks of one that did not end.
func findUncounted(ctx context.Context, j *journal.Journal, run string) (journal.Summary, error) {
	most := 2 // a second one makes the prefix ambiguous
	if run == "" {
		most = 1
	}
	list, err := j.Newest(ctx, run, most)
	if err != nil || len(list) != 1 {
		return j.Find(ctx, run)
	}
	return list[0], nil
}

// removed is how a task stands that the spec had when the run began and has no
// more, or that the coordinator planned and then planned otherwise.
const removed task.Status = "removed"

// collect sorts what there is by tasks.
func (k *storedRun) collect() {
	for _, list := range [][]trace.Task{k.info.Tasks, k.trace.Tasks} {
		for i := range list {
			if t := &list[i]; t.Assignee != handoff.Coordinator {
				k.of(t.ID, t.Title, t.Assignee).key = t.Key
			}
		}
	}
	k.statuses()
	asked, begun := map[string]*record.CallStart{}, map[string]bool{}
	var sessions []string
	for i := range k.history.Log {
		switch e := &k.history.Log[i]; {
		case e.Asked != nil:
			if asked[e.Asked.Session] == nil {
				sessions = append(sessions, e.Asked.Session)
			}
			asked[e.Asked.Session] = e.Asked
		case e.Begun != nil:
			begun[e.Begun.Session] = true
		case e.Exchange != nil:
			x := e.Exchange
			delete(asked, x.Session)
			t := k.of(x.Task, x.Title, x.Agent)
			t.exchanges = append(t.exchanges, x)
		}
	}
	for _, session := range sessions {
		if open := asked[session]; open != nil && (!open.Ahead || begun[session]) {
			delete(asked, session)
			k.open(open)
		}
	}
	k.remove()
	slices.SortStableFunc(k.tasks, func(a, b storedTask) int { return cmp.Compare(a.rank(), b.rank()) })
	clear(k.byID)
	for i := range k.tasks {
		k.byID[k.tasks[i].id] = i
	}
}

// rank puts the steps of the coordinator behind the tasks, and before those what
// is no task any more.
func (t *storedTask) rank() int {
	switch {
	case t.step:
		return 2
	case t.status == removed:
		return 1
	}
	return 0
}

// task reports whether it is a task that the run has now.
func (t *storedTask) task() bool { return t.rank() == 0 }

// remove tells what is no task of the run any more from what is, and forgets it
// if it took nothing.
func (k *storedRun) remove() {
	now := map[task.ID]bool{}
	if end := k.history.End; end != nil {
		for i := range end.Tasks {
			now[end.Tasks[i].Task] = true
		}
	}
	for i := range k.info.Tasks {
		if k.history.End == nil {
			now[k.info.Tasks[i].ID] = true
		}
	}
	if len(now) == 0 { // of a plan that there is not, nothing is known
		return
	}
	k.tasks = slices.DeleteFunc(k.tasks, func(t storedTask) bool { return !t.step && !now[t.id] && t.attempts()+t.running == 0 })
	for i := range k.tasks {
		if t := &k.tasks[i]; !t.step && !now[t.id] {
			t.status, t.ended = removed, record.TaskEnd{}
		}
	}
}

// open takes in a prompt to which no answer is stored.
func (k *storedRun) open(asked *record.CallStart) {
	t := k.of(asked.Task, k.trace.Title(asked.Task), asked.Agent)
	last := len(k.history.Begins) - 1
	if k.Status == journal.Running && (last < 0 || !asked.Time.Before(k.history.Begins[last].Time)) {
		t.running++
		return
	}
	t.interrupted = append(t.interrupted, asked)
}

// of returns a task, which it makes if it is new.
func (k *storedRun) of(id task.ID, title, agent string) *storedTask {
	i, ok := k.byID[id]
	if !ok {
		i = len(k.tasks)
		k.byID[id] = i
		k.tasks = append(k.tasks, storedTask{id: id, title: cmp.Or(title, string(id)), agent: agent, step: agent == handoff.Coordinator, status: task.Pending})
	}
	t := &k.tasks[i]
	t.agent = cmp.Or(t.agent, agent)
	return t
}

// statuses takes what became of each task from the end of the run, or from its events.
func (k *storedRun) statuses() {
	if k.history.End != nil {
		for _, e := range k.history.End.Tasks {
			t := k.of(e.Task, e.Title, e.Agent)
			t.status, t.ended = e.Status, e
		}
		return
	}
	for i := range k.trace.Events {
		e := &k.trace.Events[i]
		at, known := k.byID[e.Task]
		if !known {
			continue
		}
		switch t := &k.tasks[at]; e.Type {
		case event.TaskStart:
			t.status = task.InProgress
		case event.TaskComplete:
			t.status = task.Completed
		case event.Error, event.TaskSkipped:
			t.status = task.Failed
			if e.Type == event.TaskSkipped {
				t.status = task.Skipped
			}
			t.ended = record.TaskEnd{Reason: e.Message, Code: e.Code, Root: e.Root}
		}
	}
}

// find returns the task that a name means, or the step of the coordinator.
func (k *storedRun) find(name string) (task.ID, error) {
	t, err := k.trace.Find(name)
	return t.ID, err
}

// answer is the exchange whose answer is the result; nil if there is none.
func (t *storedTask) answer() *record.AgentCall {
	for _, x := range slices.Backward(t.exchanges) {
		if x.Part == "" && x.Completed() {
			return x
		}
	}
	return nil
}

// attempts counts those that ended, in any way.
func (t *storedTask) attempts() int {
	n := len(t.interrupted)
	for _, x := range t.exchanges {
		if x.Part == "" {
			n++
		}
	}
	return n
}

// usage sums what was paid for a task; of what was interrupted it is what the
// prompts had, a fourth of their bytes.
func (t *storedTask) usage() (u llm.Usage) {
	for _, x := range t.exchanges {
		u = u.Add(x.Usage())
	}
	for _, asked := range t.interrupted {
		u.InputTokens += estimated(asked)
	}
	return u
}

// estimated is how many tokens a prompt has that nobody counted.
func estimated(asked *record.CallStart) int {
	return gate.Tokens(asked.Bytes)
}

// took returns when the work on a task began and ended.
func (t *storedTask) took() (start, end time.Time) {
	for _, asked := range t.interrupted {
		if start.IsZero() || asked.Time.Before(start) {
			start = asked.Time
		}
	}
	for _, x := range t.exchanges {
		if start.IsZero() || x.Start.Before(start) {
			start = x.Start
		}
		if x.End.After(end) {
			end = x.End
		}
	}
	return start, end
}

// A readable is a result as whoever the run was for may read it now.
type readable struct {
	text       string
	structured string // canonical JSON; empty without a schema
	label      label.Classification
	hidden     bool // the text says why there is none
}

// withheldText reports whether the text for a reader says that the result is
// withheld, and nothing else.
func withheldText(text string) bool {
	return strings.HasPrefix(text, "[withheld: ") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}

// read returns the result of an exchange that completed. Nothing above the
// clearance of whom the run was for is in it, nothing that cannot be decrypted,
// has expired since or is not what it was.
func (k *storedRun) read(x *record.AgentCall) readable {
	if x.Result == nil || x.Missing != "" {
		level := label.Secret
		return readable{text: "[withheld: " + level.String() + "]", label: level, hidden: true}
	}
	r := readable{text: cmp.Or(x.Result.Text, string(x.Result.JSON)), structured: string(x.Result.JSON), label: x.Result.Classification}
	if x.Shown != nil {
		r.text, r.structured, r.hidden = x.Shown.Text, x.Shown.Structured, withheldText(x.Shown.Text)
	}
	e, err := x.Result.Envelope()
	switch {
	case err != nil || e.Genuine() != nil:
		r.text, r.structured, r.hidden = "[withheld: it is not what was stored]", "", true
	case !e.ExpiresAt().IsZero() && !k.now.Before(e.ExpiresAt()):
		r.text, r.structured, r.hidden = "[withheld: expired]", "", true
	}
	return r
}

// asked is how the run was asked for; empty if that is not known.
func (k *storedRun) asked() (v invocation) {
	_ = json.Unmarshal(k.info.Invocation, &v) // another program made the run
	return v
}

// because says why a task has no result: of one that was taken down by another, which.
func (k *storedRun) because(t *storedTask) string {
	if root := t.ended.Root; root != "" && root != t.id {
		return fmt.Sprintf("because %q %s", k.trace.Title(root), cmp.Or(k.statusOf(root), "failed"))
	}
	if why := aborted[k.Status]; why != "" && t.status == task.Skipped && withheldText(t.ended.Reason) {
		return why // in the words of the runtime, of which nothing is secret
	}
	return t.ended.Reason
}

// aborted says why what had not begun was skipped, by the status of the run.
var aborted = map[string]string{
	string(team.StatusCanceled): "the run was cancelled",
	string(team.StatusTimeout):  "the time of the run was over",
	string(team.StatusBudget):   "the budget was spent",
}

// statusOf is the status of a task; empty if there is no such task.
func (k *storedRun) statusOf(id task.ID) string {
	i, ok := k.byID[id]
	if !ok {
		return ""
	}
	if status := k.tasks[i].status; status == task.Skipped {
		return "was skipped"
	}
	return "failed"
}

// title is a run as the line above something of it names it.
func (k *storedRun) title() string { return prefixed(k.Name) + "run " + cleanLine(k.Run) }

// words of a status, for people.
func statusText(s task.Status) string { return strings.ReplaceAll(string(s), "_", " ") }
