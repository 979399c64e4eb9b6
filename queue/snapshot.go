package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// SnapshotVersion is the version that [Queue.Snapshot] makes: its results are
// envelopes. The TypeScript original writes 1 and 2, whose results are texts.
const SnapshotVersion = 3

// A Snapshot is a queue as data, in JSON with the keys of the original: the
// tasks, then their ids by status. It holds payloads, so it is data to keep,
// not a log.
type Snapshot struct {
	Version    int       `json:"version"`
	Tasks      []Stored  `json:"tasks"`
	Pending    []task.ID `json:"pending"`
	InProgress []task.ID `json:"inProgress"`
	Completed  []task.ID `json:"completed"`
	Failed     []task.ID `json:"failed"`
	Blocked    []task.ID `json:"blocked"`
	Skipped    []task.ID `json:"skipped"`
}

// A Stored is a task with what became of it.
type Stored struct {
	Task     task.Task        // with its status
	Result   *string          // why it failed or was skipped; in the original also the text of a result
	Envelope *envelope.Record // the result
	Root     task.ID          // the task whose end ended this one; empty for itself
	Via      task.ID          // the direct dependency through which that came
}

// storedExtra is what a Stored adds to the JSON of its task.
type storedExtra struct {
	Result   *string          `json:"result,omitempty"`
	Envelope *envelope.Record `json:"envelope,omitempty"`
	Root     task.ID          `json:"root,omitempty"`
	Via      task.ID          `json:"via,omitempty"`
}

// MarshalJSON writes the task's keys and then its own in one object.
func (s Stored) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(s.Task)
	if err != nil {
		return nil, err
	}
	extra, err := json.Marshal(storedExtra{s.Result, s.Envelope, s.Root, s.Via})
	if err != nil || len(extra) == len("{}") {
		return data, err
	}
	return append(append(data[:len(data)-1], ','), extra[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON or the original wrote. A task without
// a status keeps an empty one, for the lists of ids to decide.
func (s *Stored) UnmarshalJSON(data []byte) error {
	var extra storedExtra
	if err := json.Unmarshal(data, &extra); err != nil {
		return err
	}
	var own struct{ Status *task.Status }
	if err := errors.Join(json.Unmarshal(data, &own), json.Unmarshal(data, &s.Task)); err != nil {
		return err
	}
	if own.Status == nil {
		s.Task.Status = ""
	}
	s.Result, s.Envelope, s.Root, s.Via = extra.Result, extra.Envelope, extra.Root, extra.Via
	return nil
}

// Snapshot returns the queue as data, from which [FromSnapshot] goes on.
func (q *Queue) Snapshot() Snapshot {
	s := Snapshot{Version: SnapshotVersion, Tasks: make([]Stored, len(q.tasks))}
	lists := s.lists()
	for i := range q.tasks {
		e, stored := &q.tasks[i], &s.Tasks[i]
		stored.Task = q.Task(i)
		if e := q.results[i]; e != nil {
			stored.Envelope = new(e.Record())
		}
		if e.state == failed || e.state == skipped {
			why := q.ends[i]
			stored.Result = new(q.text(i))
			if why.via != none {
				stored.Root, stored.Via = q.def(int(why.root)).ID, q.def(int(why.via)).ID
			}
		}
		*lists[e.state] = append(*lists[e.state], stored.Task.ID)
	}
	for _, list := range lists {
		if *list == nil {
			*list = []task.ID{} // [] in JSON, as the original writes it
		}
	}
	return s
}

// lists returns the lists of ids by state.
func (s *Snapshot) lists() [len(statuses)]*[]task.ID {
	return [...]*[]task.ID{&s.Pending, &s.Blocked, &s.InProgress, &s.Completed, &s.Failed, &s.Skipped}
}

// FromSnapshot returns a queue that goes on where the snapshot was taken. A
// task that was in progress is ready to run again; what is pending or blocked
// follows from the dependencies.
//
// A result of the original is a text without a label. It becomes an envelope
// with the caller's header, above all its classification, in which an empty
// ID, Producer, Task and CreatedAt are filled in for each task; a text is not
// used where the snapshot has an envelope. Whether an envelope is genuine is
// the gate's to find out, as at every other read.
//
// Another version, a task without or with a doubtful status, a duplicate id, a
// cycle, or a result that no envelope can hold is refused with [ErrSnapshot].
func FromSnapshot(s Snapshot, unlabelled envelope.Header) (*Queue, error) {
	q, err := fromSnapshot(s, unlabelled)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return q, nil
}

func fromSnapshot(s Snapshot, unlabelled envelope.Header) (*Queue, error) {
	if s.Version < 1 || s.Version > SnapshotVersion {
		return nil, fmt.Errorf("version %d: this program reads 1 to %d", s.Version, SnapshotVersion)
	}
	states, err := s.states()
	if err != nil {
		return nil, err
	}
	q, err := newDangling(s.Tasks)
	if err != nil {
		return nil, err
	}
	for i := range s.Tasks {
		if err := q.restore(i, &s.Tasks[i], states[i], unlabelled); err != nil {
			return nil, fmt.Errorf("task %q: %w", s.Tasks[i].Task.Title, err)
		}
	}
	q.restoreEnds(s.Tasks)
	q.reopen()
	q.over = q.IsComplete()
	return q, nil
}

// states returns the status of every task: its own, else that of the list
// that its id is in.
func (s *Snapshot) states() ([]state, error) {
	listed := map[task.ID]state{}
	for st, list := range s.lists() {
		for _, id := range *list {
			listed[id] = state(st)
		}
	}
	states := make([]state, len(s.Tasks))
	for i := range s.Tasks {
		t := &s.Tasks[i].Task
		st, ok := listed[t.ID]
		switch {
		case t.Status == "" && !ok:
			return nil, fmt.Errorf("task %q has no status", t.Title)
		case t.Status == "":
			states[i] = st
		case !t.Status.Valid():
			return nil, fmt.Errorf("task %q: unknown status %q", t.Title, t.Status)
		case ok && st != stateOf(t.Status):
			return nil, fmt.Errorf("task %q is %s, but listed as %s", t.Title, t.Status, statuses[st])
		default:
			states[i] = stateOf(t.Status)
		}
	}
	return states, nil
}

// newDangling returns a queue of tasks some of whose dependencies may not be
// there: the graph knows only those that are.
func newDangling(stored []Stored) (*Queue, error) {
	there := make(map[task.ID]bool, len(stored))
	for i := range stored {
		if stored[i].Task.ID == "" {
			return nil, fmt.Errorf("task %q has no id", stored[i].Task.Title)
		}
		there[stored[i].Task.ID] = true
	}
	tasks := make([]task.Task, len(stored))
	dangling := map[int][]task.Ref{}
	for i := range stored {
		tasks[i] = stored[i].Task
		absent := func(d task.Ref) bool { return !there[task.ID(d.Task)] }
		if all := tasks[i].DependsOn; slices.ContainsFunc(all, absent) {
			dangling[i] = all
			tasks[i].DependsOn = slices.DeleteFunc(slices.Clone(all), absent)
		}
	}
	g, err := graph.New(tasks)
	if err != nil {
		return nil, err
	}
	q := New(g)
	for i := range tasks {
		all, ok := dangling[i]
		if !ok {
			continue
		}
		q.init()
		tasks[i].DependsOn = all // as the caller knows it; nothing here reads it beside the graph
		for _, d := range all {
			if absent := !there[task.ID(d.Task)]; absent {
				q.missing[task.ID(d.Task)] = append(q.missing[task.ID(d.Task)], int32(i))
			}
		}
	}
	return q, nil
}

// restore gives task i its status and result.
func (q *Queue) restore(i int, s *Stored, st state, unlabelled envelope.Header) error {
	if !st.terminal() {
		st = blocked // until reopen knows better
	}
	e := &q.tasks[i]
	q.counts[e.state]--
	q.counts[st]++
	e.state, e.flags = st, 0
	if st != completed {
		return nil
	}
	var err error
	switch {
	case s.Envelope != nil:
		q.results[i], err = s.Envelope.Envelope()
	case s.Result != nil:
		q.results[i], err = envelope.New(header(unlabelled, &s.Task), envelope.Text(*s.Result))
	}
	return err
}

// header fills in what a caller's header leaves to the task.
func header(h envelope.Header, t *task.Task) envelope.Header {
	if h.ID == "" {
		h.ID = envelope.ID("restored/" + t.ID)
	}
	if h.Producer == "" {
		h.Producer = t.Assignee
	}
	if h.Producer == "" {
		h.Producer = "unknown"
	}
	if h.Task == "" {
		h.Task = t.ID
	}
	if h.CreatedAt.IsZero() {
		h.CreatedAt = t.UpdatedAt
	}
	return h
}

// restoreEnds fills in why tasks failed or were skipped.
func (q *Queue) restoreEnds(stored []Stored) {
	if q.counts[failed]+q.counts[skipped] == 0 {
		return
	}
	q.ends = make([]end, len(q.tasks))
	for i := range stored {
		s := &stored[i]
		q.ends[i] = end{root: int32(i), via: none}
		if s.Result != nil {
			q.ends[i].text = *s.Result
		}
		root, isThere := q.Index(s.Root)
		via, isToo := q.Index(s.Via)
		if isThere && isToo {
			q.ends[i].root, q.ends[i].via = int32(root), int32(via)
		}
	}
}

// reopen counts the dependencies that every blocked task still waits for, and
// makes ready what waits for none. A task whose dependency had ended without
// a result ends with it, which the original forgets for tasks added later.
func (q *Queue) reopen() {
	for i := range q.tasks {
		if q.tasks[i].state.terminal() {
			continue
		}
		n := int32(0)
		for _, d := range q.def(i).DependsOn {
			j, ok := q.Index(task.ID(d.Task))
			if !ok || !q.tasks[j].state.terminal() || q.tasks[j].state != completed && !d.Optional {
				n++
			}
		}
		q.tasks[i].open = n
	}
	for _, i := range q.g.Order() {
		if q.tasks[i].state == blocked {
			q.open(i)
		}
	}
	for i := range q.tasks {
		q.tasks[i].updated = q.g.Task(i).UpdatedAt
	}
}
