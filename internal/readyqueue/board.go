package readyqueue

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// status is a [task.Status] in one byte.
type status uint8

const (
	pending status = iota
	blocked
	running
	completed
	failed
	skipped
	notNeeded
)

var statuses = [...]task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped, task.NotNeeded}

func (s status) terminal() bool { return s >= completed }

func statusOf(name task.Status) status {
	for s := range statuses {
		if statuses[s] == name {
			return status(s)
		}
	}
	return pending
}

// A state is what changes about a task.
type state struct {
	updated time.Time
	open    int32 // dependencies that must still end
	status  status
	waiting bool // in progress, between two attempts
}

// An end says why a task did not complete.
type end struct {
	text string
	root int32 // the task that the cascade started from
	via  int32 // the direct dependency through which it came; none for the root itself
}

// none is the index of no task and of no agent.
const none int32 = -1

// A board is the tasks of a queue with what became of each.
type board struct {
	tasks   definitions
	states  []state
	results []*envelope.Envelope
	ends    []end // parallel to states once something ended without completing
	counts  [len(statuses)]int
	low     int // no pending task comes before it
}

// Len returns the number of tasks.
func (b *board) Len() int { return len(b.states) }

// Index returns the index of the task with this ID.
func (b *board) Index(id task.ID) (i int, ok bool) { return b.tasks.index(id) }

// Task returns the current state of task i: its definition with the status and the
// time of its last change. It shares slices and maps with the queue, which must not
// be written to.
func (b *board) Task(i int) task.Task {
	t := *b.tasks.at(i)
	t.Status, t.UpdatedAt = statuses[b.states[i].status], b.states[i].updated
	return t
}

// Status returns the status of task i, without a copy of the rest.
func (b *board) Status(i int) task.Status { return statuses[b.states[i].status] }

// Waiting reports whether task i is in progress and waits between two attempts.
func (b *board) Waiting(i int) bool { return b.states[i].waiting }

// Result returns the result of task i, if it is completed and has one.
func (b *board) Result(i int) (*envelope.Envelope, bool) { return b.results[i], b.results[i] != nil }

// Reason returns why task i failed, was skipped or was not needed: the text that it was ended
// with, or of the cascade that reached it. It is empty for any other task.
func (b *board) Reason(i int) string {
	s := b.states[i].status
	if s < failed {
		return ""
	}
	switch why := b.ends[i]; {
	case why.via < 0:
		return why.text
	case s == failed:
		return fmt.Sprintf("Cancelled: dependency %q failed.", b.tasks.at(int(why.via)).ID)
	case s == notNeeded:
		return b.whyNotNeeded(b.tasks.at(i), b.tasks.at(int(why.via)))
	default:
		return fmt.Sprintf("Skipped: dependency %q was skipped.", b.tasks.at(int(why.via)).ID)
	}
}

// whyNotNeeded returns why a task is not needed that depends on one, or on alternatives, that are
// not.
func (b *board) whyNotNeeded(t, via *task.Task) string {
	for _, d := range t.DependsOn {
		if d.Task != string(via.ID) || len(d.OneOf) == 0 {
			continue
		}
		var titles []string
		for _, id := range d.OneOf {
			if j, ok := b.Index(task.ID(id)); ok {
				titles = append(titles, strconv.Quote(b.tasks.at(j).Title))
			}
		}
		return "Not needed: none of " + strings.Join(titles, ", ") + " completed."
	}
	return "Not needed: " + strconv.Quote(via.Title) + " was not needed."
}

// Root returns the task whose end ended task i, which may be i itself. It is false for a task
// that has completed or not ended.
func (b *board) Root(i int) (root int, ok bool) {
	if b.states[i].status < failed {
		return 0, false
	}
	return int(b.ends[i].root), true
}

// Pending yields the pending tasks, in the order in which they came.
func (b *board) Pending() iter.Seq[int] {
	return func(yield func(int) bool) {
		for b.low < len(b.states) && b.states[b.low].status != pending {
			b.low++
		}
		for i := b.low; i < len(b.states); i++ {
			if b.states[i].status == pending && !yield(i) {
				return
			}
		}
	}
}

// Count returns how many tasks have a status.
func (b *board) Count(s task.Status) int { return b.counts[statusOf(s)] }

// IsComplete reports whether every task is terminal. An empty queue is complete.
func (b *board) IsComplete() bool {
	return b.counts[completed]+b.counts[failed]+b.counts[skipped]+b.counts[notNeeded] == len(b.states)
}

// legal are all steps from one status to another. Any other step is an error of the caller.
var legal = [len(statuses)]uint8{
	pending: 1<<blocked | 1<<running | 1<<failed | 1<<skipped | 1<<notNeeded,
	blocked: 1<<pending | 1<<failed | 1<<skipped | 1<<notNeeded,
	running: 1<<pending | 1<<completed | 1<<failed | 1<<skipped, // pending: a retry, or an interrupted run
}

// check reports whether a task may take the next status.
func (b *board) check(i int, next status) error {
	if err := b.has(i); err != nil {
		return err
	}
	if legal[b.states[i].status]&(1<<next) == 0 {
		return b.illegal(i, statuses[next])
	}
	return nil
}

// has returns an error for an index of no task.
func (b *board) has(i int) error {
	if i < 0 || i >= len(b.states) {
		return fmt.Errorf("task %d: %w: the queue has no such index", i, task.ErrUnknown)
	}
	return nil
}

func (b *board) illegal(i int, to task.Status) error {
	return fmt.Errorf("task %q: %w from %s to %s", b.tasks.at(i).Title, ErrTransition, b.Status(i), to)
}

// set changes a status that check has allowed.
func (b *board) set(i int, next status, at time.Time) {
	s := &b.states[i]
	b.counts[s.status]--
	b.counts[next]++
	s.status, s.updated, s.waiting = next, at, false
	if next == pending {
		b.low = min(b.low, i)
	}
}

// unfinished counts the dependencies that a task must wait for.
func (b *board) unfinished(t *task.Task) (n int32) {
	for _, d := range t.DependsOn {
		j, ok := b.Index(task.ID(d.Task))
		if !ok || !b.states[j].status.terminal() || (b.states[j].status == failed || b.states[j].status == skipped) && !d.MayBeMissing() {
			n++
		}
	}
	return n
}

// omitted returns the first dependency because of which a task is not needed, or none.
func (b *board) omitted(i int) int32 {
	if b.counts[notNeeded] == 0 {
		return none
	}
	for _, d := range b.tasks.at(i).DependsOn {
		if d.MayBeMissing() {
			continue
		}
		if j, ok := b.Index(task.ID(d.Task)); ok && b.states[j].status == notNeeded {
			return int32(j)
		}
	}
	return none
}
