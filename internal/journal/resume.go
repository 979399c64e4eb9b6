package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/trace"
)

// slack is how far the clock may be behind the entries of a run. Resuming waits for it.
const slack = 2 * time.Second

// ErrClock reports that the clock is behind the entries of a run.
var ErrClock = errors.New("the clock was set back")

// Resume opens a run, which is named as for [Journal.Find], and returns what is stored of
// it. The error is a [*LeaseError] if another process works on the run; where that cannot be
// seen, Resume watches the lease for up to 15 s, or until the context ends. In a file, the error
// wraps [ErrClock] if the clock is more than 2 s behind the entries of the run; for less, Resume
// waits.
func (j *Journal) Resume(ctx context.Context, run string) (*Run, *Stored, error) {
	return j.reopen(ctx, run, j.recordTurn)
}

// reopen opens a stored run once opened has returned, which is called with its lease.
func (j *Journal) reopen(ctx context.Context, run string, opened func(context.Context, int64, *lease) error) (*Run, *Stored, error) {
	if err := j.writable(); err != nil {
		return nil, nil, j.fail("write", err)
	}
	row, err := j.find(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	l, err := j.takeLease(ctx, row.runRow)
	if err != nil {
		return nil, nil, err
	}
	leave, err := j.writer.keepOpen()
	if err != nil {
		return nil, nil, errors.Join(err, j.releaseLease(ctx, row.n, &l))
	}
	defer leave()
	r, s, err := j.reopenRow(ctx, row.runRow, l)
	if err == nil {
		err = opened(ctx, row.n, &l)
		r.lease = l
	}
	if err == nil {
		err = r.reportForged(ctx)
	}
	if err == nil {
		err = j.writer.addRun(r)
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.releaseLease(ctx, row.n, &l))
	}
	return r, s, nil
}

// reopenRow prepares a run whose lease this process has.
func (j *Journal) reopenRow(ctx context.Context, row runRow, l lease) (*Run, *Stored, error) {
	s, err := j.load(ctx, row.n, row.id)
	if err != nil {
		return nil, nil, err
	}
	if err := awaitClock(ctx, j, s.Newest); err != nil {
		return nil, nil, fmt.Errorf("resume run %s: %w", row.id, err)
	}
	left, err := j.store.commands.waiting(ctx, row.n, commandSteer)
	if err != nil {
		return nil, nil, j.fail("read", err)
	}
	r := j.run(s.Info, row)
	r.leftBefore = len(left) > 0
	s.History.Alive = l.before
	r.tenure, r.history = l.tenure(), &s.History
	for i := range s.History.Log {
		r.encoder.above.learn(&s.History.Log[i])
	}
	if r.lines, err = j.continueLines(ctx, r); err != nil {
		return nil, nil, j.fail("read", fmt.Errorf("run %s: %w", row.id, err))
	}
	r.encoder.lines, r.head = r.lines.Encoder(), r.lines.State().Head()
	return r, s, nil
}

// recordTurn records that this process, which has the lease, continues a run.
func (j *Journal) recordTurn(ctx context.Context, run int64, l *lease) error {
	now := j.o.Now()
	b := &batch{run: run, lease: *l, at: now, empty: true, turns: []turn{{at: now}}}
	err := j.store.commit(ctx, []*batch{b})
	if *l = b.lease; err != nil {
		return j.fail("write", err)
	}
	if b.lost {
		return j.fail("write", ErrLost)
	}
	return nil
}

// continueLines returns the lines that continue those of a run.
func (j *Journal) continueLines(ctx context.Context, r *Run) (*trace.Lines, error) {
	_, _, form, err := j.store.last(ctx, r.row.n)
	if err != nil {
		return nil, err
	}
	var s audit.State
	if err := s.UnmarshalBinary(form); err != nil {
		return nil, err
	}
	return trace.ContinueLines(trace.Options{Run: r.row.id, Key: j.o.AuditKey, Time: j.o.Now()}, s)
}

// awaitClock waits until the clock is past the newest entry of a run. In a database of several hosts, the clock of another
// one may have been wrong, and does not count.
func awaitClock(ctx context.Context, j *Journal, newest time.Time) error {
	for j.store.db.Age() == clocksOfHolders {
		behind := newest.Sub(j.o.Now())
		switch {
		case behind <= 0:
			return nil
		case behind > slack:
			return fmt.Errorf("%w: it is %s, and the run has an entry of %s: correct the clock, or wait", ErrClock, j.o.Now().Format(time.RFC3339), newest.Format(time.RFC3339))
		}
		if err := wait(ctx, behind); err != nil {
			return err
		}
	}
	return nil
}

// takeLease takes the lease of a run, or returns a [*LeaseError].
func (j *Journal) takeLease(ctx context.Context, row runRow) (lease, error) {
	began := time.Now() // monotonic, unlike j.o.Now
	w := watch{self: j.me, at: j.o.Now()}
	for reads := 0; ; reads++ {
		l, err := j.store.lease(ctx, row.n)
		if err != nil {
			return lease{}, j.fail("read", err)
		}
		if reads == 0 {
			w.first = l
		}
		of := unknown
		if l != nil {
			of = l.liveness(j.me)
		}
		verdict, pause := w.rule(l, of, time.Since(began))
		switch verdict {
		case free:
			next := l.next(j.me, j.o.Now())
			if ok, err := j.store.swapLease(ctx, row.n, l, &next); err != nil || ok {
				return next, j.fail("write", err)
			}
		case taken:
			return lease{}, &LeaseError{Run: row.id, Holder: l.Holder, Me: j.me, Since: l.Taken}
		default:
			if err := wait(ctx, pause); err != nil {
				return lease{}, fmt.Errorf("resume run %s, which %v may still work on: %w", row.id, l.Holder, err)
			}
		}
	}
}

// wait waits for d, or returns the cause of the end of the context.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
