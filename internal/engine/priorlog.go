package engine

import (
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// priorOf returns the prior run that the options name, or nil.
func priorOf(o *RunOptions) *priorRun {
	switch {
	case o.Past == nil:
		return nil
	case o.Replay != nil:
		return readPrior(&priorRun{history: o.Past, own: !o.Replay.Ask, whole: true, strict: !o.Replay.Ask})
	}
	return readPrior(&priorRun{history: o.Past, own: true})
}

// readPrior reads the log of a prior run.
func readPrior(p *priorRun) *priorRun {
	p.state = runstate.Of(p.history)
	p.answers, p.tasks = map[record.Key]*record.AgentCall{}, map[task.ID]*priorTask{}
	p.given, p.asked = map[record.Key]*record.Answer{}, map[string]bool{}
	p.approvals = newApprovals()
	p.turns, p.toolCalls, p.results = map[record.Key]*record.AgentCall{}, map[string]*record.CallStart{}, map[string]*record.AgentCall{}
	p.files, p.folders = map[string]*record.AgentCall{}, map[worker]*priorFiles{}
	p.rejected, p.earlier = map[record.Key]*record.AgentCall{}, map[record.Key][]*record.AgentCall{}
	for i := range p.history.Log {
		p.takeEntry(&p.history.Log[i])
	}
	return p
}

// takeEntry takes in an entry of the log.
func (p *priorRun) takeEntry(e *record.Entry) {
	switch {
	case e.Asked != nil:
		p.of(e.Asked.Task).ask(e.Asked)
	case e.Exchange != nil:
		p.take(e.Exchange)
	case e.Turn != nil:
		p.turns[p.keyOf(e.Turn)] = e.Turn
		p.beginFiles(workerOf(e.Turn.Task, e.Turn.Session))
		p.of(e.Turn.Task).converses = true
		p.of(e.Turn.Task).answerHolder(e.Turn)
	case e.ToolCall != nil, e.ToolResult != nil, e.Files != nil:
		p.takeTool(e)
	case e.Rejected != nil:
		p.rejected[p.keyOf(e.Rejected)] = e.Rejected
	case e.Question != nil, e.Answer != nil:
		p.takeQuestion(e)
	}
}

// takeTool takes in the start or the result of a call of a tool, or output files.
func (p *priorRun) takeTool(e *record.Entry) {
	switch {
	case e.ToolCall != nil:
		p.toolCalls[e.ToolCall.Session] = e.ToolCall
		p.approvals.spend(e.ToolCall)
	case e.ToolResult != nil:
		if p.results[e.ToolResult.Session] = e.ToolResult; e.ToolResult.Code == codes.ReplyPending {
			return
		}
	default:
		p.files[e.Files.Session] = e.Files
	}
	p.takeFiles(e)
}

// take takes a model call in.
func (p *priorRun) take(x *record.AgentCall) {
	key := p.keyOf(x)
	if key != (record.Key{}) && (p.strict || x.Completed()) {
		if before := p.answers[key]; before != nil && before.Task != x.Task {
			p.earlier[key] = append(p.earlier[key], before)
		}
		p.answers[key] = x
	}
	b := p.of(x.Task)
	b.question = nil
	if x.Part != "" {
		b.answerHolder(x)
		if n, isTurn := turnOf(x.Session); isTurn && x.Completed() {
			b.turns[n] = priorTurn{x.Messages, true}
		}
		return // of an attempt that has a model call of its own
	}
	b.converses, b.messages = false, x.Messages
	if x.Completed() || p.whole {
		b.memory = x.Memory
	}
}
