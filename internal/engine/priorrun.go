package engine

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A priorRun is the record of a run in the journal: of this run before it was
// interrupted, or of the run that is replayed. A nil *priorRun is empty.
type priorRun struct {
	history *record.History
	state   *runstate.State
	own     bool // it is this run: its answers stay as they are, and what they took counts
	whole   bool // a prompt is the same only with its messages and its memory
	strict  bool // no agent is called; what failed fails again

	answers   map[record.Key]*record.AgentCall   // the newest for each prompt
	earlier   map[record.Key][]*record.AgentCall // of prompts that several tasks had, those that are not the newest
	rejected  map[record.Key]*record.AgentCall   // likewise, of answers that had to be corrected
	turns     map[record.Key]*record.AgentCall   // what agents said in first turns, by the key of the prompt
	toolCalls map[string]*record.CallStart       // by session
	results   map[string]*record.AgentCall       // of tool calls, by session
	files     map[string]*record.AgentCall       // output files, by session
	folders   map[worker]*priorFiles             // workspaces
	given     map[record.Key]*record.Answer      // of people, by the keys of their questions
	asked     map[string]bool                    // the calls of tools that people were asked about, by session
	approvals *approvals
	tasks     map[task.ID]*priorTask // also the coordinator's steps
}

// of returns what there was of a task, which it makes if it is the first.
func (p *priorRun) of(id task.ID) *priorTask {
	b := p.tasks[id]
	if b == nil {
		b = &priorTask{Task: p.state.Task(id, "", "")}
		p.tasks[id] = b
	}
	return b
}

// hasDirected reports whether an earlier process had a message for one task in a prompt.
func hasDirected(p *priorRun, id string) bool {
	return p != nil && p.own && p.state.IsDelivered(id) && slices.ContainsFunc(p.state.Sent, func(s *record.SentMessage) bool { return s.ID == id && s.Task != "" })
}

// undelivered returns the ids of the messages for one task that no prompt contains.
func undelivered(p *priorRun, id task.ID) (ids []string) {
	for _, s := range p.state.Sent {
		if s.Task == id && !p.state.IsDelivered(s.ID) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// sentBefore returns the messages that were sent, in their order.
func (p *priorRun) sentBefore() []*record.SentMessage {
	if p == nil {
		return nil
	}
	return p.state.Sent
}

// task returns what an earlier run recorded about a task; nil if it recorded nothing.
func (p *priorRun) task(id task.ID) *priorTask {
	if p == nil {
		return nil
	}
	return p.tasks[id]
}

// counted returns what there was of a task that counts as this run's work.
func (p *priorRun) counted(id task.ID) priorTask {
	if p != nil && p.own && p.tasks[id] != nil {
		return *p.tasks[id]
	}
	return priorTask{Task: nothing}
}

// nothing stands in for a task without entries.
var nothing = new(runstate.Task)

// spending returns what earlier processes of this run spent, for budgets.
func (p *priorRun) spending() (list []plan.PriorCall) {
	if p == nil || !p.own {
		return nil
	}
	for _, t := range p.state.Tasks() {
		for _, x := range t.Answered() {
			list = append(list, plan.PriorCall{Agent: x.Agent, Model: x.Model, Usage: x.Took(), Cost: x.Cost, Hidden: x.Partial})
		}
		for _, c := range p.interrupted(t) {
			list = append(list, plan.PriorCall{Agent: c.Agent, Model: c.Model, Usage: estimate(c), Hidden: c.Partial})
		}
	}
	return list
}

// spent returns what the run had taken before, as the caller may see it.
func (p *priorRun) spent() (u llm.Usage, c Context) {
	if p == nil || !p.own {
		return u, c
	}
	for _, t := range p.state.Tasks() {
		u = u.Add(p.usageOf(t.ID))
		for _, x := range t.Calls {
			c = c.Add(x.Context)
		}
	}
	return u, c
}

// isStrict reports whether all that happens has happened before.
func (p *priorRun) isStrict() bool { return p != nil && p.strict }

// began returns when the run began, if that was before now.
func (p *priorRun) began(now time.Time) time.Time {
	if p == nil || !p.own || len(p.history.Begins) == 0 {
		return now
	}
	return p.history.Begins[0].Time
}

// remembered reports whether a task of a run that is repeated, or one that waits for a
// person, found the result of another one in the shared memory. Any other task may.
func (p *priorRun) remembered(reader, id task.ID) bool {
	if p == nil {
		return true
	}
	b := p.tasks[reader]
	if b == nil || !p.whole && b.question == nil {
		return true
	}
	return slices.Contains(b.memory, id)
}

// recorded is how the replayed run ended. It is nil if this run is no replay or the
// replayed run did not end.
func (p *priorRun) recorded() *record.RunEnd {
	if !p.isStrict() {
		return nil
	}
	return p.history.End
}

// ended returns when the run ended that is replayed, and now of any other.
func (p *priorRun) ended(now time.Time) time.Time {
	if end := p.recorded(); end != nil {
		return end.Time
	}
	return now
}
