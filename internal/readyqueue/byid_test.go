package readyqueue_test

import (
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// An idQueue names tasks by ID, as the tests do. An unknown ID is index -1.
type idQueue struct{ *readyqueue.Queue }

func restore(s readyqueue.Snapshot, unlabelled envelope.Header) (*idQueue, error) {
	q, err := readyqueue.Restore(s, unlabelled)
	if err != nil {
		return nil, err
	}
	return &idQueue{q}, nil
}

func (q *idQueue) at(id task.ID) int {
	if i, ok := q.Index(id); ok {
		return i
	}
	return -1
}

func (q *idQueue) Start(id task.ID, at time.Time) error   { return q.Queue.Start(q.at(id), at) }
func (q *idQueue) Retry(id task.ID, at time.Time) error   { return q.Queue.Retry(q.at(id), at) }
func (q *idQueue) Requeue(id task.ID, at time.Time) error { return q.Queue.Requeue(q.at(id), at) }
func (q *idQueue) Complete(id task.ID, e *envelope.Envelope, at time.Time) error {
	return q.Queue.Complete(q.at(id), e, at)
}
func (q *idQueue) Fail(id task.ID, text string, at time.Time) error {
	return q.Queue.Fail(q.at(id), text, at)
}
func (q *idQueue) Skip(id task.ID, text string, at time.Time) error {
	return q.Queue.Skip(q.at(id), text, at)
}
func (q *idQueue) Waiting(id task.ID) bool                      { return q.Queue.Waiting(q.at(id)) }
func (q *idQueue) Reason(id task.ID) string                     { return q.Queue.Reason(q.at(id)) }
func (q *idQueue) Result(id task.ID) (*envelope.Envelope, bool) { return q.Queue.Result(q.at(id)) }
func (q *idQueue) Get(id task.ID) (task.Task, bool)             { return q.Task(q.at(id)), true }

func (q *idQueue) Root(id task.ID) (task.ID, bool) {
	i, ok := q.Queue.Root(q.at(id))
	if !ok {
		return "", false
	}
	return q.Task(i).ID, true
}

func (q *idQueue) List() []task.Task {
	list := make([]task.Task, q.Len())
	for i := range list {
		list[i] = q.Task(i)
	}
	return list
}

func (q *idQueue) firstPending() (task.Task, bool) {
	for i := range q.Pending() {
		return q.Task(i), true
	}
	return task.Task{}, false
}

// counts are the numbers of tasks by status.
type counts struct{ Total, Completed, Failed, Skipped, NotNeeded, InProgress, Pending, Blocked int }

func progress(q *idQueue) counts {
	return counts{
		q.Len(), q.Count(task.Completed), q.Count(task.Failed), q.Count(task.Skipped), q.Count(task.NotNeeded),
		q.Count(task.InProgress), q.Count(task.Pending), q.Count(task.Blocked),
	}
}
