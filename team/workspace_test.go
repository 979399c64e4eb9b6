package team_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// keeping is a task whose agent writes files, with this label.
func keeping(t *testing.T, level label.Classification, calls ...llm.Response) (*team.Team, []task.Spec) {
	t.Helper()
	files, err := builtin.Files("readwrite", tool.Options{Accepts: level})
	require.NoError(t, err)
	var rules []handoff.PairRule
	for _, f := range files {
		rules = append(rules, handoff.PairRule{From: "clerk", To: "tool:" + f.Name, Mode: handoff.Full}, handoff.PairRule{From: "tool:" + f.Name, To: "clerk", Mode: handoff.Full})
	}
	m := team.Member{Name: "clerk", Agent: agent.New(&chat{replies: calls}, agent.Options{}), Accepts: label.Secret, Tools: files, Backend: team.Backend{Endpoint: "http://localhost:1"}}
	tm, err := team.New(team.Config{Policy: &handoff.Policy{Rules: rules}, Agents: []team.Member{m, {Name: "other", Agent: agent.New(&chat{replies: []llm.Response{says("done")}}, agent.Options{})}}})
	require.NoError(t, err)
	return tm, []task.Spec{{Title: "Other", Description: "Other.", Assignee: "other"}, {Title: "Write", Description: "Write.", Assignee: "clerk", Classification: level, RetryDelay: task.NoDelay}}
}

// What a task left in its workspace stays for a caller who may see all of it, and is removed
// with a warning otherwise.
func TestKeptWorkspaces(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, tt := range []struct {
		name    string
		level   label.Classification
		accepts label.Classification
		stays   bool
	}{
		{"within the clearance", label.Internal, label.Internal, true},
		{"confidential", label.Confidential, label.Confidential, true},
		{"above the clearance", label.Confidential, label.Internal, false},
		{"above confidential", label.Secret, label.Secret, false},
	} {
		for _, stored := range []bool{false, true} {
			tm, specs := keeping(t, tt.level, calls("file_write", `{"path":"a.txt","content":"ann@x.org"}`), says("done"))
			o := &team.RunOptions{KeepWorkspaces: true, UserAccepts: &tt.accepts}
			folder := t.TempDir()
			if stored {
				j, err := journal.Open(filepath.Join(folder, "runs.db"), journal.Options{})
				require.NoError(t, err)
				defer j.Close()
				o.Journal = j
			}
			res, err := tm.RunTasks(t.Context(), specs, o)
			require.NoError(t, err)
			left, err := os.ReadDir(temporary)
			require.NoError(t, err)
			if !tt.stays {
				require.Empty(t, res.Workspace("Write"))
				require.Contains(t, strings.Join(res.Warnings, "\n"), `task "Write": its workspace was removed: its data is `, tt.name)
				require.Empty(t, left)
				continue
			}
			require.NotContains(t, strings.Join(res.Warnings, "\n"), "workspace")
			raw, err := os.ReadFile(filepath.Join(res.Workspace("Write"), "a.txt"))
			require.NoError(t, err)
			require.Equal(t, "[REDACTED:email]", string(raw), "in the form that the tool was given")
			require.Equal(t, stored, strings.HasPrefix(res.Workspace("Write"), folder))
			require.NoError(t, os.RemoveAll(res.Workspace("Write")))
		}
	}
}

// Without the option nothing stays, and of several attempts only the last workspace does.
func TestWorkspaceOfTheLastAttemptIsKept(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, keep := range []bool{false, true} {
		write := calls("file_write", `{"path":"a.txt","content":"x"}`)
		m := &chat{replies: []llm.Response{write, {}, write, says("done")}}
		files, err := builtin.Files("readwrite", tool.Options{})
		require.NoError(t, err)
		broken := llm.ModelFunc(func(ctx context.Context, r llm.Request, f func(llm.Delta) error) (llm.Response, error) {
			res, err := m.Call(ctx, r, f)
			if err == nil && res.Text == "" && len(res.ToolCalls) == 0 {
				return res, errors.New("the line is down")
			}
			return res, err
		})
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(broken, agent.Options{Retry: llm.RetryOptions{Extra: -1}}), Tools: files}}})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "clerk", MaxRetries: 1, RetryDelay: task.NoDelay}}, &team.RunOptions{KeepWorkspaces: keep})
		require.NoError(t, err)
		require.Equal(t, 2, res.Tasks[0].Attempts)
		left, err := filepath.Glob(filepath.Join(temporary, "*"))
		require.NoError(t, err)
		if !keep {
			require.Empty(t, left)
			continue
		}
		require.Equal(t, []string{res.Workspace("Write")}, left)
	}
}

// An agent is told that its workspace is above a limit. It can correct that with the next call,
// or its task fails.
func TestWorkspaceLimits(t *testing.T) {
	t.Parallel()
	big := calls("file_write", `{"path":"big.txt","content":"`+strings.Repeat("x", 2000)+`"}`)
	small := calls("file_write", `{"path":"big.txt","content":"x"}`)
	look := calls("file_read", `{"path":"big.txt","limit":1}`)
	for _, tt := range []struct {
		name    string
		replies []llm.Response
		code    string
	}{
		{"corrected", []llm.Response{big, look, small, says("done")}, ""},
		{"not corrected, and no other call", []llm.Response{big, look, says("done")}, ""},
		{"again", []llm.Response{big, big, says("done")}, "WORKSPACE_LIMIT"},
		{"twice corrected", []llm.Response{big, small, big, small, says("done")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := &chat{replies: tt.replies}
			files, err := builtin.Files("readwrite", tool.Options{})
			require.NoError(t, err)
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: files}}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "clerk", Workspace: &task.WorkspaceLimits{MaxBytes: 1000}}}, nil)
			require.Equal(t, tt.code == "", err == nil, err)
			told := model.requests[1].Messages
			require.Contains(t, told[len(told)-1].Text, "The workspace is above its limits: its files have more than 1000 bytes, the limit; remove some. Correct that")
			if tt.code == "" {
				require.Equal(t, task.Completed, res.Tasks[0].Status)
				return
			}
			require.Equal(t, tt.code, res.Tasks[0].Error.Code)
			require.Contains(t, res.Tasks[0].Error.Message, "more than 1000 bytes")
		})
	}
}

// Results that are too long for the agent are kept up to the limit, and do not fail the task.
func TestLongResultsDoNotExceedTheLimits(t *testing.T) {
	t.Parallel()
	long, err := tool.New("long", "", func(context.Context, struct{}) (string, error) { return strings.Repeat("long ", 1000), nil }, tool.Options{Effect: tool.Workspace, MaxOutput: 100})
	require.NoError(t, err)
	files, err := builtin.Files("readwrite", tool.Options{})
	require.NoError(t, err)
	write := calls("file_write", `{"path":"a.txt","content":"x"}`)
	model := &chat{replies: []llm.Response{write, calls("long", `{}`), write, calls("long", `{}`), write, says("done")}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: append(files, long)}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "clerk", Workspace: &task.WorkspaceLimits{MaxBytes: 6000, MaxFiles: 4, MaxOutputs: 1, MaxOutputBytes: 10}}}, nil)
	require.NoError(t, err)
	require.Equal(t, task.Completed, res.Tasks[0].Status)
	last := model.requests[len(model.requests)-1].Messages
	require.Contains(t, last[4].Text, "[whole result in outputs/call_2_1.txt]")
	require.Contains(t, last[8].Text, "[whole result not kept: the workspace is full]")
}

// A call that is abandoned, since it does not end in its time, gets no workspace any more once
// its attempt has ended: not even that of a later task.
func TestAbandonedCallGetsNoLaterWorkspace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended, got := make(chan struct{}), make(chan error, 1)
		slow, err := tool.New("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
			c, _ := tool.CallFrom(ctx)
			<-ended // and not with its context
			_, err := c.Workspace()
			got <- err
			return "", nil
		}, tool.Options{Effect: tool.None, Timeout: time.Millisecond})
		require.NoError(t, err)
		next, err := tool.New("next", "", func(ctx context.Context, _ struct{}) (string, error) {
			c, _ := tool.CallFrom(ctx)
			_, err := c.Workspace()
			close(ended)
			return "", errors.Join(err, <-got)
		}, tool.Options{Effect: tool.None})
		require.NoError(t, err)
		tm, err := team.New(team.Config{Agents: []team.Member{
			{Name: "a", Agent: agent.New(&chat{replies: []llm.Response{calls("slow", `{}`), says("done")}}, agent.Options{}), Tools: []*tool.Tool{slow}},
			{Name: "b", Agent: agent.New(&chat{replies: []llm.Response{calls("next", `{}`), says("done")}}, agent.Options{}), Tools: []*tool.Tool{next}},
		}})
		require.NoError(t, err)
		o := &team.RunOptions{MaxConcurrency: 1}
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "A", Description: "A.", Assignee: "a"}, {Title: "B", Description: "B.", Assignee: "b", DependsOn: task.On("A")}}, o)
		require.NoError(t, err)
		require.Equal(t, team.StatusOK, res.Status)
	})
}

// Files that are above the limits from the start fail the task before the model is called.
func TestGivenFilesAreWithinTheLimits(t *testing.T) {
	t.Parallel()
	in, err := team.ReadFolder(fstest.MapFS{"a.txt": {Data: []byte("twelve bytes")}})
	require.NoError(t, err)
	tm, specs := keeping(t, label.Internal, says("done"))
	specs[1].Uses, specs[1].Workspace = []task.Use{{Name: "in"}}, &task.WorkspaceLimits{MaxBytes: 11}
	res, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{Inputs: []team.Input{{Name: "in", Folder: in}}})
	require.Error(t, err)
	require.Equal(t, "WORKSPACE_LIMIT", res.Tasks[1].Error.Code)
	require.Contains(t, res.Tasks[1].Error.Message, "the task is given 1 files with 12 bytes")
}
