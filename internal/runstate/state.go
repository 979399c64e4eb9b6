// Package runstate derives from the entries of a run the status of each task, its attempts and its calls, and what
// people and agents were asked. [State.Apply] is the one place that decides these: resume, list and show all use it.
package runstate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A State is what the entries of a run say so far. It keeps the calls, questions, messages and commands that it is
// given, and does not change them. It is not safe for concurrent use.
type State struct {
	Begins []record.RunStart
	End    *record.RunEnd // of the last process; nil while it works, or if it was interrupted
	Paused bool           // the last process was paused and not resumed
	Sent   []*record.SentMessage

	// Live says that the last process still works on the run, which no entry says: what that process began and did
	// not end is in progress, and otherwise it was interrupted.
	Live bool

	// Repeats says that a replay without calls repeats the run: what was interrupted is as it was, and does not count.
	Repeats bool

	tasks     map[task.ID]*Task
	order     []*Task
	planned   []*Task             // the tasks of the last process, in the order written; none before its plan
	has       map[*Task]bool      // the same
	upstream  map[*Task][]task.ID // by the last plan of the coordinator that has the task
	loops     map[*Task]string    // of tasks that have the result of a loop: the title of the task whose rounds have it
	delivered map[string]bool     // IDs of the messages in prompts
	entries   int
}

// New returns the State of a run without entries.
func New() *State {
	return &State{tasks: map[task.ID]*Task{}, has: map[*Task]bool{}, upstream: map[*Task][]task.ID{}, loops: map[*Task]string{}, delivered: map[string]bool{}}
}

// Of returns the State of a history.
func Of(h *record.History) *State {
	s := New()
	Each(h, s.Apply)
	return s
}

// Each passes on the entries of a history in their order, with the begins of its processes, unless its log has them, and
// its end.
func Each(h *record.History, apply func(*record.Entry)) {
	if !slices.ContainsFunc(h.Log, func(e record.Entry) bool { return e.Begin != nil }) {
		for i := range h.Begins {
			apply(&record.Entry{Begin: &h.Begins[i]})
		}
	}
	for i := range h.Log {
		apply(&h.Log[i])
	}
	if h.End != nil {
		apply(&record.Entry{End: h.End})
	}
}

// Apply adds the next entry of the run. It changes what is known of the run as a whole and of the entry's own task,
// and nothing else.
func (s *State) Apply(e *record.Entry) {
	s.entries++
	switch {
	case e.Begin != nil:
		s.begin(e.Begin)
	case e.End != nil:
		s.end(e.End)
	case e.Event != nil:
		s.change(record.ChangeOf(e.Event))
	case e.Change != nil:
		s.change(e.Change)
	case e.Command != nil:
		s.command(e.Command)
	case e.Sent != nil:
		s.Sent = append(s.Sent, e.Sent)
	case e.Asked != nil:
		s.deliver(e.Asked.Messages)
		s.Task(e.Asked.Task, "", "").asked(e.Asked, len(s.Begins))
	case e.Begun != nil:
		if t := s.tasks[record.TaskOf(e.Begun.Session)]; t != nil {
			t.begun(e.Begun)
		}
	case e.Turn != nil:
		s.taskOfCall(e.Turn).turn(e.Turn, len(s.Begins))
	case e.Rejected != nil:
		s.taskOfCall(e.Rejected).turn(e.Rejected, len(s.Begins))
	case e.Exchange != nil:
		s.deliver(e.Exchange.Messages)
		s.taskOfCall(e.Exchange).exchange(e.Exchange, s.entries, len(s.Begins))
	case e.ToolCall != nil:
		s.Task(e.ToolCall.Task, "", "").toolCall(e.ToolCall)
	case e.ToolResult != nil:
		s.Task(e.ToolResult.Task, "", "").toolResult(e.ToolResult)
	case e.Files != nil:
		t := s.taskOfCall(e.Files)
		t.Files = append(t.Files, e.Files)
	case e.Question != nil:
		s.deliver(e.Question.Messages)
		t := s.Task(e.Question.Task, e.Question.Title, e.Question.Agent)
		t.activeAt(e.Question.Time)
		t.continueAttempt(e.Question.Attempt)
		t.ask(e.Question)
	case e.Answer != nil:
		t := s.Task(e.Answer.Task, e.Answer.Title, e.Answer.Agent)
		t.activeAt(e.Answer.Time)
		t.answer(e.Answer)
	}
}

// Tasks returns the tasks and the steps of the coordinator, in the order in which the entries first name them.
func (s *State) Tasks() []*Task { return s.order }

// Find returns a task; nil if no entry names it.
func (s *State) Find(id task.ID) *Task { return s.tasks[id] }

// Task returns a task, which it adds if it is new. A title or an agent that is not known yet is set.
func (s *State) Task(id task.ID, title, agent string) *Task {
	t := s.tasks[id]
	if t == nil {
		t = &Task{ID: id, Step: record.IsStep(id), status: task.Pending}
		s.tasks[id], s.order = t, append(s.order, t)
	}
	if t.Title == "" {
		t.Title = title
	}
	if t.Agent == "" {
		t.Agent = agent
	}
	return t
}

// taskOfCall returns the task of a call. The agent of a child is not that of its task.
func (s *State) taskOfCall(x *record.AgentCall) *Task {
	agent := x.Agent
	if record.ChildOf(x.Session) != "" {
		agent = ""
	}
	return s.Task(x.Task, x.Title, agent)
}

// begin adds a process.
func (s *State) begin(b *record.RunStart) {
	s.Begins, s.Paused, s.End, s.planned = append(s.Begins, *b), false, nil, nil
	clear(s.has)
	for i := range b.Tasks {
		s.addPlanned(&b.Tasks[i])
	}
}

// addPlanned adds a task to those of the last process. It may have another title or agent there than before.
func (s *State) addPlanned(p *event.Planned) *Task {
	t := s.Task(p.Task, p.Title, p.Agent)
	t.Title, t.Agent = cmp.Or(p.Title, t.Title), cmp.Or(p.Agent, t.Agent)
	if !s.has[t] {
		s.has[t], s.planned = true, append(s.planned, t)
	}
	if p.Rounds != "" {
		s.loops[t] = p.Rounds
	}
	return t
}

// Upstream returns the tasks that a task depends on by the last plan of the coordinator that has it.
func (s *State) Upstream(t *Task) []task.ID { return s.upstream[t] }

// Rounds returns of a loop the title of the task whose rounds have its result; it is empty for another task.
func (s *State) Rounds(t *Task) string { return s.loops[t] }

// Accepted returns the call whose answer is the result of a task; nil if there is none. A loop calls no agent, and if it
// completed has the result of the last of its rounds that did.
func (s *State) Accepted(t *Task) *record.AgentCall {
	if s.loops[t] == "" {
		return t.Accepted()
	}
	title := s.loops[t] + strings.TrimPrefix(t.Title, naming.WithoutInstance(t.Title))
	var last *Task
	for _, mark := range [...]string{"#", "."} { // of a round, and of one in a round
		for n := 1; ; n++ {
			round := s.tasks[task.NewID(title+mark+strconv.Itoa(n))]
			if round == nil {
				break
			}
			if s.Status(round) == task.Completed {
				last = round
			}
		}
	}
	if last == nil || s.Status(t) != task.Completed {
		return nil
	}
	return s.Accepted(last)
}

// Planned returns the tasks of the last process that the run has, in the order written; none for a goal without a plan.
func (s *State) Planned() []*Task {
	return slices.DeleteFunc(slices.Clone(s.planned), func(t *Task) bool { return !s.Has(t) })
}

// Has reports whether the run still has a task: a later process may have another spec or another plan, and a round that
// is left out, as after the last one of its loop, is none.
func (s *State) Has(t *Task) bool {
	return t.Step || len(s.planned) == 0 || s.has[t] && !(t.process == len(s.Begins) && t.end.Code == codes.LeftOut)
}

// end adds the end of the run. Of a run of an earlier version, it says how the tasks ended, and has no other tasks.
func (s *State) end(e *record.RunEnd) {
	if s.End = e; len(e.Tasks) == 0 {
		return
	}
	for _, t := range s.planned {
		t.status, t.process, t.end = task.NotNeeded, len(s.Begins), record.TaskEnd{Status: task.NotNeeded, Code: codes.LeftOut}
	}
	for i := range e.Tasks {
		of := &e.Tasks[i]
		t := s.addPlanned(&event.Planned{Task: of.Task, Title: of.Title, Agent: of.Agent})
		t.status, t.process, t.end = of.Status, len(s.Begins), *of
	}
}

// command adds a command.
func (s *State) command(c *record.Command) {
	s.Paused = c.Kind == steer.Pause || s.Paused && c.Kind != steer.Resume
	if c.Task != "" && (c.Kind == steer.Cancel || c.Kind == steer.Rerun) {
		s.Task(c.Task, c.Title, c.Agent).Canceled = c.Kind == steer.Cancel
	}
}

// change adds what an event says of a task, or of the tasks of a plan.
func (s *State) change(c *record.TaskChange) {
	if c == nil {
		return
	}
	for i := range c.Plan {
		p := &c.Plan[i]
		s.upstream[s.addPlanned(p)] = p.DependsOn
	}
	if c.Task != "" && !record.IsStep(c.Task) {
		s.Task(c.Task, c.Title, c.Agent).change(c, len(s.Begins))
	}
}

// deliver notes that a prompt has messages.
func (s *State) deliver(messages []string) {
	for _, id := range messages {
		s.delivered[id] = true
	}
}

// IsDelivered reports whether a prompt has the message with an ID.
func (s *State) IsDelivered(message string) bool { return s.delivered[message] }

// EndOf returns how a task ended. It has no status if the task has not ended, or was removed.
func (s *State) EndOf(t *Task) record.TaskEnd {
	last := len(t.Calls) - 1
	switch {
	case t.Step && last >= 0 && s.Status(t) != task.Completed:
		return record.TaskEnd{Code: t.Calls[last].Code, Reason: t.Calls[last].Error}
	case t.Step || s.Status(t) != t.status || s.isRemoved(t):
		return record.TaskEnd{}
	}
	end := t.end
	if x := t.LastAttempt(); x != nil && end.Status == task.Failed && end.Root == "" && x.Code == end.Code {
		end.Reason = x.Error // an event has it in the form for logs
	}
	return end
}

// Status returns the status of a task or step: in progress also if its work was interrupted.
func (s *State) Status(t *Task) task.Status {
	switch {
	case t.Step:
		return s.stepStatus(t)
	case t.process == len(s.Begins):
		return t.status
	case s.End != nil && s.has[t]:
		return task.Blocked // by tasks that wait for people, also if it completed before: it may get another result
	case t.status == task.Completed:
		return t.status
	}
	return task.Pending // the last process has not reached it
}

// stepStatus returns the status of a step of the coordinator, whose status no entry says.
func (s *State) stepStatus(t *Task) task.Status {
	switch {
	case t.Accepted() != nil, len(t.list) > 0 && !t.waits():
		return task.Completed
	case len(t.Calls) == 0, s.Running(t) > 0:
		return task.InProgress
	}
	return task.Failed
}
