package memo

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
)

// processTimes are when earlier processes worked on a run, and when it was paused.
type processTimes struct {
	lives  []span // of each process: from its begin to when it is known to have worked last
	pauses []span
}

// A span is a time between two moments. The zero value of its end is that of a span without one.
type span struct{ from, to time.Time }

// within returns how much of a span is in another one, which has an end.
func (s span) within(other span) time.Duration {
	if s.from.Before(other.from) {
		s.from = other.from
	}
	if s.to.IsZero() || s.to.After(other.to) {
		s.to = other.to
	}
	return max(s.to.Sub(s.from), 0)
}

// timesOf returns the times of the processes of a history, before its entries are added.
func timesOf(h *record.History) (p processTimes) {
	for i := range h.Begins {
		at := h.Begins[i].Time
		p.lives = append(p.lives, span{at, at})
	}
	if n := len(p.lives); n > 0 && h.Alive.After(p.lives[n-1].to) {
		p.lives[n-1].to = h.Alive
	}
	return p
}

// add adds an entry.
func (p *processTimes) add(e *record.Entry) {
	at := timeOf(e)
	for k := range p.lives {
		if life := &p.lives[k]; at.After(life.to) && (k+1 == len(p.lives) || at.Before(p.lives[k+1].from)) {
			life.to = at
		}
	}
	if e.Command != nil {
		p.command(e.Command)
	}
}

// command adds a command. The run is not paused any more when the next process begins.
func (p *processTimes) command(c *record.Command) {
	at, last := c.Effective(), len(p.pauses)-1
	isPaused := last >= 0 && (p.pauses[last].to.IsZero() || p.pauses[last].to.After(at))
	switch {
	case c.Kind == steer.Pause && !isPaused:
		pause := span{from: at}
		if next := slices.IndexFunc(p.lives, func(life span) bool { return life.from.After(at) }); next >= 0 {
			pause.to = p.lives[next].from
		}
		p.pauses = append(p.pauses, pause)
	case c.Kind == steer.Resume && isPaused:
		p.pauses[last].to = at
	}
}

// WaitedFor returns how long earlier processes are known to have waited for the reply to a handoff, without pauses of the
// run. A process that dies leaves what it recorded last and, in a journal with leases, when it was seen last: that bounds
// its wait from below.
func (m *Memo) WaitedFor(s *record.SentMessage) (waited time.Duration) {
	since := s.Time
	if x := m.Call(s.Call).Result; x != nil && x.Code == codes.ReplyPending { // it counts all that was before
		waited, since = x.End.Sub(x.Start), x.End
	}
	for _, life := range m.times.lives {
		if since.After(life.from) {
			life.from = since
		}
		waited += life.within(life)
		for _, pause := range m.times.pauses {
			waited -= pause.within(life)
		}
	}
	return waited
}

// timeOf returns when the process that works on the run made an entry; zero if that is not known. Answers and commands may
// come from another process, when none works on the run.
func timeOf(e *record.Entry) (at time.Time) {
	for _, call := range []*record.AgentCall{e.Exchange, e.Rejected, e.Turn, e.ToolResult, e.Files} {
		if call != nil {
			return call.End
		}
	}
	switch {
	case e.Asked != nil:
		return e.Asked.Time
	case e.ToolCall != nil:
		return e.ToolCall.Time
	case e.Begun != nil:
		return e.Begun.Time
	case e.Sent != nil:
		return e.Sent.Time
	case e.Question != nil:
		return e.Question.Time
	}
	return at
}
