package journal

import (
	"cmp"
	"sync"
	"time"
)

// A writer makes write requests durable, in their order. One goroutine assembles the rows
// of the next commit while another, the committer, writes the last one: the requests that
// arrive during a commit share the next.
type writer struct {
	j       *Journal
	opening sync.WaitGroup // runs that are being opened; the database stays open for them
	wake    chan struct{}  // capacity 1; signals that requests wait
	commits chan *commit   // to the committer; unbuffered, so that a commit grows until the committer is free
	end     chan struct{}  // closed when both goroutines have ended

	mu      sync.Mutex // guards the next ones
	queue   []*request
	stopped bool           // no request is accepted; those that wait are still written
	over    bool           // nothing more is written
	refuses bool           // a goroutine answers late requests
	open    map[int64]*Run // runs whose leases are renewed

	serving *serving

	err error // why the last write failed; nil if it succeeded. Only the committer uses it
}

func newWriter(j *Journal) *writer {
	w := &writer{j: j, wake: make(chan struct{}, 1), commits: make(chan *commit), end: make(chan struct{}), open: map[int64]*Run{}, serving: newServing()}
	go w.assemble()
	go w.write()
	return w
}

// enqueue adds a request. It does not wait, and does not call done.
func (w *writer) enqueue(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, r)
	switch {
	case !w.over:
		w.wakeAssembler()
	case !w.refuses:
		w.refuses = true
		go w.refuse()
	}
}

// refuse answers requests that came after the end, in their order.
func (w *writer) refuse() {
	<-w.end
	for {
		w.mu.Lock()
		list := w.queue
		w.queue = nil
		w.refuses = len(list) > 0
		w.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, r := range list {
			r.answer(cmp.Or(w.err, w.j.fail("write", ErrClosed)))
		}
	}
}

func (w *writer) wakeAssembler() {
	select {
	case w.wake <- struct{}{}:
	default: // it is already signaled
	}
}

// keepOpen keeps the database open until leave is called, unless it is being closed.
func (w *writer) keepOpen() (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil, w.j.fail("write", ErrClosed)
	}
	w.opening.Add(1)
	return w.opening.Done, nil
}

// addRun makes the writer renew the lease of a run.
func (w *writer) addRun(r *Run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return w.j.fail("write", ErrClosed)
	}
	w.open[r.row.n] = r
	if w.j.store.isShared() {
		r.expiry = time.AfterFunc(leaseTime, r.lose)
	}
	return nil
}

// removeRun stops renewing the lease of a run.
func (w *writer) removeRun(r *Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.open, r.row.n); r.expiry != nil {
		r.expiry.Stop()
	}
}

// stop ends the goroutines once all requests are written, and returns the error of the
// last write.
func (w *writer) stop() error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.wakeAssembler()
	<-w.end
	return w.err
}

// assemble makes commits of the requests. A commit grows until the committer is free.
func (w *writer) assemble() {
	defer close(w.commits)
	next := newCommit()
	for {
		list, over := w.take()
		for _, r := range list {
			next.add(r)
		}
		if over {
			break
		}
		if len(next.requests) == 0 {
			<-w.wake
			continue
		}
		next.ready()
		select {
		case <-w.wake:
		case w.commits <- next:
			next = newCommit()
		}
	}
	if len(next.requests) > 0 {
		next.ready()
		w.commits <- next
	}
}

func newCommit() *commit {
	return &commit{runs: map[*Run][]*request{}}
}

// take returns the requests that wait, and whether no more will come.
func (w *writer) take() (list []*request, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, w.queue = w.queue, nil
	w.over = w.stopped && len(list) == 0
	return list, w.over
}
