package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// The statuses of a run that has not ended. The others are those of a [record.RunEnd].
const (
	Running     = "running"     // a process works on it
	Paused      = "paused"      // it was paused and not resumed; a process works on it, or none does
	Interrupted = "interrupted" // no process works on it, and it was not paused
	Queued      = "queued"      // it was submitted, and a worker is to take it
	SetAside    = "set aside"   // it was submitted, and no worker takes it, since it lost its process too often
)

// Counts are how many tasks have which status, as [runstate.State.Shown] returns it.
type Counts map[task.Status]int

func (n Counts) total() (sum int) {
	for _, k := range n {
		sum += k
	}
	return sum
}

// A Summary summarizes a run.
type Summary struct {
	Run     string    `json:"run"`
	Name    string    `json:"name,omitempty"`
	Command string    `json:"command,omitempty"`
	Starter string    `json:"starter,omitempty"` // as [Info] has it
	Spec    string    `json:"spec,omitempty"`
	Status  string    `json:"status"` // as the run ended, [Running], [Paused] or [Interrupted]
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // zero if it did not end
	Tasks   Counts    `json:"tasks,omitempty"`

	// Outcomes distinguish tasks that failed by themselves, were cancelled or interrupted, or ended without having begun.
	Outcomes record.Outcomes `json:"outcomes"`

	Holder *Holder `json:"holder,omitempty"` // the process that works on it

	Queue *QueuePlace `json:"queue,omitempty"` // nil unless it was submitted, and needs a worker

	Session string `json:"session,omitempty"` // of which it is a turn; empty if it is none
	Turn    int    `json:"turn,omitempty"`    // which, from 1

	since  time.Time     // when the process that works on it began
	worked time.Duration // by the processes before it; all of them if it ended
}

// KeptSessions returns the sessions of which no run is removed with those that began before a time:
// those with a later turn, and with one that a process works on. No session is the empty one.
func KeptSessions(list []Summary, before time.Time) map[string]bool {
	kept := map[string]bool{}
	for i := range list {
		if s := &list[i]; s.Session != "" && (!s.Started.Before(before) || s.Holder != nil) {
			kept[s.Session] = true
		}
	}
	return kept
}

// Live reports whether the run has not ended and a process works on it.
func (s *Summary) Live() bool { return s.Ended.IsZero() && s.Holder != nil }

// ErrUnknownRun reports a name that no run has, or several. An [*UnknownRunError] and an
// [*AmbiguousRunError] wrap it.
var ErrUnknownRun = errors.New("unknown run")

// An UnknownRunError reports that no run has an ID with this prefix.
type UnknownRunError struct {
	Prefix string // empty if there is no run at all
	Newest string // ID of the newest run; empty if there is none
}

func (e *UnknownRunError) Error() string {
	if e.Newest == "" {
		return ErrUnknownRun.Error() + ": the journal has no runs yet"
	}
	return fmt.Sprintf("%v %q: no run begins with that; the newest is %s", ErrUnknownRun, e.Prefix, e.Newest)
}

// Unwrap returns [ErrUnknownRun].
func (e *UnknownRunError) Unwrap() error { return ErrUnknownRun }

// An AmbiguousRunError lists the runs whose IDs begin with a prefix.
type AmbiguousRunError struct {
	Prefix string
	Runs   []string // ids, the newest first
}

func (e *AmbiguousRunError) Error() string {
	const most = 5
	list, more := e.Runs, ""
	if len(list) > most {
		list, more = list[:most], fmt.Sprintf(" and %d more", len(list)-most)
	}
	return fmt.Sprintf("ambiguous run %q: %d runs begin with that, %s%s; give more of the ID", e.Prefix, len(e.Runs), strings.Join(list, ", "), more)
}

// Unwrap returns [ErrUnknownRun].
func (e *AmbiguousRunError) Unwrap() error { return ErrUnknownRun }

// Find returns the run with this ID or prefix of an ID; for an empty prefix, the newest run.
// Its error is an [*UnknownRunError] or an [*AmbiguousRunError] if there is no such run or
// there are several.
func (c *catalog) Find(ctx context.Context, prefix string) (Summary, error) {
	r, err := c.find(ctx, prefix)
	if err != nil {
		return Summary{}, err
	}
	s, err := c.summary(ctx, r)
	if err != nil {
		return s, err
	}
	return s, c.fail("read", markUnserved(ctx, c.store.db, c.now(), []Summary{s}))
}

func (c *catalog) find(ctx context.Context, prefix string) (row, error) {
	most := all
	if prefix == "" {
		most = 1
	}
	list, err := c.runs(ctx, prefix, most)
	if err != nil {
		return row{}, c.fail("read", err)
	}
	switch len(list) {
	case 0:
		return row{}, c.unknown(ctx, prefix)
	case 1:
		return list[0], nil
	}
	ambiguous := &AmbiguousRunError{Prefix: prefix}
	for _, r := range list {
		if r.id == prefix {
			return r, nil
		}
		ambiguous.Runs = append(ambiguous.Runs, r.id)
	}
	return row{}, ambiguous
}

func (c *catalog) unknown(ctx context.Context, prefix string) error {
	newest, err := c.runs(ctx, "", 1)
	if err != nil {
		return c.fail("read", err)
	}
	e := &UnknownRunError{Prefix: prefix}
	if len(newest) > 0 {
		e.Newest = newest[0].id
	}
	return e
}

// Runs returns all runs, the newest first.
func (c *catalog) Runs(ctx context.Context) ([]Summary, error) {
	list, err := c.runs(ctx, "", all)
	if err != nil {
		return nil, c.fail("read", err)
	}
	out := make([]Summary, 0, len(list))
	for _, r := range list {
		s, err := c.summary(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, c.fail("read", markUnserved(ctx, c.store.db, c.now(), out))
}

// all means no limit of rows.
const all = -1

// Newest returns at most so many runs whose IDs begin with prefix, the newest first. Of runs
// that did not end, it does not count the tasks, and does not know whether they are paused.
func (c *catalog) Newest(ctx context.Context, prefix string, most int) ([]Summary, error) {
	list, err := c.runs(ctx, prefix, max(most, 0))
	if err != nil {
		return nil, c.fail("read", err)
	}
	out := make([]Summary, 0, len(list))
	for _, r := range list {
		s, err := c.head(ctx, r)
		if err != nil {
			return nil, c.fail("read", err)
		}
		out = append(out, s)
	}
	return out, c.fail("read", markUnserved(ctx, c.store.db, c.now(), out))
}

// head returns the summary of a row.
func (c *catalog) head(ctx context.Context, r row) (s Summary, err error) {
	s = Summary{Run: r.id, Name: r.name, Command: r.command, Starter: r.starter, Spec: r.spec, Started: r.started, Status: r.turn.status, Session: r.session, Turn: r.place, Queue: r.queue}
	if c.live(r.held) {
		s.Holder = &r.held.Holder
	}
	if s.Holder == nil && r.queue.waits() {
		s.Status = Queued
		if r.queue.Aside != "" {
			s.Status = SetAside
		}
		return s, c.addSpan(ctx, &r, &s)
	}
	if r.turn.status != "" {
		s.Ended = r.turn.at
		s.Tasks, s.Outcomes, err = parseTaskCounts(r.turn.tasks)
		return s, cmp.Or(err, c.addSpan(ctx, &r, &s))
	}
	if s.Status = Interrupted; s.Holder != nil {
		s.Status = Running
	}
	return s, c.addSpan(ctx, &r, &s)
}

// summary returns the summary of a run. The lines of a run that did not end say how far its tasks
// are, and whether it is paused.
func (c *catalog) summary(ctx context.Context, r row) (Summary, error) {
	s, err := c.head(ctx, r)
	if r.turn.status != "" || err != nil {
		return s, c.fail("read", err)
	}
	st, err := c.progress(ctx, r.n)
	s.Add(st)
	return s, c.fail("read", err)
}

// Add adds what the entries of the run say: of one that did not end, how far its tasks are, and whether it is paused.
func (s *Summary) Add(st *runstate.State) {
	st.Live = s.Holder != nil
	if !s.Ended.IsZero() {
		return
	}
	if st.Paused && !s.Queue.waits() {
		s.Status = Paused
	}
	s.Tasks, s.Outcomes = st.Count()
}

// live reports whether a process may work on a run with this lease.
func (c *catalog) live(l *lease) bool { return l != nil && c.liveAt(l, c.now()) }

func (c *catalog) liveAt(l *lease, now time.Time) bool {
	return l != nil && l.live(now, l.liveness(c.me))
}

// progress returns how far the tasks of a run are that did not end, and whether it is paused.
func (c *catalog) progress(ctx context.Context, number int64) (*runstate.State, error) {
	s, err := progressIn(rows(ctx, c.store, number, 0, false, undecoded))
	if h := (record.History{Begins: s.Begins}); err == nil && !h.HasTaskEvents() {
		s, err = progressIn(rows(ctx, c.store, number, 0, true, undecoded))
	}
	return s, err
}

// progressIn returns how far the tasks of a run are, as its rows say.
func progressIn(rows iter.Seq2[*batchRow, error]) (*runstate.State, error) {
	s := runstate.New()
	for l, err := range rows {
		if err != nil {
			return s, err
		}
		for kind, value := range record.SplitLines(l.text) {
			if err := addProgress(s, kind, value); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// addProgress adds a line if it says how far a task is.
func addProgress(s *runstate.State, kind string, value []byte) (err error) {
	var e record.Entry
	switch kind {
	case record.KindRunStart:
		e.Begin, _, err = decodeBegin(value)
	case record.KindCommand:
		e.Command = new(record.Command)
		err = json.Unmarshal(value, e.Command)
	case record.KindEvent:
		e.Change, _, _, err = record.DecodeChange(value)
	}
	s.Apply(&e)
	return err
}

// markUnserved marks the queued runs that no worker serves.
func markUnserved(ctx context.Context, db Database, now time.Time, list []Summary) error {
	isQueued := func(s Summary) bool { return s.Status == Queued }
	if !slices.ContainsFunc(list, isQueued) {
		return nil
	}
	served, err := servedSince(ctx, db, now, leaseTime)
	if err != nil {
		return err
	}
	for i := range list {
		if q := list[i].Queue; isQueued(list[i]) {
			q.Unserved = !slices.Contains(served, Served{q.Spec, q.Version})
		}
	}
	return nil
}
