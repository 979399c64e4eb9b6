package readyqueue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// snapshotVersion is the version that [Queue.Snapshot] makes: its results are
// envelopes. The TypeScript original writes 1 and 2, whose results are texts.
const snapshotVersion = 3

// A Snapshot is a queue as data. Its JSON has the keys of the TypeScript original: the
// tasks, then their IDs by status. It holds payloads, so it is data to keep, not a log.
type Snapshot struct{ data snapshot }

// MarshalJSON writes the snapshot.
func (s Snapshot) MarshalJSON() ([]byte, error) { return json.Marshal(s.data) }

// UnmarshalJSON reads a snapshot, also one of the original. [Restore] checks it.
func (s *Snapshot) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &s.data) }

type snapshot struct {
	Version    int       `json:"version"`
	Tasks      []stored  `json:"tasks"`
	Pending    []task.ID `json:"pending"`
	InProgress []task.ID `json:"inProgress"`
	Completed  []task.ID `json:"completed"`
	Failed     []task.ID `json:"failed"`
	Blocked    []task.ID `json:"blocked"`
	Skipped    []task.ID `json:"skipped"`
	NotNeeded  []task.ID `json:"notNeeded,omitempty"`
}

// A stored task is one with what became of it.
type stored struct {
	task  task.Task // with its status
	extra storedExtra
}

// storedExtra is what a stored task adds to the JSON of its task.
type storedExtra struct {
	Result   *string          `json:"result,omitempty"`   // why it did not complete; in the original also the text of a result
	Envelope *envelope.Record `json:"envelope,omitempty"` // the result
	Root     task.ID          `json:"root,omitempty"`     // the task whose end ended this one; empty for itself
	Via      task.ID          `json:"via,omitempty"`      // the direct dependency through which that came
}

// MarshalJSON writes the task's keys and then its own in one object.
func (s stored) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(s.task)
	if err != nil {
		return nil, err
	}
	extra, err := json.Marshal(s.extra)
	if err != nil || len(extra) == len("{}") {
		return data, err
	}
	return append(append(data[:len(data)-1], ','), extra[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON or the original wrote. A task without
// a status keeps an empty one, for the lists of IDs to decide.
func (s *stored) UnmarshalJSON(data []byte) error {
	var own struct{ Status *task.Status }
	err := errors.Join(json.Unmarshal(data, &s.extra), json.Unmarshal(data, &own), json.Unmarshal(data, &s.task))
	if own.Status == nil {
		s.task.Status = ""
	}
	return err
}

// Snapshot returns the queue as data, from which [Restore] makes an equal queue.
func (q *Queue) Snapshot() Snapshot {
	s := snapshot{Version: snapshotVersion, Tasks: make([]stored, len(q.states))}
	lists := s.lists()
	for i := range q.states {
		one, now := &s.Tasks[i], q.states[i].status
		one.task = q.Task(i)
		if e := q.results[i]; e != nil {
			one.extra.Envelope = new(e.Record())
		}
		if now >= failed {
			one.extra.Result = new(q.Reason(i))
			if why := q.ends[i]; why.via != none {
				one.extra.Root, one.extra.Via = q.tasks.at(int(why.root)).ID, q.tasks.at(int(why.via)).ID
			}
		}
		*lists[now] = append(*lists[now], one.task.ID)
	}
	for _, list := range lists {
		if *list == nil {
			*list = []task.ID{} // [] in JSON, as the original writes it
		}
	}
	return Snapshot{s}
}

// lists returns the lists of IDs by status.
func (s *snapshot) lists() [len(statuses)]*[]task.ID {
	return [...]*[]task.ID{&s.Pending, &s.Blocked, &s.InProgress, &s.Completed, &s.Failed, &s.Skipped, &s.NotNeeded}
}

// Restore restores a queue from its snapshot. A task that was in progress is ready
// to run again; what is pending or blocked follows from the dependencies.
//
// A result of the original is a text without a label. It becomes an envelope
// with the caller's header, above all its classification, in which an empty
// ID, Producer, Task and CreatedAt are filled in for each task; a text is not
// used where the snapshot has an envelope. The gate checks whether an envelope is
// genuine, as at every other read.
//
// Another version, a task without a status or with two, a duplicate ID, a
// cycle, or a result that no envelope can hold is refused with [ErrSnapshot].
func Restore(s Snapshot, unlabelled envelope.Header) (*Queue, error) {
	q, err := s.data.restore(unlabelled)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return q, nil
}

func (s *snapshot) restore(unlabelled envelope.Header) (*Queue, error) {
	if s.Version < 1 || s.Version > snapshotVersion {
		return nil, fmt.Errorf("version %d: this program reads 1 to %d", s.Version, snapshotVersion)
	}
	known, err := s.statuses()
	if err != nil {
		return nil, err
	}
	q, err := newDangling(s.Tasks)
	if err != nil {
		return nil, err
	}
	for i := range s.Tasks {
		if err := q.restoreTask(i, &s.Tasks[i], known[i], unlabelled); err != nil {
			return nil, fmt.Errorf("task %q: %w", s.Tasks[i].task.Title, err)
		}
	}
	q.fillEnds(s.Tasks)
	q.reopen()
	q.events.over = q.IsComplete()
	return q, nil
}

// statuses returns the status of every task: its own, else that of the list
// that its ID is in.
func (s *snapshot) statuses() ([]status, error) {
	listed := map[task.ID]status{}
	for now, list := range s.lists() {
		for _, id := range *list {
			listed[id] = status(now)
		}
	}
	all := make([]status, len(s.Tasks))
	for i := range s.Tasks {
		t := &s.Tasks[i].task
		now, ok := listed[t.ID]
		switch {
		case t.Status == "" && !ok:
			return nil, fmt.Errorf("task %q has no status", t.Title)
		case t.Status == "":
			all[i] = now
		case ok && now != statusOf(t.Status):
			return nil, fmt.Errorf("task %q is %s, but listed as %s", t.Title, t.Status, statuses[now])
		default:
			all[i] = statusOf(t.Status)
		}
	}
	return all, nil
}

// newDangling returns a queue of tasks, all of them not started. Some of their
// dependencies may not be there.
func newDangling(all []stored) (*Queue, error) {
	q := &Queue{}
	for i := range all {
		t := all[i].task
		if t.ID == "" {
			return nil, fmt.Errorf("task %q has no id", t.Title)
		}
		t.Status = ""
		if err := q.Add(t); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// restoreTask gives task i its status and result.
func (q *Queue) restoreTask(i int, one *stored, now status, unlabelled envelope.Header) error {
	if !now.terminal() {
		now = blocked // until reopen knows better
	}
	q.order.remove(i)
	q.set(i, now, one.task.UpdatedAt)
	if now != completed {
		return nil
	}
	var err error
	switch extra := &one.extra; {
	case extra.Envelope != nil:
		q.results[i], err = extra.Envelope.Envelope()
	case extra.Result != nil:
		q.results[i], err = envelope.New(header(unlabelled, &one.task), envelope.Text(*extra.Result))
	}
	return err
}

// header fills in what a caller's header leaves to the task.
func header(h envelope.Header, t *task.Task) envelope.Header {
	h.ID = cmp.Or(h.ID, envelope.ID("restored/"+t.ID))
	h.Producer = cmp.Or(h.Producer, t.Assignee, "unknown")
	h.Task = cmp.Or(h.Task, t.ID)
	if h.CreatedAt.IsZero() {
		h.CreatedAt = t.UpdatedAt
	}
	return h
}

// fillEnds fills in why tasks ended without completing.
func (q *Queue) fillEnds(all []stored) {
	if q.counts[failed]+q.counts[skipped]+q.counts[notNeeded] == 0 {
		return
	}
	q.ends = make([]end, len(q.states))
	for i := range all {
		extra := &all[i].extra
		q.ends[i] = end{root: int32(i), via: none}
		if extra.Result != nil {
			q.ends[i].text = *extra.Result
		}
		root, hasRoot := q.Index(extra.Root)
		via, hasVia := q.Index(extra.Via)
		if hasRoot && hasVia {
			q.ends[i].root, q.ends[i].via = int32(root), int32(via)
		}
	}
}

// reopen counts the dependencies that every blocked task still waits for, and
// makes ready what waits for none. A task whose dependency had ended without
// a result ends with it, which the original forgets for tasks added later.
func (q *Queue) reopen() {
	for i := range q.states {
		if !q.states[i].status.terminal() {
			q.states[i].open = q.unfinished(q.tasks.at(i))
		}
	}
	for i := range q.states {
		if q.states[i].status == blocked {
			q.open(i)
		}
	}
	for i := range q.states {
		q.states[i].updated = q.tasks.at(i).UpdatedAt
	}
}
