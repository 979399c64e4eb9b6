package team

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// Where a journal is kept, a prompt must be durable before it is sent. The
// tasks that come next are therefore prepared while others hold the slots: their
// prompts are built and brought to the journal, and when a slot is free the
// call waits for nothing.

// mostAhead bounds how many attempts are prepared before their turn comes, and
// so how many prompts wait in memory.
const mostAhead = 64

// errUnbegun ends an attempt whose turn never came.
var errUnbegun = errors.New("its turn did not come")

// prepareAhead prepares the tasks that come next.
func (r *run) prepareAhead(launch func(*attempt)) {
	most := min(r.options.MaxConcurrency, mostAhead)
	if r.ledger == nil || r.schedule != nil || r.mail != nil || len(r.ahead) >= most {
		return
	}
	for _, i := range r.queue.Upcoming(most) {
		if r.ahead[i] != nil || len(r.ahead) >= most || !r.mayWait(i) {
			continue
		}
		a := r.attempt(i)
		a.permit = make(chan struct{})
		if r.ahead == nil {
			r.ahead = map[int]*attempt{}
		}
		r.ahead[i] = a
		launch(a)
	}
}

// mayWait reports whether the prompt of a task stays as it is while it waits:
// nothing in it expires, and it does not depend on what happens meanwhile.
func (r *run) mayWait(i int) bool {
	t := r.plan.Graph.Task(i)
	if t.MemoryScope == task.ScopeAll {
		return false
	}
	for j := range t.Uses {
		if r.plan.Input(t.Uses[j]).TTL > 0 {
			return false
		}
	}
	for _, up := range r.plan.Graph.Upstream(i) {
		if e, ok := r.queue.ResultIndex(int(up)); ok && e != nil && !e.Header().ExpiresAt.IsZero() {
			return false
		}
	}
	e := r.plannedText(i)
	return e == nil || e.Header().ExpiresAt.IsZero()
}

// permit lets an attempt that was prepared begin.
func (r *run) permit(a *attempt) {
	delete(r.ahead, a.index)
	r.takeOut(a)
	r.ledger.add(nil, record.Entry{Begun: &record.PrefetchStart{Session: a.session(), Time: a.began}})
	close(a.permit)
}

// forbid ends the attempts whose turn does not come any more.
func (r *run) forbid() {
	for _, a := range r.ahead {
		if !a.forbidden {
			a.forbidden = true
			close(a.permit)
		}
	}
}

// permitted waits until an exchange that was prepared may begin.
func (x *exchange) permitted(ctx context.Context) error {
	if x.permit == nil {
		return nil
	}
	x.letGo()
	select {
	case <-x.permit:
	case <-ctx.Done():
		return because(ctx, ctx.Err())
	}
	if x.forbidden {
		return errUnbegun
	}
	return nil
}

// unbegun reports whether an attempt ended because its turn did not come.
func (a *attempt) unbegun() bool { return a.aborted || errors.Is(a.err, errUnbegun) }
