package progress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A tracker follows a run by its events. It has a row for each task, in the order of the spec, and
// one for each step of the coordinator, when it began.
type tracker struct {
	start time.Time
	known map[string]bool // warnings that were printed before the run
	cause func() error    // why the run is being ended; nil otherwise

	mu       sync.Mutex // guards what follows; callers of take hold it
	rows     []row
	byKey    map[string]int
	begun    int // rows
	ended    int // rows
	outcomes record.Outcomes
	total    int
	planned  bool   // the tasks are known
	over     bool   // the run ended
	goal     bool   // the coordinator is to write an answer
	answer   bool   // the coordinator wrote it
	spent    string // the budget that ended the run, such as "token budget"; empty if none did
	usage    llm.Usage
	partial  bool      // whether the tokens of any row are
	limited  time.Time // until when an endpoint accepts no call
	commands
	instances
}

// commands is what commands to the run have changed for all tasks.
type commands struct {
	paused   bool
	canceled string // who canceled the run, and why; empty if it was not canceled
}

// take updates the state for a command.
func (c *commands) take(e event.Event) {
	switch kind := steer.Kind(e.Code); {
	case kind == steer.Pause, kind == steer.Resume:
		c.paused = kind == steer.Pause
	case kind == steer.Cancel && e.Task == "":
		c.canceled = steered(e)
	}
}

// newTracker returns the state of a run before its first event. The rows of a goal are added when its
// tasks are planned.
func newTracker(plan *engine.Plan, start time.Time, cause func() error) *tracker {
	t := &tracker{start: start, cause: cause, known: map[string]bool{}, byKey: map[string]int{}, instances: newInstances(&engine.Plan{})}
	if plan == nil {
		return t
	}
	t.planned, t.goal = true, plan.Coordinator != nil
	for _, warning := range plan.Warnings {
		t.known[warning.Error()] = true
	}
	t.instances = newInstances(plan)
	for i := range plan.Tasks {
		if p := &plan.Tasks[i]; !hasInstances(plan, p) {
			t.total++
			r := t.add(string(p.ID), p.Title, p.Assignee)
			r.position, r.rounds = i, p.Rounds
		}
	}
	return t
}

// add adds a row below the others.
func (t *tracker) add(key, title, agent string) *row {
	t.byKey[key] = len(t.rows)
	t.rows = append(t.rows, row{title: terminal.CleanLine(title), agent: terminal.CleanLine(agent), position: math.MaxInt})
	return &t.rows[len(t.rows)-1]
}

// take updates the rows and counts for an event. It returns the event with the message to show, and
// its row; nil if it has none.
func (t *tracker) take(e event.Event) (event.Event, *row) {
	switch e.Type {
	case event.PlanReady:
		t.planned = true
		for i := range t.rows {
			t.rows[i].position = -1 // steps of the coordinator
		}
		for i, p := range e.Plan {
			if p.Written != "" {
				t.instances.plan(p, i)
				continue
			}
			t.total++
			t.add(string(p.Task), p.Title, p.Agent).position = i
		}
	case event.Budget:
		if !e.OwnBudget {
			t.spent = cmp.Or(t.spent, budgetName(e.Code))
		}
	case event.Limited:
		if until := e.Time.Add(e.Wait); until.After(t.limited) {
			t.limited = until
		}
	case event.Steered:
		t.commands.take(e)
	case event.RunComplete:
		t.over, t.paused = true, false
	}
	if ofCoordinator(e) {
		t.goal = true
		t.answer = e.Type == event.AgentComplete && e.Title == string(engine.StepSynthesis) && e.Status == task.Completed && e.Bytes > 0
	}
	e.Message = format.Readers(t.message(e))
	r := t.row(e)
	if r != nil {
		t.update(r, e)
	}
	return e, r
}

// message returns the message of an event. For a task that was skipped because the run ended, and a
// step of the coordinator that ended with it, it is the reason: the cause, a budget or a time limit.
func (t *tracker) message(e event.Event) string {
	skipped, cause := e.Type == event.TaskSkipped && e.Root == "", t.cause()
	switch {
	case cause != nil && (skipped || ofCoordinator(e) && e.Code == codes.Canceled):
		return cause.Error()
	case !skipped:
		return e.Message
	case e.Code == codes.Canceled:
		return "cancelled by the user"
	case t.canceled != "":
		return t.canceled
	case t.spent != "":
		return "the " + t.spent + " is spent"
	case e.Code == codes.Journal:
		return "the journal failed"
	}
	return "timed out"
}

// longestLine is how much of what a model writes a row keeps, in bytes. No terminal shows more.
const longestLine = 400

// stream updates a row with what its model writes.
func (t *tracker) stream(d event.Delta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := event.Event{Task: d.Task, Title: d.Title, Agent: d.Agent, Attempt: d.Attempt}
	key := string(d.Task)
	if ofCoordinator(e) {
		key = stepName(e)
	}
	i, ok := t.byKey[key]
	if !ok {
		return
	}
	r := &t.rows[i]
	if d.Reset {
		r.writes = ""
	}
	r.writes += d.Text
	if n := len(r.writes) - longestLine; n > 0 {
		r.writes = strings.ToValidUTF8(r.writes[n:], "")
	}
}

// row returns the row that an event is about. A step of the coordinator gets a row when it begins.
func (t *tracker) row(e event.Event) *row {
	key := string(e.Task)
	if ofCoordinator(e) {
		key = stepName(e)
	}
	if i, ok := t.byKey[key]; ok {
		return &t.rows[i]
	}
	if !begins(e) && (!ends(e) || ofCoordinator(e)) || t.isLeftOut(e) {
		return nil
	}
	r := t.add(key, stepName(e), e.Agent)
	if g := t.group(e); g != nil {
		t.total++
		g.rows = append(g.rows, len(t.rows)-1)
		r.position = g.position
		r.instance = true
		if r.round, r.item = roundOf(e.Title[len(g.title):]); r.item {
			g.list = true
		}
	}
	return r
}

// update updates a row for an event.
func (t *tracker) update(r *row, e event.Event) {
	if begins(e) {
		t.begun++
		r.begun = t.begun
	}
	r.conversation.update(e)
	if e.Type == event.TaskReady && r.ended > 0 {
		t.reopen(r)
	}
	switch e.Type {
	case event.TaskStart, event.AgentStart:
		if r.state != running {
			r.state, r.since = running, e.Time
		}
		if r.note, r.writes = "", ""; r.holder != "" && e.Agent == r.holder {
			r.note = "transferred to " + terminal.CleanLine(e.Agent)
		}
		if !ofCoordinator(e) { // the number of its events distinguishes steps
			r.attempt = e.Attempt
		}
	case event.AgentTransfer:
		r.holder = e.To
	case event.Message:
		r.messages.read++
	case event.MessageSent:
		r.messages.sent++
	case event.Warning:
		r.note = fmt.Sprintf("retry in %s: %s", format.Elapsed(e.Wait), terminal.CleanLine(e.Message))
	case event.TaskWaiting:
		r.state, r.reason = asked, whatWaits(e)
	case event.TaskRetry:
		r.holder = "" // the next attempt begins with the assignee
		r.state, r.since, r.reason = retrying, e.Time.Add(e.Wait), terminal.CleanLine(e.Message)
		r.messages = messageCounts{} // the next attempt gets them again, and sends anew
	}
	if ends(e) {
		t.end(r, e)
	}
}

// reopen takes back the end of a task that runs again.
func (t *tracker) reopen(r *row) {
	switch r.state {
	case done:
		t.outcomes.Completed--
	case failed:
		t.outcomes.Failed--
	case accepted:
		t.outcomes.Failed--
		t.outcomes.Accepted--
	case cancelled:
		t.outcomes.Cancelled--
	case notNeeded:
		t.outcomes.NotNeeded--
	default:
		t.outcomes.NotRun--
	}
	r.ended, r.state, r.reason, r.cached = 0, waiting, "", ""
}

// end updates a row for the event that ends it.
func (t *tracker) end(r *row, e event.Event) {
	t.ended++
	t.usage, t.partial = t.usage.Add(e.Usage()), t.partial || e.Partial
	r.ended, r.took, r.reason, r.state = t.ended, e.Duration, "", outcome(e, r)
	if !ofCoordinator(e) {
		t.outcomes.Add(e.Status, e.Root, r.begun > 0, e.Accepted)
	}
	switch {
	case r.state != done:
		r.reason = reason(e)
	case e.Reused != "":
		r.cached = "cached" + reusedFrom(e)
	}
}

// counts returns "3 of 7 tasks completed", or the state of a goal without tasks.
func (t *tracker) counts() string {
	total := t.total
	for _, g := range t.groups {
		total += g.unstarted()
	}
	text := format.OutcomeCounts(t.outcomes, format.Plural(total, "task"))
	switch {
	case t.planned && t.over && t.goal && !t.answer:
		text += ", no answer"
	case t.planned:
	case t.over:
		text = "no plan"
	default:
		text = "planning"
	}
	if t.spent != "" {
		text += ", " + t.spent + " spent"
	}
	if t.paused {
		text += ", paused"
	}
	return text
}

// running returns the titles of the tasks and steps that run, in the order in which they began.
func (t *tracker) running() (titles []string) {
	var rows []row
	for _, r := range t.rows {
		if r.state == running || r.state == retrying {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return a.begun - b.begun })
	for _, r := range rows {
		titles = append(titles, r.title)
	}
	return titles
}

// ofCoordinator reports whether an event is about a step of the coordinator.
func ofCoordinator(e event.Event) bool { return e.Agent == handoff.Coordinator }

// stepName returns what people know a task or a step by. Only digests are numbered, since there may be several.
func stepName(e event.Event) string {
	if ofCoordinator(e) && e.Title == string(engine.StepDigest) {
		return fmt.Sprintf("%s %d", e.Title, e.Attempt)
	}
	return cmp.Or(e.Name, e.Title)
}

// begins reports whether an event begins a task or a step.
func begins(e event.Event) bool {
	return e.Type == event.TaskStart || ofCoordinator(e) && e.Type == event.AgentStart
}

// ends reports whether an event ends a task or a step.
func ends(e event.Event) bool {
	switch e.Type {
	case event.TaskComplete, event.TaskSkipped, event.TaskNotNeeded, event.Error:
		return true
	}
	return ofCoordinator(e) && e.Type == event.AgentComplete
}
