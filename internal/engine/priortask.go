package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// priorTokens are the tokens of a prior task: what its calls used, and what the gate saved.
type priorTokens struct {
	usage llm.Usage
	saved int
}

// A priorTask is what an earlier run recorded about one task, or one step of the coordinator.
type priorTask struct {
	priorTokens
	partial     bool // the usage lacks what the caller may not see
	attempts    int
	interrupted int
	number      int // the highest of an attempt
	ended       int // the highest of an attempt that ended by itself
	uncertain   int // the highest of an attempt whose command was interrupted and may have had effects
	start, end  time.Time
	first       string   // the session that start is of, until that ended
	messages    []string // ids of those that its last prompt had at first
	canceled    bool     // somebody canceled it
	policy      string   // the digest of the one that its last prompt was made by
	readBy      string   // and of the one by which the caller got the result
	completed   bool     // an answer was taken
	memory      []task.ID
	toolResults []*record.AgentCall
	place       int // of the end of its last attempt in the log, from 1; zero if none ended
	priorQuestions
	priorConversation
}

// priorQuestions are those about one task to people.
type priorQuestions struct {
	answers  int              // how often the task has completed
	question *record.Question // to a person, if the task has not ended since; nil if there is none
	asked    time.Time        // when that was asked first
	approval *record.Question // the last one about a plan or an entry of the policy; nil if there was none
	asks     string           // the call that waits for an approval; empty if none does
}

// A priorConversation is what the last attempt at a task had when the run was interrupted.
type priorConversation struct {
	turns     map[int]priorTurn      // later turns of its last attempt
	holders   map[string]priorHolder // prompts of agents that its conversation was transferred to, by the end of their sessions
	converses bool                   // that attempt has called tools, and not ended
}

// begin takes in the start of an attempt.
func (b *priorTask) begin(session string, number int, at time.Time) {
	if b.number = max(b.number, number); b.start.IsZero() {
		b.start, b.first = at, session
	}
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

// metrics are what the work on a task took so far.
func (b priorTask) metrics() Metrics {
	if b.end.IsZero() { // it was interrupted at an unknown time
		b.end = b.start
	}
	return Metrics{Start: b.start, End: b.end, Usage: b.usage, Attempts: b.attempts, Interrupted: b.interrupted, Partial: b.partial, ToolCalls: b.calledTools(), TokensSaved: b.saved}
}
