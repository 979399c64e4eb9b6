package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
)

// A Worker says which runs a process takes.
type Worker struct {
	Serves     []Served
	MaxRunning int // how many runs of one caller may be worked on at once, by all workers; 0 means any number

	// MaxCostPerDay is what the runs of one caller may cost on a day in UTC, until no further run of theirs is taken; 0 means
	// any amount. It counts what all claimed runs have cost, also before they end, by the prices of their teams.
	MaxCostPerDay llm.Money
}

// A Claim is a submitted run that this process has taken.
type Claim struct {
	Run    *Run
	Stored *Stored
	Queue  QueuePlace
}

// ErrNoneQueued reports that no run waits for a worker.
var ErrNoneQueued = errors.New("no run waits for a worker")

// maxLosses is how often a run may lose its owner, without an agent having replied in between, until it is set aside.
const maxLosses = 3

// Claim takes a submitted run of a spec that w serves: one whose process was lost, else the first of the caller who has
// waited longest since a run of theirs was last taken. The error is [ErrNoneQueued] if there is none now; see [Journal.Await].
func (j *Journal) Claim(ctx context.Context, w Worker) (*Claim, error) {
	if err := j.checkWhole(); err != nil {
		return nil, err
	}
	leave, err := j.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	w.Serves = slices.Clone(w.Serves)
	for i := range w.Serves {
		w.Serves[i].Version = j.Masked(w.Serves[i].Version)
	}
	slices.SortFunc(w.Serves, func(a, b Served) int { return cmp.Or(cmp.Compare(a.Spec, b.Spec), cmp.Compare(a.Version, b.Version)) })
	if s := j.writer.serving; s.set(w.Serves) {
		if err := s.store(ctx, j.store.db, j.o.Now(), w.Serves); err != nil && ctx.Err() == nil {
			j.o.Logger.Debug("what this process serves could not be stored", "error", err)
		}
	}
	for {
		n, l, err := j.store.claim(ctx, j.catalog, &w)
		switch {
		case errors.Is(err, errTakenMeanwhile):
			continue
		case errors.Is(err, ErrNoneQueued):
			return nil, err
		case err != nil:
			return nil, j.fail("write", err)
		}
		c, err := j.openClaimed(ctx, n, l)
		if c != nil || err != nil {
			return c, err
		}
	}
}

// openClaimed opens a run whose lease this process has taken; nil if it was set aside instead.
func (j *Journal) openClaimed(ctx context.Context, n int64, l lease) (c *Claim, err error) {
	defer func() {
		if c == nil {
			err = errors.Join(err, j.releaseLease(ctx, n, &l))
		}
	}()
	row, losses, replies, digest, err := j.store.claimed(ctx, n)
	if err != nil {
		return nil, j.fail("read", err)
	}
	r, s, err := j.reopenRow(ctx, row.runRow, l)
	if err != nil {
		if ctx.Err() == nil && !isOfDatabase(err) { // no worker could read it, and the others wait
			j.o.Logger.Warn("a submitted run cannot be read", "run", row.id, "error", err)
			return nil, j.fail("write", j.store.setAside(ctx, row.id, n, "its rows cannot be read"))
		}
		return nil, err
	}
	if q := row.queue; submissionDigest(j.vault, &s.Info, q.Spec, q.Version, q.By, row.starter) != digest {
		return nil, j.fail("write", j.store.setAside(ctx, row.id, n, "what was submitted is "+ErrAltered.Error()))
	}
	r.paused = runstate.Of(&s.History).Paused
	now := 0
	for i := range s.History.Log {
		if s.History.Log[i].Exchange != nil {
			now++
		}
	}
	had := losses
	if now > replies {
		losses = min(losses, 1)
	}
	if losses >= maxLosses {
		why := fmt.Sprintf("it lost the process that worked on it %d times, and no agent replied in between", losses)
		return nil, j.fail("write", j.store.setAside(ctx, row.id, n, why))
	}
	if losses != had || now != replies {
		if err := j.store.note(ctx, n, isTaken, losses, now, ""); err != nil {
			return nil, j.fail("write", err)
		}
	}
	r.lease, r.isClaimed = l, true
	if err := r.reportForged(ctx); err != nil {
		return nil, err
	}
	if err := j.writer.addRun(r); err != nil {
		return nil, err
	}
	return &Claim{r, s, *row.queue}, nil
}

// isOfDatabase reports whether an error is not about a run, but about the database, and may be over soon.
func isOfDatabase(err error) bool {
	for _, of := range []error{ErrAway, ErrUncertain, ErrFull, ErrLocked, ErrGone, ErrClosed, ErrClock, ErrLost} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// setAside sets a run aside that is not open.
func (s *store) setAside(ctx context.Context, id string, n int64, why string) error {
	s.o.Logger.Warn("a run was set aside", "run", id, "reason", why)
	return s.note(ctx, n, isAside, 0, 0, why)
}

// Refuse sets a claimed run aside, with the reason, and releases it. The reason is stored in the clear, and everyone sees it
// who may see the run.
func (j *Journal) Refuse(ctx context.Context, c *Claim, why string) error {
	c.Run.mu.Lock()
	c.Run.aside = true
	c.Run.mu.Unlock()
	if _, err := c.Run.End(ctx); err != nil && !errors.Is(err, ErrClosed) { // what failed may have closed the run, which is queued then
		return err
	}
	_, err := j.store.execute(ctx, "update submissions set state = $1, losses = 0, reason = $2 where run = $3 and state in ($4, $1)", isAside, why, c.Run.row.n, isQueued)
	return j.fail("write", err)
}

// claim takes the lease of a run that waits for a worker.
func (s *store) claim(ctx context.Context, c *catalog, w *Worker) (run int64, l lease, err error) {
	err = s.db.Write(ctx, func(tx Tx, again bool) error {
		if again && run != 0 {
			if is, err := leaseOf(ctx, tx, s.db, run, ""); err != nil || is.same(&l) {
				return err
			}
		}
		var lost bool
		if run, lost, err = s.candidate(ctx, tx, c, w); err != nil {
			return err
		}
		old, err := leaseOf(ctx, tx, s.db, run, s.db.Lock())
		if err == nil && c.live(old) {
			err = errTakenMeanwhile
		}
		if err != nil {
			return err
		}
		l = old.next(c.me, c.now())
		take, err := swap(run, old, &l)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, take.Query, take.Args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return cmp.Or(err, errTakenMeanwhile)
		}
		more := 0
		if lost {
			more = 1
		}
		if _, err := tx.ExecContext(ctx, "update submissions set state = $1, losses = losses + $2 where run = $3", isTaken, more, run); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "insert into turns (run, at, status, tasks) values ($1, $2, '', '')", run, nanos(c.now()))
		return err
	})
	return run, l, err
}

// candidate returns a run that may be taken, and whether its owner was lost.
func (s *store) candidate(ctx context.Context, tx Tx, c *catalog, w *Worker) (run int64, lost bool, err error) {
	for _, of := range w.Serves {
		if run, err = s.abandoned(ctx, tx, c, of); run != 0 || err != nil {
			return run, true, err
		}
	}
	callers, err := s.callers(ctx, tx, w, c.now())
	if err != nil {
		return 0, false, err
	}
	for _, of := range callers {
		for {
			err := queryRow(ctx, tx, `select run from submissions where spec = $1 and version = $2 and submitter = $3 and state = 'queued' and due <= coalesce(`+s.db.Now()+`, $4)
and exists (select 1 from runs where n = submissions.run) order by priority desc, due, run limit 1`+s.db.SkipLocked(), []any{of.Spec, of.Version, of.name, nanos(c.now())}, &run)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return 0, false, err
			}
			l, err := leaseOf(ctx, tx, s.db, run, "")
			if err != nil {
				return 0, false, err
			}
			if c.live(l) { // somebody resumed it
				if _, err := tx.ExecContext(ctx, "update submissions set state = $1 where run = $2", isTaken, run); err != nil {
					return 0, false, err
				}
				continue
			}
			_, err = tx.ExecContext(ctx, "update callers set claimed = coalesce("+s.db.Now()+", $1) where spec = $2 and version = $3 and name = $4", nanos(c.now()), of.Spec, of.Version, of.name)
			return run, false, err
		}
	}
	return 0, false, ErrNoneQueued
}

// A caller submits runs of a spec.
type caller struct {
	Served
	name    string
	claimed int64
}

// callers returns the callers of whom runs may be taken, whoever has waited longest first.
func (s *store) callers(ctx context.Context, tx Tx, w *Worker, now time.Time) (all []caller, err error) {
	for _, of := range w.Serves {
		scan := func(rows *sql.Rows, c *caller) error {
			c.Served = of
			return rows.Scan(&c.name, &c.claimed)
		}
		list, err := queryAll(ctx, tx, scan, `select name, claimed from callers c where spec = $1 and version = $2
and (select q.run from submissions q where q.spec = c.spec and q.version = c.version and q.submitter = c.name and q.state = 'queued' limit 1) is not null
and ($3 = 0 or (select count(*) from submissions q where q.submitter = c.name and q.state = 'taken') < $3)
and ($4 = 0 or (select cast(coalesce(sum(q.spent), 0) as bigint) from submissions q where q.submitter = c.name and q.day > 0 and q.day = `+s.today(5)+`) < $4)
order by claimed, name`, of.Spec, of.Version, int64(w.MaxRunning), millionths(w.MaxCostPerDay), nanos(now))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b caller) int { return cmp.Compare(a.claimed, b.claimed) })
	return all, nil
}

// abandoned returns a run whose owner was lost; 0 if there is none.
func (s *store) abandoned(ctx context.Context, tx Tx, c *catalog, of Served) (run int64, err error) {
	type taken struct {
		run int64
		leaseRow
	}
	list, err := queryAll(ctx, tx, func(rows *sql.Rows, t *taken) error {
		return rows.Scan(append([]any{&t.run}, t.columns()...)...)
	}, "select q.run, holder, beat, taken, renewed, "+s.db.Age()+" from submissions q join runs r on r.n = q.run left join leases l on l.run = q.run where q.state = 'taken' and q.spec = $1 and q.version = $2", of.Spec, of.Version)
	if err != nil {
		return 0, err
	}
	for i := range list {
		l, err := list[i].lease()
		if err != nil {
			return 0, err
		}
		if c.live(l) {
			continue
		}
		err = queryRow(ctx, tx, "select run from submissions where run = $1 and state = 'taken'"+s.db.SkipLocked(), []any{list[i].run}, &run)
		if errors.Is(err, sql.ErrNoRows) { // another worker takes it now
			continue
		}
		return run, err
	}
	return 0, nil
}

// claimed returns the row of a run that was taken, how often it lost its owner since it had so many replies, and the digest
// of its submission.
func (s *store) claimed(ctx context.Context, n int64) (r row, losses, replies int, digest record.Digest, err error) {
	list, err := readAll(ctx, s.db, scanRun, s.selectRuns()+" where r.n = $1", n)
	if err == nil && len(list) == 0 {
		err = ErrUnknownRun
	}
	if err != nil {
		return r, 0, 0, digest, err
	}
	var stored []byte
	err = readRow(ctx, s.db, "select losses, replies, digest from submissions where run = $1", []any{n}, &losses, &replies, &stored)
	copy(digest[:], stored)
	return list[0], losses, replies, digest, err
}

// note sets what is known of a run that was taken.
func (s *store) note(ctx context.Context, run int64, state string, losses, replies int, why string) error {
	_, err := s.execute(ctx, "update submissions set state = $1, losses = $2, replies = $3, reason = $4 where run = $5", state, losses, replies, why, run)
	return err
}
