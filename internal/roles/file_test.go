package roles_test

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/roles"
	"github.com/runteam/runteam/internal/specfile"
)

const annViews = "roles:\n- {role: viewer, users: [ann]}\n"

// A watched is a file of roles with a clock that the test sets, and what was said of it.
type watched struct {
	*roles.File
	t    *testing.T
	path string
	now  time.Time
	said []string
}

func open(t *testing.T, text string) *watched {
	w := &watched{t: t, path: filepath.Join(t.TempDir(), "roles.yaml"), now: now}
	w.write(text)
	var err error
	w.File, err = roles.Open("", w.path, func() time.Time { return w.now }, func(s string) { w.said = append(w.said, s) })
	require.NoError(t, err)
	return w
}

func (w *watched) write(text string) {
	require.NoError(w.t, os.WriteFile(w.path, []byte(text), 0o600))
}

// after moves the clock, and returns whether ann is a viewer and what was said since the last time.
func (w *watched) after(d time.Duration) (views bool, said []string) {
	w.now = w.now.Add(d)
	views = len(w.Grants("ann", nil)) > 0
	said, w.said = w.said, nil
	return views, said
}

func TestFileIsReadAgain(t *testing.T) {
	t.Parallel()
	w := open(t, annViews)
	views, said := w.after(0)
	require.True(t, views)
	require.Empty(t, said)

	w.write("roles:\n- {role: viewer, users: [bea]}\n") // as long as before
	views, _ = w.after(1999 * time.Millisecond)
	require.True(t, views, "it is read at most every two seconds")
	views, said = w.after(time.Millisecond)
	require.False(t, views)
	require.Empty(t, said)

	w.write("roles: []\ntokens:\n- {sha256: " + digest + ", user: a, role: viewer, expires: 2026-11-30}\n")
	for range 3 {
		_, said = w.after(2 * time.Second)
		if len(said) > 0 {
			break
		}
	}
	require.Len(t, said, 2, "warnings are said")
	_, said = w.after(2 * time.Second)
	require.Empty(t, said, "and once")
}

func TestInvalidFileIsForgivenForAWhile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, wants string
		spoil       func(w *watched)
	}{
		{"invalid", "it names nobody", func(w *watched) { w.write("roles:\n- role: viewer\n") }},
		{"empty", "the file is empty", func(w *watched) { w.write("") }},
		{"gone", w32("no such file", "cannot find the file"), func(w *watched) { require.NoError(t, os.Remove(w.path)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, annViews)
			tt.spoil(w)
			views, said := w.after(2 * time.Second)
			require.True(t, views)
			require.Len(t, said, 1)
			require.Contains(t, said[0], tt.wants)
			require.Contains(t, said[0], "the roles of before stay valid for 30s")

			views, said = w.after(29 * time.Second)
			require.True(t, views)
			require.Empty(t, said)
			views, said = w.after(time.Second)
			require.False(t, views)
			require.Equal(t, []string{w.path + " has been invalid for 30s: nobody has a role until it is valid again"}, said)
			views, said = w.after(time.Hour)
			require.False(t, views)
			require.Empty(t, said)

			w.write(annViews)
			views, said = w.after(2 * time.Second)
			require.True(t, views)
			require.Equal(t, []string{w.path + " is valid again"}, said)

			tt.spoil(w)
			views, _ = w.after(2 * time.Second)
			require.True(t, views, "and it is forgiven again")
			views, said = w.after(30 * time.Second)
			require.False(t, views)
			require.Len(t, said, 1)
		})
	}
}

// w32 returns what another system says on Windows.
func w32(elsewhere, windows string) string {
	if runtime.GOOS == "windows" {
		return windows
	}
	return elsewhere
}

func TestTokenExpiresByTheClock(t *testing.T) {
	t.Parallel()
	w := open(t, annViews+"tokens:\n- {sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b, user: ann, role: viewer, expires: \"2026-12-01T10:00:00Z\"}\n")
	token, ok := w.Token("secret")
	require.True(t, ok)
	require.Equal(t, "2bb80d537b1da3e3", token.ID)
	require.Equal(t, w.Grants("ann", nil), w.GrantsOf(token))
	w.now = w.now.Add(time.Hour)
	_, ok = w.Token("secret")
	require.False(t, ok)
	require.Nil(t, w.GrantsOf(token))
}

func TestFileMustBeSafe(t *testing.T) {
	t.Parallel()
	fail := func(path, message string) {
		t.Helper()
		_, err := roles.Open("", path, time.Now, func(string) {})
		require.ErrorContains(t, err, message)
		require.ErrorIs(t, err, specfile.ErrRead)
	}
	dir := t.TempDir()
	fail(dir, "it is not a regular file")
	fail(filepath.Join(dir, "none.yaml"), w32("no such file", "cannot find the file"))
	if runtime.GOOS == "windows" {
		return
	}
	path := filepath.Join(dir, "roles.yaml")
	require.NoError(t, os.WriteFile(path, []byte(annViews), 0o600))
	require.NoError(t, os.Chmod(path, 0o620))
	fail(path, "it can be written by other users (mode 0620)")
	require.NoError(t, os.Chmod(path, 0o644))
	f, err := roles.Open("", path, time.Now, func(string) {})
	require.NoError(t, err)
	require.NotNil(t, f.Grants("ann", nil))
}

func TestFileIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "roles.yaml")
	require.NoError(t, os.WriteFile(path, []byte(annViews), 0o600))
	var mu sync.Mutex
	at := now
	f, err := roles.Open("", path, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Second)
		return at
	}, func(string) {})
	require.NoError(t, err)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				require.Len(t, f.Grants("ann", nil), 1)
				_, ok := f.Token("x")
				require.False(t, ok)
			}
		})
	}
	readers.Wait()
}
