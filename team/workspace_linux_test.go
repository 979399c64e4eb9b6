package team_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// On a full disk a call fails with a clear error, and nothing stays.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	t.Setenv("TMPDIR", folder)
	files, err := builtin.Files("full", tool.Options{})
	require.NoError(t, err)
	t.Run("a tool", func(t *testing.T) {
		model := &chat{replies: []llm.Response{calls("bash", `{"command":"exec 3> zero; rm zero; head -c 1000000 /dev/zero >&3"}`), says("done")}}
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: files}}})
		require.NoError(t, err)
		_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "clerk"}}, nil)
		require.NoError(t, err)
		require.Regexp(t, "No space left on device|the disk is nearly full", model.requests[1].Messages[2].Text, "by the program, or by the quota that ends it")
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("the history", func(t *testing.T) {
		fill, err := tool.New("fill", "", func(ctx context.Context, _ struct{}) (string, error) {
			c, _ := tool.CallFrom(ctx)
			root, err := c.Workspace()
			if err != nil {
				return "", err
			}
			for size := 64 << 10; size > 0; size /= 2 {
				_ = root.WriteFile("fill"+string(rune('a'+size%26)), make([]byte, size), 0o600)
			}
			for n := 0; err == nil; n++ {
				err = root.WriteFile("end"+strings.Repeat("x", n), make([]byte, 4096), 0o600)
			}
			return "", nil
		}, tool.Options{Effect: tool.Workspace})
		require.NoError(t, err)
		model := &chat{replies: []llm.Response{calls("fill", `{}`), says("done")}}
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{fill}}}})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Fill", Description: "Fill.", Assignee: "clerk"}}, nil)
		require.Error(t, err)
		require.Equal(t, task.Failed, res.Tasks[0].Status)
		require.Contains(t, res.Tasks[0].Error.Message, "workspace: ")
		require.Contains(t, res.Tasks[0].Error.Message, "no space left on device")
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("the files that it is given", func(t *testing.T) {
		in, err := team.ReadFolder(fstest.MapFS{"a.txt": {Data: []byte(strings.Repeat("x", 200<<10))}})
		require.NoError(t, err)
		model := &chat{replies: []llm.Response{calls("glob", `{"pattern":"**"}`), says("done")}}
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: files}}})
		require.NoError(t, err)
		_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Look", Description: "Look.", Assignee: "clerk", Uses: []task.Use{{Name: "in"}}}}, &team.RunOptions{Inputs: []team.Input{{Name: "in", Folder: in}}})
		require.NoError(t, err)
		require.Contains(t, model.requests[1].Messages[2].Text, "workspace: ")
		require.Contains(t, model.requests[1].Messages[2].Text, "no space left on device")
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}
