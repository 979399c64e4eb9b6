package engine

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A priorRun is the record of a run in the journal: of this run before it was
// interrupted, or of the run that is replayed. A nil *priorRun is empty.
type priorRun struct {
	history *record.History
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
	folders   map[task.ID]*priorFiles            // workspaces
	given     map[record.Key]*record.Answer      // of people, by the keys of their questions
	approvals *approvals
	tasks     map[task.ID]*priorTask // also the coordinator's steps
	sent      []*record.SentMessage
	delivered map[string]bool  // ids of messages that a prompt contains
	usage     llm.Usage        // of all of it
	payments  []plan.PriorCall // the items that usage is the sum of
	context   Context
}

// A priorTask is what an earlier run recorded about one task, or one step of the coordinator.
type priorTask struct {
	usage       llm.Usage
	rounded     bool // the usage is not exact
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
	turns     map[int]priorTurn // later turns of its last attempt
	converses bool              // that attempt has called tools, and not ended
}

// priorOf returns the prior run that the options name, or nil.
func priorOf(o *RunOptions) *priorRun {
	var p *priorRun
	switch {
	case o.Past == nil:
		return nil
	case o.Replay != nil:
		p = &priorRun{history: o.Past, own: !o.Replay.Ask, whole: true, strict: !o.Replay.Ask}
	default:
		p = &priorRun{history: o.Past, own: true}
	}
	p.answers, p.given, p.tasks, p.delivered = map[record.Key]*record.AgentCall{}, map[record.Key]*record.Answer{}, map[task.ID]*priorTask{}, map[string]bool{}
	p.approvals = newApprovals()
	p.turns, p.toolCalls, p.results = map[record.Key]*record.AgentCall{}, map[string]*record.CallStart{}, map[string]*record.AgentCall{}
	p.files, p.folders = map[string]*record.AgentCall{}, map[task.ID]*priorFiles{}
	asked := map[string]*record.CallStart{} // by session: calls that have no end yet
	begun := map[string]bool{}              // by session: prefetched attempts that were started
	p.rejected, p.earlier = map[record.Key]*record.AgentCall{}, map[record.Key][]*record.AgentCall{}
	open := map[string]*record.AgentCall{} // by session: answers that were rejected, and of whose correction nothing is known
	for i := range p.history.Log {
		switch e := &p.history.Log[i]; {
		case e.Begun != nil:
			begun[e.Begun.Session] = true
		case e.Asked != nil:
			asked[e.Asked.Session] = e.Asked
			p.of(e.Asked.Task).begin(e.Asked.Session, e.Asked.Attempt, e.Asked.Time)
			p.of(e.Asked.Task).ask(e.Asked)
			p.deliver(e.Asked.Messages)
		case e.Exchange != nil:
			p.of(e.Exchange.Task).place = i + 1
			delete(asked, e.Exchange.Session)
			delete(open, e.Exchange.Session)
			p.take(e.Exchange)
		case e.Command != nil:
			takeCommand(p, e.Command)
		case e.Sent != nil:
			p.sent = append(p.sent, e.Sent)
		case e.Turn != nil:
			p.turns[p.keyOf(e.Turn)] = e.Turn
			p.beginFiles(e.Turn.Task)
			p.of(e.Turn.Task).converses = true
			delete(asked, e.Turn.Session)
			open[e.Turn.Session] = e.Turn
		case e.ToolCall != nil, e.ToolResult != nil, e.Files != nil:
			p.takeTool(e)
		case e.Rejected != nil:
			p.rejected[p.keyOf(e.Rejected)] = e.Rejected
			delete(asked, e.Rejected.Session)
			open[e.Rejected.Session] = e.Rejected
		case e.Question != nil, e.Answer != nil:
			p.takeQuestion(e)
		}
	}
	for _, x := range open {
		b := p.of(x.Task)
		p.spend(b, plan.PriorCall{Agent: x.Agent, Model: x.Model, Usage: x.Usage(), Cost: x.Cost})
		if !hasTurn(asked, x.Session) && b.asks == "" { // else that one counts, or it waits for an approval
			b.attempts, b.interrupted = b.attempts+1, b.interrupted+1
		}
	}
	p.takeInterrupted(asked, begun)
	return p
}

// takeInterrupted takes in the calls that have no end.
func (p *priorRun) takeInterrupted(asked map[string]*record.CallStart, begun map[string]bool) {
	for session, a := range asked {
		if a.Ahead && !begun[session] || p.strict {
			continue // no agent was called; or a replay repeats it as it was
		}
		b := p.of(a.Task)
		b.attempts, b.interrupted = b.attempts+1, b.interrupted+1
		if a.Effect != "" && !a.Repeatable {
			b.uncertain = max(b.uncertain, a.Attempt)
		}
		p.spend(b, plan.PriorCall{Agent: a.Agent, Model: a.Model, Usage: llm.Usage{InputTokens: gate.Tokens(a.Bytes)}})
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
		b.asks = ""
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

// of returns what there was of a task, which it makes if it is the first.
func (p *priorRun) of(id task.ID) *priorTask {
	b := p.tasks[id]
	if b == nil {
		b = &priorTask{}
		p.tasks[id] = b
	}
	return b
}

// begin takes in the start of an attempt.
func (b *priorTask) begin(session string, number int, at time.Time) {
	if b.number = max(b.number, number); b.start.IsZero() {
		b.start, b.first = at, session
	}
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
	p.spend(b, plan.PriorCall{Agent: x.Agent, Model: x.Model, Usage: x.Usage(), Cost: x.Cost})
	b.rounded = b.rounded || x.Rounded
	p.context = p.context.Add(x.Context)
	b.number = max(b.number, x.Attempt)
	if x.Part != "" {
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

// ask takes in the start of a call of the agent.
func (b *priorTask) ask(c *record.CallStart) {
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
	_, digits, isTurn := strings.Cut(session, record.TurnPrefix)
	n, err := strconv.Atoi(digits)
	return n, isTurn && err == nil
}

// takeCommand takes in what somebody asked of the run.
func takeCommand(p *priorRun, c *record.Command) {
	if c.Task != "" && (c.Kind == steer.Cancel || c.Kind == steer.Rerun) {
		p.of(c.Task).canceled = c.Kind == steer.Cancel
	}
}

// canceledTasks yields the tasks of a run that somebody canceled.
func canceledTasks(p *priorRun) iter.Seq[task.ID] {
	return func(yield func(task.ID) bool) {
		if p == nil {
			return
		}
		for id, b := range p.tasks {
			if b.canceled && !yield(id) {
				return
			}
		}
	}
}

// deliver records messages that a prompt contains.
func (p *priorRun) deliver(ids []string) {
	for _, id := range ids {
		p.delivered[id] = true
	}
}

// hasDirected reports whether an earlier process had a message for one task in a prompt.
func hasDirected(p *priorRun, id string) bool {
	return p != nil && p.own && p.delivered[id] && slices.ContainsFunc(p.sent, func(s *record.SentMessage) bool { return s.ID == id && s.Task != "" })
}

// undelivered returns the ids of the messages for one task that no prompt contains.
func undelivered(p *priorRun, id task.ID) (ids []string) {
	for _, s := range p.sent {
		if s.Task == id && !p.delivered[s.ID] {
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
	return p.sent
}

// keyOf returns the key of a model call by which its answer is found.
func (p *priorRun) keyOf(x *record.AgentCall) record.Key {
	if p.whole {
		return x.Key
	}
	return x.Core
}

// key returns the key by which an earlier answer to the same prompt is found.
func (p *priorRun) key(x *modelCall) record.Key {
	if p.whole {
		return p.masked(x.prior)
	}
	return p.masked(x.core)
}

// versionOf returns the version of the answers that an agent gave in the run that is replayed. What
// answers now may be another model, or a script.
func (p *priorRun) versionOf(m *plan.Member) string {
	was := *m
	if p != nil && p.whole {
		if v, known := p.history.Versions[m.Name]; known {
			was.Version = v
		}
	}
	return was.AnswerVersion()
}

// masked returns a key as the journal stores it.
func (p *priorRun) masked(key record.Key) record.Key {
	if mask := p.history.Mask; mask != nil {
		return mask(key)
	}
	return key
}

// answer returns what an agent answered to the same prompt before, or nil. A task takes its own
// answer, if it has one, else that of another task: an item may have moved in its list. But each
// round of a loop asks, and so does each question to a person.
func (p *priorRun) answer(x *modelCall) *record.AgentCall {
	if p == nil {
		return nil
	}
	key := p.key(x)
	last := p.answers[key]
	if last == nil || last.Task == x.task.ID {
		return last
	}
	other := last
	if x.isPerson() || isOtherRound(x.task, last) {
		other = nil
	}
	for _, e := range slices.Backward(p.earlier[key]) {
		switch {
		case e.Task == x.task.ID:
			return e
		case other == nil && !x.isPerson() && !isOtherRound(x.task, e):
			other = e
		}
	}
	return other
}

// isOtherRound reports whether an answer is that of another round of a task.
func isOtherRound(t *task.Task, e *record.AgentCall) bool {
	if t.Instance == nil || t.Instance.Round == 0 {
		return false
	}
	rounds := roundsOf(e.Title)
	return rounds != "" && rounds != roundsOf(t.Title)
}

// roundsOf returns the rounds in the title of an instance, without its items.
func roundsOf(title string) string { return strings.Join(inTitle.FindAllString(title, -1), "") }

var inTitle = regexp.MustCompile(`#[0-9.]+`)

// rejected returns an answer to the same prompt that had to be corrected, if the
// run continues from there: it was interrupted before the correction became the
// result, or it is replayed with all its prompts. What a command left in its workspace
// before it was interrupted is gone, so a command begins again.
func (x answerCache) rejected() *record.AgentCall {
	p := x.run.priorRun
	if p == nil || x.run.fresh.has(x.task.ID) || !p.strict && x.run.team.Find(x.caps.Agent).Process() != nil {
		return nil
	}
	key := p.key(x.modelCall)
	if p.answers[key] != nil && (!p.whole || len(x.task.OutputFiles) > 0) { // output files belong to the last answer
		return nil
	}
	return p.rejected[key]
}

// task returns what an earlier run recorded about a task; nil if it recorded nothing.
func (p *priorRun) task(id task.ID) *priorTask {
	if p == nil {
		return nil
	}
	return p.tasks[id]
}

// counted returns what there was of a task that counts as this run's work.
func (p *priorRun) counted(id task.ID) (b priorTask) {
	if p != nil && p.own && p.tasks[id] != nil {
		b = *p.tasks[id]
	}
	return b
}

// spend adds what a call for a task took.
func (p *priorRun) spend(b *priorTask, s plan.PriorCall) {
	b.usage, p.usage = b.usage.Add(s.Usage), p.usage.Add(s.Usage)
	p.payments = append(p.payments, s)
}

// spending returns what earlier processes of this run spent.
func (p *priorRun) spending() []plan.PriorCall {
	if p == nil || !p.own {
		return nil
	}
	return p.payments
}

// spent returns what the run had taken before.
func (p *priorRun) spent() (llm.Usage, Context) {
	if p == nil || !p.own {
		return llm.Usage{}, Context{}
	}
	return p.usage, p.context
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

// metrics are what the work on a task took so far.
func (b priorTask) metrics() Metrics {
	if b.end.IsZero() { // it was interrupted at an unknown time
		b.end = b.start
	}
	return Metrics{Start: b.start, End: b.end, Usage: b.usage, Attempts: b.attempts, Interrupted: b.interrupted, Rounded: b.rounded, ToolCalls: b.calledTools()}
}
