package journal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/slowtest"
)

// mounted mounts a small disk, or skips the test where that is not allowed.
func mounted(t *testing.T, size string) string {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	return folder
}

func TestDiskThatIsFull(t *testing.T) {
	t.Parallel()
	requireFull(t, filepath.Join(mounted(t, "700k"), "runs.db"), journal.Options{})
}

func TestDiskThatIsReadOnly(t *testing.T) {
	t.Parallel()
	folder := mounted(t, "700k")
	path := filepath.Join(folder, "runs.db")
	for name, text := range files(t, filepath.Dir(written(t, 3))) {
		put(t, filepath.Join(folder, name), text)
	}
	require.NoError(t, syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err := journal.Open(path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrUnwritable)
	_, err = journal.Open(filepath.Join(folder, "new.db"), journal.Options{})
	require.ErrorIs(t, err, journal.ErrUnwritable)
	j, err := journal.Open(path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	s, err := j.Load(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, withoutChanges(s.History.Log), 6)
	_, err = j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.ErrorIs(t, err, journal.ErrReadOnly)
	_, _, err = j.Resume(t.Context(), "")
	require.ErrorIs(t, err, journal.ErrReadOnly)
	_, _, err = j.Remove(t.Context(), time.Now())
	require.ErrorIs(t, err, journal.ErrReadOnly)
	require.NoError(t, j.Close())
}

// moved copies a journal that is not open to a small disk and leaves so much room there.
func moved(t *testing.T, room int64) (path string) {
	folder := mounted(t, "700k")
	for name, text := range files(t, filepath.Dir(written(t, 3))) {
		put(t, filepath.Join(folder, name), text)
	}
	fill(t, folder, room)
	return filepath.Join(folder, "runs.db")
}

// fill fills the disk of a folder up to so much room.
func fill(t *testing.T, folder string, room int64) {
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs(folder, &s))
	put(t, filepath.Join(folder, "fill"), string(make([]byte, int64(s.Bavail)*s.Bsize-room)))
}

// A journal on a disk that is full before it is opened says so to who would
// write, and can be read.
func TestDiskThatWasFullBefore(t *testing.T) {
	t.Parallel()
	for _, room := range []int64{0, 4096} {
		path := moved(t, room)
		for range 2 { // the first has left what it could make
			_, err := journal.Open(path, journal.Options{})
			require.ErrorIs(t, err, journal.ErrFull)
			require.ErrorContains(t, err, "open the journal "+path+": the disk is full")
			j, err := journal.Open(path, journal.Options{ReadOnly: true})
			require.NoError(t, err)
			s, err := j.Load(t.Context(), "")
			require.NoError(t, err)
			require.Len(t, withoutChanges(s.History.Log), 6)
			list, err := j.Runs(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.NoError(t, j.Close())
		}
		_, err := journal.Open(filepath.Join(filepath.Dir(path), "new.db"), journal.Options{})
		require.ErrorIs(t, err, journal.ErrFull, "its key file cannot be made")
		require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), "fill")))
		j, err := journal.Open(path, journal.Options{})
		require.NoError(t, err, "there is room again")
		gone, _, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, []string{"r1"}, gone)
		require.NoError(t, j.Close())
	}
}

// With the little room that SQLite needs to open it, a run can be removed.
func TestRunIsRemovedFromANearlyFullDisk(t *testing.T) {
	t.Parallel()
	path := moved(t, 100<<10)
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	gone, bytes, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{"r1"}, gone)
	require.GreaterOrEqual(t, bytes, int64(0))
	require.NoError(t, j.Close())
}

// On a disk without a free byte old runs can be removed, also from a journal of
// the form without an index and where a killed process left its log.
func TestOldRunsAreRemovedFromAFullDisk(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for name, change := range map[string]func(t *testing.T, path string){
		"closed":           func(*testing.T, string) {},
		"an older form":    func(t *testing.T, path string) { edit(t, path, "drop index answers_of", "pragma user_version = 1") },
		"a log left there": leaveLog,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := mounted(t, "6m")
			path := filepath.Join(folder, "runs.db")
			filled(t, path, 12, 30)
			change(t, path)
			fill(t, folder, 0)
			_, err := journal.Open(path, journal.Options{})
			require.ErrorIs(t, err, journal.ErrFull)

			j, err := journal.Open(path, journal.Options{UseReserve: true})
			require.NoError(t, err)
			gone, bytes, err := j.Remove(t.Context(), noon.Add(11*time.Minute))
			require.NoError(t, err)
			require.Subset(t, gone, []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10"})
			require.Greater(t, bytes, int64(500<<10))
			require.NoError(t, j.Close())

			j, err = journal.Open(path, journal.Options{})
			require.NoError(t, err, "there is room again")
			list, err := j.Runs(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			r, err := j.Begin(t.Context(), journal.Info{Run: "new"})
			require.NoError(t, err)
			write(t, r, 10)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			require.NoError(t, j.Close())
			at, err := os.Stat(path + ".reserve")
			require.NoError(t, err, "for the next time")
			require.EqualValues(t, 256<<10, at.Size())
		})
	}
}

// leaveLog has a journal on a disk as after the process was killed that wrote to it.
func leaveLog(t *testing.T, path string) {
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "last", Time: noon.Add(5 * time.Minute)})
	require.NoError(t, err)
	write(t, r, 20)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	left := files(t, filepath.Dir(path))
	require.NoError(t, j.Close())
	for _, name := range []string{"runs.db", "runs.db-wal"} {
		put(t, filepath.Join(filepath.Dir(path), name), left[name])
	}
}

// Lines that are not yet in the file can only be read if there is room for the
// index.
func TestFullDiskWithUnwrittenLines(t *testing.T) {
	t.Parallel()
	folder := mounted(t, "700k") // before anything is open, since it may skip the test
	source := filepath.Join(t.TempDir(), "runs.db")
	open, err := journal.Open(source, journal.Options{})
	require.NoError(t, err)
	r, err := open.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	write(t, r, 3)
	for name, text := range files(t, filepath.Dir(source)) {
		if name != "runs.db-shm" {
			put(t, filepath.Join(folder, name), text)
		}
	}
	require.NoError(t, open.Close())
	fill(t, folder, 0)
	for _, readOnly := range []bool{false, true} {
		_, err = journal.Open(filepath.Join(folder, "runs.db"), journal.Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, journal.ErrFull)
	}
}

// asNobody calls f as a user who owns nothing, or skips the test where that is not
// allowed.
func asNobody(t *testing.T, f func()) {
	done, allowed := make(chan struct{}), true
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine, and nobody else gets it
		const nobody = 65534
		if syscall.Getuid() == 0 {
			allowed = syscall.Setfsuid(nobody) == nil && syscall.Setfsgid(nobody) == nil
		}
		if allowed {
			f()
		}
	}()
	<-done
	if !allowed {
		t.Skip("another user cannot be taken here")
	}
}

// The error for a file without read permission does not say that it cannot be
// written.
func TestFileThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]string{"journal": "", "key file": ".key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := written(t, 1)
			require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
			require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755))
			require.NoError(t, os.Chmod(path, 0o644))
			require.NoError(t, os.Chmod(path+closed, 0))
			var errs [2]error
			asNobody(t, func() {
				for i, readOnly := range []bool{false, true} {
					_, errs[i] = journal.Open(path, journal.Options{ReadOnly: readOnly})
					_, _ = os.Remove(path+"-wal"), os.Remove(path+"-shm") // which SQLite made to read the journal
				}
			})
			for _, err := range errs {
				require.ErrorIs(t, err, journal.ErrUnreadable)
				require.ErrorIs(t, err, fs.ErrPermission)
				require.NotErrorIs(t, err, journal.ErrUnwritable)
				require.ErrorContains(t, err, "cannot be read")
				require.ErrorContains(t, err, path+closed)
			}
		})
	}
}
