package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// newRun is the number of a run that an earlier statement of the same group has added, by its ID.
const newRun = "(select n from runs where id = $1)"

// begin adds a run with its first row, and with its lease unless it is submitted, and sets its number. It returns the ID of
// the run, or of the one that was submitted for the same request before. The error is errRunExists if there is a run with
// its ID.
func (s *store) begin(ctx context.Context, r *runRow, b *batch, of *Submission) (run string, err error) {
	g, err := s.firstGroup(r, b, of)
	for repeated := false; err == nil; repeated = true {
		err = s.db.Commit(ctx, []*Group{g})
		switch {
		case g.Refused || s.db.IsDuplicate(err):
			return s.existing(ctx, r, b, of, g.Refused, repeated)
		case err == nil:
			return r.id, nil
		case errors.Is(err, ErrUncertain):
			err = nil
		}
	}
	return "", err
}

// firstGroup returns the statements that add a run. They are refused if too many runs of its submitter wait.
func (s *store) firstGroup(r *runRow, b *batch, of *Submission) (*Group, error) {
	g := &Group{}
	if of != nil && of.Most > 0 && s.db.Lock() != "" { // until the end, so that the next submission counts this one
		g.add("insert into callers (spec, version, name, claimed) values ('', '', $1, 0) on conflict (spec, version, name) do update set claimed = 0", of.By)
	}
	if of != nil && of.Most > 0 {
		g.add("insert into runs (id, name, command, starter, spec, started) values ((select $1 where (select count(*) from submissions where submitter = $7 and state = $8) < $9), $2, $3, $4, $5, $6) returning n",
			r.id, r.name, r.command, r.starter, r.spec, nanos(r.started), of.By, isQueued, of.Most)
	} else {
		g.add("insert into runs (id, name, command, starter, spec, started) values ($1, $2, $3, $4, $5, $6) returning n", r.id, r.name, r.command, r.starter, r.spec, nanos(r.started))
	}
	g.Statements[len(g.Statements)-1].Into = []any{&r.n}
	if r.session != "" {
		g.add("insert into sessions (run, session, turn) values ("+newRun+", $2, $3)", r.id, r.session, r.place)
	}
	if of != nil && of.Label != nil {
		g.add("update runs set label = $2 where id = $1", r.id, int64(*of.Label))
	}
	if of != nil {
		g.add("insert into submissions (run, spec, version, submitter, request, due, priority, state, losses, replies, reason, digest) values ("+newRun+", $2, $3, $4, $5, $6, $7, $8, 0, 0, '', $9)",
			r.id, of.Spec, of.Version, of.By, of.Request, nanos(of.Due), of.Priority, isQueued, of.digest[:])
		g.add("insert into callers (spec, version, name, claimed) values ($1, $2, $3, 0) on conflict do nothing", of.Spec, of.Version, of.By)
	} else {
		l := &b.lease
		holder, err := json.Marshal(l.Holder)
		if err != nil {
			return nil, err
		}
		g.add("insert into leases (run, holder, beat, taken, renewed) values ("+newRun+", $2, $3, $4, $5)", r.id, string(holder), l.Beat, nanos(l.Taken), nanos(l.Renewed))
	}
	g.add(s.ofNewRun.batch, append([]any{r.id}, b.columns()...)...)
	for i := range b.turns {
		g.add(s.ofNewRun.turn, append([]any{r.id}, b.turns[i].columns()...)...)
	}
	return g, nil
}

// existing returns the ID of the run that is there in place of one that could not be added: the same one, which was sent
// before, or that of the same request. If there is neither, the error says why the run could not be added.
func (s *store) existing(ctx context.Context, r *runRow, b *batch, of *Submission, refused, repeated bool) (run string, err error) {
	var same bool
	err = readRow(ctx, s.db, "select n, exists (select 1 from batches where run = n and state = $2) from runs where id = $1", []any{r.id, b.state}, &r.n, &same)
	switch {
	case err == nil && same && repeated:
		return r.id, nil
	case err == nil:
		return "", errRunExists
	case !errors.Is(err, sql.ErrNoRows):
		return "", err
	}
	if of != nil && of.Request != "" {
		err = readRow(ctx, s.db, "select r.id from submissions q join runs r on r.n = q.run where q.submitter = $1 and q.spec = $2 and q.request = $3", []any{of.By, of.Spec, of.Request}, &run)
		if !errors.Is(err, sql.ErrNoRows) {
			return run, err
		}
	}
	if refused {
		return "", ErrQueueFull
	}
	return "", fmt.Errorf("%w: turn %d of session %s is there already", ErrTurnTaken, r.place, r.session)
}
