package engine_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// files returns a folder with these files: pairs of a path and a text.
func files(t *testing.T, pairs ...string) *filetree.Folder {
	t.Helper()
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	f, err := filetree.ReadFolder(m)
	require.NoError(t, err)
	return f
}

// caller returns a model that makes one call of a tool in each turn and then answers "done".
// It keeps what it was sent.
func caller(sent *[]string, calls ...llm.ToolCall) namedModel {
	return byTurn(func(turn int, r llm.Request) llm.Response {
		*sent = append(*sent, r.Messages[len(r.Messages)-1].Text)
		if turn <= len(calls) {
			return llm.Response{ToolCalls: calls[turn-1 : turn]}
		}
		return llm.Response{Text: "done"}
	})
}

func TestFilesGoFromAnInputThroughATaskToAnother(t *testing.T) {
	t.Parallel()
	tools, err := builtin.Files("readwrite", tool.Options{})
	require.NoError(t, err)
	var fixer, reviewer []string
	tm, err := engine.New(engine.Config{Agents: []engine.Member{
		{Name: "fixer", Tools: tools, Agent: agent.New(caller(&fixer,
			call("file_read", `{"path":"main.go"}`),
			call("grep", `{"pattern":"ann"}`),
			call("file_edit", `{"path":"main.go","old_string":"bug","new_string":"feature"}`),
			call("file_write", `{"path":"notes/new.md","content":"new"}`),
			call("file_write", `{"path":"scratch.txt","content":"not an output"}`),
		), agent.Options{})},
		{Name: "reviewer", Tools: tools, Agent: agent.New(caller(&reviewer, call("file_read", `{"path":"main.go"}`), call("glob", `{}`)), agent.Options{})},
	}})
	require.NoError(t, err)
	specs := []task.Spec{
		{Title: "Fix", Description: "D", Assignee: "fixer", Uses: []task.Use{{Name: "repo", At: "."}}, OutputFiles: []string{"**/*.go", "notes/**"}},
		{Title: "Review", Description: "D", Assignee: "reviewer", DependsOn: []task.Ref{{Task: "Fix", Files: []task.Path{task.Whole}}}},
	}
	o := &engine.RunOptions{Inputs: []engine.Input{{Name: "repo", Folder: files(t, "main.go", "package main // bug of ann@x.org\n", "lib/lib.go", "package lib\n")}}}
	res, err := tm.RunTasks(t.Context(), specs, o)
	require.NoError(t, err)
	require.NoError(t, res.Err())

	require.Contains(t, fixer[0], "### repo\nThese files are in your workspace:\n[envelope ")
	require.Contains(t, fixer[0], "lib/lib.go (12 bytes)\nmain.go (")
	require.Contains(t, fixer[1], "[REDACTED:email]")
	require.NotContains(t, strings.Join(fixer, ""), "ann@")
	require.Equal(t, map[string]string{"main.go": "package main // feature of [REDACTED:email]\n", "notes/new.md": "new"}, res.Tasks[0].OutputFiles)

	require.Contains(t, reviewer[0], "## Files from prerequisite tasks\n\n### repo\nThese files are in your workspace:\n")
	require.Contains(t, reviewer[0], "### Fix (by fixer)\nThese files are in your workspace:\n")
	require.Contains(t, reviewer[0], "main.go (44 bytes)\nnotes/new.md (3 bytes)")
	require.Contains(t, reviewer[1], "feature of")
	require.Contains(t, reviewer[2], "lib/lib.go", "the folder is as the other task left it")
	require.NotContains(t, strings.Join(reviewer, ""), "scratch")
}

// pipeline is a task that edits a folder and one that reads the result.
func pipeline(t *testing.T, fixer, reviewer *[]string) (*engine.Team, []task.Spec) {
	t.Helper()
	tools, err := builtin.Files("readwrite", tool.Options{})
	require.NoError(t, err)
	tm, err := engine.New(engine.Config{Agents: []engine.Member{
		{Name: "fixer", Tools: tools, Agent: agent.New(caller(fixer,
			call("file_edit", `{"path":"main.go","old_string":"bug","new_string":"feature"}`),
			call("file_write", `{"path":"new.go","content":"new"}`)), agent.Options{})},
		{Name: "reviewer", Tools: tools, Agent: agent.New(caller(reviewer, call("file_read", `{"path":"main.go"}`)), agent.Options{})},
	}})
	require.NoError(t, err)
	return tm, []task.Spec{
		{Title: "Fix", Description: "D", Assignee: "fixer", Uses: []task.Use{{Name: "repo", At: "."}}, OutputFiles: []string{"*.go"}},
		{Title: "Review", Description: "D", Assignee: "reviewer", DependsOn: []task.Ref{{Task: "Fix", Files: []task.Path{task.Whole}}}},
	}
}

func TestOutputFilesAreTheSameAfterEveryInterruption(t *testing.T) {
	t.Parallel()
	var fixer, reviewer []string
	tm, specs := pipeline(t, &fixer, &reviewer)
	j := &memory{}
	folder := files(t, "main.go", "bug")
	options := func(j record.Store) *engine.RunOptions {
		return &engine.RunOptions{RunID: "r", Journal: j, Inputs: []engine.Input{{Name: "repo", Folder: folder}}}
	}
	whole, err := tm.RunTasks(t.Context(), specs, options(j))
	require.NoError(t, err)
	require.NoError(t, whole.Err())
	want := map[string]string{"main.go": "feature", "new.go": "new"}
	require.Equal(t, want, whole.Tasks[0].OutputFiles)
	prompts := reviewer
	for cut := 1; cut <= j.len(); cut++ {
		h := j.history(cut)
		h.End = nil
		fixer, reviewer = nil, nil
		res, err := start(t.Context(), tm, specs, options(after(h)))
		require.NoError(t, err)
		require.NoError(t, res.Err(), "after %d entries", cut)
		require.Equal(t, want, res.Tasks[0].OutputFiles, "after %d entries", cut)
		require.Subset(t, prompts, reviewer, "after %d entries", cut)
	}
	fixer, reviewer = nil, nil
	o := options(after(j.history(j.len())))
	o.Replay = &engine.Replay{}
	again, err := start(t.Context(), tm, specs, o)
	require.NoError(t, err)
	require.NoError(t, again.Err())
	require.Equal(t, want, again.Tasks[0].OutputFiles)
	require.Empty(t, append(fixer, reviewer...), "a replay calls no agent")
}

// The files of a task whose conversation was transferred are those that the last holder wrote. After its end, no agent is
// called again for them, and after any other interruption they are the same.
func TestOutputFilesOfATransferredTaskAreTheSameAfterEveryInterruption(t *testing.T) {
	t.Parallel()
	tools, err := builtin.Files("readwrite", tool.Options{})
	require.NoError(t, err)
	var triage, fixer []string
	tm, err := engine.New(engine.Config{Edges: transferring("triage>fixer"), Agents: []engine.Member{
		{Name: "triage", Agent: agent.New(caller(&triage, call("transfer_to_fixer", `{"reason":"it is a bug"}`)), agent.Options{})},
		{Name: "fixer", Tools: tools, Agent: agent.New(caller(&fixer, call("file_write", `{"path":"new.go","content":"new"}`)), agent.Options{})},
	}})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "Fix", Description: "D", Assignee: "triage", OutputFiles: []string{"*.go"}}}
	j := &memory{}
	whole, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	require.NoError(t, whole.Err())
	want := map[string]string{"new.go": "new"}
	require.Equal(t, want, whole.Tasks[0].OutputFiles)
	require.Len(t, fixer, 2)
	for cut := 1; cut <= j.len(); cut++ {
		triage, fixer = nil, nil
		res, err := start(t.Context(), tm, specs, &engine.RunOptions{RunID: "r", Journal: after(j.history(cut))})
		require.NoError(t, err)
		require.NoError(t, res.Err(), "after %d entries", cut)
		require.Equal(t, want, res.Tasks[0].OutputFiles, "after %d entries", cut)
		require.Equal(t, whole.Tasks[0].Result, res.Tasks[0].Result)
	}
	require.Empty(t, append(triage, fixer...), "after its end")
}

func TestChangedFolderIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	var fixer, reviewer []string
	tm, specs := pipeline(t, &fixer, &reviewer)
	j := &memory{}
	run := func(j record.Store, text string) {
		res, err := start(t.Context(), tm, specs, &engine.RunOptions{RunID: "r", Journal: j, Inputs: []engine.Input{{Name: "repo", Folder: files(t, "main.go", text)}}})
		require.NoError(t, err)
		require.NoError(t, res.Err())
	}
	run(j, "bug 1")
	h := j.history(j.len())
	h.End = nil
	fixer, reviewer = nil, nil
	run(after(h), "bug 1")
	require.Empty(t, fixer)
	run(after(h), "bug 2") // as long as before, so the list of files is the same
	require.NotEmpty(t, fixer)
	require.NotEmpty(t, reviewer)
}

func TestFilesAreNarrowedByPaths(t *testing.T) {
	t.Parallel()
	tools, err := builtin.Files("readonly", tool.Options{})
	require.NoError(t, err)
	var sent []string
	tm, err := engine.New(engine.Config{
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "reader", Block: []task.Path{".env"}}}},
		Agents: []engine.Member{{Name: "reader", Tools: tools, Agent: agent.New(caller(&sent, call("glob", `{}`)), agent.Options{})}},
	})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "Read", Description: "D", Assignee: "reader", Uses: []task.Use{{Name: "repo", Need: []task.Path{"/src/**"}}}}}
	res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{Inputs: []engine.Input{{Name: "repo", Folder: files(t, "src/a.go", "a", "src/.env", "KEY=1", "doc/b.md", "b")}}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Contains(t, sent[1], "repo/src/a.go")
	require.NotContains(t, sent[1], ".env")
	require.NotContains(t, strings.Join(sent, ""), "b.md")
}
