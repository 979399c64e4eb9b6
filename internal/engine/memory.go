package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// digestEntries is how many entries a digest of the shared memory holds at
// most, the newest: with an excerpt of each it stays about as large as any
// other piece of context may be.
const digestEntries = 250

// memoryAccess is the shared memory of a run. The result of each task is written once the task has
// completed, so nothing in it is of an attempt that a command still ends. Only the synthesis and the
// tasks of scope all read.
type memoryAccess struct {
	run       string
	writer    teammemory.Writer
	reader    teammemory.Reader
	positions map[string]int // place of an agent in the roster

	// The lock of the run guards these.
	pending []*resultWrite // results of completed tasks that are not written yet
}

// A resultWrite writes the result of a completed task to the shared memory.
type resultWrite struct {
	title, agent string
	result       *envelope.Envelope
	done         chan struct{} // closed when it was written, or the store has failed
}

// openMemory opens the shared memory if something may ever read what this run
// writes there: a task of scope all, or a later run with the same store.
func openMemory(store teammemory.Store, p *plan.Plan, v viewer) *memoryAccess {
	if store == nil && !p.ReadsMemory() {
		return nil
	}
	m := teammemory.New(store)
	access := &memoryAccess{run: v.id, writer: m.Writer(), reader: m.Reader(), positions: make(map[string]int, len(v.team.Config.Agents))}
	for i := range v.team.Config.Agents {
		access.positions[v.team.Config.Agents[i].Name] = i
	}
	return access
}

// ended closes the conversation of the attempt.
func (a *attempt) ended(ctx context.Context) {
	if a.conversation != nil {
		a.closeShared(ctx, a.err)
	}
}

// remember returns the write of the result of a task that has just completed; nil if nothing may read
// it. The lock of the run is held. [writeResult] performs it without the lock.
func (m *memoryAccess) remember(t *TaskResult) *resultWrite {
	if m == nil {
		return nil
	}
	w := &resultWrite{title: t.Title, agent: t.Assignee, result: t.Envelope, done: make(chan struct{})}
	m.pending = append(m.pending, w)
	return w
}

// writeResult writes the result of a completed task to the shared memory.
func writeResult(ctx context.Context, r *results, w *resultWrite) {
	err := callOutside("the store", func() error { return r.memory.writer.WriteResult(ctx, w.agent, w.result, 0) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.pending = slices.DeleteFunc(r.memory.pending, func(p *resultWrite) bool { return p == w })
	close(w.done)
	if err != nil && ctx.Err() == nil {
		r.warn(fmt.Sprintf("the result of %q is not in the shared memory: the store failed", w.title))
	}
}

// A doneSet is which tasks had completed at one moment.
type doneSet []uint64

func (d doneSet) has(i int) bool { return d[i/64]&(1<<(i%64)) != 0 }

// completed returns the tasks whose results a task may find in memory: all that
// have completed by now, but not its own dependencies, which it is given whole.
func (r *results) completed(reader int) doneSet {
	d := make(doneSet, (len(r.tasks)+63)/64)
	for i := range r.tasks {
		if r.tasks[i].Status == task.Completed && r.memo.Remembers(r.tasks[reader].ID, r.tasks[i].ID) {
			d[i/64] |= 1 << (i % 64)
		}
	}
	for _, up := range r.plan.Graph.Upstream(reader) {
		d[up/64] &^= 1 << (up % 64)
	}
	return d
}

// readMemory offers the shared memory to an attempt: what had completed when it
// was dispatched, and what is no result of this run.
func (a *attempt) readMemory(ctx context.Context) ([]gate.Offer, error) {
	for _, w := range a.unwritten {
		select {
		case <-w.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return a.run.memory.offers(ctx, a.graph, a.caps.Clearance(), func(i int) bool { return a.known.has(i) })
}

// memoryOffers offers the shared memory to the synthesis, which has the results
// of this run already.
func (r *results) memoryOffers(ctx context.Context) ([]gate.Offer, error) {
	if r.memory == nil {
		return nil, nil
	}
	caps := r.team.Coordinator(r.plan.Options())
	return r.memory.offers(ctx, r.plan.Graph, caps.Clearance(), func(int) bool { return false })
}

// offers lists entries in the order of the roster, an agent's results in the
// order of the spec and then its notes in the order in which they were written.
// Of more entries than a digest holds the newest are taken, of those above the clearance for
// themselves: how many there are may be a secret, so they displace no others.
func (m *memoryAccess) offers(ctx context.Context, g *graph.Graph, clearance label.Classification, shown func(int) bool) ([]gate.Offer, error) {
	var entries []teammemory.Entry
	wanted := func(id task.ID) bool {
		i, ours := g.Index(id)
		return !ours || shown(i) // notes have no task
	}
	err := callOutside("the store", func() (err error) {
		entries, err = m.reader.Entries(ctx, wanted)
		return err
	})
	if err != nil {
		return nil, &memoryError{err}
	}
	entries = slices.DeleteFunc(entries, func(e teammemory.Entry) bool {
		_, ours := g.Index(e.Task) // the result that an earlier run had of a task of this one is out of date
		return e.Task != "" && ours && e.Envelope.Header().Run != m.run
	})
	if len(entries) > digestEntries {
		slices.SortFunc(entries, func(a, b teammemory.Entry) int { return cmp.Or(cmp.Compare(b.Turn, a.Turn), cmp.Compare(b.Seq, a.Seq)) })
		counts := map[bool]int{}
		entries = slices.DeleteFunc(entries, func(e teammemory.Entry) bool {
			above := e.Envelope.Classification() > clearance
			counts[above]++
			return counts[above] > digestEntries
		})
	}
	slices.SortStableFunc(entries, func(a, b teammemory.Entry) int {
		return cmp.Or(cmp.Compare(m.position(a.Agent), m.position(b.Agent)), cmp.Compare(a.Agent, b.Agent), cmp.Compare(rank(g, &a), rank(g, &b)), cmp.Compare(a.Seq, b.Seq))
	})
	list := make([]gate.Offer, 0, len(entries))
	for _, e := range entries {
		o := gate.Offer{Source: gate.Source{Kind: handoff.Memory, Name: e.FullKey()}, Title: e.Key, Assignee: e.Agent, Envelope: e.Envelope, Optional: true}
		if e.Task == "" {
			// An agent or the program chose the key, and the gate does not redact it. The
			// prompt has it; records of the note do not.
			o.Source.Name = fmt.Sprintf("%s/note %d", e.Agent, e.Seq)
			if gate.CheckUnfenced(e.Key) != nil {
				o.Title = fmt.Sprintf("note %d", e.Seq)
			}
		}
		list = append(list, o)
	}
	return list, nil
}

// A memoryError says that the memory could not be read. Why is for errors.Is
// and errors.As: the words are the store's, which may quote what it holds.
type memoryError struct{ cause error }

// Error says what could not be done, and not why.
func (e *memoryError) Error() string { return ErrMemory.Error() + ": the store failed" }

// Unwrap returns [ErrMemory] and the cause.
func (e *memoryError) Unwrap() []error { return []error{ErrMemory, e.cause} }

// position is the place of an agent in the roster; an agent that is not on it comes last.
func (m *memoryAccess) position(agent string) int {
	if i, ok := m.positions[agent]; ok {
		return i
	}
	return len(m.positions)
}

// rank is the place of a result in the spec; what is none comes after.
func rank(g *graph.Graph, e *teammemory.Entry) int {
	if i, ok := g.Index(e.Task); ok && e.Task != "" {
		return i
	}
	return g.Len()
}

// digest shortens sealed entries to what a line of a digest shows.
func digest(sealed []gate.Sealed) []gate.Sealed {
	for i := range sealed {
		sealed[i] = sealed[i].Excerpt(teammemory.ExcerptLimit)
	}
	return sealed
}
