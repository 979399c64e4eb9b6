//go:build unix

package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/workspace"
)

// made returns a workspace that is removed with the test.
func made(t testing.TB) *workspace.Folder {
	t.Helper()
	f, err := workspace.Make(filepath.Join(t.TempDir(), "run"), "task-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Remove()) })
	return f
}

// digest returns the digest of a workspace without limits.
func digest(t testing.TB, f *workspace.Folder) workspace.Digest {
	t.Helper()
	d, err := f.Measure(workspace.Unlimited, nil)
	require.NoError(t, err)
	return d
}

func write(t testing.TB, f *workspace.Folder, name, text string) {
	t.Helper()
	require.NoError(t, f.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, f.WriteFile(name, []byte(text), 0o644))
}

func TestDigestSeesEveryChange(t *testing.T) {
	t.Parallel()
	seen := map[workspace.Digest]string{}
	for name, change := range map[string]func(*workspace.Folder) error{
		"none":           func(*workspace.Folder) error { return nil },
		"content":        func(f *workspace.Folder) error { return f.WriteFile("a", []byte("oNe"), 0o644) },
		"length":         func(f *workspace.Folder) error { return f.WriteFile("a", []byte("ones"), 0o644) },
		"mode":           func(f *workspace.Folder) error { return f.Chmod("a", 0o755) },
		"mode of folder": func(f *workspace.Folder) error { return f.Chmod("d", 0o700) },
		"name":           func(f *workspace.Folder) error { return f.Rename("a", "b") },
		"place":          func(f *workspace.Folder) error { return f.Rename("a", "d/a") },
		"removed":        func(f *workspace.Folder) error { return f.Root.Remove("a") },
		"swapped": func(f *workspace.Folder) error {
			return errors.Join(f.Rename("a", "t"), f.Rename("d/c", "a"), f.Rename("t", "d/c"))
		},
		"empty file":      func(f *workspace.Folder) error { return f.WriteFile("e", nil, 0o644) },
		"empty folder":    func(f *workspace.Folder) error { return f.Mkdir("e", 0o755) },
		"link":            func(f *workspace.Folder) error { return f.Symlink("a", "e") },
		"other link":      func(f *workspace.Folder) error { return f.Symlink("/etc", "e") },
		"file as link":    func(f *workspace.Folder) error { return errors.Join(f.Root.Remove("a"), f.Symlink("d/c", "a")) },
		"names that join": func(f *workspace.Folder) error { return f.WriteFile("ad", []byte("one"), 0o644) },
		"odd bytes":       func(f *workspace.Folder) error { return f.WriteFile("a\xff\n", nil, 0o644) },
		"pipe":            func(f *workspace.Folder) error { return syscall.Mkfifo(filepath.Join(f.Name(), "e"), 0o644) },
		"a step of the tools": func(f *workspace.Folder) error {
			return errors.Join(f.MkdirAll("history", 0o755), f.WriteFile("history/notes.json", nil, 0o644))
		},
	} {
		f := made(t)
		write(t, f, "a", "one")
		write(t, f, "d/c", "two")
		require.NoError(t, change(f), name)
		d := digest(t, f)
		require.Empty(t, seen[d], "%s and %s", name, seen[d])
		seen[d] = name
	}
}

// Times do not count, nor do the files that the runtime writes again.
func TestDigestIgnoresTimesAndTheFilesOfTheRuntime(t *testing.T) {
	t.Parallel()
	f := made(t)
	write(t, f, "a", "one")
	write(t, f, "history/step_001.json", "{}")
	write(t, f, "outputs/call_1_1.txt", "long")
	before := digest(t, f)
	require.NoError(t, f.Chtimes("a", time.Unix(1, 0), time.Unix(1, 0)))
	write(t, f, "history/step_002.json", "{}")
	require.NoError(t, f.Root.Remove("outputs/call_1_1.txt"))
	require.Equal(t, before, digest(t, f))
	write(t, f, "outputs/mine.txt", "x")
	require.NotEqual(t, before, digest(t, f))
}

// A file that was replaced by one of the same size and time is read again.
func TestDigestReadsReplacedFiles(t *testing.T) {
	t.Parallel()
	f, old := made(t), time.Now().Add(-time.Hour)
	write(t, f, "a", "one")
	require.NoError(t, f.Chtimes("a", old, old))
	before := digest(t, f)
	require.Equal(t, before, digest(t, f), "from the contents that were read before")
	write(t, f, "b", "two")
	require.NoError(t, f.Chtimes("b", old, old))
	require.NoError(t, f.Rename("b", "a"))
	require.NotEqual(t, before, digest(t, f))
}

func TestLimits(t *testing.T) {
	t.Parallel()
	l := workspace.Limits{Bytes: 100, Files: 8, Outputs: 2, OutputBytes: 10, TotalOutputBytes: 15}
	fill := func(n int, name string, size int) func(*workspace.Folder) error {
		return func(f *workspace.Folder) (err error) {
			for i := range n {
				err = errors.Join(err, f.WriteFile(fmt.Sprint(name, i), make([]byte, size), 0o644))
			}
			return err
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*workspace.Folder) error
		want string
	}{
		{"at the limits", func(f *workspace.Folder) error {
			return errors.Join(fill(4, "a", 20)(f), fill(1, "outputs/o", 10)(f), fill(1, "outputs/p", 5)(f))
		}, ""},
		{"bytes", fill(1, "a", 101), "more than 100 bytes"},
		{"bytes together", fill(3, "a", 40), "more than 100 bytes"},
		{"a file with a hole", func(f *workspace.Folder) error {
			return errors.Join(fill(1, "a", 0)(f), os.Truncate(filepath.Join(f.Name(), "a0"), 1<<40))
		}, "more than 100 bytes"},
		{"files", fill(8, "a", 0), "more than 8 files"},
		{"folders", func(f *workspace.Folder) error { return f.MkdirAll("1/2/3/4/5/6/7/8", 0o755) }, "more than 8 files"},
		{"links", func(f *workspace.Folder) (err error) {
			for i := range 8 {
				err = errors.Join(err, f.Link("outputs/base", fmt.Sprint("l", i)))
			}
			return err
		}, "more than 8 files"},
		{"outputs", fill(2, "outputs/o", 0), ""},
		{"many outputs", fill(3, "outputs/o", 0), "more than 2 files"},
		{"many outputs in a folder", func(f *workspace.Folder) error {
			return errors.Join(f.Mkdir("outputs/d", 0o755), fill(3, "outputs/d/o", 0)(f))
		}, "more than 2 files"},
		{"large outputs together", fill(2, "outputs/o", 8), "the files in outputs have more than 15 bytes together"},
		{"a large output", fill(1, "outputs/o", 11), `"outputs/o0" has 11 bytes; a file in outputs may have 10`},
		{"the runtime", fill(1, "outputs/call_1_1.txt", 1000), "more than 100 bytes"}, // not one of its names: it ends in 0
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := made(t)
			require.NoError(t, f.Mkdir("outputs", 0o755))
			if tt.name == "links" {
				require.NoError(t, f.WriteFile("outputs/base", nil, 0o644))
			}
			require.NoError(t, tt.do(f))
			_, err := f.Measure(l, nil)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			var limit *workspace.LimitError
			require.ErrorAs(t, err, &limit)
			require.Contains(t, limit.Problem, tt.want)
		})
	}
}

// What the runtime wrote does not count, and what a tool adds to it does.
func TestFilesOfTheRuntimeDoNotCount(t *testing.T) {
	t.Parallel()
	f, l := made(t), workspace.Limits{Bytes: 10, Files: 3, Outputs: 1, OutputBytes: 10, TotalOutputBytes: 10}
	written := map[string]int{}
	for i := range 5 {
		for _, name := range []string{fmt.Sprintf("history/step_%03d.json", i), fmt.Sprintf("outputs/call_1_%d.txt", i)} {
			write(t, f, name, strings.Repeat("x", 50))
			written[name] = 50
		}
	}
	_, err := f.Measure(l, written)
	require.NoError(t, err)
	write(t, f, "outputs/call_1_1.txt", strings.Repeat("x", 61))
	_, err = f.Measure(l, written)
	require.ErrorContains(t, err, "more than 10 bytes")
	write(t, f, "outputs/call_1_1.txt", "")
	write(t, f, "outputs/call_9_9.txt", "")
	write(t, f, "outputs/call_9_8.txt", "")
	_, err = f.Measure(l, written)
	require.ErrorContains(t, err, "more than 1 files", "the names of the runtime are no way around the limit")
}

// A workspace that a tool made deep or unreadable is measured in bounded time, and removed.
func TestHostileFolders(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(f *workspace.Folder) error{
		"deep": func(f *workspace.Folder) error {
			at, err := f.OpenRoot(".")
			for range 3000 {
				if err = errors.Join(err, at.Mkdir("d", 0o755)); err != nil {
					return err
				}
				next, err := at.OpenRoot("d")
				if err != nil {
					return err
				}
				at.Close()
				at = next
			}
			return at.Close()
		},
		"without rights": func(f *workspace.Folder) error {
			return errors.Join(f.MkdirAll("d/e", 0o755), f.WriteFile("d/e/f", nil, 0), f.Chmod("d/e", 0), f.Chmod("d", 0))
		},
		"link to itself":  func(f *workspace.Folder) error { return f.Symlink("l", "l") },
		"link to above":   func(f *workspace.Folder) error { return f.Symlink("..", "l") },
		"link to / below": func(f *workspace.Folder) error { return errors.Join(f.Mkdir("d", 0o755), f.Symlink("/", "d/l")) },
		"pipe":            func(f *workspace.Folder) error { return syscall.Mkfifo(filepath.Join(f.Name(), "p"), 0o644) },
		"odd names": func(f *workspace.Folder) error {
			return errors.Join(f.WriteFile("\xff\xfe", nil, 0o644), f.WriteFile("a\nb\x1b[31m", nil, 0o644), f.WriteFile("-rf", nil, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := made(t)
			require.NoError(t, do(f))
			_, err := f.Measure(workspace.Unlimited, nil)
			if name == "deep" || name == "without rights" && os.Geteuid() != 0 {
				var limit *workspace.LimitError
				require.ErrorAs(t, err, &limit)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// While files are replaced by links and pipes, nothing outside is read and nothing waits.
func TestMeasureWhileFilesAreSwapped(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, make([]byte, 1000), 0o600))
	f := made(t)
	write(t, f, "d/a", "one")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		at := filepath.Join(f.Name(), "d")
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.RemoveAll(at)
			switch n % 4 {
			case 0:
				_ = os.Symlink(filepath.Dir(outside), at)
			case 1:
				_ = syscall.Mkfifo(at, 0o600)
			case 2:
				_ = os.Symlink("d", at)
			default:
				_ = os.MkdirAll(at, 0o755)
				_ = os.Symlink(outside, filepath.Join(at, "a"))
			}
		}
	})
	for range 300 {
		_, err := f.Measure(workspace.Limits{Bytes: 500, Files: 50, Outputs: 1, OutputBytes: 1, TotalOutputBytes: 1}, nil)
		if err != nil {
			require.NotContains(t, err.Error(), "bytes, the limit", "a file outside was counted")
		}
	}
	close(stop)
	swapper.Wait()
}

// A named pipe, also one that has a writer, is refused at once.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	f := made(t)
	pipe := filepath.Join(f.Name(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	opened := make(chan error, 1)
	open := func() {
		_, err := workspace.FS(f.Root).Open("pipe")
		opened <- err
	}
	go open()
	select {
	case err := <-opened:
		require.EqualError(t, err, "open pipe: not a regular file")
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a writer")
	}
	both, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	defer both.Close()
	open()
	require.EqualError(t, <-opened, "open pipe: not a regular file")
	_, _, err = workspace.OpenFile(f.Root, "pipe", os.O_WRONLY|os.O_TRUNC, 0)
	require.EqualError(t, err, "open pipe: not a regular file")
}

func TestOpenRefusesForeignFolders(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "run")
	f, err := workspace.Make(parent, "task-")
	require.NoError(t, err)
	name := f.Base()
	require.NoError(t, f.Close())
	info, err := os.Stat(filepath.Join(parent, name))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	again, err := workspace.Open(parent, name)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	for _, bad := range []string{"", ".", "..", "../run", name + "/..", "/etc", "no"} {
		_, err := workspace.Open(parent, bad)
		require.Error(t, err, bad)
	}
	if runtime.GOOS == "windows" {
		return
	}
	require.NoError(t, os.Symlink(name, filepath.Join(parent, "link")))
	_, err = workspace.Open(parent, "link")
	require.ErrorContains(t, err, "not a folder")
	require.NoError(t, os.Chmod(filepath.Join(parent, name), 0o777))
	_, err = workspace.Open(parent, name)
	require.ErrorContains(t, err, "can be written by other users")
	for _, open := range []string{parent, filepath.Dir(parent)} {
		require.NoError(t, os.Chmod(open, 0o777))
		_, err = workspace.Make(parent, "task-")
		require.ErrorContains(t, err, open+" can be written by other users")
		_, err = workspace.Open(parent, name)
		require.ErrorContains(t, err, open+" can be written by other users")
		require.NoError(t, os.Chmod(open, 0o700))
	}
}

func TestRemoveRunLeavesWhatWasKept(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "all", "run")
	make := func() *workspace.Folder {
		f, err := workspace.Make(parent, "task-")
		require.NoError(t, err)
		return f
	}
	make().Close()
	kept := make()
	write(t, kept, "a", "1")
	path, err := kept.Keep("task")
	require.NoError(t, err)
	require.NoError(t, workspace.RemoveRun(parent))
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.FileExists(t, filepath.Join(path, "a"))
	other, err := make().Keep("task")
	require.NoError(t, err)
	require.Equal(t, path, other, "in place of the one before")
	require.NoFileExists(t, filepath.Join(path, "a"))
	require.NoError(t, workspace.Remove(path))
	require.NoError(t, workspace.RemoveRun(parent))
	require.NoDirExists(t, filepath.Dir(parent))
	require.NoError(t, workspace.RemoveRun(parent))
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0f3c-9_a", workspace.FileName("0f3c-9_a"))
	names := map[string]bool{}
	for _, id := range []string{"", ".", "..", "a/b", "a", "A", "../a", "kept-\n", strings.Repeat("a", 65), "a\x00"} {
		name := workspace.FileName(id)
		require.Equal(t, filepath.Base(name), name)
		require.False(t, names[strings.ToLower(name)], id)
		names[strings.ToLower(name)] = true
	}
}
