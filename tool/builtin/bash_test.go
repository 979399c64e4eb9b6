package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/tool"
)

func TestBash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, give, want, err string }{
		{"output", `{"command": "echo hello; cat a.txt"}`, "hello\none\n\nexit status 0", ""},
		{"failure", `{"command": "echo bad >&2; exit 7"}`, "stderr:\nbad\n\nexit status 7", ""},
		{"folder", `{"command": "cat b.txt", "cwd": "sub"}`, "two\n\nexit status 0", ""},
		{"quotes", `{"command": "x=\"it's\"; echo \"$x\" 'a \"b\"'"}`, "it's a \"b\"\n\nexit status 0", ""},
		{"own environment", `{"command": "env | cut -d= -f1 | sort | grep -E 'KEY|TOKEN|GO'"}`, "exit status 1", ""},
		{"timeout", `{"command": "echo begun; sleep 60", "timeout": 100}`, "begun\n\nstderr:\n\nended after 100ms\n\nexit status 124", ""},
		{"no text", `{"command": "printf '\\377'"}`, "\uFFFD\nexit status 0", ""},
		{"folder outside", `{"command": "pwd", "cwd": ".."}`, "", "outside the workspace"},
		{"folder missing", `{"command": "pwd", "cwd": "none"}`, "", "no folder of the workspace"},
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
	if !process.Confines() {
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
			require.Equal(t, !process.Confines(), f.Stateful)
			require.Equal(t, process.Confines(), f.Effect == tool.Workspace)
		}
	}
}
