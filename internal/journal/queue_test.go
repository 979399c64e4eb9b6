package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
)

var queueKey = bytes.Repeat([]byte{7}, journal.KeyBytes)

// onBothStores runs a test with journals in a file and in PostgreSQL. Each call of open opens the same journal.
func onBothStores(t *testing.T, test func(t *testing.T, open openFunc)) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "runs.db")
		test(t, func(o journal.Options) (*journal.Journal, error) {
			o.Key = queueKey
			return journal.Open(path, o)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := pgtest.Address(t)
		test(t, func(o journal.Options) (*journal.Journal, error) {
			o.Key = queueKey
			return postgres.Open(t.Context(), address, o)
		})
	})
}

// openQueue opens a journal by the real clock, which is closed with the test.
func openQueue(t *testing.T, open openFunc, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// submission is a run of ann.
func submission(id string) journal.Submission {
	return journal.Submission{
		Info: journal.Info{Run: id, Name: "claims", Command: "submit", Files: []journal.File{{Path: "--input claim", Text: "the claim of " + id, Label: label.Confidential}}, Label: label.Confidential},
		Spec: "claims", Version: "v1", By: "ann",
	}
}

func submit(t *testing.T, j *journal.Journal, list ...journal.Submission) {
	t.Helper()
	for _, s := range list {
		id, added, err := j.Submit(t.Context(), s)
		require.NoError(t, err)
		require.True(t, added)
		require.Equal(t, s.Info.Run, id)
	}
}

func claims() journal.Worker {
	return journal.Worker{Serves: []journal.Served{{Spec: "claims", Version: "v1"}}}
}

// claim takes a run, which must be there.
func claim(t *testing.T, j *journal.Journal) *journal.Claim {
	t.Helper()
	c, err := j.Claim(t.Context(), claims())
	require.NoError(t, err)
	return c
}

// claimAll takes runs until none waits. Other goroutines may do so too.
func claimAll(t *testing.T, j *journal.Journal, each func(*journal.Claim)) {
	t.Helper()
	for {
		c, err := j.Claim(t.Context(), claims())
		if errors.Is(err, journal.ErrNoneQueued) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		each(c)
	}
}

func requireNone(t *testing.T, j *journal.Journal, w journal.Worker) {
	t.Helper()
	_, err := j.Claim(t.Context(), w)
	require.ErrorIs(t, err, journal.ErrNoneQueued)
}

// statusOf returns the status of a run in the list.
func statusOf(t *testing.T, j *journal.Journal, id string) string {
	t.Helper()
	s, err := j.Find(t.Context(), id)
	require.NoError(t, err)
	return s.Status
}

// works is what a worker appends to a run that it ends.
func works(t *testing.T, c *journal.Claim, id string) {
	t.Helper()
	require.NoError(t, appendEntries(c.Run, newFakeRun(id, 1).all(1)...))
	endRun(t, c.Run)
}

func TestSubmittedRunIsWorkedOnOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		requireNone(t, j, claims())
		submit(t, j, submission("r1"))
		require.Equal(t, journal.Queued, statusOf(t, j, "r1"))
		require.NotNil(t, mustFind(t, j, "r1").Queue)
		requireNone(t, j, journal.Worker{Serves: []journal.Served{{Spec: "claims", Version: "v2"}, {Spec: "other", Version: "v1"}}})

		c := claim(t, j)
		require.Equal(t, "the claim of r1", c.Stored.Info.Files[0].Text, "the worker reads the input back")
		require.Equal(t, "ann", c.Queue.By)
		require.Empty(t, c.Stored.History.Begins)
		require.Equal(t, journal.Running, statusOf(t, j, "r1"))
		requireNone(t, j, claims())
		works(t, c, "r1")
		require.Equal(t, "ok", statusOf(t, j, "r1"))
		require.Nil(t, mustFind(t, j, "r1").Queue)
		requireNone(t, j, claims())
		requireVerified(t, j, "r1", nil, c.Run.Head())
		_, err := j.Requeue(t.Context(), "r1")
		require.NoError(t, err)
	})
}

func mustFind(t *testing.T, j *journal.Journal, id string) journal.Summary {
	t.Helper()
	s, err := j.Find(t.Context(), id)
	require.NoError(t, err)
	return s
}

// The same request of one caller for one spec is one run, also when many submit it at once.
func TestARequestIsOneRun(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		var all sync.WaitGroup
		var mu sync.Mutex
		ids, firsts := map[string]bool{}, 0
		for i := range 8 {
			all.Go(func() {
				s := submission(fmt.Sprint("r", i))
				s.Request = "2026-11-30"
				id, added, err := j.Submit(t.Context(), s)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if ids[id] = true; added {
					firsts++
				}
			})
		}
		all.Wait()
		require.Len(t, ids, 1)
		require.Equal(t, 1, firsts)
		for _, change := range []func(*journal.Submission){func(s *journal.Submission) { s.By = "bob" }, func(s *journal.Submission) { s.Spec = "other" }, func(s *journal.Submission) { s.Request = "" }} {
			s := submission(fmt.Sprint("other", len(ids)))
			s.Request = "2026-11-30"
			change(&s)
			id, added, err := j.Submit(t.Context(), s)
			require.NoError(t, err)
			require.True(t, added)
			ids[id] = true
		}
		require.Len(t, ids, 4)
		runs, err := j.Runs(t.Context())
		require.NoError(t, err)
		require.Len(t, runs, 4, "nothing is left of what was not added")
	})
}

func TestQueueHasAnOrder(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		later, urgent, bobs := submission("later"), submission("urgent"), submission("bobs")
		later.Due = time.Now().Add(time.Hour)
		urgent.Priority, bobs.By = 1, "bob"
		submit(t, j, later, submission("first"), submission("second"), urgent, bobs)
		order := []string{}
		for range 4 {
			order = append(order, claim(t, j).Stored.Info.Run)
		}
		require.Equal(t, []string{"urgent", "bobs", "first", "second"}, order, "callers alternate")
		requireNone(t, j, claims())
		require.WithinDuration(t, later.Due, mustFind(t, j, "later").Queue.Due, time.Microsecond)
	})
}

func TestLimitsOfACaller(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		for _, id := range []string{"r1", "r2"} {
			s := submission(id)
			s.Most, s.Request = 2, "of "+id
			submit(t, j, s)
		}
		s := submission("r3")
		s.Most, s.Request = 2, "of r3"
		_, _, err := j.Submit(t.Context(), s)
		require.ErrorIs(t, err, journal.ErrQueueFull)
		s.Request = "of r1"
		first, added, err := j.Submit(t.Context(), s)
		require.NoError(t, err, "it is stored already")
		require.Equal(t, "r1", first)
		require.False(t, added)
		s.Request = ""
		s.By = "bob"
		submit(t, j, s)
		w := claims()
		w.MaxRunning = 1
		got := map[string]bool{}
		for range 2 {
			c, err := j.Claim(t.Context(), w)
			require.NoError(t, err)
			got[c.Queue.By] = true
		}
		require.Equal(t, map[string]bool{"ann": true, "bob": true}, got)
		requireNone(t, j, w)
	})
}

// Of submissions of one caller at once, no more are stored than may wait. One that was submitted before is there.
func TestSubmissionsAtOnceKeepTheLimitOfACaller(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		var all sync.WaitGroup
		var stored atomic.Int32
		for i := range 12 {
			all.Go(func() {
				s := submission(fmt.Sprint("r", i))
				s.Most, s.Spec = 3, fmt.Sprint("claims", i%2)
				switch _, added, err := j.Submit(t.Context(), s); {
				case added:
					stored.Add(1)
				case !errors.Is(err, journal.ErrQueueFull):
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 3, stored.Load())
		again := submission("again")
		again.By, again.Request, again.Most = "bob", "one", 1
		submit(t, j, again)
		again.Info.Run = "other"
		id, added, err := j.Submit(t.Context(), again)
		require.NoError(t, err)
		require.False(t, added)
		require.Equal(t, "again", id)
	})
}

// What claimed runs of a caller have cost on a day counts at once. Who reads the database learns no exact cost of a secret.
func TestCostOfACallerOnADay(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"), submission("r2"), submission("r3"))
		w := claims()
		w.MaxCostPerDay = llm.Dollars(1)
		costs := func(id string, level label.Classification, cost llm.Money) {
			c, err := j.Claim(t.Context(), w)
			require.NoError(t, err)
			require.Equal(t, id, c.Stored.Info.Run)
			run := newFakeRun(id, 1)
			run.Label = level
			all := run.all(1)
			for i := range all {
				if x := all[i].Exchange; x != nil {
					x.Cost = cost
				}
			}
			require.NoError(t, appendEntries(c.Run, all...))
		}
		costs("r1", label.Internal, llm.Dollars(0.6))
		smallest := w
		smallest.MaxCostPerDay = 1
		requireNone(t, j, smallest)
		costs("r2", label.Secret, llm.Dollars(0.3)) // which counts as its size class, 1.0995
		requireNone(t, j, w)
		bobs := submission("r4")
		bobs.By = "bob"
		submit(t, j, bobs)
		costs("r4", label.Internal, 0)
		w.MaxCostPerDay = llm.Dollars(1.8)
		costs("r3", label.Internal, 0)
	})
}

func TestCostOfYesterdayDoesNotCount(t *testing.T) {
	t.Parallel()
	path, now := filepath.Join(t.TempDir(), "runs.db"), time.Date(2026, 12, 1, 23, 59, 0, 0, time.UTC)
	j, err := journal.Open(path, journal.Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	submit(t, j, submission("r1"), submission("r2"))
	w := claims()
	w.MaxCostPerDay = llm.Dollars(0.5)
	c, err := j.Claim(t.Context(), w)
	require.NoError(t, err)
	run := newFakeRun("r1", 1)
	all := run.all(1)
	for i := range all {
		if x := all[i].Exchange; x != nil {
			x.Cost = llm.Dollars(0.5)
		}
	}
	require.NoError(t, appendEntries(c.Run, all...))
	requireNone(t, j, w)
	now = now.Add(2 * time.Minute)
	_, err = j.Claim(t.Context(), w)
	require.NoError(t, err)
}

// Lists say which queued runs no open worker serves.
func TestListsSayWhatNobodyServes(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		later := submission("later")
		later.Due = time.Now().Add(time.Hour)
		submit(t, j, later)
		unserved := func() bool {
			found := mustFind(t, j, "later")
			for _, read := range []func() ([]journal.Summary, error){
				func() ([]journal.Summary, error) { return j.Runs(t.Context()) },
				func() ([]journal.Summary, error) { return j.Newest(t.Context(), "", 9) },
			} {
				list, err := read()
				require.NoError(t, err)
				require.Equal(t, found.Queue.Unserved, list[0].Queue.Unserved)
			}
			return found.Queue.Unserved
		}
		require.True(t, unserved())
		worker, err := open(journal.Options{})
		require.NoError(t, err)
		requireNone(t, worker, journal.Worker{Serves: []journal.Served{{Spec: "claims", Version: "v2"}}})
		require.True(t, unserved(), "it serves another version")
		requireNone(t, worker, claims())
		require.False(t, unserved())
		require.NoError(t, worker.Close())
		require.True(t, unserved())
	})
}

// Of many workers that claim at once, one gets each run.
func TestWorkersShareTheQueue(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		const runs, workers = 40, 4
		first := openQueue(t, open, journal.Options{})
		for i := range runs {
			s := submission(fmt.Sprint("r", i))
			s.By = fmt.Sprint("caller", i%3)
			submit(t, first, s)
		}
		var mu sync.Mutex
		got := map[string]int{}
		var all sync.WaitGroup
		for n := range workers {
			me := journal.ThisHolder()
			me.Host = fmt.Sprint("host", n)
			j := openQueue(t, open, journal.Options{Holder: &me})
			all.Go(func() {
				claimAll(t, j, func(c *journal.Claim) {
					id := c.Stored.Info.Run
					mu.Lock()
					got[id]++
					mu.Unlock()
					if err := appendEntries(c.Run, newFakeRun(id, 1).all(1)...); err != nil {
						t.Error(err)
					}
					if _, err := c.Run.End(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
			})
		}
		all.Wait()
		require.Len(t, got, runs)
		for id, n := range got {
			require.Equal(t, 1, n, id)
		}
	})
}

// A run that its process gives up goes back to the queue, without a loss.
func TestAGivenUpRunIsQueuedAgain(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"))
		for range 5 { // more often than a run may be lost
			worker, err := open(journal.Options{})
			require.NoError(t, err)
			c := claim(t, worker)
			require.NoError(t, appendEntries(c.Run, newFakeRun("r1", 1).beginning(1)))
			require.NoError(t, worker.Close(), "as a server that drains")
			require.Equal(t, journal.Queued, statusOf(t, j, "r1"))
		}
	})
}

// A run whose process dies is taken by another one. If no agent replies in between, it is set aside after the third time.
func TestALostRunIsTakenAndSetAside(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"))
		die := func(entries ...record.Entry) {
			gone := journal.ThisHolder()
			gone.PID, gone.Started = 1<<22+1, "1" // no process has it
			dying, err := open(journal.Options{Holder: &gone})
			require.NoError(t, err)
			c := claim(t, dying)
			require.NoError(t, appendEntries(c.Run, entries...))
			journal.Abandon(dying)
		}
		begin := newFakeRun("r1", 1).beginning(3)
		die(begin)
		die(begin)
		before, after := newFakeRun("r1", 1).Complete(0, 10)
		die(append(append([]record.Entry{begin}, before...), after...)...)
		die(begin) // the reply before made it start anew
		die(begin)
		requireNone(t, j, claims())
		s := mustFind(t, j, "r1")
		require.Equal(t, journal.SetAside, s.Status)
		require.Contains(t, s.Queue.Aside, "3 times")
		again, err := j.Requeue(t.Context(), "r1")
		require.NoError(t, err)
		require.True(t, again)
		require.Equal(t, journal.Queued, statusOf(t, j, "r1"))
		c := claim(t, j)
		require.NotEmpty(t, c.Stored.History.Log)
		endRun(t, c.Run)
	})
}

// A paused run leaves the queue when its process gives it up.
func TestAPausedRunNeedsNoWorker(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"))
		c := claim(t, j)
		require.NoError(t, appendEntries(c.Run, newFakeRun("r1", 1).beginning(1), record.Entry{Command: &record.Command{Kind: steer.Pause, By: "ann", Time: time.Now()}}))
		endRun(t, c.Run)
		require.Equal(t, journal.Paused, statusOf(t, j, "r1"))
		requireNone(t, j, claims())
		again, err := j.Requeue(t.Context(), "r1")
		require.NoError(t, err)
		require.True(t, again)
		claim(t, j)
	})
}

func TestAwaitNoticesASubmission(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		require.NoError(t, j.Await(t.Context(), time.Second)) // it listens from now on
		began := time.Now()
		go func() {
			time.Sleep(50 * time.Millisecond)
			_, _, err := j.Submit(context.Background(), submission("r1"))
			if err != nil {
				t.Error(err)
			}
		}()
		for {
			_, err := j.Claim(t.Context(), claims())
			if err == nil {
				break
			}
			require.ErrorIs(t, err, journal.ErrNoneQueued)
			require.NoError(t, j.Await(t.Context(), 10*time.Second))
		}
		require.Less(t, time.Since(began), 5*time.Second)
	})
}

// A run that waits for a worker is paused and canceled at once.
func TestAQueuedRunIsSteered(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"))
		steers := func(kind steer.Kind) error {
			return j.Steer(t.Context(), "r1", steer.Command{Kind: kind, By: "ann"})
		}
		require.NoError(t, steers(steer.Pause))
		require.Equal(t, journal.Paused, statusOf(t, j, "r1"))
		requireNone(t, j, claims())
		again, err := j.Requeue(t.Context(), "r1")
		require.NoError(t, err)
		require.True(t, again)
		require.ErrorIs(t, steers(steer.Resume), steer.ErrNotRunning)
		c := claim(t, j)
		require.NoError(t, appendEntries(c.Run, newFakeRun("r1", 1).beginning(2)))
		require.NoError(t, j.Refuse(t.Context(), c, "it is the wrong claim"))
		require.Equal(t, journal.SetAside, statusOf(t, j, "r1"))
		require.Equal(t, "it is the wrong claim", mustFind(t, j, "r1").Queue.Aside)
		require.NoError(t, steers(steer.Cancel))
		s := mustFind(t, j, "r1")
		require.Equal(t, "cancelled", s.Status)
		require.Nil(t, s.Queue)
		requireNone(t, j, claims())
		require.ErrorIs(t, steers(steer.Cancel), steer.ErrNotRunning)
		requireVerified(t, j, "r1", nil, audit.Head{})
	})
}

// A run whose worker was lost is paused and canceled as one that waits.
func TestALostRunIsSteered(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		submit(t, j, submission("r1"))
		for _, kind := range []steer.Kind{steer.Pause, steer.Cancel} {
			gone := journal.ThisHolder()
			gone.PID, gone.Started = 1<<22+1, "1" // no process has it
			dying, err := open(journal.Options{Holder: &gone})
			require.NoError(t, err)
			claim(t, dying)
			journal.Abandon(dying)
			require.NoError(t, j.Steer(t.Context(), "r1", steer.Command{Kind: kind, By: "ann"}))
			requireNone(t, j, claims())
			if kind == steer.Pause {
				_, err := j.Requeue(t.Context(), "r1")
				require.NoError(t, err)
			}
		}
		require.Equal(t, "cancelled", statusOf(t, j, "r1"))
	})
}

// A process whose run was taken learns of it with its next commit.
func TestTheProcessOfATakenRunIsTold(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		r := beginRun(t, j, "r1")
		select {
		case <-r.Lost():
			t.Fatal("it has the run")
		default:
		}
		other := journal.ThisHolder()
		other.Host, other.Boot = "elsewhere", "another"
		require.NoError(t, journal.TakeLease(j, r, other))
		require.ErrorIs(t, appendEntries(r, newFakeRun("r1", 1).beginning(1)), journal.ErrLost)
		<-r.Lost()
	})
}

// A process that cannot reach the server for the time of a lease is told, and may still store what it has once the server is
// back: a server that is down gives the run to nobody.
func TestAProcessThatIsCutOffIsTold(t *testing.T) {
	slowtest.Only(t)
	t.Parallel()
	s := pgtest.Start(t)
	j, err := postgres.Open(t.Context(), s.Schema(t), journal.Options{Key: queueKey})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	r := beginRun(t, j, "r1")
	began := time.Now()
	s.Kill(t)
	<-r.Lost()
	require.InDelta(t, 15, time.Since(began).Seconds(), 1)
	stored := make(chan error, 1)
	r.Append([]record.Entry{newFakeRun("r1", 1).beginning(1)}, func(err error) { stored <- err })
	s.Restart(t)
	require.NoError(t, <-stored)
	endRun(t, r)
}

// A run whose rows cannot be read is set aside, and the others are taken.
func TestADamagedRunHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	address := pgtest.Address(t)
	j, err := postgres.Open(t.Context(), address, journal.Options{Key: queueKey})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	submit(t, j, submission("r1"), submission("r2"), submission("r3"))
	pgtest.Exec(t, address, `update batches set kept = '\x00' where run = 1`, `update batches set state = '\x00' where run = 2`)
	require.Equal(t, "r3", claim(t, j).Stored.Info.Run)
	for _, id := range []string{"r1", "r2"} {
		s, err := j.Newest(t.Context(), id, 1)
		require.NoError(t, err)
		require.Equal(t, journal.SetAside, s[0].Status)
		require.NotEmpty(t, s[0].Queue.Aside)
	}
	requireNone(t, j, claims())
}

// What makes a run unusable is said of it alone.
func TestOneBadRunIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	address := pgtest.Address(t)
	j, err := postgres.Open(t.Context(), address, journal.Options{Key: queueKey})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	submit(t, j, submission("r1"), submission("r2"), submission("r3"))

	c := claim(t, j)
	endRun(t, c.Run) // as a run is closed that cannot be resumed
	require.NoError(t, j.Refuse(t.Context(), c, "it has lines of another run"))
	require.Equal(t, journal.SetAside, statusOf(t, j, "r1"))
	require.Equal(t, "it has lines of another run", mustFind(t, j, "r1").Queue.Aside)

	const copied = `insert into submissions select %d, spec, version, submitter, '', 0, 9, '%s', 0, 0, '', digest from submissions where run = 1`
	pgtest.Exec(t, address, fmt.Sprintf(copied, 101, "queued"), fmt.Sprintf(copied, 102, "taken")) // there are no such runs
	pgtest.Exec(t, address, `insert into leases (run, holder, beat, taken, renewed) values (2, 'x', 1, 0, 0)`, `update submissions set state = 'y' where run = 1`)
	require.Equal(t, "r3", claim(t, j).Stored.Info.Run, "the time of the bad lease is not over")
	require.Equal(t, journal.Running, statusOf(t, j, "r2"))
	require.Equal(t, journal.SetAside, statusOf(t, j, "r1"))
	again, err := j.Requeue(t.Context(), "r1")
	require.NoError(t, err)
	require.True(t, again)

	late := submission("late")
	late.Due = time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
	_, _, err = j.Submit(t.Context(), late)
	require.ErrorContains(t, err, "2262")
}

// Of many workers that find the same lost runs at once, one gets each.
func TestWorkersShareLostRuns(t *testing.T) {
	t.Parallel()
	const runs, workers = 30, 4
	address := pgtest.Address(t)
	begin := func() *journal.Journal {
		j, err := postgres.Open(t.Context(), address, journal.Options{Key: queueKey})
		require.NoError(t, err)
		return j
	}
	dying := begin()
	for i := range runs {
		submit(t, dying, submission(fmt.Sprint("r", i)))
		claim(t, dying)
	}
	journal.Abandon(dying)
	pgtest.Exec(t, address, `update leases set holder = regexp_replace(holder, '"pid":[0-9]+', '"pid":4194305')`) // no process has it
	var all sync.WaitGroup
	var mu sync.Mutex
	times := map[string]int{}
	for range workers {
		j := begin()
		defer j.Close() //nolint:errcheck // it ends with the test
		all.Go(func() {
			claimAll(t, j, func(c *journal.Claim) {
				mu.Lock()
				times[c.Stored.Info.Run]++
				mu.Unlock()
			})
		})
	}
	all.Wait()
	require.Len(t, times, runs)
	for id, n := range times {
		require.Equal(t, 1, n, id)
	}
}

// Who can write to the database can drop no input of a run, and give it to no other caller, spec or version.
func TestAnAlteredSubmissionIsSetAside(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]string{
		"the rows of a run without the input": `update batches x set parts = y.parts, kept = y.kept, rest = y.rest from batches y where x.run = 1 and y.run = 2`,
		"another starter":                     `update runs set starter = 'bob' where n = 1`,
		"another caller":                      `update submissions set submitter = 'bob' where run = 1; insert into callers select spec, version, 'bob', 0 from callers`,
		"another spec":                        `update submissions set spec = 'other' where run = 1; insert into callers select 'other', version, name, 0 from callers`,
		"the digest of another run":           `update submissions x set digest = y.digest from submissions y where x.run = 1 and y.run = 2`,
		"no digest":                           `update submissions set digest = '' where run = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.Address(t)
			j, err := postgres.Open(t.Context(), address, journal.Options{Key: queueKey})
			require.NoError(t, err)
			defer j.Close() //nolint:errcheck // it ends with the test
			without := submission("without")
			without.Info.Files = nil
			submit(t, j, submission("r1"), without)
			for statement := range strings.SplitSeq(alter, "; ") {
				pgtest.Exec(t, address, statement)
			}
			w := claims()
			w.Serves = append(w.Serves, journal.Served{Spec: "other", Version: "v1"})
			for {
				c, err := j.Claim(t.Context(), w)
				if errors.Is(err, journal.ErrNoneQueued) {
					break
				}
				require.NoError(t, err)
				require.Equal(t, "without", c.Stored.Info.Run)
			}
			s, err := j.Newest(t.Context(), "r1", 1)
			require.NoError(t, err)
			require.Equal(t, journal.SetAside, s[0].Status)
		})
	}
}
