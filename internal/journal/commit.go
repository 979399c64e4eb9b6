package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/audit"
)

// maxLines is how many bytes of lines one row has at most, including decisions.
const maxLines = 1 << 20

// A commit is what becomes durable in one transaction. The requests of one run make one
// row, or several if they are long. The assembler builds it and passes it to the committer.
type commit struct {
	now      time.Time // of the first request
	requests []*request
	runs     map[*Run][]*request // the requests that were added
	open     []*rowDraft         // one for each run, in the order of their first requests
	full     []*rowDraft
}

// A rowDraft is a row to which lines are added.
type rowDraft struct {
	run     *Run
	lines   *packer
	head    audit.Head // after the lines
	state   []byte
	answers []byte // their keys, one after the other
	taken   []int64
	turns   []turn
	marks   []mark
	spent   int64
	close   bool
}

// add adds a request to the row of its run.
func (c *commit) add(q *request) {
	if len(c.requests) == 0 {
		c.now = q.run.j.o.Now()
	}
	c.requests = append(c.requests, q)
	r := q.run
	if errors.Is(q.err, ErrShared) {
		return // earlier entries of the run stay, and it can be closed
	}
	if err := cmp.Or(r.err, r.failure(), q.err); err != nil {
		r.err, q.err = err, err
		return
	}
	c.runs[r] = append(c.runs[r], q)
	d := c.draft(r)
	if err := d.add(q, c.now); err != nil { // the error dropped the lines
		r.err = err
		c.refuse(r, err)
		return
	}
	if d.lines.size > maxLines {
		c.snapshot(d)
		c.full = append(c.full, d)
		c.open = slices.DeleteFunc(c.open, func(o *rowDraft) bool { return o == d })
	}
}

// refuse fails all requests of a run in this commit.
func (c *commit) refuse(r *Run, err error) {
	for _, q := range c.runs[r] {
		q.err = cmp.Or(q.err, err)
	}
	ofRun := func(d *rowDraft) bool { return d.run == r }
	c.open, c.full = slices.DeleteFunc(c.open, ofRun), slices.DeleteFunc(c.full, ofRun)
}

// draft returns the open draft of a run, a new one if there is none.
func (c *commit) draft(r *Run) *rowDraft {
	for _, d := range c.open {
		if d.run == r {
			return d
		}
	}
	d := &rowDraft{run: r, lines: newPacker()}
	c.open = append(c.open, d)
	return d
}

// add adds a request to a draft.
func (d *rowDraft) add(q *request, now time.Time) error {
	lines := d.run.lines
	if err := lines.AddBatch(q.lines); err != nil {
		return err
	}
	q.releaseLines()
	d.answers, d.turns, d.marks = append(d.answers, q.answers...), append(d.turns, q.turns...), append(d.marks, q.marks...)
	d.taken, d.spent = append(d.taken, q.taken...), d.spent+q.spent
	if d.close = q.close; q.close {
		if _, err := lines.Close(now); err != nil {
			return err
		}
	}
	d.lines.add(lines.Take())
	return nil
}

// ready prepares the commit for the committer.
func (c *commit) ready() {
	for _, d := range slices.Clone(c.open) {
		c.snapshot(d)
	}
}

// snapshot stores the state of the chain in a draft.
func (c *commit) snapshot(d *rowDraft) {
	s := d.run.lines.State()
	var err error
	if d.state, err = s.MarshalBinary(); err != nil {
		d.run.err = err
		c.refuse(d.run, err)
	}
	d.head = s.Head()
	d.lines.compressFull()
}

// batches returns the rows to store, without those of failed runs.
func (c *commit) batches() (list []*batch, drafts []*rowDraft) {
	for r := range c.runs {
		if err := r.failure(); err != nil {
			c.refuse(r, err)
		}
	}
	for _, d := range slices.Concat(c.full, c.open) {
		b := &batch{run: d.run.row.n, lease: d.run.lease, at: c.now, state: d.state, empty: d.lines.size == 0, answers: d.answers, taken: d.taken, turns: d.turns, marks: packMarks(d.marks), release: d.close, queue: d.run.queueState(), spent: d.spent}
		if b.lines = d.lines.finish(); !b.empty || len(b.turns) > 0 || b.release {
			list, drafts = append(list, b), append(drafts, d)
		}
	}
	return list, drafts
}

// write commits what the assembler passes on, renews leases, and at the end releases the
// runs that were not closed. If a commit fails, nothing more of its runs is written, since
// it would follow a gap; other runs are not affected.
func (w *writer) write() {
	defer close(w.end)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case c, more := <-w.commits:
			if !more {
				w.releaseRuns()
				w.tellServed(nil)
				return
			}
			w.commit(c)
		case <-beat.C:
			w.renew(w.openRuns()...)
			w.tellServed(w.serving.get())
		}
	}
}

// tellServed stores what this process serves as a worker, if it is one.
func (w *writer) tellServed(serves []Served) {
	if w.serving.get() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewalWait)
	defer cancel()
	if err := w.serving.store(ctx, w.j.store.db, w.j.o.Now(), serves); err != nil { // lists of runs are wrong until the next beat
		w.j.o.Logger.Debug("what this process serves could not be stored", "error", err)
	}
}

// commit writes the rows of a commit and answers its requests.
func (w *writer) commit(c *commit) {
	w.settle(c)
	if list, drafts := c.batches(); len(list) > 0 {
		w.err = w.j.fail("write", w.j.store.commit(context.Background(), list))
		for i, b := range list {
			drafts[i].run.lease = b.lease
		}
		if w.err != nil {
			for r := range c.runs {
				w.refuseRun(c, r, w.err)
			}
		} else {
			for i, b := range list {
				w.finish(c, drafts[i], b)
			}
		}
	}
	for _, q := range c.requests {
		if q.close && q.err != nil { // the lease did not end with the commit
			q.run.over = true
			w.renew(q.run)
		}
		q.answer(w.j.fail("write", q.err))
	}
	for _, d := range slices.Concat(c.full, c.open) {
		d.lines.release()
	}
}

// settle renews the leases of which it is not known whether they were renewed, since the rows of a commit name them. It
// waits for the database as long as a commit does.
func (w *writer) settle(c *commit) {
	var err error
	for r := range c.runs {
		if r.unsure && err == nil {
			err = w.j.fail("write", w.renewLease(context.Background(), r))
		}
		if r.unsure {
			w.err = err
			w.refuseRun(c, r, err)
		}
	}
}

// refuseRun fails a run if something of it could not be written.
func (w *writer) refuseRun(c *commit, r *Run, err error) {
	r.fail(err)
	c.refuse(r, r.failure())
}

// finish records the outcome of a batch.
func (w *writer) finish(c *commit, d *rowDraft, b *batch) {
	r := d.run
	if b.lost {
		w.refuseRun(c, r, ErrLost)
		w.removeRun(r)
		return
	}
	r.mu.Lock()
	r.head = d.head
	r.mu.Unlock()
	if b.release {
		w.removeRun(r)
	}
}

// answer calls done.
func (q *request) answer(err error) {
	if q.done != nil {
		q.done(err)
	}
}

// ErrLost reports that another process has taken a run over, so that this one writes
// nothing of it any more. It wraps [ErrLeased].
var ErrLost = fmt.Errorf("%w: another process has taken it over", ErrLeased)

// renewalWait limits how long a renewal of leases waits for a locked file or a server, since nothing
// else is written during that time. The next beat retries it.
const renewalWait = time.Second

// renew renews the leases of runs. It releases the lease of a run that was closed but could
// not be written completely.
func (w *writer) renew(runs ...*Run) {
	ctx, cancel := context.WithTimeout(context.Background(), renewalWait)
	defer cancel()
	for _, r := range runs {
		if errors.Is(r.failure(), ErrLost) {
			continue
		}
		if err := w.renewLease(ctx, r); err != nil { // the next commit finds out whether the lease is still held
			w.logLease("the lease of a run could not be written", r, err)
		} else {
			w.err = nil // the journal can be written again
		}
	}
}

// renewLease renews the lease of a run, or releases it if the run is over.
func (w *writer) renewLease(ctx context.Context, r *Run) error {
	next := new(r.lease.next(w.j.me, w.j.o.Now()))
	if r.over {
		next = nil
	}
	began := time.Now()
	ok, err := w.j.store.swapLease(ctx, r.row.n, &r.lease, next)
	r.unsure = err != nil && (r.unsure || errors.Is(err, ErrUncertain))
	switch {
	case err != nil:
	case !ok:
		r.fail(ErrLost)
		w.removeRun(r)
	case r.over:
		w.removeRun(r)
	default:
		r.lease = *next
		if r.expiry != nil { // if its time is over already, the calls have ended
			r.expiry.Reset(leaseTime - time.Since(began))
		}
	}
	return err
}

// logLease logs that the lease of a run could not be changed. A run that has failed has reported why.
func (w *writer) logLease(text string, r *Run, err error) {
	level := slog.LevelWarn
	if r.failure() != nil {
		level = slog.LevelDebug
	}
	w.j.o.Logger.Log(context.Background(), level, text, "run", r.row.id, "error", err)
}

// releaseRuns releases the runs that were not closed.
func (w *writer) releaseRuns() {
	for _, r := range w.openRuns() {
		b := &batch{run: r.row.n, lease: r.lease, at: w.j.o.Now(), empty: true, release: true, queue: r.queueState()}
		if err := w.j.store.commit(context.Background(), []*batch{b}); err != nil {
			w.logLease("a run of the journal could not be released", r, err)
		}
	}
}

// openRuns returns the open runs, oldest first.
func (w *writer) openRuns() []*Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.open), func(a, b *Run) int { return cmp.Compare(a.row.n, b.row.n) })
}
