package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// key is the key of all journals.
var key = bytes.Repeat([]byte{7}, journal.KeyBytes)

// open opens a journal, which is closed with the test.
func open(t testing.TB, address string, o journal.Options) *journal.Journal {
	t.Helper()
	o.Key = key
	j, err := postgres.Open(context.Background(), address, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// ready is the entry that a task is ready.
func ready(of string) record.Entry {
	return record.Entry{Event: &event.Event{Type: event.TaskReady, Time: time.Now(), Run: "r1", Task: task.ID(of), Title: of}}
}

// add appends entries and waits until they are durable.
func add(r *journal.Run, entries ...record.Entry) error {
	done := make(chan error, 1)
	r.Append(entries, func(err error) { done <- err })
	return <-done
}

// requireStored fails unless a run has these tasks ready, in their order and each once, and its chain verifies.
func requireStored(t *testing.T, j *journal.Journal, run string, tasks ...string) {
	t.Helper()
	s, err := j.Load(t.Context(), run)
	require.NoError(t, err)
	var got []string
	for i := range s.History.Log {
		if c := s.History.Log[i].Change; c != nil {
			got = append(got, string(c.Task))
		}
	}
	require.Equal(t, tasks, got)
	requireVerified(t, j, run)
}

// requireVerified fails unless the chain of a run is whole.
func requireVerified(t *testing.T, j *journal.Journal, run string) {
	t.Helper()
	report, err := j.Verify(t.Context(), run, audit.VerifyOptions{})
	require.NoError(t, err)
	require.NotEqual(t, audit.Broken, report.Status, report.Why)
}

// A world is a journal behind a proxy, and what it should have stored.
type world struct {
	proxy           *proxy
	address, direct string // of the database: through the proxy, and of the server
	j               *journal.Journal
	run             *journal.Run // nil if none is open
	stored          []string     // the tasks of the run that are ready
}

func (w *world) open(t *testing.T) { w.j = open(t, w.address, journal.Options{}) }

func (w *world) begin(t *testing.T) {
	var err error
	w.run, err = w.j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
}

func (w *world) resume(t *testing.T) {
	var err error
	w.run, _, err = w.j.Resume(t.Context(), "r1")
	require.NoError(t, err)
}

func (w *world) add(t *testing.T) {
	w.stored = append(w.stored, fmt.Sprint("t", len(w.stored)))
	require.NoError(t, add(w.run, ready(w.stored[len(w.stored)-1])))
}

func (w *world) end(t *testing.T) {
	_, err := w.run.End(t.Context())
	require.NoError(t, err)
	w.run = nil
}

// A journal that is opened, with a run that has begun, and one that has ended.
func opened(t *testing.T, w *world) { w.open(t) }

func begun(t *testing.T, w *world) {
	w.open(t)
	w.begin(t)
	w.add(t)
}

func ended(t *testing.T, w *world) {
	begun(t, w)
	w.end(t)
}

// asked is a run that ended with a question.
func asked(t *testing.T, w *world) {
	begun(t, w)
	require.NoError(t, add(w.run, record.Entry{Question: &record.Question{Session: "r1/t/1", Task: "t", Title: "T", Agent: "editor", Attempt: 1, Time: time.Now(), Key: record.Key{1}}}))
	w.end(t)
}

// steer sends a command from one journal to a run of another, which takes it, or refuses it for a reason.
func (w *world) steer(t *testing.T, from *journal.Journal, refusal string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	polled := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			var list []record.LeftCommand
			list, err = w.run.Commands(context.WithoutCancel(ctx))
			for _, c := range list {
				if refusal != "" {
					err = errors.Join(err, w.run.Refuse(context.WithoutCancel(ctx), c.Number, refusal))
				} else {
					err = errors.Join(err, add(w.run, record.Entry{Command: &record.Command{Kind: c.Kind, By: c.By, Time: c.Time, Number: c.Number}}))
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		polled <- err
	}()
	err := from.Steer(t.Context(), "r1", steer.Command{Kind: steer.Pause, By: "ann"})
	stop()
	require.NoError(t, <-polled)
	if refusal != "" {
		require.ErrorIs(t, err, steer.ErrRefused)
		require.ErrorContains(t, err, refusal)
		return
	}
	require.NoError(t, err)
	require.Equal(t, 1, w.value(t, "select count(*) from commands where outcome = 'taken'"))
	require.Equal(t, 1, w.value(t, "select count(*) from commands"))
	s, err := w.j.Load(t.Context(), "r1")
	require.NoError(t, err)
	taken := slices.DeleteFunc(s.History.Log, func(e record.Entry) bool { return e.Command == nil })
	require.Len(t, taken, 1)
}

// value returns the number that a query of one row returns.
func (w *world) value(t *testing.T, query string) (n int) {
	t.Helper()
	db, err := sql.Open("pgx", w.direct)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // it only read
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}

// works fails unless the run, if there is one, has what was stored, each once, its chain verifies, and it can go on.
func (w *world) works(t *testing.T) {
	t.Helper()
	if w.j == nil {
		w.open(t)
	}
	if w.run != nil {
		w.add(t)
	}
	if len(w.stored) > 0 {
		requireStored(t, w.j, "r1", w.stored...)
	}
}

// What was sent to the server is stored exactly once, whether its answer is lost or the server gets it late: after
// several messages more, among them the repeat.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name    string
		from    func(t *testing.T, w *world)
		matches []string
		do      func(t *testing.T, w *world)
	}{
		{"the tables", func(*testing.T, *world) {}, []string{"create table journal", "commit"}, opened},
		{"the begin of a run", opened, []string{"insert into runs", "insert into batches"}, func(t *testing.T, w *world) { w.begin(t) }},
		{"a submission", opened, []string{"insert into submissions"}, func(t *testing.T, w *world) {
			_, added, err := w.j.Submit(t.Context(), journal.Submission{Info: journal.Info{Run: "r1"}, Spec: "claims", By: "ann", Request: "q", Most: 1})
			require.NoError(t, err)
			require.True(t, added)
			require.Equal(t, 1, w.value(t, "select count(*) from submissions"))
		}},
		{"entries", begun, []string{"insert into batches"}, func(t *testing.T, w *world) { w.add(t) }},
		{"the end of a run", begun, []string{"delete from leases"}, func(t *testing.T, w *world) {
			w.end(t)
			require.Zero(t, w.value(t, "select count(*) from leases"))
		}},
		{"the end of a run that failed", begun, []string{"delete from leases"}, func(t *testing.T, w *world) {
			require.Error(t, add(w.run, record.Entry{}))
			_, err := w.run.End(t.Context())
			require.ErrorContains(t, err, "an empty entry")
			require.Zero(t, w.value(t, "select count(*) from leases"))
			w.run = nil
		}},
		{"the lease of a resume", ended, []string{"insert into leases"}, func(t *testing.T, w *world) { w.resume(t) }},
		{"the turn of a resume", ended, []string{"insert into turns"}, func(t *testing.T, w *world) { w.resume(t) }},
		{"a renewal", begun, []string{"update leases"}, func(t *testing.T, w *world) {
			before := w.value(t, "select beat from leases")
			require.Eventually(t, func() bool { return w.value(t, "select beat from leases") > before }, 10*time.Second, 10*time.Millisecond)
		}},
		{"an answer", asked, []string{"insert into commands", "commit"}, func(t *testing.T, w *world) {
			list, err := w.j.Questions(t.Context(), "r1")
			require.NoError(t, err)
			_, err = w.j.AnswerQuestion(t.Context(), "r1", list[0].ID(), journal.PersonAnswer{By: "ann", Text: "send"})
			require.NoError(t, err)
			require.Equal(t, 1, w.value(t, "select count(*) from commands"))
			w.resume(t)
			waiting, err := w.run.Waiting(t.Context())
			require.NoError(t, err)
			require.Len(t, waiting, 1)
			require.Equal(t, "send", waiting[0].Text)
		}},
		{"a command", opened, []string{"insert into commands", "commit"}, func(t *testing.T, w *world) {
			from := w.j
			w.j = open(t, w.direct, journal.Options{})
			w.begin(t)
			w.steer(t, from, "")
		}},
		{"a claim of commands", begun, []string{"update commands set outcome = $1 where run", "commit"}, func(t *testing.T, w *world) {
			w.steer(t, open(t, w.direct, journal.Options{}), "")
		}},
		{"a command that is taken", begun, []string{"insert into batches", "update commands"}, func(t *testing.T, w *world) {
			w.steer(t, open(t, w.direct, journal.Options{}), "")
		}},
		{"a refusal", begun, []string{"update commands set outcome = $1, line = $2 where n = $3 and outcome"}, func(t *testing.T, w *world) {
			w.steer(t, open(t, w.direct, journal.Options{}), "not now")
		}},
		{"a removal", ended, []string{"delete from runs", "commit"}, func(t *testing.T, w *world) {
			gone, _, err := w.j.Remove(t.Context(), time.Now().Add(time.Hour))
			require.NoError(t, err)
			require.Equal(t, []string{"r1"}, gone)
			require.Zero(t, w.value(t, "select count(*) from batches"))
			w.stored = nil
		}},
	} {
		for _, late := range []int{answerLost, 0, 1, 2, 3, 4, 5, 6, 8, 1000} {
			if !slowtest.Enabled() && (of.name == "a renewal" || late >= 0 && late != 2) {
				continue
			}
			name := fmt.Sprintf("%s is late by %d", of.name, late)
			if late == answerLost {
				name = "the answer is lost to " + of.name
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := &world{direct: pgtest.Address(t)}
				w.proxy, w.address = newProxy(t, w.direct)
				of.from(t, w)
				f := w.proxy.inject(late, of.matches...)
				of.do(t, w)
				select {
				case <-f.hit:
				case <-time.After(10 * time.Second):
					t.Fatal("no message matched")
				}
				w.works(t)
				if f.deliver != nil {
					f.deliver()
				}
				w.works(t)
			})
		}
	}
}
