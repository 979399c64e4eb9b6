package engine

import (
	"strings"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
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

// A priorReader reads the log of a prior run. It knows the calls of which the log has no end so far.
type priorReader struct {
	*priorRun
	asked    map[string]*record.CallStart // by session
	begun    map[string]bool              // by session: prefetched attempts that were started
	answered map[string]*record.AgentCall // by session: answers that were rejected, and of whose correction nothing is known
}

// readPrior reads the log of a prior run.
func readPrior(p *priorRun) *priorRun {
	p.answers, p.tasks, p.delivered = map[record.Key]*record.AgentCall{}, map[task.ID]*priorTask{}, map[string]bool{}
	p.given, p.asked = map[record.Key]*record.Answer{}, map[string]bool{}
	p.approvals = newApprovals()
	p.turns, p.toolCalls, p.results = map[record.Key]*record.AgentCall{}, map[string]*record.CallStart{}, map[string]*record.AgentCall{}
	p.files, p.folders = map[string]*record.AgentCall{}, map[worker]*priorFiles{}
	p.rejected, p.earlier = map[record.Key]*record.AgentCall{}, map[record.Key][]*record.AgentCall{}
	r := priorReader{p, map[string]*record.CallStart{}, map[string]bool{}, map[string]*record.AgentCall{}}
	for i := range p.history.Log {
		r.takeEntry(i, &p.history.Log[i])
	}
	r.takeOpen()
	return p
}

// takeOpen takes in the calls that have no end.
func (p *priorReader) takeOpen() {
	for _, x := range p.answered {
		b := p.of(x.Task)
		p.spend(b, plan.PriorCall{Agent: x.Agent, Model: x.Model, Usage: x.Took(), Cost: x.Cost, Hidden: x.Partial})
		if !hasTurn(p.asked, x.Session) && b.asks == "" && record.ChildOf(x.Session) == "" { // else that one counts, or it waits for an approval
			b.attempts, b.interrupted = b.attempts+1, b.interrupted+1
		}
	}
	for session, a := range p.asked {
		if a.Ahead && !p.begun[session] || p.strict {
			continue // no agent was called; or a replay repeats it as it was
		}
		b := p.of(a.Task)
		if record.ChildOf(session) == "" { // else it belongs to an attempt that counts
			b.attempts, b.interrupted = b.attempts+1, b.interrupted+1
		}
		if a.Effect != "" && !a.Repeatable {
			b.uncertain = max(b.uncertain, a.Attempt)
		}
		p.spend(b, plan.PriorCall{Agent: a.Agent, Model: a.Model, Usage: llm.Usage{InputTokens: gate.Tokens(a.Bytes)}, Hidden: a.Partial})
	}
}

// takeEntry takes in entry i of the log.
func (p *priorReader) takeEntry(i int, e *record.Entry) {
	switch {
	case e.Begun != nil:
		p.begun[e.Begun.Session] = true
	case e.Asked != nil:
		p.asked[e.Asked.Session] = e.Asked
		p.of(e.Asked.Task).begin(e.Asked.Session, e.Asked.Attempt, e.Asked.Time)
		p.of(e.Asked.Task).ask(e.Asked)
		p.deliver(e.Asked.Messages)
	case e.Exchange != nil:
		p.of(e.Exchange.Task).place = i + 1
		delete(p.asked, e.Exchange.Session)
		delete(p.answered, e.Exchange.Session)
		p.take(e.Exchange)
	case e.Command != nil:
		takeCommand(p.priorRun, e.Command)
	case e.Sent != nil:
		p.sent = append(p.sent, e.Sent)
	case e.Turn != nil:
		p.turns[p.keyOf(e.Turn)] = e.Turn
		p.beginFiles(workerOf(e.Turn.Task, e.Turn.Session))
		p.of(e.Turn.Task).converses = true
		p.of(e.Turn.Task).answerHolder(e.Turn)
		delete(p.asked, e.Turn.Session)
		p.answered[e.Turn.Session] = e.Turn
	case e.ToolCall != nil, e.ToolResult != nil, e.Files != nil:
		p.takeTool(e)
	case e.Rejected != nil:
		p.rejected[p.keyOf(e.Rejected)] = e.Rejected
		delete(p.asked, e.Rejected.Session)
		p.answered[e.Rejected.Session] = e.Rejected
	case e.Question != nil, e.Answer != nil:
		p.takeQuestion(e)
	}
}

// takeTool takes in the start or the result of a call of a tool, or output files.
func (p *priorRun) takeTool(e *record.Entry) {
	switch {
	case e.ToolCall != nil:
		p.toolCalls[e.ToolCall.Session] = e.ToolCall
		p.of(e.ToolCall.Task).asks = ""
		p.approvals.spend(e.ToolCall)
	case e.ToolResult != nil:
		p.results[e.ToolResult.Session] = e.ToolResult
		b := p.of(e.ToolResult.Task)
		if b.asks = ""; e.ToolResult.Code == codes.ReplyPending {
			b.asks = e.ToolResult.Session
			return
		}
		b.toolResults = append(b.toolResults, e.ToolResult)
	default:
		p.files[e.Files.Session] = e.Files
	}
	p.takeFiles(e)
}

// hasTurn reports whether a later turn of an attempt was interrupted.
func hasTurn(asked map[string]*record.CallStart, session string) bool {
	for s := range asked {
		if strings.HasPrefix(s, session+record.TurnPrefix) {
			return true
		}
	}
	return false
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
	p.spend(b, plan.PriorCall{Agent: x.Agent, Model: x.Model, Usage: x.Took(), Cost: x.Cost, Hidden: x.Partial})
	p.context, b.saved = p.context.Add(x.Context), b.saved+x.Context.TokensSaved
	b.number = max(b.number, x.Attempt)
	if x.Part != "" {
		b.answerHolder(x)
		if n, isTurn := turnOf(x.Session); isTurn && x.Completed() {
			b.turns[n] = priorTurn{x.Messages, true}
		}
		return // of an attempt that has a model call of its own
	}
	b.converses = false
	if x.Completed() {
		b.canceled, b.answers = false, b.answers+1
	}
	if b.attempts++; x.Code == codes.Effects {
		b.uncertain = max(b.uncertain, x.Attempt)
	} else {
		b.ended = max(b.ended, x.Attempt)
	}
	if b.end = x.End; b.start.IsZero() || b.first == x.Session || strings.HasPrefix(b.first, x.Session+"/") {
		b.start = x.Start // not when its first prompt was written: that may have been earlier, or a sideCall's
	}
	b.policy, b.readBy = x.Policy, x.ReadBy
	b.messages, b.completed = x.Messages, b.completed || x.Completed()
	p.deliver(x.Messages)
	if x.Completed() || p.whole {
		b.memory = x.Memory
	}
}

// takeCommand takes in what somebody asked of the run.
func takeCommand(p *priorRun, c *record.Command) {
	if c.Task != "" && (c.Kind == steer.Cancel || c.Kind == steer.Rerun) {
		p.of(c.Task).canceled = c.Kind == steer.Cancel
	}
}
