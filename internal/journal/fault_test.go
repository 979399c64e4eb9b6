package journal_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
)

// written returns the path of a closed journal with a run of so many tasks.
func written(t testing.TB, tasks int) string {
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Name: "claims"})
	require.NoError(t, err)
	write(t, r, tasks)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	return path
}

// write completes tasks.
func write(t testing.TB, r *journal.Run, tasks int) {
	story := newFakeRun("r1", 1)
	for n := range tasks {
		before, after := story.Complete(n, 1000)
		require.NoError(t, appendEntries(r, append(before, after...)...))
	}
}

// files returns what the files of a folder say.
func files(t testing.TB, folder string) map[string]string {
	all := map[string]string{}
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range list {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(text)
	}
	return all
}

// edit runs statements on the file of a journal.
func edit(t testing.TB, path string, statements ...string) {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	for _, s := range statements {
		_, err = db.Exec(s)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

func TestRefusedFileIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"a text":         {func(t *testing.T, path string) { put(t, path, "name: claims\n") }, "no journal of runteam"},
		"a long text":    {func(t *testing.T, path string) { put(t, path, strings.Repeat("name: claims\n", 1000)) }, "no journal of runteam"},
		"another SQLite": {func(t *testing.T, path string) { edit(t, path, "create table notes (text)") }, "no journal of runteam"},
		"another SQLite that writes ahead": {func(t *testing.T, path string) {
			edit(t, path, "pragma journal_mode = wal", "create table notes (text)")
		}, "no journal of runteam"},
		"another SQLite with a version": {func(t *testing.T, path string) { edit(t, path, "pragma user_version = 1", "create table notes (text)") }, "no journal of runteam"},
		"a newer journal": {func(t *testing.T, path string) {
			require.NoError(t, os.Rename(written(t, 1), path))
			edit(t, path, fmt.Sprintf("pragma user_version = %d", journal.Version+1))
		}, fmt.Sprintf("in version %d of its form; this one knows up to version %d", journal.Version+1, journal.Version)},
		"only the head of a journal": {func(t *testing.T, path string) {
			require.NoError(t, os.Rename(written(t, 1), path))
			require.NoError(t, os.Truncate(path, 100))
		}, "damaged"},
		"a folder": {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "it is a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			tt.make(t, path)
			before := files(t, filepath.Dir(path))
			for _, readOnly := range []bool{false, true} {
				_, err := journal.Open(path, journal.Options{ReadOnly: readOnly})
				require.ErrorContains(t, err, tt.want)
				require.ErrorContains(t, err, path)
				var e *journal.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, "open", e.Op)
				for file, text := range before {
					require.True(t, text == files(t, filepath.Dir(path))[file], "%s is not as it was", file)
				}
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestJournalThatIsNotThere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := journal.Open(filepath.Join(folder, "none", "runs.db"), journal.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = journal.Open(filepath.Join(folder, "runs.db"), journal.Options{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "there is no journal yet")
	require.Empty(t, files(t, folder), "who reads makes nothing")
}

func TestFilesOfAJournalAreTheirOwners(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs #1?%20.db") // a name as an URI has none
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	write(t, r, 1)
	list, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), e.Name())
		names = append(names, strings.TrimPrefix(e.Name(), filepath.Base(path)))
	}
	require.Equal(t, []string{"", "-shm", "-wal", ".key", ".reserve"}, names)
	require.NoError(t, j.Close())
}

func TestKeyFileThatIsMissing(t *testing.T) {
	t.Parallel()
	path := written(t, 1)
	before := files(t, filepath.Dir(path))["runs.db"]
	require.NoError(t, os.Remove(path+".key"))
	for _, readOnly := range []bool{false, true} {
		_, err := journal.Open(path, journal.Options{ReadOnly: readOnly})
		require.ErrorContains(t, err, "key")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.True(t, before == files(t, filepath.Dir(path))["runs.db"])
	}
	_, err := os.Stat(path + ".key")
	require.ErrorIs(t, err, fs.ErrNotExist, "another key would not be the one that is missing")
}

// filled makes a journal of runs of so many tasks, which began a minute apart.
func filled(t testing.TB, path string, runs, tasks int) {
	j, err := openAt(path, journal.Options{})
	require.NoError(t, err)
	for n := range runs {
		id := fmt.Sprintf("r%d", n)
		r, err := j.Begin(t.Context(), journal.Info{Run: id, Time: noon.Add(time.Duration(n) * time.Minute)})
		require.NoError(t, err)
		story := newFakeRun(id, uint64(n))
		var all []record.Entry
		for i := range tasks {
			before, after := story.Complete(n*tasks+i, 1000)
			all = append(append(all, before...), after...)
		}
		require.NoError(t, appendEntries(r, all...))
		_, err = r.Close(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
}

// requireFull fails unless a journal whose disk is full says so, to the run of
// which something was lost from then on, and has what was durable before.
func requireFull(t *testing.T, path string, o journal.Options) {
	j, err := journal.Open(path, o)
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	story, kept := newFakeRun("r1", 1), 0
	for err == nil {
		require.Less(t, kept, 10_000)
		_, after := story.Complete(kept, 3000)
		if err = appendEntries(r, after...); err == nil {
			kept++
		}
	}
	require.ErrorIs(t, err, journal.ErrFull)
	require.ErrorContains(t, err, "write the journal "+path+": the disk is full")
	require.Positive(t, kept)
	require.Equal(t, err, appendEntries(r, story.Events(story.Task(1), event.TaskReady)...))
	_, closing := r.Close(t.Context())
	require.Equal(t, err, closing)
	s, loading := j.Load(t.Context(), "r1")
	require.NoError(t, loading)
	require.Len(t, withoutChanges(s.History.Log), kept, "all that was said to be durable, and no more")
	require.NoError(t, j.Close(), "that something was lost was said, and its run is released")
}

func TestFileThatMayNotGrow(t *testing.T) {
	t.Parallel()
	requireFull(t, filepath.Join(t.TempDir(), "runs.db"), journal.Options{}.Pages(60))
}

// locked keeps a file from being written until the returned function is called.
func locked(t *testing.T, path string) (unlock func()) {
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	conn, err := other.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "begin immediate")
	require.NoError(t, err)
	return func() {
		_, err = conn.ExecContext(t.Context(), "rollback")
		require.NoError(t, err)
		require.NoError(t, errors.Join(conn.Close(), other.Close()))
	}
}

// While a file is locked for too long the journal says so, and afterwards it
// works again by itself; only the run of which something was lost is at its end,
// and can be resumed.
func TestJournalRecoversAfterALock(t *testing.T) {
	t.Parallel()
	path := written(t, 1)
	j, err := journal.Open(path, journal.Options{}.Busy(50*time.Millisecond))
	require.NoError(t, err)
	r, _, err := j.Resume(t.Context(), "")
	require.NoError(t, err)
	idle, err := j.Begin(t.Context(), journal.Info{Run: "idle"})
	require.NoError(t, err)
	unlock := locked(t, path)

	_, err = j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.ErrorIs(t, err, journal.ErrLocked)
	story := newFakeRun("r1", 1)
	ready := story.Events(story.Task(1), event.TaskReady)
	err = appendEntries(r, ready...)
	require.ErrorIs(t, err, journal.ErrLocked)
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err, "it can be read")
	require.Len(t, withoutChanges(s.History.Log), 2)
	unlock()

	require.ErrorIs(t, appendEntries(r, ready...), journal.ErrLocked, "there is a gap in this run")
	require.NoError(t, appendEntries(idle, ready...))
	other, err := j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.NoError(t, err)
	require.NoError(t, appendEntries(other, ready...))
	_, err = r.Close(t.Context())
	require.ErrorIs(t, err, journal.ErrLocked)
	again, s, err := j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	require.Len(t, withoutChanges(s.History.Log), 2)
	require.NoError(t, appendEntries(again, ready...))
	head, err := again.End(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, "verified", requireVerified(t, j, "r1", nil, head).Status)
	require.NoError(t, j.Close())
}

// Nothing is added to a file that the disk has no room to bring to the newest form, since programs that know its form
// could not read that. It can be read, and runs can be removed.
func TestJournalOfAnEarlierFormOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	filled(t, path, 2, 3)
	edit(t, path, "drop index answers_of", "pragma user_version = 1",
		"with recursive some(i) as (select 1 union all select i + 1 from some where i < 20000) insert into answers select randomblob(32), min(n), 1 from some, batches where run = 1 group by i")
	at, err := os.Stat(path)
	require.NoError(t, err)
	j, err := journal.Open(path, journal.Options{}.Pages(int(at.Size())/4096+20)) // the index needs more
	require.NoError(t, err)
	_, err = j.Begin(t.Context(), journal.Info{Run: "new"})
	require.ErrorIs(t, err, journal.ErrFull)
	require.ErrorContains(t, err, "the journal has an earlier form, to which nothing can be added; remove runs, and try again")
	_, _, err = j.Resume(t.Context(), "r1")
	require.ErrorIs(t, err, journal.ErrFull)
	list, err := j.Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	gone, _, err := j.Remove(t.Context(), noon.Add(30*time.Second))
	require.NoError(t, err)
	require.Equal(t, []string{"r0"}, gone)
	require.NoError(t, j.Close())
	j, err = journal.Open(path, journal.Options{}.Pages(int(at.Size())/4096+20))
	require.NoError(t, err)
	_, err = j.Begin(t.Context(), journal.Info{Run: "new"})
	require.NoError(t, err, "there is room for the index")
	require.NoError(t, j.Close())
}

// A disk that gets room again is the same.
func TestJournalRecoversOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	filled(t, path, 4, 30)
	at, err := os.Stat(path)
	require.NoError(t, err)
	j, err := journal.Open(path, journal.Options{}.Pages(int(at.Size())/4096+20))
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "full"})
	require.NoError(t, err)
	story := newFakeRun("full", 9)
	for n := 0; err == nil; n++ {
		_, after := story.Complete(n, 3000)
		err = appendEntries(r, after...)
	}
	require.ErrorIs(t, err, journal.ErrFull)
	_, err = r.Close(t.Context())
	require.ErrorIs(t, err, journal.ErrFull)
	gone, _, err := j.Remove(t.Context(), noon.Add(time.Hour))
	require.NoError(t, err)
	require.Len(t, gone, 4)
	again, _, err := j.Resume(t.Context(), "full")
	require.NoError(t, err, "it was released when it was closed")
	write(t, again, 3)
	_, err = again.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

// The lease of a run that failed is released though nothing could be written
// when it was closed: with the next beat that finds the file free.
func TestFailedRunIsReleasedOnceTheJournalCanBeWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir() // outside, where the clock is the real one
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(folder, "runs.db")
		j, err := journal.Open(path, journal.Options{}.Busy(2*time.Second))
		require.NoError(t, err)
		other, err := journal.Open(path, journal.Options{}.Busy(2*time.Second))
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		unlock := locked(t, path)
		story := newFakeRun("r1", 1)
		require.ErrorIs(t, appendEntries(r, story.Events(story.Task(1), event.TaskReady)...), journal.ErrLocked)
		_, err = r.Close(t.Context())
		require.ErrorIs(t, err, journal.ErrLocked)
		unlock()
		_, _, err = other.Resume(t.Context(), "r1")
		require.ErrorIs(t, err, journal.ErrLeased)
		time.Sleep(6 * time.Second)
		again, _, err := other.Resume(t.Context(), "r1")
		require.NoError(t, err)
		_, err = again.Close(t.Context())
		require.NoError(t, err)
		require.NoError(t, other.Close())
		require.NoError(t, j.Close())
	})
}

// Once Hurry is closed, a locked file is waited for 1 s and not 30.
func TestHurryShortensTheWaitForALockedFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		path, hurry := filepath.Join(folder, "runs.db"), make(chan struct{})
		j, err := journal.Open(path, journal.Options{Hurry: hurry})
		require.NoError(t, err)
		unlock := locked(t, path)
		began := time.Now()
		_, err = j.Begin(t.Context(), journal.Info{Run: "r2"})
		require.ErrorIs(t, err, journal.ErrLocked)
		require.InDelta(t, 30, time.Since(began).Seconds(), 1)
		began = time.Now()
		time.AfterFunc(10*time.Second, func() { close(hurry) })
		_, err = j.Begin(t.Context(), journal.Info{Run: "r2"})
		require.ErrorIs(t, err, journal.ErrLocked)
		require.InDelta(t, 10, time.Since(began).Seconds(), 1)
		began = time.Now()
		_, err = j.Begin(t.Context(), journal.Info{Run: "r2"})
		require.ErrorIs(t, err, journal.ErrLocked)
		require.InDelta(t, 1, time.Since(began).Seconds(), 1)
		unlock()
		require.NoError(t, j.Close())
	})
}

// A wait for a locked file ends with its context, and with the lock.
func TestWaitForALockedFile(t *testing.T) {
	t.Parallel()
	path := written(t, 1)
	j, err := journal.Open(path, journal.Options{}.Busy(time.Hour))
	require.NoError(t, err)
	unlock := locked(t, path)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the user has stopped it")
	time.AfterFunc(20*time.Millisecond, func() { cancel(stopped) })
	_, err = j.Begin(ctx, journal.Info{Run: "r2"})
	require.ErrorIs(t, err, stopped)
	time.AfterFunc(20*time.Millisecond, unlock)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.NoError(t, err)
	write(t, r, 1)
	require.NoError(t, j.Close())
}

func TestPageThatIsDamaged(t *testing.T) {
	t.Parallel()
	path := written(t, 20)
	whole := files(t, filepath.Dir(path))["runs.db"]
	size := int(binary.BigEndian.Uint16([]byte(whole)[16:]))
	rng := rand.New(rand.NewPCG(1, 2))
	said := 0
	for page := 1; page < len(whole)/size; page++ {
		text := []byte(whole)
		for i := range size {
			text[page*size+i] = byte(rng.Uint32())
		}
		put(t, path, string(text))
		err := readAll(t.Context(), path)
		if err != nil {
			said++
			require.ErrorIs(t, err, journal.ErrCorrupt, "page %d", page+1)
			require.ErrorContains(t, err, path)
		}
	}
	require.Greater(t, said, len(whole)/size/2)
}

// readAll reads all that a journal has.
func readAll(ctx context.Context, path string) error {
	j, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer j.Close()
	if _, err := j.Runs(ctx); err != nil {
		return err
	}
	if _, err := j.Load(ctx, "r1"); err != nil {
		return err
	}
	_, err = j.Trace(ctx, "r1")
	return err
}

// After a power failure the durable entries are a prefix of those appended: the
// copy of a file and of what was written ahead of it, also if that is cut off.
func TestJournalThatIsCopiedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	story := newFakeRun("r1", 1)
	var all []record.Entry
	for n := range 60 {
		_, after := story.Complete(n, 1000)
		require.NoError(t, appendEntries(r, after...))
		all = append(all, after...)
	}
	copied := files(t, folder)
	require.NoError(t, j.Close())

	parts := 5
	if slowtest.Enabled() {
		parts = 20
	}
	wal, before := copied["runs.db-wal"], -1
	for part := range parts + 1 {
		copied["runs.db-wal"] = wal[:len(wal)*part/parts]
		n := requirePrefix(t, copied, all, part == 0)
		require.GreaterOrEqual(t, n, before)
		before = n
	}
	require.Equal(t, 60, before, "what was durable when it was copied is there")
}

// requirePrefix opens a copy and fails unless it has a prefix of a run, which
// can be resumed, and returns how many answers that has.
func requirePrefix(t *testing.T, copied map[string]string, all []record.Entry, mayLack bool) int {
	folder := t.TempDir()
	for name, text := range copied {
		if !strings.HasSuffix(name, "-shm") {
			put(t, filepath.Join(folder, name), text)
		}
	}
	j, err := journal.Open(filepath.Join(folder, "runs.db"), journal.Options{Holder: &journal.Holder{Host: "elsewhere", PID: 1}, Now: func() time.Time { return time.Now().Add(time.Minute) }})
	require.NoError(t, err)
	defer j.Close()
	r, s, err := j.Resume(t.Context(), "r1")
	if errors.Is(err, journal.ErrUnknownRun) && mayLack {
		return 0
	}
	require.NoError(t, err)
	s.History.Log = withoutChanges(s.History.Log)
	n := len(s.History.Log)
	var want []record.Entry
	for _, e := range all {
		if e.Exchange != nil && n > len(want) {
			want = append(want, e)
		}
	}
	requireHistory(t, want, &s.History)
	require.NoError(t, appendEntries(r, all[len(all)-1]))
	head, err := r.End(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, "verified", requireVerified(t, j, "r1", nil, head).Status)
	return n
}
