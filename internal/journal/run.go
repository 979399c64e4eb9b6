package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/steer"
)

// ErrShared reports a [Run] that two runs of a team write to. The journal accepts no more
// entries of either, since it could not tell them apart.
var ErrShared = errors.New("two runs of a team write to one run of the journal: call Journal.Begin or Journal.Resume for each")

// A Run is a run that is being written, as a [record.Log]. It is safe for concurrent use.
// [Journal.Begin] and [Journal.Resume] return one.
type Run struct {
	j       *Journal
	row     runRow
	tenure  tenure
	encoder *encoder

	mu      sync.Mutex // guards the next ones
	info    Info
	head    audit.Head // of the durable lines
	failed  error      // why a commit failed; nothing is written after it
	closed  bool
	begun   bool           // a run of a team writes to it
	shared  bool           // a second one does too
	decided map[int64]bool // commands that were taken or refused
	ended   bool           // its end was appended
	paused  bool           // a pause was appended, and not its end
	aside   bool           // no worker is to take it again

	lost   chan struct{} // closed when another process may work on the run
	lose   func()        // closes it
	expiry *time.Timer   // calls lose when the lease was not renewed for its time; nil if the holder is seen

	history *record.History // of a resumed run; nil of a new one
	worked  atomic.Bool     // more was appended than what was stored

	leftBefore bool // commands waited when the run was opened

	isClaimed bool // a worker has taken it: what it costs counts for who submitted it

	// These belong to the assembler of the writer.
	lines *trace.Lines
	err   error // the first: nothing is added after it

	// These belong to the committer.
	lease  lease
	unsure bool // the lease may have been renewed, but the answer was lost
	over   bool // it was closed after an error; only its lease is left to release
}

// Begin begins a run, which this process leases until it is closed. The chain of its
// decisions names the head of the run before it.
func (j *Journal) Begin(ctx context.Context, info Info) (*Run, error) {
	leave, err := j.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	now := j.o.Now()
	r, b, err := j.prepare(ctx, info, turn{at: now})
	if err == nil {
		_, err = j.store.begin(ctx, &r.row, b, nil)
	}
	if err != nil {
		return nil, j.beginError(info.Run, err)
	}
	r.head = r.lines.State().Head()
	if err := j.writer.addRun(r); err != nil { // the journal is being closed
		return nil, errors.Join(err, j.releaseLease(ctx, r.row.n, &r.lease))
	}
	if err := j.cleanWorkspaces(ctx); err != nil { // a run can begin all the same
		j.o.Logger.Warn("old workspaces could not be removed", "error", err)
	}
	return r, nil
}

// enter keeps the journal open for a run that begins, until leave is called.
func (j *Journal) enter() (leave func(), err error) {
	if err := j.writable(); err != nil {
		return nil, j.fail("write", err)
	}
	return j.writer.keepOpen()
}

// prepare returns a run that is not stored yet, and its first row.
func (j *Journal) prepare(ctx context.Context, info Info, turns ...turn) (*Run, *batch, error) {
	if info.Run == "" {
		return nil, nil, errors.New("a run needs an id")
	}
	if info.Time.IsZero() {
		info.Time = j.o.Now()
	}
	info.Fingerprint = j.Masked(info.Fingerprint)
	previous, err := j.newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := j.run(info, rowOf(&info))
	r.lines = trace.NewLines(trace.Options{Run: info.Run, Name: info.Name, Time: info.Time, Inputs: info.Inputs, Key: j.o.AuditKey, Previous: previous})
	r.encoder.lines = r.lines.Encoder()
	now := j.o.Now()
	r.lease = (*lease)(nil).next(j.me, now)
	r.tenure = r.lease.tenure()
	b := &batch{lease: r.lease, at: now, turns: turns, marks: packMarks([]mark{wholeRun})}
	return r, b, r.open(b)
}

// beginError returns the error of a run that could not be added.
func (j *Journal) beginError(run string, err error) error {
	switch {
	case errors.Is(err, ErrTurnTaken), errors.Is(err, ErrQueueFull): // the journal is fine
		return err
	case errors.Is(err, errRunExists):
		return fmt.Errorf("run ID %q %w: choose another, or call Resume", run, err)
	}
	return j.fail("write", err)
}

// releaseLease releases the lease of a run that was not opened after all.
func (j *Journal) releaseLease(ctx context.Context, run int64, l *lease) error {
	_, err := j.store.swapLease(context.WithoutCancel(ctx), run, l, nil)
	return j.fail("write", err)
}

// run returns a Run that is not open yet.
func (j *Journal) run(info Info, row runRow) *Run {
	lost := make(chan struct{})
	return &Run{
		j: j, row: row, info: info, encoder: &encoder{run: row.id, vault: j.vault, above: newSensitiveTasks(j.vault)}, decided: map[int64]bool{},
		lost: lost, lose: sync.OnceFunc(func() { close(lost) }),
	}
}

// Lost is closed when another process may work on the run: it has taken the lease, or this one could not renew it for its
// time. Calls that are under way must end then; what they would store is refused if another process has the lease.
func (r *Run) Lost() <-chan struct{} { return r.lost }

// newest returns the head of the newest run.
func (j *Journal) newest(ctx context.Context) (audit.Head, error) {
	form, err := j.store.head(ctx)
	if err != nil {
		return audit.Head{}, err
	}
	var s audit.State
	err = s.UnmarshalBinary(form)
	return s.Head(), err
}

// open puts the first lines of a run into a batch.
func (r *Run) open(b *batch) error {
	x, err := r.encoder.info(&r.info)
	if err != nil {
		return err
	}
	if err := r.lines.Add(record.KindInfo, x); err != nil {
		return err
	}
	p := newPacker()
	p.add(r.lines.Take())
	b.lines = p.finish()
	b.state, err = r.lines.State().MarshalBinary()
	return err
}

// failure returns why the run cannot be written any more; nil if it can.
func (r *Run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// fail records the first failure.
func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = cmp.Or(r.failed, err)
	if errors.Is(err, ErrLost) {
		r.lose()
	}
}

// Append appends entries, which become durable together; see [record.Log].
func (r *Run) Append(entries []record.Entry, done func(error)) {
	o := newRequest(r, done)
	for i := range entries {
		r.encoder.above.learn(&entries[i])
		if o.err = o.add(&entries[i]); o.err != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range entries {
		if entries[i].Begin != nil {
			r.begun, r.shared = true, r.begun
		}
		r.ended = r.ended || entries[i].End != nil
		if c := entries[i].Command; c != nil && (c.Kind == steer.Pause || c.Kind == steer.Resume) {
			r.paused = c.Kind == steer.Pause
		}
	}
	for _, n := range o.taken {
		r.decided[n] = true
	}
	switch {
	case o.err != nil:
	case r.closed:
		o.err = ErrClosed
	case r.shared:
		o.err = ErrShared
	}
	r.j.writer.enqueue(o)
}

// Update stores another Info of the run, as when the spec changed before it was resumed. The run keeps its Starter and Spec.
// Update returns when that is durable.
func (r *Run) Update(ctx context.Context, info Info) error {
	info.Run, info.Fingerprint = r.row.id, r.j.Masked(info.Fingerprint)
	info.Starter, info.Spec = r.row.starter, r.row.spec
	x, err := r.encoder.info(&info)
	if err != nil {
		return r.j.fail("write", err)
	}
	o := newRequest(r, nil)
	o.marks = []mark{wholeRun}
	if err := r.encoder.lines.Line(o.lines, record.KindInfo, x); err != nil {
		return r.j.fail("write", err)
	}
	if err := r.await(ctx, o); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.info = info
	return nil
}

// History returns the history of a resumed run; nil of a new one.
func (r *Run) History() *record.History { return r.history }

// Close does what [Run.End] does, and returns the head as text.
func (r *Run) Close(ctx context.Context) (string, error) {
	head, err := r.End(ctx)
	return head.String(), err
}

// End writes the closing line of the chain, releases the run, and returns the
// head of the chain. It returns when that is durable, or the context ends. A
// second End returns ErrClosed.
//
// If entries of the run could not be written, End returns why, and still releases the run,
// so that it can be resumed: at once, or as soon as the journal can be written again.
func (r *Run) End(ctx context.Context) (audit.Head, error) {
	o := newRequest(r, nil)
	o.close = true
	if err := r.await(ctx, o); err != nil {
		return audit.Head{}, err
	}
	return r.Head(), nil
}

// await enqueues a request and waits for it.
func (r *Run) await(ctx context.Context, o *request) error {
	done := make(chan error, 1)
	o.done = func(err error) { done <- err }
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return r.j.fail("write", ErrClosed)
	}
	r.closed = o.close
	r.j.writer.enqueue(o)
	r.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return r.j.fail("write", ended(ctx))
	}
}

// Head returns the head of the durable chain.
func (r *Run) Head() audit.Head {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head
}

// Info returns the newest Info of the run.
func (r *Run) Info() Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info
}
