package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// workspaceTool is a tool that works in the workspace.
func workspaceTool(t testing.TB, name string, o tool.Options, work func(c tool.Call, root *os.Root) (string, error)) *tool.Tool {
	t.Helper()
	return newTool(t, name, o, func(ctx context.Context, _ map[string]any) (string, error) {
		c, _ := tool.CallFrom(ctx)
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		return work(c, root)
	})
}

// command is a call of bash.
func command(t testing.TB, text string) llm.ToolCall {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": text})
	require.NoError(t, err)
	return call("bash", string(raw))
}

func allFiles(t testing.TB) []*tool.Tool {
	t.Helper()
	files, err := builtin.Files("full", tool.Options{})
	require.NoError(t, err)
	return files
}

// Calls that run at the same time work in one workspace, and each task has its own.
func TestParallelCallsShareAWorkspace(t *testing.T) {
	t.Parallel()
	put := workspaceTool(t, "put", noEffect, func(c tool.Call, root *os.Root) (string, error) {
		return "ok", root.WriteFile(fmt.Sprintf("outputs/%x", c.ID), nil, 0o600)
	})
	count := workspaceTool(t, "count", noEffect, func(_ tool.Call, root *os.Root) (string, error) {
		d, err := root.Open("outputs")
		if err != nil {
			return "", err
		}
		defer d.Close()
		names, err := d.Readdirnames(-1)
		return fmt.Sprintf("%d files", len(names)), err
	})
	m := byTurn(func(turn int, r llm.Request) llm.Response {
		switch turn {
		case 4:
			return llm.Response{ToolCalls: []llm.ToolCall{call("count", `{}`)}}
		case 5:
			return llm.Response{Text: r.Messages[len(r.Messages)-1].Text}
		}
		var calls []llm.ToolCall
		for range 30 {
			calls = append(calls, call("put", `{}`))
		}
		return llm.Response{ToolCalls: calls}
	})
	res := run(t, toolTeam(t, m, put, count), &engine.RunOptions{Journal: &memory{}}, errand(), by("clerk", spec("other")))
	require.NoError(t, res.Err())
	for i := range res.Tasks {
		require.Contains(t, res.Tasks[i].Result, "\n90 files\n")
	}
}

// A step of the history is a file of the messages of one turn, without personal data.
func TestHistoryHasTheTurnsWithoutPersonalData(t *testing.T) {
	t.Parallel()
	var history string
	look := workspaceTool(t, "look", noEffect, func(_ tool.Call, root *os.Root) (string, error) {
		raw, err := root.ReadFile("history/step_001.json")
		if errors.Is(err, os.ErrNotExist) {
			return "write to ada.one@example.org", nil
		}
		history = string(raw)
		return "ok", err
	})
	m := byTurn(func(turn int, _ llm.Request) llm.Response {
		if turn < 3 {
			return llm.Response{Text: "I ask bob.two@example.org.", ToolCalls: []llm.ToolCall{call("look", `{"for":"bob.two@example.org"}`)}}
		}
		return llm.Response{Text: "done"}
	})
	require.NoError(t, run(t, toolTeam(t, m, look), nil, errand()).Err())
	var step []struct {
		Role, Content, ToolCallID string
		ToolCalls                 []struct{ ID, Name, Arguments string }
	}
	require.NoError(t, json.Unmarshal([]byte(history), &step))
	require.Len(t, step, 2)
	require.Equal(t, "assistant", step[0].Role)
	require.Equal(t, "I ask [REDACTED:email].", step[0].Content)
	require.Equal(t, "call_1_1", step[0].ToolCalls[0].ID)
	require.Equal(t, "look", step[0].ToolCalls[0].Name)
	require.Equal(t, `{"for":"[REDACTED:email]"}`, step[0].ToolCalls[0].Arguments)
	require.Equal(t, "tool", step[1].Role)
	require.Equal(t, "call_1_1", step[1].ToolCallID)
	require.Contains(t, step[1].Content, "\nwrite to [REDACTED:email]\n")
}

// The workspace has the whole conversation, so a tool that may not read all of that gets none.
func TestWorkspaceIsOnlyForToolsThatMayReadTheConversation(t *testing.T) {
	t.Parallel()
	toLook := handoff.PairRule{From: "clerk", To: "tool:look"}
	with := func(change func(*handoff.PairRule)) *handoff.Policy {
		r := toLook
		change(&r)
		return &handoff.Policy{Rules: []handoff.PairRule{r}}
	}
	lowers := &handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "lower", From: "clerk", To: "tool:look", Reason: "a test"}, Paths: []task.Path{"/city"}, UnsafeText: true, LowerTo: label.Internal}}}
	for _, tt := range []struct {
		name   string
		policy *handoff.Policy
		level  label.Classification
		told   string
	}{
		{"no rule", &handoff.Policy{}, label.Internal, "ok"},
		{"another redaction", with(func(r *handoff.PairRule) { r.Redact.Kinds = append(r.Redact.Kinds, "ip") }), label.Internal, "ok"},
		{"a block", with(func(r *handoff.PairRule) { r.Block = append(r.Block, "secrets") }), label.Internal, "workspace: it has the whole conversation, and a rule of the policy limits what clerk passes to tool:look"},
		{"only parts", with(func(r *handoff.PairRule) { r.Allow = append(r.Allow, "/city") }), label.Internal, "workspace: it has the whole conversation, and a rule"},
		{"a lowered label", lowers, label.Confidential, "workspace: it has the whole conversation, which is confidential, and tool:look may not read all of that"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			look := workspaceTool(t, "look", tool.Options{Effect: tool.Workspace}, func(tool.Call, *os.Root) (string, error) { return "ok", nil })
			m := &listening{namedModel: callsFirst(call("look", `{"city":"Lisbon"}`))}
			c := clerk(m, look)
			c.Accepts = label.Confidential
			s := errand()
			s.Classification = tt.level
			require.NoError(t, run(t, governed(t, tt.policy, c), nil, s).Err())
			require.Contains(t, m.answered(), "]\n"+tt.told)
		})
	}
}

// A tool that puts a named pipe in the place of a file of the history does not stop the run.
func TestPipeInTheHistoryIsReplaced(t *testing.T) {
	t.Parallel()
	m := byTurn(func(turn int, r llm.Request) llm.Response {
		switch turn {
		case 1:
			return llm.Response{ToolCalls: []llm.ToolCall{command(t, "mkfifo history/step_001.json && echo made")}}
		case 2:
			return llm.Response{ToolCalls: []llm.ToolCall{command(t, "test -f history/step_001.json && echo replaced")}}
		}
		return llm.Response{Text: r.Messages[2].Text + r.Messages[4].Text}
	})
	res := runBefore(t, 20*time.Second, toolTeam(t, m, allFiles(t)...))
	require.NoError(t, res.Err())
	require.Contains(t, res.Output, "made")
	require.Contains(t, res.Output, "replaced")
}

// What a command does to its folder does not keep it from being removed. The test changes the
// environment, so it does not run beside others.
func TestWorkspaceIsRemovedWhateverACommandDidToIt(t *testing.T) {
	t.Run("modes", func(t *testing.T) {
		temporary := temporaryFolder(t)
		run(t, toolTeam(t, callsFirst(command(t, `mkdir a; echo x > a/b; chmod 000 a`)), allFiles(t)...), nil, errand())
		requireEmptyFolder(t, temporary)
	})
	t.Run("files until it is killed", func(t *testing.T) {
		temporary := temporaryFolder(t)
		tm := toolTeam(t, callsFirst(command(t, `i=0; while :; do i=$((i+1)); mkdir -p d$i; : > d$i/x; done`)), allFiles(t)...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = tm.RunTasks(ctx, []task.Spec{errand()}, nil)
		}()
		require.Eventually(t, func() bool {
			found, err := filepath.Glob(filepath.Join(temporary, "*", "d9"))
			return err == nil && found != nil
		}, time.Minute, time.Millisecond)
		cancel()
		<-ended
		requireEmptyFolder(t, temporary)
	})
}

type panicking struct{}

func (panicking) Close() error { panic("close") }

// A value that panics when it is closed does not keep the workspace from being removed. The
// test changes the environment, so it does not run beside others.
func TestPanicInCloseLeavesNoWorkspace(t *testing.T) {
	temporary := temporaryFolder(t)
	bad := workspaceTool(t, "bad", tool.Options{Effect: tool.Workspace}, func(c tool.Call, root *os.Root) (string, error) {
		_, err := c.Shared.Get("k", func() (io.Closer, error) { return panicking{}, nil })
		return "ok", errors.Join(err, root.WriteFile("outputs/x", nil, 0o600))
	})
	m := &listening{namedModel: callsFirst(call("bad", `{}`))}
	require.NoError(t, run(t, toolTeam(t, m, bad), nil, errand()).Err())
	require.Contains(t, m.answered(), "]\nok\n")
	requireEmptyFolder(t, temporary)
}

// temporaryFolder makes a folder for temporary files of everyone, as /tmp is, and makes the
// process use it.
func temporaryFolder(t *testing.T) string {
	t.Helper()
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o777))
	t.Setenv("TMPDIR", path)
	return path
}

func requireEmptyFolder(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Empty(t, entries)
}
