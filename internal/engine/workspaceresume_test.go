package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A folderJournal is a journal with folders for workspaces, of which it takes a copy with each
// commit.
type folderJournal struct {
	*memory
	dir    string
	place  record.WorkspacePlace
	copies []string // what dir had at each commit; nil to take none
}

func (j *folderJournal) OpenRun(context.Context, record.Opening) (record.Log, error) { return j, nil }

func (j *folderJournal) Workspaces() record.Workspaces {
	return record.Workspaces{Disk: filepath.Join(j.dir, "disk"), Memory: filepath.Join(j.dir, "memory"), Place: j.place}
}

func (j *folderJournal) Append(entries []record.Entry, done func(error)) {
	if j.copies != nil {
		to := fmt.Sprintf("%s.%d", j.dir, len(j.copies))
		for copyFolder(to, j.dir) != nil { // a file was replaced meanwhile
			if err := os.RemoveAll(to); err != nil {
				panic(err)
			}
		}
		j.copies = append(j.copies, to)
	}
	j.memory.Append(entries, done)
}

// copyFolder copies a folder with the rights of its folders and the times of its files, which os.CopyFS does not keep.
func copyFolder(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(to, path)
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(from, rel))
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, info.Mode().Perm())
		}
		return os.Chtimes(path, time.Time{}, info.ModTime()) // by which files that are as they were given are known
	})
}

// A diary is an agent that adds a line to a file with each call and answers after some turns.
// It counts what it was asked, and the calls.
type diary struct {
	turns  int
	effect tool.Effect
	level  label.Classification  // of the tool
	place  record.WorkspacePlace // of its process
	called func(calls int)       // during a call; may be nil

	mu    sync.Mutex // guards the rest
	asked map[int]int
	calls map[string]int // by the ID of the call
}

func (d *diary) team(t testing.TB) *engine.Team {
	t.Helper()
	d.asked, d.calls = map[int]int{}, map[string]int{}
	add, err := tool.New("add", "Adds a line.", func(ctx context.Context, in struct{ N int }) (string, error) {
		c, _ := tool.CallFrom(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.calls[c.ID]++; d.called != nil {
			d.called(len(d.calls))
		}
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		f, err := root.OpenFile("notes.txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintln(f, in.N)
		return fmt.Sprintf("wrote %d", in.N), f.Close()
	}, tool.Options{Effect: d.effect, Accepts: d.level})
	require.NoError(t, err)
	model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		turn := 1 + len(r.Messages)/2
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asked[turn]++
		if turn < d.turns {
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "add", Arguments: fmt.Sprintf(`{"N": %d}`, turn)}}}, nil
		}
		return llm.Response{Text: "done"}, nil
	}}
	tm, err := engine.New(engine.Config{Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "writer", To: "tool:add", Mode: handoff.Full}, {From: "tool:add", To: "writer", Mode: handoff.Full}, {From: "writer", To: handoff.User, Mode: handoff.Full}}}, Agents: []engine.Member{{Name: "clerk", Agent: engine.AgentFunc(says("done"))}, {Name: "writer", Accepts: label.Secret, Backend: plan.Backend{Endpoint: "http://localhost:1/v1"}, Agent: agent.New(model, agent.Options{MaxTurns: 20}), Tools: []*tool.Tool{add}, AllowUntrusted: []string{"add"}}}})
	require.NoError(t, err)
	return tm
}

// diaryTask is the task of a diary.
func diaryTask() []task.Spec {
	return []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer", OutputFiles: []string{"notes.txt"}}}
}

// lines returns the lines 1 to n.
func lines(n int) map[string]string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&b, i)
	}
	return map[string]string{"notes.txt": b.String()}
}

// calls returns the calls of tools in a history by what is known of them: those that began, and
// those that ended.
func callsIn(h *record.History) (began, ended map[string]bool) {
	began, ended = map[string]bool{}, map[string]bool{}
	for _, e := range h.Log {
		switch {
		case e.ToolCall != nil:
			began[e.ToolCall.Session] = true
		case e.ToolResult != nil:
			ended[e.ToolResult.Session] = true
		}
	}
	return began, ended
}

// A process may die at any time: with each commit, and with the files as they were at that
// commit or right before the next one. The conversation continues in the workspace, and no
// call that ended is made again, unless a call may have been interrupted: then it starts over
// in a clean workspace.
func TestWorkspaceResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	const turns = 12
	dir := filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.Mkdir(dir, 0o700))
	j := &folderJournal{memory: &memory{}, dir: dir, copies: []string{}}
	first := &diary{turns: turns, effect: tool.Workspace}
	want, err := first.team(t).RunTasks(t.Context(), diaryTask(), &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	require.NoError(t, want.Err())
	require.Equal(t, lines(turns-1), want.Tasks[0].OutputFiles)
	requireNoFiles(t, dir)
	continued, over := 0, 0
	for n := range j.len() {
		for _, at := range []int{max(n-1, 0), n} {
			past := j.history(n)
			now := filepath.Join(t.TempDir(), "w")
			require.NoError(t, copyFolder(now, j.copies[at]))
			again := &diary{turns: turns, effect: tool.Workspace}
			res, err := start(t.Context(), again.team(t), diaryTask(), &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(past), dir: now}})
			require.NoError(t, err)
			require.NoError(t, res.Err(), "after %d commits", n)
			require.Equal(t, answers(want), answers(res))
			require.Equal(t, lines(turns-1), res.Tasks[0].OutputFiles, "after %d commits", n)
			requireNoFiles(t, now)
			began, ended := callsIn(past)
			for id, calls := range again.calls {
				require.Equal(t, 1, calls, "call %s", id)
			}
			switch {
			case len(began) > len(ended) && len(ended) > 0:
				over++
				require.Len(t, again.calls, turns-1, "after %d commits all calls are made again", n)
			case past.End == nil:
				continued++
				for id := range ended {
					require.Zero(t, again.calls[id], "after %d commits call %s was made again", n, id)
				}
			}
		}
	}
	require.Greater(t, continued, 2*turns)
	require.Greater(t, over, turns)
}

// requireNoFiles requires that no workspace is left.
func requireNoFiles(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"disk", "memory"} {
		require.NoDirExists(t, filepath.Join(dir, name))
	}
}

// interruptedDiary returns what a run had when it was killed in a later turn of its model.
func interruptedDiary(t testing.TB, effect tool.Effect, specs []task.Spec) (*record.History, string) {
	t.Helper()
	return killedDiary(t, &diary{turns: 5, effect: effect, level: specs[0].Classification}, specs, label.Secret)
}

// killedDiary does the same for a diary of five turns and a clearance of the caller.
func killedDiary(t testing.TB, d *diary, specs []task.Spec, accepts label.Classification) (*record.History, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.Mkdir(dir, 0o700))
	j := &folderJournal{memory: &memory{}, dir: dir, place: d.place, copies: []string{}}
	res, err := d.team(t).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "r", Journal: j, UserAccepts: &accepts})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	for n := j.len() - 1; ; n-- {
		began, ended := callsIn(j.history(n))
		if len(ended) == 3 && len(began) == 3 {
			return j.history(n), j.copies[n]
		}
	}
}

// A conversation starts over if its workspace is not what its last call left, and fails if it
// has made an external call.
func TestWorkspaceThatIsNotAsItWas(t *testing.T) {
	t.Parallel()
	only := func(dir string) string {
		list, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	secret := diaryTask()
	secret[0].Classification = label.Secret
	for _, tt := range []struct {
		name    string
		change  func(dir string) error
		effect  tool.Effect
		specs   []task.Spec
		calls   int
		failure string
	}{
		{"unchanged", func(string) error { return nil }, tool.Workspace, diaryTask(), 1, ""},
		{"secret and unchanged", func(string) error { return nil }, tool.Workspace, secret, 1, ""},
		{"touched", func(dir string) error {
			return os.Chtimes(filepath.Join(only(dir), "notes.txt"), time.Now(), time.Now())
		}, tool.Workspace, diaryTask(), 1, ""},
		{"the history is gone", func(dir string) error { return os.Remove(filepath.Join(only(dir), "history", "step_001.json")) }, tool.Workspace, diaryTask(), 1, ""},
		{"gone", os.RemoveAll, tool.Workspace, diaryTask(), 4, ""},
		{"same size", func(dir string) error {
			return os.WriteFile(filepath.Join(only(dir), "notes.txt"), []byte("1\n2\n4\n"), 0o644)
		}, tool.Workspace, diaryTask(), 4, ""},
		{"mode", func(dir string) error { return os.Chmod(filepath.Join(only(dir), "notes.txt"), 0o755) }, tool.Workspace, diaryTask(), 4, ""},
		{"new file", func(dir string) error { return os.WriteFile(filepath.Join(only(dir), "new"), nil, 0o644) }, tool.Workspace, diaryTask(), 4, ""},
		{"new folder", func(dir string) error { return os.Mkdir(filepath.Join(only(dir), "new"), 0o755) }, tool.Workspace, diaryTask(), 4, ""},
		{"moved", func(dir string) error {
			return os.Rename(filepath.Join(only(dir), "notes.txt"), filepath.Join(only(dir), "moved.txt"))
		}, tool.Workspace, diaryTask(), 4, ""},
		{"a link to it", func(dir string) error {
			at := only(dir)
			return errors.Join(os.Rename(at, dir+"-moved"), os.Symlink(dir+"-moved", at))
		}, tool.Workspace, diaryTask(), 4, ""},
		{"external and unchanged", func(string) error { return nil }, tool.External, diaryTask(), 1, ""},
		{"external and gone", os.RemoveAll, tool.External, diaryTask(), 0, "EFFECTS_UNCERTAIN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			past, dir := interruptedDiary(t, tt.effect, tt.specs)
			require.NoError(t, tt.change(dir))
			again := &diary{turns: 5, effect: tt.effect, level: tt.specs[0].Classification}
			res, err := start(t.Context(), again.team(t), tt.specs, &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(past), dir: dir}, UserAccepts: new(label.Secret)})
			require.NoError(t, err)
			require.Len(t, again.calls, tt.calls)
			requireNoFiles(t, dir)
			if tt.failure != "" {
				require.Equal(t, tt.failure, res.Tasks[0].Error.Code)
				return
			}
			require.NoError(t, res.Err())
			require.Equal(t, lines(4), res.Tasks[0].OutputFiles)
		})
	}
}

// A conversation whose files another host or another folder has starts over with a warning that says where they are, or
// fails with an error that does. Files in a folder that two hosts share are those of the conversation.
func TestWorkspaceOfAnotherHost(t *testing.T) {
	t.Parallel()
	at := func(host, folder string) record.WorkspacePlace {
		return record.WorkspacePlace{Host: host, Folder: folder}
	}
	const warning = `task "Write": a conversation starts over, since its files were left `
	const failure = `a tool with an external effect may have been called: tool:add was called before the run was interrupted, and the conversation is another one now: its files were left `
	for _, tt := range []struct {
		name        string
		before, now record.WorkspacePlace
		lost        bool // its files are not in the folder
		effect      tool.Effect
		level       label.Classification // of the task
		accepts     label.Classification // by the caller
		calls       int
		warns       string
		fails       string
	}{
		{name: "shared", before: at("alpha", "/share"), now: at("beta", "/mnt"), calls: 1},
		{name: "another host", before: at("alpha", "/ws"), now: at("beta", "/ws"), lost: true, calls: 4, warns: "on host alpha, in /ws"},
		{name: "another folder", before: at("alpha", "/ws"), now: at("alpha", "/other"), lost: true, calls: 4, warns: "on host alpha, in /ws"},
		{name: "a host without a name", before: at("", "/ws"), now: at("beta", "/ws"), lost: true, calls: 4, warns: "on host without a name, in /ws"},
		{name: "another host, in an unknown folder", before: at("alpha", ""), now: at("beta", "/ws"), lost: true, calls: 4, warns: "on host alpha"},
		{name: "an unknown folder", before: at("alpha", ""), now: at("alpha", "/ws"), lost: true, calls: 4},
		{name: "gone", before: at("alpha", "/ws"), now: at("alpha", "/ws"), lost: true, calls: 4},
		{name: "an earlier version", now: at("beta", "/ws"), lost: true, calls: 4},
		{name: "external", before: at("alpha", "/ws"), now: at("beta", "/ws"), lost: true, effect: tool.External, fails: "on host alpha, in /ws"},
		{name: "external and gone", before: at("alpha", "/ws"), now: at("alpha", "/ws"), lost: true, effect: tool.External, fails: ""},
		{name: "in memory", before: at("alpha", "/ws"), now: at("beta", "/ws"), lost: true, level: label.Secret, accepts: label.Secret, calls: 4, warns: "on host alpha, in memory"},
		{name: "in memory that was emptied", before: at("alpha", "/ws"), now: at("alpha", "/other"), lost: true, level: label.Secret, accepts: label.Secret, calls: 4},
		{name: "hidden from the caller", before: at("alpha", "/ws"), now: at("beta", "/ws"), lost: true, level: label.Secret, accepts: label.Confidential, calls: 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			effect, specs := cmp.Or(tt.effect, tool.Workspace), diaryTask()
			specs[0].Classification = tt.level
			if tt.accepts < tt.level {
				specs = append(specs, task.Spec{Title: "Answer", Description: "Answer.", Assignee: "clerk"}) // which the caller may see
			}
			past, dir := killedDiary(t, &diary{turns: 5, effect: effect, level: tt.level, place: tt.before}, specs, tt.accepts)
			if tt.lost {
				dir = filepath.Join(t.TempDir(), "other")
			}
			again, warned := &diary{turns: 5, effect: effect, level: tt.level}, []string(nil)
			res, err := start(t.Context(), again.team(t), specs, &engine.RunOptions{
				RunID: "r", Journal: &folderJournal{memory: after(past), dir: dir, place: tt.now}, UserAccepts: &tt.accepts,
				Subscribers: []func(event.Event){func(e event.Event) {
					if e.Type == event.Warning {
						warned = append(warned, e.Message)
					}
				}},
			})
			require.NoError(t, err)
			require.Len(t, again.calls, tt.calls)
			if effect == tool.External {
				require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
				require.Equal(t, tt.fails != "", strings.HasSuffix(res.Tasks[0].Error.Message, failure+tt.fails), res.Tasks[0].Error.Message)
				require.Empty(t, warned)
				return
			}
			require.NoError(t, res.Err())
			var want []string
			if tt.warns != "" {
				want = []string{warning + tt.warns}
			}
			require.Equal(t, want, warned)
			require.Equal(t, want, res.Warnings)
		})
	}
}

// A result that cannot be read any more would have to be made again, but the workspace is as
// later calls left it. So the conversation starts over, with a clean workspace.
func TestConversationThatTakesAnotherCourseStartsOver(t *testing.T) {
	t.Parallel()
	for lost := range 3 {
		past, dir := interruptedDiary(t, tool.Workspace, diaryTask())
		n := 0
		for _, e := range past.Log {
			if e.ToolResult == nil {
				continue
			}
			if n == lost {
				e.ToolResult.Missing = "the key is missing"
			}
			n++
		}
		again := &diary{turns: 5, effect: tool.Workspace}
		res, err := start(t.Context(), again.team(t), diaryTask(), &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(past), dir: dir}})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.Equal(t, lines(4), res.Tasks[0].OutputFiles, "result %d is lost", lost)
		require.Equal(t, []int{1, 1, 1, 1}, slices.Collect(maps.Values(again.calls)))
		requireNoFiles(t, dir)
	}
}

// Another attempt that was interrupted does not take the results of the one before it, whose
// workspace is gone.
func TestInterruptedRetryHasItsOwnWorkspace(t *testing.T) {
	t.Parallel()
	past, dir := interruptedDiary(t, tool.Workspace, diaryTask())
	var retried []record.Entry // the same first turn once more
	for _, e := range past.Log {
		if e.Turn != nil {
			retried = append(retried, e)
		}
	}
	past.Log = append(past.Log, retried...)
	require.NoError(t, os.RemoveAll(dir))
	again := &diary{turns: 5, effect: tool.Workspace}
	res, err := start(t.Context(), again.team(t), diaryTask(), &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(past), dir: dir}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, lines(4), res.Tasks[0].OutputFiles)
	require.Len(t, again.calls, 4)
}

// A run that its caller cancels leaves its workspaces for the next process.
func TestCanceledRunLeavesItsWorkspace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	add, err := tool.New("add", "", func(ctx context.Context, in struct{}) (string, error) {
		c, _ := tool.CallFrom(ctx)
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		calls++
		return "ok", root.WriteFile("file", []byte("x"), 0o600)
	}, tool.Options{Effect: tool.Workspace})
	require.NoError(t, err)
	model := namedModel{func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if len(r.Messages) == 1 {
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "add", Arguments: `{}`}}}, nil
		}
		cancel() // the first time
		return llm.Response{Text: "done"}, ctx.Err()
	}}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "writer", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{add}}}})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer", OutputFiles: []string{"file"}}}
	j := &folderJournal{memory: &memory{}, dir: dir}
	res, err := tm.RunTasks(ctx, specs, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	require.Equal(t, engine.StatusCanceled, res.Status)
	left, err := filepath.Glob(filepath.Join(dir, "disk", "*", "file"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	res, err = start(t.Context(), tm, specs, &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(j.history(j.len())), dir: dir}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"file": "x"}, res.Tasks[0].OutputFiles)
	require.Equal(t, 1, calls)
	requireNoFiles(t, dir)
}

// A run that is left when its process stops has its workspaces for the next process, also if they were to be kept.
func TestADrainLeavesWorkspaces(t *testing.T) {
	t.Parallel()
	for name, keeps := range map[string]bool{"to be removed": false, "to be kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, drain := t.TempDir(), make(chan struct{})
			d := &diary{turns: 6, effect: tool.Workspace, called: func(calls int) {
				if calls == 3 {
					close(drain)
				}
			}}
			j := &folderJournal{memory: &memory{}, dir: dir}
			res, err := d.team(t).RunTasks(t.Context(), diaryTask(), &engine.RunOptions{RunID: "r", Journal: j, Drain: drain, KeepWorkspaces: keeps})
			require.NoError(t, err)
			require.Equal(t, engine.StatusInterrupted, res.Status)
			require.Len(t, d.calls, 3)
			again := &diary{turns: 6, effect: tool.Workspace}
			res, err = start(t.Context(), again.team(t), diaryTask(), &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(j.history(j.len())), dir: dir}})
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Equal(t, lines(5), res.Tasks[0].OutputFiles)
			require.Len(t, again.calls, 2)
			requireNoFiles(t, dir)
		})
	}
}
