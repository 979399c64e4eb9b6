package journal

import (
	"context"
	"database/sql"
	"time"

	"github.com/runteam/runteam/internal/record"
)

// Took returns for how long processes have worked on the run until now, and whether that is known: it is
// not of a run that did not end and has no process.
func (s *Summary) Took(now time.Time) (took time.Duration, known bool) {
	switch {
	case !s.Ended.IsZero():
		return s.worked, true
	case s.Holder != nil:
		return s.worked + now.Sub(s.since), true
	}
	return 0, false
}

// isWork reports whether an entry is more than the repetition of what was stored.
func isWork(e *record.Entry) bool {
	return e.Asked != nil || e.Exchange != nil || e.Sent != nil || e.Turn != nil || e.ToolCall != nil || e.Question != nil || e.Answer != nil || e.Command != nil
}

// isIdle reports whether a process ends a run that had ended in the same way, and did nothing.
func (r *Run) isIdle(e *record.RunEnd) bool {
	return r.history != nil && !r.worked.Load() && r.history.End != nil && r.history.End.Status == e.Status
}

// A storedTurn is a turn, with the time of the last row that was stored before the next one.
type storedTurn struct {
	turn
	last time.Time // zero if none was
}

// addSpan sets when a run ended and for how long processes have worked on it. What a process did that
// only repeated a stored run does not count.
func (c *catalog) addSpan(ctx context.Context, r *row, s *Summary) error {
	s.since, s.worked = s.Started, max(s.Ended.Sub(s.Started), 0)
	if r.turns <= singleProcess {
		return nil
	}
	turns, err := c.store.turnsOf(ctx, r.n)
	if err != nil {
		return err
	}
	s.worked = 0
	from := s.Started // when the process began; zero after its end
	for i := 1; i < len(turns); i++ {
		t := &turns[i]
		switch {
		case t.status == "":
			if from.IsZero() {
				from = t.at
			}
			if lost := i+1 < len(turns) && turns[i+1].status == ""; lost {
				s.worked += max(t.last.Sub(from), 0)
				from = time.Time{}
			}
		case !t.isIdle():
			s.worked += max(t.at.Sub(from), 0)
			s.Ended, from = t.at, time.Time{}
		default:
			from = time.Time{}
		}
	}
	if r.turn.status == "" {
		s.Ended, s.since = time.Time{}, from
	}
	return nil
}

// singleProcess is how many turns a run has that one process began and ended: the run, its first entry
// and its end.
const singleProcess = 3

// turnsOf returns the turns of a run, in order.
func (s *store) turnsOf(ctx context.Context, run int64) ([]storedTurn, error) {
	scan := func(rows *sql.Rows, t *storedTurn) error {
		var at int64
		var last sql.NullInt64
		err := rows.Scan(&at, &t.status, &t.tasks, &last)
		if t.at = fromNanos(at); last.Valid {
			t.last = fromNanos(last.Int64)
		}
		return err
	}
	return readAll(ctx, s.db, scan, `select t.at, t.status, t.tasks, (select max(b.at) from batches b where b.run = t.run and b.at >= t.at
and b.at < coalesce((select min(u.at) from turns u where u.run = t.run and u.n > t.n), 9223372036854775807))
from turns t where t.run = $1 order by t.n`, run)
}
