package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Conditions of a session.
var (
	ErrSessionBusy = errors.New("the session answers another turn")
	ErrNoTurn      = errors.New("every turn of the session has ended")
	ErrOtherCaller = errors.New("the session has another caller")
)

// SessionOptions say whose turns a session has.
type SessionOptions struct {
	ID      string       // of a new session; empty means a new UUID
	Agent   string       // who answers; empty means the coordinator
	Journal record.Store // stores the turns; nil means that the session ends with the process
}

// A Session is a conversation of a person with an agent or with the coordinator. Each turn is a run,
// which gets what was said in the turns before it, as far as these were answered. It is safe for
// concurrent use, one turn at a time.
type Session struct {
	team    *Team
	id      string
	agent   string
	journal record.Store

	mu         sync.Mutex // guards the rest
	busy       bool
	turn       int    // the number of the last turn
	after      string // the run of the last turn that was answered
	said       []plan.ConversationText
	calls      []plan.PriorCall   // of all turns
	runs       []TurnRun          // of all turns
	unfinished *record.StoredTurn // the last turn, if it did not end; nil if it did

	caller *label.Classification // the clearance of the user who sent the first turn; nil if it is unknown
}

// NewSession begins a session. The error is [task.Problems] if the team has nobody to answer.
func (t *Team) NewSession(o SessionOptions) (*Session, error) {
	if err := t.made(context.Background()); err != nil {
		return nil, err
	}
	found := plan.CheckAnswerer(t.roster, o.Agent)
	if err := naming.CheckLine(o.ID); o.ID != "" && err != nil {
		found = append(found, task.Problem{Pointer: "/id", Message: "the ID of the session: " + err.Error(), Err: err})
	}
	if len(found) > 0 {
		return nil, found
	}
	return &Session{team: t, id: cmp.Or(o.ID, uuid.NewString()), agent: cmp.Or(o.Agent, handoff.Coordinator), journal: o.Journal}, nil
}

// OpenSession opens the session that a run in o.Journal is a turn of. If the last turn did not end,
// [Session.Resume] continues it. While a process works on that turn, the error says so. An agent that
// answers must be the one that answered before.
func (t *Team) OpenSession(ctx context.Context, run string, o SessionOptions) (*Session, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	store, ok := o.Journal.(record.SessionStore)
	if !ok {
		return nil, task.Problems{{Pointer: "/journal", Message: "there is no journal to read the session from", Hint: "set Journal", Err: task.ErrInvalid}}
	}
	turns, err := store.LoadSession(ctx, run)
	if err != nil {
		return nil, err
	}
	last := &turns[len(turns)-1]
	if last.Busy != nil {
		return nil, last.Busy
	}
	if o.Agent != "" && o.Agent != last.Agent {
		return nil, task.Problems{{Pointer: "/agent", Message: fmt.Sprintf("the session is with %q, not with %q", last.Agent, o.Agent), Hint: "leave the agent out, or begin a new session", Err: task.ErrInvalid}}
	}
	if found := plan.CheckAnswerer(t.roster, last.Agent); len(found) > 0 {
		return nil, found
	}
	s := &Session{team: t, id: last.Session, agent: last.Agent, journal: o.Journal, turn: last.Turn}
	if begins := turns[0].History.Begins; len(begins) > 0 {
		s.caller = begins[0].Accepts
	}
	for i := range turns {
		s.calls, s.runs = append(s.calls, paidIn(&turns[i])...), append(s.runs, storedRun(&turns[i]))
		if isAnswered(&turns[i]) {
			s.after = turns[i].Run
		}
	}
	if !hasEnded(last) {
		s.unfinished, s.after = last, last.After
		s.calls = s.calls[:len(s.calls)-len(paidIn(last))] // its run counts them
	}
	if s.said, err = conversationOf(turns, s.after); err != nil {
		return nil, err
	}
	return s, nil
}

// ID returns the ID of the session, which is that of the run of its first turn.
func (s *Session) ID() string { return s.id }

// Agent returns who answers.
func (s *Session) Agent() string { return s.agent }

// Turns returns how many turns the session has, also those that were not answered.
func (s *Session) Turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// Unfinished returns what the person said in the last turn, if its run did not end.
func (s *Session) Unfinished() (text string, run string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unfinished == nil {
		return "", "", false
	}
	return s.unfinished.Text, s.unfinished.Run, true
}

// Send has a text answered, and returns the result of its run. Tasks, Answer, Output and Journal of
// the options are ignored, and RunID is for later turns: the first has the ID of the session. A turn
// that was not answered is not part of the conversation.
//
// The error is [task.Problems] if the turn cannot be sent, and wraps [ErrSessionBusy] while another
// turn is answered.
func (s *Session) Send(ctx context.Context, text string, level label.Classification, o *RunOptions) (*Result, error) {
	if err := s.team.made(ctx); err != nil {
		return nil, err
	}
	if !s.begin() {
		return nil, ErrSessionBusy
	}
	defer s.end()
	options := s.Next(text, level, o)
	turn := options.Turn
	if found := plan.CheckTurn(s.team.roster, turn); len(found) > 0 {
		return nil, found
	}
	began := time.Now()
	res, err := s.run(ctx, &options, nil)
	if err != nil {
		return nil, err
	}
	s.take(res, &record.StoredTurn{SessionTurn: *turn, Run: res.RunID, Began: began}, s.journal != nil)
	return res, nil
}

// Next returns the options with which [Session.Send] would run a turn: with the tasks or the goal in
// Tasks or Answer, and an ID of the run that Send uses too if it gets these options.
func (s *Session) Next(text string, level label.Classification, o *RunOptions) RunOptions {
	options := s.options(o)
	if s.turn == 0 {
		options.RunID = s.id
	}
	options.RunID = cmp.Or(options.RunID, uuid.NewString())
	options.Turn = &record.SessionTurn{Session: s.id, Turn: s.turn + 1, Agent: s.agent, After: s.after, Label: level, Text: text}
	SetTurn(&options)
	return options
}

// Spent returns the tokens and the known cost of all turns, as far as their caller may see them.
func (s *Session) Spent() (u llm.Usage, cost llm.Money) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		u, cost = u.Add(r.Usage), cost.Add(r.Cost)
	}
	return u, cost
}

// Answered returns how many turns were answered, which are those of the conversation.
func (s *Session) Answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.said) / 2 // what the person said, and the answer
}

// pay counts calls of an earlier process.
func (s *Session) pay(calls []plan.PriorCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, calls...)
}

// Resume continues the last turn, whose run did not end. It returns [ErrNoTurn] if it did.
func (s *Session) Resume(ctx context.Context, o *RunOptions) (*Result, error) {
	if err := s.team.made(ctx); err != nil {
		return nil, err
	}
	if !s.begin() {
		return nil, ErrSessionBusy
	}
	defer s.end()
	last := s.unfinished
	if last == nil {
		return nil, ErrNoTurn
	}
	if last.Missing != "" {
		return nil, fmt.Errorf("turn %d of the session cannot be resumed: what was said is %s", last.Turn, last.Missing)
	}
	options := s.options(o)
	options.Turn, options.RunID = &last.SessionTurn, last.Run
	res, err := s.run(ctx, &options, last)
	if err != nil {
		return nil, err
	}
	s.pay(paidIn(last))
	s.take(res, last, true)
	return res, nil
}

// begin takes the session for one turn.
func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return false
	}
	s.busy = true
	return true
}

func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// options returns the options of the next turn.
func (s *Session) options(o *RunOptions) RunOptions {
	var options RunOptions
	if o != nil {
		options = *o
	}
	if options.Journal == nil {
		options.Journal = s.journal
	}
	options.Tasks, options.Answer, options.Output, options.Auto = nil, nil, "", false
	options.Replay, options.Stored = nil, plan.Stored{}
	options.Conversation, options.EarlierCalls = s.said, s.calls
	return options
}

// run runs a turn, or resumes it.
func (s *Session) run(ctx context.Context, o *RunOptions, again *record.StoredTurn) (*Result, error) {
	of := o.WithDefaults()
	accepts := of.RecordClearance()
	if s.caller != nil && *s.caller != accepts {
		return nil, fmt.Errorf("%w, who sees up to %v, and this one sees up to %v: begin a new session", ErrOtherCaller, *s.caller, accepts)
	}
	res, err := s.runTurn(ctx, o, again)
	if err == nil {
		s.caller = &accepts
	}
	return res, err
}

func (s *Session) runTurn(ctx context.Context, o *RunOptions, again *record.StoredTurn) (*Result, error) {
	switch {
	case again != nil:
		SetTurn(o)
		return s.team.Resume(ctx, again.Run, o)
	case o.Answer != nil:
		return s.team.RunTeam(ctx, *o.Answer, o)
	}
	return s.team.RunTasks(ctx, o.Tasks, o)
}

// take adds a turn to the session, and what was said to the conversation if it was answered.
func (s *Session) take(res *Result, t *record.StoredTurn, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.calls = t.Turn, append(s.calls, res.calls...)
	s.note(t.Turn, res)
	switch {
	case res.Status == StatusSuspended && stored:
		s.unfinished = t
		return
	case res.Status != StatusOK || res.answer == nil:
		s.unfinished = nil
		return
	}
	s.unfinished, s.after = nil, res.RunID
	reads := res.reads
	if t.History != nil { // of an earlier process
		reads = addReads(readsIn(t), reads)
	}
	s.said = append(s.said[:len(s.said):len(s.said)], personSaid(t), plan.ConversationText{Turn: t.Turn, From: s.agent, Envelope: res.answer, Reads: reads})
}

// SetTurn sets the tasks or the goal of options to those of their turn.
func SetTurn(o *RunOptions) {
	if t := o.Turn; t.Agent == handoff.Coordinator {
		o.Tasks, o.Answer = nil, &plan.Goal{Text: t.Text, Classification: t.Label}
	} else {
		o.Tasks, o.Answer, o.Untitled = []task.Spec{plan.TurnTask(t, o.Inputs)}, nil, true
	}
}
