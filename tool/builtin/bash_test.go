package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

func TestBash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, give, want, err string }{
		{"output", `{"command": "echo hello; cat a.txt"}`, "exit status 0\nstdout:\nhello\none\n", ""},
		{"failure", `{"command": "echo bad >&2; exit 7"}`, "exit status 7\nstderr:\nbad\n\n", ""},
		{"folder", `{"command": "cat b.txt", "cwd": "sub"}`, "exit status 0\nstdout:\ntwo\n", ""},
		{"quotes", `{"command": "x=\"it's\"; echo \"$x\" 'a \"b\"'"}`, "exit status 0\nstdout:\nit's a \"b\"\n", ""},
		{"own environment", `{"command": "env | cut -d= -f1 | sort | grep -E 'KEY|TOKEN|GO'"}`, "exit status 1\n", ""},
		{"timeout", `{"command": "echo begun; sleep 60", "timeout": 1000}`, "exit status 124\nstderr:\n\nkilled after 1s\n\nstdout:\nbegun\n", ""},
		{"no text", `{"command": "printf '\\377'"}`, "exit status 0\nstdout:\n\uFFFD", ""},
		{"folder outside", `{"command": "pwd", "cwd": ".."}`, "", "outside the workspace"},
		{"folder missing", `{"command": "pwd", "cwd": "none"}`, "", "not a folder in the workspace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, workspace(t, map[string]string{"a.txt": "one\n", "sub/b.txt": "two\n"}), "bash", tt.give)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestBashEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the run was canceled"))
	for _, f := range tools {
		if f.Name == "bash" {
			r, err := f.Run(ctx, tool.Call{Arguments: json.RawMessage(`{"command": "sleep 60"}`), Workspace: func() (*os.Root, error) { return workspace(t, nil), nil }})
			require.NoError(t, err)
			require.Contains(t, r.Text, "exit status 130")
		}
	}
}

// Requirement: G57.
func TestConfinedBashSeesTheWorkspaceOnly(t *testing.T) {
	t.Parallel()
	if !builtin.CanConfine() {
		t.Skip("this system cannot confine programs")
	}
	root := workspace(t, nil)
	other := filepath.Join(filepath.Dir(root.Name()), "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(other, "a"), []byte("canary"), 0o600))
	for _, command := range []string{"cat ../outside.txt", "cat ../other/a", "grep -r canary .. /tmp", "cat " + other + "/a", "find / -name a -exec cat {} +"} {
		raw, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		got, err := call(t, root, "bash", string(raw))
		require.NoError(t, err)
		require.NotContains(t, got, "canary\n", command)
		require.NotContains(t, got, "exit status 0", command)
	}
}

// A command that nothing confines can read and change what others can.
func TestUnconfinedBashIsStatefulAndExternal(t *testing.T) {
	t.Parallel()
	for _, f := range tools {
		if f.Name == "bash" {
			require.Equal(t, !builtin.CanConfine(), f.Stateful)
			require.Equal(t, !builtin.CanConfine(), f.State == "machine")
			require.Equal(t, builtin.CanConfine(), f.Effect == tool.Workspace)
		}
	}
}

// A command with too many processes ends in an error that says so. The tests of package process have a fork bomb, with
// a limit that leaves the machine alone. Not parallel, since it disturbs other tests.
func TestConfinedBashStaysWithinItsLimits(t *testing.T) {
	if !builtin.CanConfine() {
		t.Skip("this system cannot confine programs")
	}
	got, err := call(t, workspace(t, nil), "bash", `{"command": "truncate -s 512M large; exit 1"}`)
	require.NoError(t, err)
	require.Contains(t, got, "a file reached 512 MiB, the limit for one file")
	require.NotContains(t, got, "exit status 0")
	if !slowtest.Enabled() {
		return // 512 processes starve the tests of other packages
	}
	got, err = call(t, workspace(t, nil), "bash", `{"command": "for i in $(seq 700); do sleep 60 & done; wait"}`)
	require.NoError(t, err)
	require.Contains(t, got, "processes and threads, and at most 512 may run")
	require.NotContains(t, got, "exit status 0")
}

// A confined command reads the folders that its tool is given, and only in bash.
func TestConfinedBashReadsItsReadableFolders(t *testing.T) {
	t.Parallel()
	if !builtin.CanConfine() {
		t.Skip("this system cannot confine programs")
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a"), []byte("given"), 0o600))
	list, err := builtin.Files("full", tool.Options{Readable: []string{folder}})
	require.NoError(t, err)
	for _, f := range list {
		if f.Name != "bash" {
			require.Empty(t, f.Readable, f.Name)
			continue
		}
		require.Equal(t, []string{folder}, f.Readable)
		root := workspace(t, nil)
		r, err := f.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{"command": "cat ` + folder + `/a; echo x > ` + folder + `/b"}`), Workspace: func() (*os.Root, error) { return root, nil }})
		require.NoError(t, err)
		require.Contains(t, r.Text, "given")
		require.NoFileExists(t, filepath.Join(folder, "b"))
	}
	_, err = builtin.Files("full", tool.Options{Readable: []string{"lib"}})
	require.ErrorContains(t, err, "bash: readable: lib: the path is relative")
}
