package journal_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/stretchr/testify/require"
)

// visited is a journal with a run of n tasks, which counts the rows that are read.
type visited struct {
	j    *journal.Journal
	run  string
	task string // the title of its last task
	rows func() int
}

// storedRun stores a run of n tasks with two rows for each, and ends it unless open.
func storedRun(t *testing.T, n int, open bool) *visited {
	t.Helper()
	driver, rows := journaltest.CountRows()
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	story := newFakeRun("r1", 1)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	require.NoError(t, appendEntries(r, story.beginning(n)))
	for i := range n {
		before, after := story.Complete(i, 200)
		require.NoError(t, appendEntries(r, before...))
		require.NoError(t, appendEntries(r, after...))
	}
	if !open {
		require.NoError(t, appendEntries(r, record.Entry{End: &record.RunEnd{Status: "completed"}}))
	}
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	rows()
	return &visited{j, "r1", story.Task(n - 1).Title, rows}
}

// hasRead drops the result of a reader.
func hasRead[T any](_ T, err error) error { return err }

// Each reader of a run reads each row as often, however many rows there are. The rows of all queries count, also those
// that have only the marks of a row.
func TestReadersVisitEachRowAsOften(t *testing.T) {
	t.Parallel()
	const few, many = 20, 60 // tasks, each with two rows
	runs := map[bool][2]*visited{
		false: {storedRun(t, few, false), storedRun(t, many, false)},
		true:  {storedRun(t, few, true), storedRun(t, many, true)},
	}
	tests := []struct {
		name string
		open bool // the run has not ended
		most int  // how often it reads a row
		read func(context.Context, *visited) error
	}{
		{"Load", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Load(ctx, v.run)) }},
		{"LoadStart", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.LoadStart(ctx, v.run)) }},
		{"FindTask", false, 1, func(ctx context.Context, v *visited) error { return hasRead(journal.FindTask(ctx, v.j, v.run, v.task)) }},
		{"LoadRun", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.LoadRun(ctx, v.run)) }},
		{"Trace", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Trace(ctx, v.run)) }},
		{"Follow", true, 1, func(ctx context.Context, v *visited) error {
			f, err := v.j.Follow(ctx, v.run)
			for range 3 {
				if err == nil {
					_, _, err = f.Read(ctx)
				}
			}
			return err
		}},
		{"Decisions", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Decisions(ctx, v.run)) }},
		{"Search", false, 1, func(ctx context.Context, v *visited) error {
			_, _, err := v.j.Search(ctx, v.run, "claim")
			return err
		}},
		{"Lines", false, 1, func(ctx context.Context, v *visited) error { return hasRead(journaltest.Text(v.j.Lines(ctx, v.run))) }},
		{"Tail", false, 1, func(ctx context.Context, v *visited) error {
			tail, err := v.j.Tail(ctx, v.run)
			for state := journal.TailReads; err == nil && state == journal.TailReads; {
				_, state, err = tail.Next(ctx)
			}
			return err
		}},
		{"Verify", false, 1, func(ctx context.Context, v *visited) error {
			return hasRead(v.j.Verify(ctx, v.run, audit.VerifyOptions{}))
		}},
		{"Label", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Label(ctx, v.run)) }},
		{"TraceTask", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.TraceTask(ctx, v.run, v.task)) }},
		{"LoadTask", false, 1, func(ctx context.Context, v *visited) error {
			_, _, err := v.j.LoadTask(ctx, v.run, v.task)
			return err
		}},
		{"Result", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Result(ctx, v.run, v.task)) }},
		{"Questions", false, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Questions(ctx, v.run)) }},
		{"OpenQuestions", true, 2, func(ctx context.Context, v *visited) error { return hasRead(v.j.OpenQuestions(ctx, v.run)) }},
		{"Find", true, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Find(ctx, v.run)) }},
		{"Find one that ended", false, 0, func(ctx context.Context, v *visited) error { return hasRead(v.j.Find(ctx, v.run)) }},
		{"Runs", true, 1, func(ctx context.Context, v *visited) error { return hasRead(v.j.Runs(ctx)) }},
		{"Newest", true, 0, func(ctx context.Context, v *visited) error { return hasRead(v.j.Newest(ctx, "", 10)) }},
		{"LastRow", true, 0, func(ctx context.Context, v *visited) error { return hasRead(v.j.LastRow(ctx, v.run)) }},
		{"Resume", true, 1, func(ctx context.Context, v *visited) error {
			r, _, err := v.j.Resume(ctx, v.run)
			if err == nil {
				_, err = r.Close(ctx)
			}
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			visits := func(v *visited) int {
				require.NoError(t, tt.read(t.Context(), v))
				return v.rows()
			}
			a, b := visits(runs[tt.open][0]), visits(runs[tt.open][1])
			require.LessOrEqual(t, b-a, tt.most*2*(many-few), "rows read of %d more", 2*(many-few))
			require.LessOrEqual(t, a, tt.most*2*few+10, "rows read of %d", 2*few)
		})
	}
}

// Whoever follows a run has after each batch what a reader of the whole run has, and reads only the new rows.
func TestFollowersReadWhatIsNew(t *testing.T) {
	t.Parallel()
	v := storedRun(t, 1, true)
	r, _, err := v.j.Resume(t.Context(), v.run)
	require.NoError(t, err)
	f, err := v.j.Follow(t.Context(), v.run)
	require.NoError(t, err)
	_, _, err = f.Read(t.Context())
	require.NoError(t, err)
	story := newFakeRun("r1", 1)
	for i := range 6 {
		before, after := story.Complete(i, 200)
		for _, entries := range [][]record.Entry{before, after} {
			require.NoError(t, appendEntries(r, entries...))
			v.rows()
			now, stored, err := f.Read(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, v.rows(), 3, "the run, its new row, and its last")
			whole, err := v.j.Trace(t.Context(), v.run)
			require.NoError(t, err)
			all, err := v.j.Load(t.Context(), v.run)
			require.NoError(t, err)
			require.Equal(t, all.History.Log, stored.History.Log)
			now.State = runstate.Of(&stored.History)
			require.Equal(t, []any{whole.Tasks(), whole.Prompts, whole.Handoffs}, []any{now.Tasks(), now.Prompts, now.Handoffs})
		}
	}
	_, err = r.Close(t.Context())
	require.NoError(t, err)
}
