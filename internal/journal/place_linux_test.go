package journal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

// A journal of which a file is a link, or belongs to another user, is refused by
// who would read it too, and nothing is changed.
func TestJournalOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".key", ".reserve"} {
		for name, plant := range map[string]func(t *testing.T, path string){
			"link": func(t *testing.T, path string) {
				other := filepath.Join(t.TempDir(), "other")
				if err := os.Rename(path, other); err != nil {
					require.ErrorIs(t, err, fs.ErrNotExist)
					put(t, other, "")
				}
				require.NoError(t, os.Symlink(other, path))
			},
			"link to nothing": func(t *testing.T, path string) {
				_ = os.Remove(path)
				require.NoError(t, os.Symlink(path+".none", path))
			},
			"owner": func(t *testing.T, path string) {
				if _, err := os.Stat(path); err != nil {
					put(t, path, "")
				}
				if err := os.Chown(path, 65534, 65534); err != nil {
					t.Skipf("files cannot be given away here: %v", err)
				}
			},
			"group may write": shared(0o620),
			"all may write":   shared(0o602),
		} {
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				path := written(t, 1)
				plant(t, path+suffix)
				for _, readOnly := range []bool{false, true} {
					_, err := journal.Open(path, journal.Options{ReadOnly: readOnly})
					require.ErrorIs(t, err, journal.ErrForeign)
					require.ErrorContains(t, err, path+suffix)
				}
				_, err := os.Lstat(path + suffix + ".none")
				require.ErrorIs(t, err, fs.ErrNotExist, "nothing was made through the link")
			})
		}
	}
}

// shared gives a file of a journal a mode.
func shared(mode fs.FileMode) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		if _, err := os.Stat(path); err != nil {
			put(t, path, "")
		}
		require.NoError(t, os.Chmod(path, mode))
	}
}

// A pipe, a device or a folder in the place of a file of a journal is refused at
// once: nothing waits for the other end of the pipe.
func TestPipeInPlaceOfAJournalIsRefused(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".key"} {
		path := written(t, 1)
		_ = os.Remove(path + suffix)
		require.NoError(t, syscall.Mkfifo(path+suffix, 0o600))
		for _, readOnly := range []bool{false, true} {
			_, err := journal.Open(path, journal.Options{ReadOnly: readOnly})
			require.ErrorContains(t, err, path+suffix+" is not a regular file")
		}
	}
	_, err := journal.Open("/dev/null", journal.Options{})
	if os.Getuid() == 0 {
		require.ErrorContains(t, err, "/dev/null is not a regular file")
	} else {
		require.ErrorIs(t, err, journal.ErrForeign) // it belongs to root
	}
}

func TestFolderOfAJournal(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), ".runteam")
	require.ErrorIs(t, journal.CheckFolder("", folder), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, journal.CheckFolder("", folder))
	link := folder + "-link"
	require.NoError(t, os.Symlink(folder, link))
	require.ErrorIs(t, journal.CheckFolder("", link), journal.ErrForeign)
	for _, mode := range []fs.FileMode{0o777, 0o770, 0o702} {
		require.NoError(t, os.Chmod(folder, mode))
		require.ErrorIs(t, journal.CheckFolder("", folder), journal.ErrForeign)
	}
	require.NoError(t, os.Chmod(folder, 0o777|fs.ModeSticky))
	require.NoError(t, journal.CheckFolder("", folder))
	if err := os.Chown(folder, 65534, 65534); err != nil {
		t.Skipf("folders cannot be given away here: %v", err)
	}
	require.ErrorIs(t, journal.CheckFolder("", folder), journal.ErrForeign)
	require.NoError(t, journal.CheckFolder("", "/tmp"), "it belongs to root, and is sticky")
	require.NoError(t, journal.CheckFolder("", "/usr"), "it belongs to root")
}
