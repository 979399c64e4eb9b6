package journal_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
)

// auditTestKey is the key of the chains of these tests.
var auditTestKey = []byte("a key that is only for these tests")

// recordedRuns writes two closed runs of several rows each, "r1" in two chains,
// and one that has no end, and returns the heads of the closed ones.
func recordedRuns(t *testing.T, path string, key []byte) (one, oneBefore, two audit.Head) {
	t.Helper()
	j, err := openAt(path, journal.Options{AuditKey: key})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	begin := func(id string, tasks int) *journal.Run {
		r, err := j.Begin(t.Context(), journal.Info{Run: id, Time: noon})
		require.NoError(t, err)
		add(t, r, newFakeRun(id, 7), 0, tasks)
		return r
	}
	finish := func(r *journal.Run) audit.Head {
		head, err := r.End(t.Context())
		require.NoError(t, err)
		return head
	}
	oneBefore = finish(begin("r1", 3))
	two = finish(begin("r2", 3))
	begin("open", 3) // and it is left so
	r, _, err := j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	add(t, r, newFakeRun("r1", 8), 3, 5)
	return finish(r), oneBefore, two
}

// add completes tasks of a run, each in two rows.
func add(t *testing.T, r *journal.Run, of *fakeRun, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		before, after := of.Complete(n, 200)
		require.NoError(t, appendEntries(r, before...))
		require.NoError(t, appendEntries(r, after...))
	}
}

// execute changes a journal as an attacker with the file and without the key can.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func verified(t *testing.T, path, run string, o audit.VerifyOptions) audit.Report {
	t.Helper()
	j, err := openAt(path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	defer j.Close()
	report, err := j.Verify(t.Context(), run, o)
	require.NoError(t, err)
	return report
}

// TestMovedRowsAreFound changes the rows of a keyed journal
// without the key.
//
// Requirement: G45.
func TestMovedRowsAreFound(t *testing.T) {
	t.Parallel()
	const (
		one  = "(select n from runs where id = 'r1')"
		two  = "(select n from runs where id = 'r2')"
		open = "(select n from runs where id = 'open')"
		nth  = " order by n limit 1 offset "
		last = " order by n desc limit 1"
	)
	made := filepath.Join(t.TempDir(), "runs.db")
	first, _, second := recordedRuns(t, made, auditTestKey)
	insert := func(of, n, where string) string {
		return "insert into batches (n, run, at, state, parts, kept, rest) select " + n + ", " + of + ", at, state, parts, kept, rest from batches where " + where
	}
	row := func(run, which string) string { return "(select n from batches where run = " + run + which + ")" }
	for _, tt := range []struct {
		name       string
		run        string
		statements []string
		status     audit.Status // without a head; with one it is broken in any case
		why        string
	}{
		{"nothing", "r1", nil, audit.Consistent, ""},
		{"nothing of an open run", "open", nil, audit.Open, "the run did not end"},
		{"rows of another run", "r1", []string{"delete from batches where run = " + one, "update batches set run = " + one + " where run = " + two}, audit.Broken, `it opens the record of run "r2", not of run "r1"`},
		{"copies of rows of another run", "r1", []string{"delete from batches where run = " + one, insert(one, "n + 1000", "run = "+two)}, audit.Broken, `of run "r2", not of run "r1"`},
		{"the ids of two runs", "r1", []string{"update runs set id = 'x' where id = 'r1'", "update runs set id = 'r1' where id = 'r2'"}, audit.Broken, `of run "r2", not of run "r1"`},
		{"a whole run after another", "r1", []string{"update batches set run = " + one + ", n = n + 1000 where run = " + two}, audit.Broken, `of run "r2", not of run "r1"`},
		{"a row of another run", "r1", []string{"update batches set run = " + one + ", n = 100000 where n = " + row(two, last)}, audit.Broken, ""},
		{"two rows swapped", "r1", []string{"update batches set n = 100000 where n = " + row(one, nth+"2"), "update batches set n = " + row(one, nth+"2") + " - 1000 where n = " + row(one, nth+"3")}, audit.Broken, ""},
		{"a row twice", "r1", []string{insert(one, "n + 1000", "n = "+row(one, last))}, audit.Broken, ""},
		{"all rows twice", "r1", []string{insert(one, "n + 1000", "run = "+one)}, audit.Broken, "lines were removed or inserted"},
		{"a row in the middle removed", "r1", []string{"delete from batches where n = " + row(one, nth+"3")}, audit.Broken, ""},
		{"the first row removed", "r1", []string{"delete from batches where n = " + row(one, nth+"0")}, audit.Broken, ""},
		{"the whole first chain removed", "r1", []string{"delete from batches where run = " + one + " and n <= " + row(one, nth+"7")}, audit.Broken, "does not begin with its head"},
		{"the state of another run", "r1", []string{"update batches set state = (select state from batches where n = " + row(two, last) + ") where n = " + row(one, last)}, audit.Broken, "the state is not one of this chain"},
		{"a state of before", "r1", []string{"update batches set state = (select state from batches where n = " + row(one, nth+"3") + ") where n = " + row(one, last)}, audit.Broken, "it does not end with the given state"},
		{"no state", "r1", []string{"update batches set state = x'' where run = " + one}, audit.Broken, "the state of its chain cannot be read"},
		{"no rows", "r1", []string{"delete from batches where run = " + one}, audit.Broken, "the state of its chain cannot be read"},
		{"the closing row removed", "r2", []string{"delete from batches where n = " + row(two, last)}, audit.Open, "rows were removed"},
		{"rows of another run behind an open one", "open", []string{"update batches set run = " + open + ", n = n + 1000 where run = " + two}, audit.Broken, `of run "r2", not of run "open"`},

		// Alterations that only a head reveals.
		{"the last row of an open run removed", "open", []string{"delete from batches where n = " + row(open, last)}, audit.Open, "the run did not end"},
		{"an old state restored", "r1", []string{"delete from batches where run = " + one + " and n > " + row(one, nth+"7")}, audit.Consistent, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			for _, suffix := range []string{"", ".key"} {
				text, err := os.ReadFile(made + suffix)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path+suffix, text, 0o600))
			}
			execute(t, path, tt.statements...)
			o := audit.VerifyOptions{Key: auditTestKey}
			report := verified(t, path, tt.run, o)
			require.Equal(t, tt.status, report.Status, "%+v", report)
			require.Contains(t, report.Why, tt.why)
			if len(tt.statements) == 0 {
				return
			}
			if o.Head = first; tt.run == "r2" {
				o.Head = second
			}
			require.Equal(t, audit.Broken, verified(t, path, tt.run, o).Status)
		})
	}
}

// Requirement: G45.
func TestHeadOfAnotherRunVerifiesNothing(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		one, before, two := recordedRuns(t, path, auditTestKey)
		require.Equal(t, audit.Verified, verified(t, path, "r1", audit.VerifyOptions{Key: auditTestKey, Head: one}).Status)
		require.Equal(t, audit.Verified, verified(t, path, "r2", audit.VerifyOptions{Key: auditTestKey, Head: two}).Status)
		require.Equal(t, audit.Broken, verified(t, path, "r1", audit.VerifyOptions{Key: auditTestKey, Head: two}).Status)
		got := verified(t, path, "r1", audit.VerifyOptions{Key: auditTestKey, Head: before})
		require.Equal(t, audit.Broken, got.Status)
		require.Contains(t, got.Why, "lines were added after it")
	})
}

// The lines after the last decision of a run that is in progress, or was
// interrupted, are covered by the state of the chain alone.
//
// Requirement: G45.
func TestEndOfAnInterruptedRunIsCovered(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"SHA-256": nil, "HMAC": auditTestKey} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			recordedRuns(t, path, key)
			before := verified(t, path, "open", audit.VerifyOptions{Key: key})
			require.Equal(t, audit.Open, before.Status)
			rewrite(t, path, func(text string) string {
				return strings.Replace(text, `"task":"`+string(newFakeRun("open", 7).Task(2).ID)+`"`, `"task":"another"`, 1)
			})
			got := verified(t, path, "open", audit.VerifyOptions{Key: key})
			require.Equal(t, audit.Broken, got.Status, "%+v", got)
			require.Less(t, got.Covered, before.Covered)
		})
	}
}

// Verify reads a run in progress up to its state at the call.
func TestVerifyOfARunInProgressIsOpen(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{AuditKey: auditTestKey})
	defer j.Close()
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Time: noon})
	require.NoError(t, err)
	teller, written := newFakeRun("r1", 7), make(chan struct{})
	go func() {
		defer close(written)
		for n := range 300 { // not without end: each check reads all that there is
			before, after := teller.Complete(n, 50)
			for _, entries := range [][]record.Entry{before, after} {
				if err := appendEntries(r, entries...); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	for open, checks := true, 0; open || checks == 0; checks++ {
		report, err := j.Verify(t.Context(), "r1", audit.VerifyOptions{Key: auditTestKey})
		require.NoError(t, err)
		require.Equal(t, audit.Open, report.Status, "%+v", report)
		select {
		case <-written:
			open = false
		default:
		}
	}
}
