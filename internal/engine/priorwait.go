package engine

import (
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
)

// waitedFor returns how long earlier processes are known to have waited for the reply to a handoff, without
// pauses of the run. A process that dies leaves what it recorded last and, in a journal with leases, when it
// was seen last: that bounds its wait from below.
func waitedFor(p *priorRun, s *record.SentMessage) (waited time.Duration) {
	since := s.Time
	if e := p.results[s.Call]; e != nil && e.Code == codes.ReplyPending { // it counts all that was before
		waited, since = e.End.Sub(e.Start), e.End
	}
	for k := range p.history.Begins {
		began, ended := lifeOf(p, k)
		if since.After(began) {
			began = since
		}
		if ended.After(began) {
			waited += ended.Sub(began) - pausedBetween(p, began, ended)
		}
	}
	return waited
}

// lifeOf returns when the process with this number began to work on the run, and when it is known to have
// worked on it last.
func lifeOf(p *priorRun, k int) (began, last time.Time) {
	began = p.history.Begins[k].Time
	last = began
	isLast := k+1 == len(p.history.Begins)
	for i := range p.history.Log {
		if at := timeOf(&p.history.Log[i]); at.After(last) && (isLast || at.Before(p.history.Begins[k+1].Time)) {
			last = at
		}
	}
	if isLast && p.history.Alive.After(last) {
		last = p.history.Alive
	}
	return began, last
}

// pausedBetween returns how long a process had been paused between two moments of its life.
func pausedBetween(p *priorRun, from, to time.Time) (paused time.Duration) {
	var began time.Time // of the pause, if there is one
	end := func(at time.Time) {
		if at.After(to) {
			at = to
		}
		if from.After(began) {
			began = from
		}
		if at.After(began) {
			paused += at.Sub(began)
		}
		began = time.Time{}
	}
	next := 0 // process, which is not paused when it begins
	for i := range p.history.Log {
		c := p.history.Log[i].Command
		if c == nil {
			continue
		}
		at := c.Effective()
		for next < len(p.history.Begins) && !p.history.Begins[next].Time.After(at) {
			if next++; !began.IsZero() {
				end(p.history.Begins[next-1].Time)
			}
		}
		switch {
		case c.Kind == steer.Pause && began.IsZero():
			began = at
		case c.Kind == steer.Resume && !began.IsZero():
			end(at)
		}
	}
	if !began.IsZero() {
		end(to)
	}
	return paused
}

// timeOf returns when the process that works on the run made an entry; zero if that is not known. Answers
// and commands may come from another process, when none works on the run.
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
