package memo

import (
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// A Task is what is recorded of the prompts for one task, or one step of the coordinator.
type Task struct {
	*runstate.Task

	Asked     *record.CallStart // the last prompt for it, of whatever part; nil if none is recorded
	Prompts   []Prompt          // of its last attempt, and of holders and children of any attempt
	Memory    []task.ID         // the tasks whose results its last prompt had from the shared memory
	Converses bool              // its last attempt has called tools, and not ended

	Question *Question        // for its result, if the task has not ended since; nil if there is none
	Approval *record.Question // the last one about a plan or a declassifier; nil if there was none

	workspaces map[string]*Workspace // by the child that works there; empty for the attempt itself
}

// A Question is one to a person.
type Question struct {
	*record.Question
	Since time.Time // when it was asked first
}

// A Prompt is one within an attempt.
type Prompt struct {
	Part     string // from [record.ChildPrefix] or [record.TurnPrefix] on; empty for the first prompt of the attempt
	Agent    string // empty if the prompt is not recorded
	Messages []string
	Answered bool
}

// IsTurn reports whether a prompt is that of a later turn of the attempt.
func (p *Prompt) IsTurn() bool { return strings.HasPrefix(p.Part, record.TurnPrefix) }

// IsWithin reports whether a prompt is one of a holder or a child of the attempt.
func (p *Prompt) IsWithin() bool { return strings.HasPrefix(p.Part, record.ChildPrefix) }

// noTask stands in for a task without entries.
var noTask = &Task{Task: new(runstate.Task)}

// Task returns what is recorded of the prompts for a task; nil if nothing is.
func (m *Memo) Task(id task.ID) *Task {
	if m == nil {
		return nil
	}
	return m.tasks[id]
}

// Counted returns what is recorded of a task that counts as work of this run. It is never nil.
func (m *Memo) Counted(id task.ID) *Task {
	if t := m.Task(id); t != nil && m.Is(Own) {
		return t
	}
	return noTask
}

// task returns what is recorded of a task, which it adds if it is new.
func (m *Memo) task(id task.ID) *Task {
	t := m.tasks[id]
	if t == nil {
		t = &Task{Task: m.State.Task(id, "", "")}
		m.tasks[id] = t
	}
	return t
}

// Prompt returns what is recorded of a part of the last attempt. A nil task has nothing.
func (t *Task) Prompt(part string) Prompt {
	if t != nil {
		if i := t.find(part); i >= 0 {
			return t.Prompts[i]
		}
	}
	return Prompt{}
}

func (t *Task) find(part string) int {
	return slices.IndexFunc(t.Prompts, func(p Prompt) bool { return p.Part == part })
}

// set adds a prompt, or replaces the one of the same part.
func (t *Task) set(p Prompt) {
	if i := t.find(p.Part); i >= 0 {
		t.Prompts[i] = p
	} else {
		t.Prompts = append(t.Prompts, p)
	}
}

// asked adds the start of a call.
func (t *Task) asked(c *record.CallStart) {
	t.Asked = c
	part := partOf(c.Session)
	if part == "" {
		t.Prompts = slices.DeleteFunc(t.Prompts, func(p Prompt) bool { return p.IsTurn() })
	}
	t.set(Prompt{Part: part, Agent: c.Agent, Messages: c.Messages})
}

// ended adds the end of a call.
func (t *Task) ended(x *record.AgentCall) {
	if t.Question = nil; x.Part != "" {
		t.answered(x)
		return
	}
	t.Converses, t.Memory = false, x.Memory
	t.set(Prompt{Agent: x.Agent, Messages: x.Messages, Answered: true})
}

// answered adds what was said within an attempt.
func (t *Task) answered(x *record.AgentCall) {
	part := partOf(x.Session)
	if i := t.find(part); part != "" && i >= 0 && x.Completed() {
		t.Prompts[i].Answered = true
	}
}

// partOf returns the part of an attempt that a session is of, as a [Prompt] has it.
func partOf(session string) string {
	if at := strings.Index(session, record.ChildPrefix); at >= 0 {
		return session[at:]
	}
	if _, turn, isTurn := strings.Cut(session, record.TurnPrefix); isTurn && !strings.Contains(turn, "/") {
		return record.TurnPrefix + turn
	}
	return ""
}

// beginConversation adds what an agent said in a first turn.
func (m *Memo) beginConversation(x *record.AgentCall) {
	t := m.task(x.Task)
	m.dropWorkspace(t, record.ChildOf(x.Session))
	t.Converses = true
	t.answered(x)
}

// question adds a question to a person.
func (m *Memo) question(q *record.Question) {
	t := m.task(q.Task)
	switch {
	case q.Call != "": // the turns of the conversation say the rest
		m.call(q.Call).Asked = true
		return
	case q.Approval != "":
		t.Approval = q
		return
	}
	since := q.Time
	if t.Question != nil && t.Question.Key == q.Key {
		since = t.Question.Since
	}
	t.Question, t.Memory = &Question{q, since}, q.Memory
	t.set(Prompt{Agent: q.Agent, Messages: q.Messages})
}

// Remembers reports whether a task may have the result of another one from the shared memory. A task that is repeated, or
// that waits for a person, has what its prompt had. Any other may have all.
func (m *Memo) Remembers(reader, of task.ID) bool {
	t := m.Task(reader)
	if t == nil || m.Is(Lean) && t.Question == nil {
		return true
	}
	return slices.Contains(t.Memory, of)
}

// Sent returns the messages that were sent, in their order.
func (m *Memo) Sent() []*record.SentMessage {
	if m == nil {
		return nil
	}
	return m.State.Sent
}

// Undelivered returns the IDs of the messages for one task that no prompt has.
func (m *Memo) Undelivered(id task.ID) (ids []string) {
	for _, s := range m.State.Sent {
		if s.Task == id && !m.State.IsDelivered(s.ID) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// HadDirected reports whether a prompt of this run had a message that was for one task.
func (m *Memo) HadDirected(message string) bool {
	return m.Is(Own) && m.State.IsDelivered(message) && slices.ContainsFunc(m.State.Sent, func(s *record.SentMessage) bool { return s.ID == message && s.Task != "" })
}
