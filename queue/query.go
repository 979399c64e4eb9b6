package queue

import (
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// Task returns task i as it stands: its definition with the status and the
// time of its last change. It shares slices and maps with the queue, which
// must not be written to.
func (q *Queue) Task(i int) task.Task {
	t := *q.def(i)
	t.Status, t.UpdatedAt = statuses[q.tasks[i].state], q.tasks[i].updated
	return t
}

// Status returns the status of task i, without a copy of the rest.
func (q *Queue) Status(i int) task.Status { return statuses[q.tasks[i].state] }

// Get returns the task with this id as it stands.
func (q *Queue) Get(id task.ID) (task.Task, bool) {
	i, ok := q.Index(id)
	if !ok {
		return task.Task{}, false
	}
	return q.Task(i), true
}

// Result returns the result of a completed task, if it has one.
func (q *Queue) Result(id task.ID) (*envelope.Envelope, bool) {
	i, ok := q.Index(id)
	if !ok {
		return nil, false
	}
	return q.ResultIndex(i)
}

// ResultIndex is [Queue.Result] by index.
func (q *Queue) ResultIndex(i int) (*envelope.Envelope, bool) {
	return q.results[i], q.results[i] != nil
}

// Reason returns why a task failed or was skipped: the text that it was ended
// with, or of the cascade that reached it. It is empty for any other task.
func (q *Queue) Reason(id task.ID) string {
	i, ok := q.Index(id)
	if !ok {
		return ""
	}
	return q.ReasonIndex(i)
}

// ReasonIndex is [Queue.Reason] by index.
func (q *Queue) ReasonIndex(i int) string {
	if s := q.tasks[i].state; s != failed && s != skipped {
		return ""
	}
	return q.text(i)
}

// Root returns the task whose failure or skipping ended the task with this
// id; that may be the task itself. It is false for a task that has not ended so.
func (q *Queue) Root(id task.ID) (task.ID, bool) {
	i, ok := q.Index(id)
	if !ok {
		return "", false
	}
	r, ok := q.RootIndex(i)
	if !ok {
		return "", false
	}
	return q.def(r).ID, true
}

// RootIndex is [Queue.Root] by index.
func (q *Queue) RootIndex(i int) (root int, ok bool) {
	if s := q.tasks[i].state; s != failed && s != skipped {
		return 0, false
	}
	return int(q.ends[i].root), true
}

// Waiting reports whether a task in progress waits between two attempts.
func (q *Queue) Waiting(id task.ID) bool {
	i, ok := q.Index(id)
	return ok && q.tasks[i].flags&waiting != 0
}

// List returns all tasks as they stand, in the order in which they came.
func (q *Queue) List() []task.Task {
	list := make([]task.Task, len(q.tasks))
	for i := range list {
		list[i] = q.Task(i)
	}
	return list
}

// ByStatus returns the tasks of one status, in the order in which they came.
func (q *Queue) ByStatus(status task.Status) []task.Task {
	var list []task.Task
	for i := range q.tasks {
		if statuses[q.tasks[i].state] == status {
			list = append(list, q.Task(i))
		}
	}
	return list
}

// IsComplete reports whether every task is terminal. An empty queue is complete.
func (q *Queue) IsComplete() bool {
	return q.counts[completed]+q.counts[failed]+q.counts[skipped] == len(q.tasks)
}

// Progress counts tasks by status.
type Progress struct {
	Total      int `json:"total"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Skipped    int `json:"skipped"`
	InProgress int `json:"inProgress"`
	Pending    int `json:"pending"`
	Blocked    int `json:"blocked"`
}

// Progress returns how far the run is.
func (q *Queue) Progress() Progress {
	return Progress{
		Total: len(q.tasks), Completed: q.counts[completed], Failed: q.counts[failed], Skipped: q.counts[skipped],
		InProgress: q.counts[running], Pending: q.counts[pending], Blocked: q.counts[blocked],
	}
}
