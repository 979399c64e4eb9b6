package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A priorTask is what an earlier run recorded about one task, or one step of the coordinator.
type priorTask struct {
	*runstate.Task
	messages []string // IDs of those that its last prompt had at first
	memory   []task.ID
	priorQuestions
	priorConversation
}

// priorQuestions are those about one task to people.
type priorQuestions struct {
	question *record.Question // for its result, if the task has not ended since; nil if there is none
	asked    time.Time        // when that was asked first
	approval *record.Question // the last one about a plan or an entry of the policy; nil if there was none
}

// A priorConversation is what the last attempt at a task had when the run was interrupted.
type priorConversation struct {
	turns     map[int]priorTurn      // later turns of its last attempt
	holders   map[string]priorHolder // prompts of agents that its conversation was transferred to, by the end of their sessions
	converses bool                   // that attempt has called tools, and not ended
}

// ask takes in the start of a call of the agent.
func (b *priorTask) ask(c *record.CallStart) {
	if record.ChildOf(c.Session) != "" {
		b.askHolder(c)
		return
	}
	n, isTurn := turnOf(c.Session)
	if !isTurn {
		b.messages, b.turns = c.Messages, nil
		return
	}
	if b.turns == nil {
		b.turns = map[int]priorTurn{}
	}
	b.turns[n] = priorTurn{messages: c.Messages}
}

// A priorTurn is a later turn of an attempt.
type priorTurn struct {
	messages []string // ids of those that it added to the conversation
	answered bool
}

// turnOf returns the number of the turn that a session is of, if it is that of a later turn.
func turnOf(session string) (n int, isTurn bool) {
	if record.ChildOf(session) != "" {
		return 0, false
	}
	_, digits, isTurn := strings.Cut(session, record.TurnPrefix)
	n, err := strconv.Atoi(digits)
	return n, isTurn && err == nil
}

// attempts counts the attempts at a task that earlier processes of this run made.
func (p *priorRun) attempts(id task.ID) (a runstate.Attempts) {
	if p == nil || !p.own {
		return a
	}
	if a = p.state.Attempts(p.counted(id).Task); p.strict { // a replay repeats what was interrupted as it was
		a.Interrupted = 0
	}
	return a
}

// interrupted returns the calls for a task that have no end, unless a replay repeats them as they were.
func (p *priorRun) interrupted(t *runstate.Task) []*record.CallStart {
	if p.strict {
		return nil
	}
	return p.state.Interrupted(t)
}

// usageOf returns the tokens of a task in earlier processes of this run, as the caller may see them. Those of calls that
// were interrupted are estimates.
func (p *priorRun) usageOf(id task.ID) (u llm.Usage) {
	if p == nil || !p.own || p.state.Find(id) == nil {
		return u
	}
	t := p.state.Find(id)
	if p.strict {
		return t.Usage()
	}
	return p.state.Usage(t)
}

// estimate returns what a call may have taken that was interrupted.
func estimate(c *record.CallStart) llm.Usage { return llm.Usage{InputTokens: gate.Tokens(c.Bytes)} }

// metrics are what the work on a task took so far.
func (p *priorRun) metrics(id task.ID) Metrics {
	if p == nil {
		return Metrics{}
	}
	b := p.counted(id)
	made := p.attempts(id)
	m := Metrics{Usage: p.usageOf(id), Attempts: made.Begun(), Interrupted: made.Interrupted, Partial: b.IsPartial(), ToolCalls: b.calledTools()}
	for _, x := range b.Calls {
		m.TokensSaved += x.Context.TokensSaved
	}
	if m.Start, m.End = b.Span(); m.End.IsZero() { // it was interrupted at an unknown time
		m.End = m.Start
	}
	return m
}

// mayHaveActed reports whether the last attempt at a task was a command that was interrupted, or whose effects are not
// known, and that cannot be repeated.
func (p *priorRun) mayHaveActed(id task.ID) bool {
	if p == nil {
		return false
	}
	b := p.counted(id)
	ended, uncertain := 0, 0 // the highest numbers of such attempts
	for _, x := range b.Calls {
		switch {
		case x.Part != "":
		case x.Code == codes.Effects:
			uncertain = max(uncertain, x.Attempt)
		default:
			ended = max(ended, x.Attempt)
		}
	}
	for _, c := range p.interrupted(b.Task) {
		if c.Effect != "" && !c.Repeatable {
			uncertain = max(uncertain, c.Attempt)
		}
	}
	return uncertain > ended
}

// readBy returns the digest of the policy by which the caller got the result of the last attempt; empty for that of the
// start, and if no attempt ended.
func (b *priorTask) readBy() string {
	if x := b.LastAttempt(); x != nil {
		return x.ReadBy
	}
	return ""
}
