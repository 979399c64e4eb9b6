package team

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// ErrSessionBusy reports a turn that was sent while another turn of the session is answered.
var ErrSessionBusy = engine.ErrSessionBusy

// ErrOtherCaller reports a turn of a caller whose clearance is not that of the first turn: a session has one caller.
var ErrOtherCaller = engine.ErrOtherCaller

// A Session is a conversation of a person with one agent, or with the coordinator. Each turn is a
// run. Its agent gets what was said in the turns before it, through the gate: texts above its
// clearance are withheld from it, and its answer has at least the label of what it got. Turns that
// were not answered are not part of the conversation.
//
// The budgets of a session's runs are those of the session: what earlier turns spent counts. A
// Session is safe for concurrent use, but answers one turn at a time.
type Session struct{ of *engine.Session }

// SessionOptions say who answers the turns of a session. The zero value is for the coordinator, and
// for a session that ends with the process.
type SessionOptions struct {
	ID      string  // of a new session; empty means a new UUID
	Agent   string  // who answers; empty means the coordinator, or who answered before
	Journal Journal // stores the turns, so that a later process can resume the session; nil stores nothing
}

func (o SessionOptions) internal() engine.SessionOptions {
	return engine.SessionOptions{ID: o.ID, Agent: o.Agent, Journal: o.Journal}
}

// A Turn is what a person says in a session.
type Turn struct {
	Text           string               // required; at most 256 KiB
	Classification label.Classification // of Text; zero means internal
}

// NewSession begins a session. The error is [task.Problems] if the team has no such agent, if it is a
// person, or if there is neither an agent nor a coordinator.
func (t *Team) NewSession(o SessionOptions) (*Session, error) {
	s, err := (*engine.Team)(t).NewSession(o.internal())
	if err != nil {
		return nil, err
	}
	return &Session{s}, nil
}

// ResumeSession continues the session with this ID from o.Journal. Instead of the ID, the first
// digits of it or the ID of one of its runs will do. No turn that was answered is asked again; if the
// last turn was interrupted, [Session.Resume] continues it. While another process works on a turn,
// the error wraps [journal.ErrLeased].
//
// [journal.ErrLeased]: https://pkg.go.dev/github.com/runteam/runteam/journal#pkg-variables
func (t *Team) ResumeSession(ctx context.Context, id string, o SessionOptions) (*Session, error) {
	if id == "" {
		return nil, task.Problems{{Pointer: "/id", Message: "the ID of the session is empty", Hint: "give the ID of a session in the journal", Err: task.ErrInvalid}}
	}
	s, err := (*engine.Team)(t).OpenSession(ctx, id, o.internal())
	if err != nil {
		return nil, err
	}
	return &Session{s}, nil
}

// ID returns the ID of the session, which is that of the run of its first turn.
func (s *Session) ID() string {
	if s.made() != nil {
		return ""
	}
	return s.of.ID()
}

// Agent returns who answers the turns: the name of an agent, or coordinator.
func (s *Session) Agent() string {
	if s.made() != nil {
		return ""
	}
	return s.of.Agent()
}

// made returns an error for a session that no team made.
func (s *Session) made() error {
	if s == nil || s.of == nil {
		return task.Problems{{Message: "the session is nil or zero", Hint: "make it with Team.NewSession or Team.ResumeSession", Err: task.ErrInvalid}}
	}
	return nil
}

// Send has a turn answered and returns the result of its run, whose Output is the answer. The errors
// are those of [Team.RunTasks], and [ErrSessionBusy] while another turn is answered. If another
// process has added a turn to the session since it was opened, the error wraps [journal.ErrLeased].
//
// An agent gets the inputs of the options after the text; a coordinator treats the text as its goal.
// Answer, Auto, Output, Replay, Tasks and, if it is nil, Journal are set by the session. RunID is
// ignored in the first turn.
//
// [journal.ErrLeased]: https://pkg.go.dev/github.com/runteam/runteam/journal#pkg-variables
func (s *Session) Send(ctx context.Context, turn Turn, o *RunOptions) (*Result, error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	return ended(s.of.Send(ctx, turn.Text, turn.Classification, o.internal()))
}

// Unfinished reports whether the last turn was interrupted or waits for a person, so that
// [Session.Resume] can continue it.
func (s *Session) Unfinished() bool {
	if s.made() != nil {
		return false
	}
	_, _, unfinished := s.of.Unfinished()
	return unfinished
}

// Resume continues the last turn, and returns the result of its run as [Session.Send] does. It is an
// error if there is nothing to resume. Send leaves such a turn out of the conversation instead.
func (s *Session) Resume(ctx context.Context, o *RunOptions) (*Result, error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	res, err := s.of.Resume(ctx, o.internal())
	if errors.Is(err, engine.ErrNoTurn) {
		return nil, task.Problems{{Message: err.Error(), Hint: "call Send", Err: task.ErrInvalid}}
	}
	return ended(res, err)
}
