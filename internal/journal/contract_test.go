package journal_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// An openFunc opens a journal in one place, which is empty at first. Each call opens the
// same journal, if the one before was closed.
type openFunc func(o journal.Options) (*journal.Journal, error)

// testContract tests what runs rely on, wherever a journal stores them. Each clause is a
// subtest with a place of its own.
func testContract(t *testing.T, place func(t *testing.T) openFunc) {
	for _, clause := range []struct {
		name string
		hold func(t *testing.T, open openFunc)
	}{
		{"entries are read back", entriesAreReadBack},
		{"done is called in order and not within Append", doneIsCalledInOrder},
		{"many goroutines append", concurrentAppends},
		{"commands reach their run", commandsReachTheirRun},
		{"an error ends its run only", errorEndsItsRunOnly},
		{"a closed run refuses entries", closedRun},
		{"a closed journal refuses entries", closedJournal},
		{"answers of other runs are found, the newest first", answersOfOtherRuns},
		{"only reusable answers are found", onlyReusableAnswers},
		{"a run belongs to one process", runIsLeased},
		{"a run is resumed", runIsResumed},
		{"the chain names the run before", chainNamesRunBefore},
		{"a run is found by a prefix", runIsFoundByPrefix},
		{"runs have a status", runsHaveStatus},
		{"old runs are removed, except those in progress", oldRunIsRemoved},
		{"secrets are read with their key only", secretsNeedTheirKey},
		{"a trace is read back", traceIsReadBack},
		{"one task is read alone", oneTaskIsReadAlone},
		{"a changed spec is stored beside the old one", changedSpecIsStored},
	} {
		t.Run(clause.name, func(t *testing.T) { clause.hold(t, place(t)) })
	}
}

// testClock is a clock that stands still until it is set.
type testClock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *testClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// openJournal returns a journal that is closed with the test.
func openJournal(t *testing.T, open openFunc, o journal.Options) *journal.Journal {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return noon.Add(time.Hour) }
	}
	j, err := open(o)
	if errors.Is(err, journal.ErrKeyMissing) {
		o.Key = bytes.Repeat([]byte{7}, journal.KeyBytes)
		j, err = open(o)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// beginRun begins a run.
func beginRun(t *testing.T, j *journal.Journal, id string) *journal.Run {
	t.Helper()
	r, err := j.Begin(t.Context(), journal.Info{Run: id, Name: "claims", Command: "run", Time: noon})
	require.NoError(t, err)
	return r
}

// appendEntries appends entries and waits until they are durable.
func appendEntries(r *journal.Run, entries ...record.Entry) error {
	done := make(chan error, 1)
	r.Append(entries, func(err error) { done <- err })
	return <-done
}

// endRun ends a run.
func endRun(t *testing.T, r *journal.Run) audit.Head {
	t.Helper()
	head, err := r.End(t.Context())
	require.NoError(t, err)
	return head
}

// requireHistory fails unless a history is what these entries make, with the
// keys in the form in which a journal has them. Files of earlier versions keep the events of tasks elsewhere.
func requireHistory(t require.TestingT, want []record.Entry, h *record.History) {
	var log []record.Entry
	var begins []record.RunStart
	var end *record.RunEnd
	for _, e := range want {
		switch {
		case e.Begin != nil:
			b := *e.Begin
			b.Inputs = append([]record.Input(nil), b.Inputs...)
			for i := range b.Inputs {
				b.Inputs[i].Key = h.Mask(b.Inputs[i].Key)
			}
			if len(h.Begins) > len(begins) {
				b.Version = h.Begins[len(begins)].Version
			}
			begins, end, log = append(begins, b), nil, append(log, record.Entry{Begin: &b})
		case e.Asked != nil, e.Begun != nil, e.Sent != nil:
			log = append(log, e)
		case e.Event != nil && h.HasTaskEvents():
			if c := record.ChangeOf(e.Event); c != nil {
				log = append(log, record.Entry{Change: c})
			}
		case e.Exchange != nil:
			x := *e.Exchange
			x.Key, x.Core, x.Reuse = h.Mask(x.Key), h.Mask(x.Core), h.Mask(x.Reuse)
			log = append(log, record.Entry{Exchange: &x})
		case e.Rejected != nil:
			x := *e.Rejected
			x.Key, x.Core = h.Mask(x.Key), h.Mask(x.Core)
			log = append(log, record.Entry{Rejected: &x})
		case e.End != nil:
			end = e.End
		}
	}
	require.Equal(t, begins, h.Begins)
	require.Equal(t, log, h.Log)
	if h.End != nil && end != nil {
		end = new(*end)
		end.Tasks = h.End.Tasks
	}
	require.Equal(t, end, h.End)
}

// requireVerified fails unless the lines of a run are what its head says.
func requireVerified(t testing.TB, j *journal.Journal, run string, key []byte, head audit.Head) audit.Report {
	t.Helper()
	report, err := j.Verify(t.Context(), run, audit.VerifyOptions{Key: key, Head: head})
	require.NoError(t, err)
	require.NotEqual(t, audit.Broken, report.Status, report.Why)
	return report
}

// beginning returns the first entry of a run of so many tasks.
func (f *fakeRun) beginning(tasks int) record.Entry {
	b := &record.RunStart{Run: f.Run, Name: "claims", Time: noon, Inputs: []record.Input{{Name: "claim", Classification: label.Confidential, Bytes: 300, Key: answerKey(-1), Line: "team.yaml:9"}}}
	for n := range tasks {
		of := f.Task(n)
		b.Tasks = append(b.Tasks, event.Planned{Task: of.ID, Title: of.Title, Agent: of.Assignee})
	}
	return record.Entry{Begin: b}
}

// ending returns the last entry of a run of so many tasks, of which all completed.
func (f *fakeRun) ending(tasks int) record.Entry {
	e := &record.RunEnd{Time: f.now(), Status: "ok", Warnings: []string{"an input is not used"}}
	for n := range tasks {
		of := f.Task(n)
		e.Tasks = append(e.Tasks, record.TaskEnd{Task: of.ID, Title: of.Title, Agent: of.Assignee, Status: task.Completed})
		e.Output = append(e.Output, of.ID)
	}
	return record.Entry{End: e}
}

// all returns all entries of a run of so many tasks.
func (f *fakeRun) all(tasks int) []record.Entry {
	list := []record.Entry{f.beginning(tasks)}
	for n := range tasks {
		before, after := f.Complete(n, 300)
		list = append(append(list, before...), after...)
	}
	return append(list, f.ending(tasks))
}

func entriesAreReadBack(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	r := beginRun(t, j, "r1")
	fake := newFakeRun("r1", 1)
	list := slices.Insert(fake.all(3), 4, record.Entry{Rejected: fake.Rejected(fake.Task(0), "forty-two", answerKey(0))})
	for i := range list {
		require.NoError(t, appendEntries(r, list[i]))
	}
	endRun(t, r)
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	requireHistory(t, list, &s.History)
	require.Equal(t, journal.Info{Run: "r1", Name: "claims", Command: "run", Time: noon}, s.Info)
	require.Equal(t, noon.Add(time.Hour), s.Newest)
	for _, e := range s.History.Log {
		if e.Exchange != nil {
			made, err := e.Exchange.Result.Envelope()
			require.NoError(t, err)
			require.NoError(t, made.Genuine())
		}
	}
}

func doneIsCalledInOrder(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	r := beginRun(t, j, "r1")
	fake := newFakeRun("r1", 1)
	const n = 200
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	all.Add(n)
	mu.Lock() // a done within Append would never return
	for i := range n {
		e := fake.Events(fake.Task(i), event.TaskReady)
		r.Append(e, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
			if err != nil {
				t.Errorf("entry %d: %v", i, err)
			}
			all.Done()
		})
	}
	mu.Unlock()
	all.Wait()
	for i, got := range order {
		require.Equal(t, i, got)
	}
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	changes := slices.DeleteFunc(s.History.Log, func(e record.Entry) bool { return e.Change == nil })
	require.Len(t, changes, n)
	for i := range changes {
		require.Equal(t, fake.Task(i).ID, changes[i].Change.Task)
	}
}

func concurrentAppends(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	var all sync.WaitGroup
	for _, id := range []string{"r1", "r2"} {
		r := beginRun(t, j, id)
		for g := range 8 {
			all.Go(func() {
				fake := newFakeRun(id, uint64(g))
				for i := range 10 {
					before, after := fake.Complete(100*g+i, 100)
					for _, entries := range [][]record.Entry{before, after} {
						if err := appendEntries(r, entries...); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	all.Wait()
	for _, id := range []string{"r1", "r2"} {
		s, err := j.Load(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, withoutChanges(s.History.Log), 160)
		last := map[string]bool{}
		for _, e := range s.History.Log {
			if e.Asked != nil {
				last[e.Asked.Session] = true
			} else if e.Exchange != nil {
				require.True(t, last[e.Exchange.Session], "an answer before its question")
			}
		}
		require.Equal(t, 160, requireVerified(t, j, id, nil, audit.Head{}).Decisions)
	}
}

func errorEndsItsRunOnly(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	bad, good := beginRun(t, j, "bad"), beginRun(t, j, "good")
	fake := newFakeRun("bad", 1)
	require.NoError(t, appendEntries(bad, fake.beginning(1)))
	first := appendEntries(bad, record.Entry{})
	require.ErrorContains(t, first, "an empty entry")
	require.Equal(t, first, appendEntries(bad, fake.ending(1)))
	_, err := bad.Close(t.Context())
	require.Equal(t, first, err)
	require.NoError(t, appendEntries(good, newFakeRun("good", 1).beginning(1)))
	s, err := j.Load(t.Context(), "bad")
	require.NoError(t, err)
	require.Nil(t, s.History.End, "nothing is written after an error")
	require.Len(t, s.History.Begins, 1)
}

func closedRun(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	r := beginRun(t, j, "r1")
	head := endRun(t, r)
	require.Equal(t, head, r.Head())
	require.ErrorIs(t, appendEntries(r, newFakeRun("r1", 1).beginning(1)), journal.ErrClosed)
	_, err := r.Close(t.Context())
	require.ErrorIs(t, err, journal.ErrClosed)
	require.ErrorIs(t, r.Update(t.Context(), journal.Info{}), journal.ErrClosed)
	require.Equal(t, audit.Verified, requireVerified(t, j, "r1", nil, head).Status)
}

func closedJournal(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	r := beginRun(t, j, "r1")
	fake := newFakeRun("r1", 1)
	waiting := make(chan error, 10)
	for range cap(waiting) {
		r.Append(fake.Events(fake.Task(1), event.TaskReady), func(err error) { waiting <- err })
	}
	require.NoError(t, j.Close())
	require.Len(t, waiting, cap(waiting), "Close waits for what was appended")
	for range cap(waiting) {
		require.NoError(t, <-waiting)
	}
	require.NoError(t, j.Close())
	require.ErrorIs(t, appendEntries(r, fake.beginning(1)), journal.ErrClosed)
	require.ErrorIs(t, appendEntries(r, fake.beginning(1)), journal.ErrClosed)
	_, err := j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.ErrorIs(t, err, journal.ErrClosed)
	_, err = j.Runs(t.Context())
	require.ErrorIs(t, err, journal.ErrClosed)
}

func runsHaveStatus(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	fake := newFakeRun("r1", 1)
	r := beginRun(t, j, "r1")
	require.NoError(t, appendEntries(r, fake.beginning(3)))
	before, after := fake.Complete(0, 100)
	require.NoError(t, appendEntries(r, append(before, after...)...))
	require.NoError(t, appendEntries(r, fake.Events(fake.Task(1), event.TaskReady, event.TaskStart)...))
	is := func(status string, counts journal.Counts) journal.Summary {
		list, err := j.Runs(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, status, list[0].Status)
		require.Equal(t, counts, list[0].Tasks)
		return list[0]
	}
	under := journal.Counts{task.Completed: 1, task.InProgress: 1, task.Pending: 1}
	left := journal.Counts{task.Completed: 1, runstate.Interrupted: 1, task.Pending: 1}
	require.Equal(t, journal.ThisHolder(), *is(journal.Running, under).Holder)
	endRun(t, r)
	require.Nil(t, is(journal.Interrupted, left).Holder)
	r, _, err := j.Resume(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, appendEntries(r, fake.ending(3)))
	endRun(t, r)
	s := is("ok", journal.Counts{task.Completed: 3})
	require.Equal(t, noon, s.Started)
	require.False(t, s.Ended.IsZero())
	r, _, err = j.Resume(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, journal.Running, is(journal.Running, under).Status)
	endRun(t, r)
	is(journal.Interrupted, left)
}
