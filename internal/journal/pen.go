package journal

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// ErrLost reports that a run was taken over by another process, so that this
// one writes nothing of it any more.
var ErrLost = errors.New("another process has taken the run over")

// A pen is the one goroutine that writes. All that waits for it becomes durable
// in one commit, in the order in which it came. If a commit fails, the runs of
// which it had something end: nothing more of them is written, since it would
// follow a gap. Other runs are not affected.
type pen struct {
	j       *Journal
	opening sync.WaitGroup // who begins a run: the store is open until they are through
	wake    chan struct{}  // holds one
	end     chan struct{}  // closed when the goroutine has ended

	mu      sync.Mutex // guards the next ones
	queue   []*order
	stopped bool           // what waits is written, and then nothing more
	over    bool           // nothing is written any more
	refuses bool           // a goroutine answers what came too late
	open    map[int64]*Run // whose leases are to be renewed

	err error // why the last write failed; nil if it succeeded. The goroutine's
}

func newPen(j *Journal) *pen {
	p := &pen{j: j, wake: make(chan struct{}, 1), end: make(chan struct{}), open: map[int64]*Run{}}
	go p.run()
	return p
}

// put takes an order. It does not wait, and answers nothing itself.
func (p *pen) put(o *order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, o)
	switch {
	case !p.over:
		p.rouse()
	case !p.refuses:
		p.refuses = true
		go p.refuse()
	}
}

// refuse answers what came after the end, in its order, and ends when there is
// nothing left.
func (p *pen) refuse() {
	<-p.end
	for {
		p.mu.Lock()
		list := p.queue
		p.queue = nil
		p.refuses = len(list) > 0
		p.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, o := range list {
			o.answer(cmp.Or(p.err, p.j.fail("write", ErrClosed)))
		}
	}
}

func (p *pen) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// enter keeps the store open until leave is called, if it is not being closed.
func (p *pen) enter() (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, p.j.fail("write", ErrClosed)
	}
	p.opening.Add(1)
	return p.opening.Done, nil
}

// admit makes the lease of a run the pen's to renew.
func (p *pen) admit(r *Run) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return p.j.fail("write", ErrClosed)
	}
	p.open[r.row.n] = r
	return nil
}

// dismiss ends that.
func (p *pen) dismiss(r *Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, r.row.n)
}

// stop ends the goroutine once all that was put is written, and returns the
// error of the last write.
func (p *pen) stop() error {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.rouse()
	<-p.end
	return p.err
}

// run writes until it is stopped.
func (p *pen) run() {
	defer close(p.end)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case <-p.wake:
		case <-beat.C:
			p.renew(p.opened()...)
		}
		for {
			list, over := p.take()
			if over {
				p.leave()
				return
			}
			if len(list) == 0 {
				break
			}
			p.write(list)
		}
	}
}

// take returns what waits, and whether that is nothing and will stay so.
func (p *pen) take() (list []*order, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, p.queue = p.queue, nil
	p.over = p.stopped && len(list) == 0
	return list, p.over
}

// write commits orders and reports the outcome to the callers that wait for them.
func (p *pen) write(list []*order) {
	c := commit{now: p.j.o.Now(), runs: map[*Run][]*order{}}
	for _, o := range list {
		c.add(o)
	}
	c.cut()
	if len(c.batches) > 0 {
		if p.err = p.j.fail("write", p.j.store.commit(context.Background(), c.batches)); p.err != nil {
			c.fail(p.err)
		} else {
			c.settle(p)
		}
	}
	for _, o := range list {
		if o.close && o.run.err != nil { // the lease did not end with the commit
			o.run.over = true
			p.renew(o.run)
		}
		o.answer(p.j.fail("write", o.err))
	}
}

// answer tells whoever waits.
func (o *order) answer(err error) {
	if o.done != nil {
		o.done(err)
	}
}

// renewalWait limits how long a renewal of leases waits for a locked file, since
// nothing else is written meanwhile. The next beat tries again.
const renewalWait = time.Second

// renew renews the leases of runs. The lease of a run that was closed, but could
// not be written to its end, is released.
func (p *pen) renew(runs ...*Run) {
	ctx, cancel := context.WithTimeout(context.Background(), renewalWait)
	defer cancel()
	for _, r := range runs {
		if errors.Is(r.err, ErrLost) {
			continue
		}
		next := new(r.lease.next(p.j.me, p.j.o.Now()))
		if r.over {
			next = nil
		}
		ok, err := p.j.store.lend(ctx, r.row.n, &r.lease, next)
		if err == nil {
			p.err = nil // the journal can be written again
		}
		switch {
		case err != nil: // the next commit finds whether the lease is still held
			p.j.o.Logger.Warn("the lease of a run could not be written", "run", r.row.id, "error", err)
		case !ok:
			r.err = cmp.Or(r.err, ErrLost)
			p.dismiss(r)
		case r.over:
			p.dismiss(r)
		default:
			r.lease = *next
		}
	}
}

// leave gives up the runs that were not closed.
func (p *pen) leave() {
	for _, r := range p.opened() {
		if _, err := p.j.store.lend(context.Background(), r.row.n, &r.lease, nil); err != nil {
			p.j.o.Logger.Warn("a run of the journal could not be given up", "run", r.row.id, "error", err)
		}
	}
}

// opened returns the open runs, in the order in which they began.
func (p *pen) opened() []*Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.open), func(a, b *Run) int { return cmp.Compare(a.row.n, b.row.n) })
}
