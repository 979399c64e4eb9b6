// Package journaltest holds journals to what a run relies on, wherever they keep it.
package journaltest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An Open opens a journal in one place, which is new and empty at first: the
// same at each call, if the one before was closed.
type Open func(o journal.Options) (*journal.Journal, error)

// Run holds journals to the contract of [journal.Journal], a subtest for each
// clause, of which each gets a place of its own.
func Run(t *testing.T, place func(t *testing.T) Open) {
	for _, clause := range []struct {
		name string
		hold func(t *testing.T, open Open)
	}{
		{"what was appended comes back", comesBack},
		{"done is called in order and not within Append", inOrder},
		{"many append at once", concurrent},
		{"an error sticks to its run alone", sticks},
		{"a closed run takes nothing", closedRun},
		{"a closed journal takes nothing", closedJournal},
		{"answers of others are recalled, the newest first", recalls},
		{"only what may be taken is recalled", recallsOnlyWhatMayBeTaken},
		{"a run is one process's", leased},
		{"a run goes on where it came to", goesOn},
		{"the chain names the run before", chained},
		{"a run is found by a prefix", found},
		{"runs are told with their status", told},
		{"an old run is removed, and none that lives", removed},
		{"the clock may not be set back", clock},
		{"secrets come back with their key alone", secrets},
		{"a trace is made of what was kept", traced},
		{"one task is read without the others", tracedAlone},
		{"a changed spec is kept beside the old one", updated},
	} {
		t.Run(clause.name, func(t *testing.T) { clause.hold(t, place(t)) })
	}
}

// at is a clock that stands still until it is set.
type at struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *at) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *at) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// opened returns a journal that is closed with the test.
func opened(t *testing.T, open Open, o journal.Options) *journal.Journal {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return Noon.Add(time.Hour) }
	}
	j, err := open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// begun begins a run.
func begun(t *testing.T, j *journal.Journal, id string) *journal.Run {
	t.Helper()
	r, err := j.Begin(t.Context(), journal.Info{Run: id, Name: "claims", Command: "run", Time: Noon})
	require.NoError(t, err)
	return r
}

// Append appends entries and waits until they are durable.
func Append(r *journal.Run, entries ...record.Entry) error {
	done := make(chan error, 1)
	r.Append(entries, func(err error) { done <- err })
	return <-done
}

// closed closes a run.
func closed(t *testing.T, r *journal.Run) audit.Head {
	t.Helper()
	head, err := r.End(t.Context())
	require.NoError(t, err)
	return head
}

// RequireHistory fails unless a history is what these entries make, with the
// keys in the form in which a journal has them.
func RequireHistory(t require.TestingT, want []record.Entry, h *record.History) {
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
			begins, end = append(begins, b), nil
		case e.Asked != nil, e.Begun != nil, e.Sent != nil:
			log = append(log, e)
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
	require.Equal(t, end, h.End)
}

// RequireVerified fails unless the lines of a run are what its head says.
func RequireVerified(t testing.TB, j *journal.Journal, run string, key []byte, head audit.Head) audit.Report {
	t.Helper()
	report, err := j.Verify(t.Context(), run, audit.VerifyOptions{Key: key, Head: head})
	require.NoError(t, err)
	require.NotEqual(t, audit.Broken, report.Status, report.Why)
	return report
}

// beginning returns the first entry of a run of so many tasks.
func (t *Teller) beginning(tasks int) record.Entry {
	b := &record.RunStart{Run: t.Run, Name: "claims", Time: Noon, Inputs: []record.Input{{Name: "claim", Classification: label.Confidential, Bytes: 300, Key: Key(-1), Line: "team.yaml:9"}}}
	for n := range tasks {
		of := t.Task(n)
		b.Tasks = append(b.Tasks, event.Planned{Task: of.ID, Title: of.Title, Agent: of.Assignee})
	}
	return record.Entry{Begin: b}
}

// ending returns the last entry of a run of so many tasks, of which all completed.
func (t *Teller) ending(tasks int) record.Entry {
	e := &record.RunEnd{Time: t.now(), Status: "ok", Warnings: []string{"an input is not used"}}
	for n := range tasks {
		of := t.Task(n)
		e.Tasks = append(e.Tasks, record.TaskEnd{Task: of.ID, Title: of.Title, Agent: of.Assignee, Status: task.Completed})
		e.Output = append(e.Output, of.ID)
	}
	return record.Entry{End: e}
}

// all returns all that a run of so many tasks tells.
func (t *Teller) all(tasks int) []record.Entry {
	list := []record.Entry{t.beginning(tasks)}
	for n := range tasks {
		before, after := t.Complete(n, 300)
		list = append(append(list, before...), after...)
	}
	return append(list, t.ending(tasks))
}

func comesBack(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	r := begun(t, j, "r1")
	story := NewTeller("r1", 1)
	list := slices.Insert(story.all(3), 4, record.Entry{Rejected: story.Rejected(story.Task(0), "forty-two", Key(0))})
	for i := range list {
		require.NoError(t, Append(r, list[i]))
	}
	closed(t, r)
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	RequireHistory(t, list, &s.History)
	require.Equal(t, journal.Info{Run: "r1", Name: "claims", Command: "run", Time: Noon}, s.Info)
	require.Equal(t, Noon.Add(time.Hour), s.Newest)
	for _, e := range s.History.Log {
		if e.Exchange != nil {
			made, err := e.Exchange.Result.Envelope()
			require.NoError(t, err)
			require.NoError(t, made.Genuine())
		}
	}
}

func inOrder(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	r := begun(t, j, "r1")
	story := NewTeller("r1", 1)
	const n = 200
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	all.Add(n)
	mu.Lock() // a done within Append would never return
	for i := range n {
		e := story.Events(story.Task(i), event.TaskReady)
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
	tr, err := j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	require.Len(t, tr.Events, n)
	for i, e := range tr.Events {
		require.Equal(t, i+1, e.Seq)
	}
}

func concurrent(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	var all sync.WaitGroup
	for _, id := range []string{"r1", "r2"} {
		r := begun(t, j, id)
		for g := range 8 {
			all.Go(func() {
				story := NewTeller(id, uint64(g))
				for i := range 10 {
					before, after := story.Complete(100*g+i, 100)
					for _, entries := range [][]record.Entry{before, after} {
						if err := Append(r, entries...); err != nil {
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
		require.Len(t, s.History.Log, 160)
		last := map[string]bool{}
		for _, e := range s.History.Log {
			if e.Asked != nil {
				last[e.Asked.Session] = true
			} else {
				require.True(t, last[e.Exchange.Session], "an answer before its question")
			}
		}
		require.Equal(t, 160, RequireVerified(t, j, id, nil, audit.Head{}).Decisions)
	}
}

func sticks(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	bad, good := begun(t, j, "bad"), begun(t, j, "good")
	story := NewTeller("bad", 1)
	require.NoError(t, Append(bad, story.beginning(1)))
	first := Append(bad, record.Entry{})
	require.ErrorContains(t, first, "entry of nothing")
	require.Equal(t, first, Append(bad, story.ending(1)))
	_, err := bad.Close(t.Context())
	require.Equal(t, first, err)
	require.NoError(t, Append(good, NewTeller("good", 1).beginning(1)))
	s, err := j.Load(t.Context(), "bad")
	require.NoError(t, err)
	require.Nil(t, s.History.End, "nothing is written after an error")
	require.Len(t, s.History.Begins, 1)
}

func closedRun(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	r := begun(t, j, "r1")
	head := closed(t, r)
	require.Equal(t, head, r.Head())
	require.ErrorIs(t, Append(r, NewTeller("r1", 1).beginning(1)), journal.ErrClosed)
	_, err := r.Close(t.Context())
	require.ErrorIs(t, err, journal.ErrClosed)
	require.ErrorIs(t, r.Update(t.Context(), journal.Info{}), journal.ErrClosed)
	require.Equal(t, audit.Verified, RequireVerified(t, j, "r1", nil, head).Status)
}

func closedJournal(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	r := begun(t, j, "r1")
	story := NewTeller("r1", 1)
	waiting := make(chan error, 10)
	for range cap(waiting) {
		r.Append(story.Events(story.Task(1), event.TaskReady), func(err error) { waiting <- err })
	}
	require.NoError(t, j.Close())
	require.Len(t, waiting, cap(waiting), "Close waits for what was appended")
	for range cap(waiting) {
		require.NoError(t, <-waiting)
	}
	require.NoError(t, j.Close())
	require.ErrorIs(t, Append(r, story.beginning(1)), journal.ErrClosed)
	require.ErrorIs(t, Append(r, story.beginning(1)), journal.ErrClosed)
	_, err := j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.ErrorIs(t, err, journal.ErrClosed)
	_, err = j.Runs(t.Context())
	require.ErrorIs(t, err, journal.ErrClosed)
}

func told(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	story := NewTeller("r1", 1)
	r := begun(t, j, "r1")
	require.NoError(t, Append(r, story.beginning(3)))
	before, after := story.Complete(0, 100)
	require.NoError(t, Append(r, append(before, after...)...))
	require.NoError(t, Append(r, story.Events(story.Task(1), event.TaskReady, event.TaskStart)...))
	is := func(status string, counts journal.Counts) journal.Summary {
		list, err := j.Runs(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, status, list[0].Status)
		require.Equal(t, counts, list[0].Tasks)
		return list[0]
	}
	under := journal.Counts{task.Completed: 1, task.InProgress: 1, task.Pending: 1}
	require.Equal(t, journal.ThisHolder(), *is(journal.Running, under).Holder)
	closed(t, r)
	require.Nil(t, is(journal.Interrupted, under).Holder)
	r, _, err := j.Resume(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, Append(r, story.ending(3)))
	closed(t, r)
	s := is("ok", journal.Counts{task.Completed: 3})
	require.Equal(t, Noon, s.Started)
	require.False(t, s.Ended.IsZero())
	r, _, err = j.Resume(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, journal.Running, is(journal.Running, under).Status)
	closed(t, r)
	is(journal.Interrupted, under)
}
