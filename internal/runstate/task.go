package runstate

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A Task is what is known of one task, or of one step of the coordinator.
type Task struct {
	ID    task.ID
	Title string
	Name  string // of an instance, by the keys of its items
	Agent string
	Step  bool

	Calls    []*record.AgentCall // that ended, in order: attempts, and parts of them
	Tools    []*record.CallStart // calls of tools, the last of each session
	Results  []*record.AgentCall // of calls of tools, also of those that began again
	Files    []*record.AgentCall // output files of attempts
	Started  bool                // work on it began, in whichever process
	Canceled bool                // a command canceled it
	Active   time.Time           // when a call began or ended last, or a person was asked or answered
	Place    int                 // of its last attempt among the entries of the run, from 1; zero if none ended

	processes []int       // in which each of Calls ended, from 1
	status    task.Status // by its events
	process   int         // of the last of these events, from 1; zero if there was none
	end       record.TaskEnd
	open      []openCall
	turns     []firstTurn
	agents    []agentOf
	working   []string // sessions of calls of tools that began and have no result since
	replies   []Wait   // the last for the reply to each handoff
	questions
}

// An openCall is a call of an agent that has begun and has no recorded end.
type openCall struct {
	*record.CallStart
	process int  // that began it, from 1
	waits   bool // it is prefetched, and did not begin so far
}

// A firstTurn is what an agent said in the first turn of an attempt or a child that has more, or an answer that it had to
// correct.
type firstTurn struct {
	call    *record.AgentCall
	process int // in which it was said, from 1

	ended     bool // with its session, whose last call has what all of it took
	continued bool // by a later attempt, with which it is one; what it took counts beside that
}

// An agentOf says which agent works in a session.
type agentOf struct{ session, agent string }

// activeAt notes that something happened at a time.
func (t *Task) activeAt(at time.Time) { t.Active = later(t.Active, at) }

// asked adds a call that is about to begin.
func (t *Task) asked(c *record.CallStart, process int) {
	if !c.Ahead {
		t.activeAt(c.Time)
	}
	t.dropOpen(c.Session)
	t.open = append(t.open, openCall{c, process, c.Ahead})
	t.agents = append(t.agents, agentOf{c.Session, c.Agent})
}

// begun notes that a prefetched call begins.
func (t *Task) begun(b *record.PrefetchStart) {
	for i := range t.open {
		if t.open[i].Session == b.Session {
			t.open[i].waits = false
			t.activeAt(b.Time)
		}
	}
}

// dropOpen removes a call of which more is known by now.
func (t *Task) dropOpen(session string) {
	t.open = slices.DeleteFunc(t.open, func(c openCall) bool { return c.Session == session })
}

// turn adds what an agent said in a first turn.
func (t *Task) turn(x *record.AgentCall, process int) {
	t.activeAt(x.End)
	t.dropOpen(x.Session)
	t.turns = append(slices.DeleteFunc(t.turns, func(of firstTurn) bool { return of.call.Session == x.Session }), firstTurn{call: x, process: process})
}

// exchange adds the end of an attempt, or of a part of it.
func (t *Task) exchange(x *record.AgentCall, place, process int) {
	t.activeAt(x.End)
	t.dropOpen(x.Session)
	for i := range t.turns {
		t.turns[i].ended = t.turns[i].ended || t.turns[i].call.Session == x.Session
	}
	t.Calls, t.processes = append(t.Calls, x), append(t.processes, process)
	if x.Part == "" {
		t.Place = place
		t.attemptEnded(x)
		if x.Completed() {
			t.Canceled = false
		}
	}
}

// toolCall adds a call of a tool that is about to begin.
func (t *Task) toolCall(c *record.CallStart) {
	t.activeAt(c.Time)
	t.continueAttempt(c.Attempt)
	t.called(c.Session)
	t.working = append(t.working, c.Session)
	t.Tools = append(slices.DeleteFunc(t.Tools, func(of *record.CallStart) bool { return of.Session == c.Session }), c)
}

// toolResult adds the result of a call of a tool.
func (t *Task) toolResult(x *record.AgentCall) {
	t.activeAt(x.End)
	t.continueAttempt(x.Attempt)
	if t.called(x.Session); x.Code == codes.ReplyPending {
		t.waiting = x.Attempt
	}
	t.Results = append(t.Results, x)
	t.working = slices.DeleteFunc(t.working, func(session string) bool { return session == x.Session })
}

// continueAttempt notes that an attempt is at work. If the one before waited for an approval or a reply, this one continues it, and
// both are one attempt.
func (t *Task) continueAttempt(attempt int) {
	for i := range t.turns {
		if of := &t.turns[i]; t.waiting < attempt && of.call.Attempt == t.waiting {
			of.continued = true
		}
	}
}

// change adds what an event says of the task.
func (t *Task) change(e *record.TaskChange, process int) {
	if e.Name != "" {
		t.Name = e.Name
	}
	if e.Type == event.ReplyWait || e.Type == event.ReplyEnd {
		t.reply(e, process)
		return
	}
	now := record.StatusAfter(e.Type)
	if e.Type == event.TaskReady {
		now = task.Pending
	}
	if now == "" || now == task.Pending && t.process == process && !t.status.Terminal() {
		return
	}
	t.Started = t.Started || now == task.InProgress
	t.status, t.process, t.end = now, process, record.TaskEnd{}
	if now.Terminal() {
		t.end = record.TaskEnd{Task: t.ID, Title: t.Title, Agent: t.Agent, Status: now}
		if now != task.Completed {
			t.end.Reason, t.end.Code, t.end.Root, t.end.Accepted = e.Message, e.Code, e.Root, e.Accepted
		}
	}
}

// A Reply is the reply to a handoff, for which a task waits.
type Reply struct {
	ID    string `json:"id"`    // of the handoff
	Agent string `json:"agent"` // who is to reply
}

// A Wait is what became of the wait for a reply.
type Wait struct {
	Reply
	Ended bool
	Code  string // why it ended without a reply; [codes.ReplyPending] if a later process waits for it

	process int // that waits
}

// reply notes that the task waits for a reply, or not any more.
func (t *Task) reply(e *record.TaskChange, process int) {
	t.replies = slices.DeleteFunc(t.replies, func(w Wait) bool { return w.ID == e.ID })
	t.replies = append(t.replies, Wait{Reply{e.ID, e.From}, e.Type == event.ReplyEnd, e.Code, process})
}

// WaitFor returns the last wait for a reply to a handoff; nil if the task did not wait for one.
func (t *Task) WaitFor(handoff string) *Wait {
	for i := range t.replies {
		if t.replies[i].ID == handoff {
			return &t.replies[i]
		}
	}
	return nil
}

// Replies returns the handoffs for whose replies a task waits; none if it has ended, or its process has.
func (s *State) Replies(t *Task) (list []Reply) {
	for i := range t.replies {
		if w := &t.replies[i]; !w.Ended && s.works(w.process) && !s.Status(t).Terminal() {
			list = append(list, w.Reply)
		}
	}
	return list
}

// Result returns the last result of a call of a tool; nil if it has none, as when the call began again.
func (t *Task) Result(call string) *record.AgentCall {
	for _, x := range slices.Backward(t.Results) {
		if x.Session == call && !slices.Contains(t.working, call) {
			return x
		}
	}
	return nil
}

// Accepted returns the call whose answer is the result; nil if there is none.
func (t *Task) Accepted() *record.AgentCall {
	for _, x := range slices.Backward(t.Calls) {
		if x.Part == "" && x.Completed() {
			return x
		}
	}
	return nil
}

// LastAttempt returns the end of the last attempt; nil if none ended.
func (t *Task) LastAttempt() *record.AgentCall {
	for _, x := range slices.Backward(t.Calls) {
		if x.Part == "" {
			return x
		}
	}
	return nil
}
