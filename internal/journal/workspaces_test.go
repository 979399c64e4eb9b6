package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A writing is a process on a host that works on one run: its agent adds a line to a file in each of three turns.
type writing struct {
	host, folder string // the folder is for workspaces
	effect       tool.Effect
	encryptFrom  *label.Classification
	stop         func() // cancels the run in the third turn; nil lets it end

	lines []int // that it has added
}

// inFile returns what opens the journal in a file.
func inFile(path string) openFunc {
	return func(o journal.Options) (*journal.Journal, error) { return journal.Open(path, o) }
}

// open opens a journal as a process of the host.
func (w *writing) open(t *testing.T, in openFunc) *journal.Journal {
	t.Helper()
	j, err := in(journal.Options{Key: oneKey, EncryptFrom: w.encryptFrom, Holder: &journal.Holder{Host: w.host, PID: 1}, Workspaces: w.folder})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// run begins or resumes the run.
func (w *writing) run(ctx context.Context, t *testing.T, j *journal.Journal, resume bool) *engine.Result {
	t.Helper()
	add, err := tool.New("add", "Adds a line.", func(ctx context.Context, in struct{ N int }) (string, error) {
		c, _ := tool.CallFrom(ctx)
		w.lines = append(w.lines, in.N)
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		f, err := root.OpenFile("notes.txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintln(f, in.N)
		return "ok", f.Close()
	}, tool.Options{Effect: w.effect})
	require.NoError(t, err)
	writer := ver{func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		turn := 1 + len(p.Messages())/2
		if turn == 3 && w.stop != nil {
			w.stop()
			return agent.Reply{}, ctx.Err()
		}
		if turn > 3 {
			return agent.Reply{Text: "done"}, nil
		}
		return agent.Reply{ToolCalls: []llm.ToolCall{{Name: "add", Arguments: fmt.Sprintf(`{"N":%d}`, turn)}}}, nil
	}}
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{{Name: "writer", Agent: writer, Tools: []*tool.Tool{add}, AllowUntrusted: []string{"add"}}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{exact("writer", "tool:add"), exact("tool:add", "writer"), exact("writer", "user")}},
	})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer", OutputFiles: []string{"notes.txt"}}}
	o := &engine.RunOptions{RunID: "r", Journal: j}
	if !resume {
		res, err := tm.RunTasks(ctx, specs, o)
		require.NoError(t, err)
		return res
	}
	o.Tasks = specs
	res, err := tm.Resume(ctx, "r", o)
	require.NoError(t, err)
	return res
}

// leave begins the run and ends the process in the third turn. It returns the workspace that is left.
func (w *writing) leave(t *testing.T, in openFunc) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	j := w.open(t, in)
	require.Equal(t, engine.StatusCanceled, w.run(ctx, t, j, false).Status)
	require.Equal(t, []int{1, 2}, w.lines)
	require.NoError(t, j.Close())
	left, err := filepath.Glob(filepath.Join(w.folder, ".runteam-*", "r", "task-*"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	return left[0]
}

// Another host continues a run whose workspaces are in a folder that both share. Otherwise it makes the calls again, or
// fails if they have external effects, and says on which host the files are.
func TestRunContinuesOnAnotherHost(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) openFunc{
		"file": func(t *testing.T) openFunc { return inFile(filepath.Join(t.TempDir(), "runs.db")) },
		"postgres": func(t *testing.T) openFunc {
			address := pgtest.Address(t)
			return func(o journal.Options) (*journal.Journal, error) { return postgres.Open(t.Context(), address, o) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOtherHost(t, place)
		})
	}
}

func testOtherHost(t *testing.T, place func(t *testing.T) openFunc) {
	for _, tt := range []struct {
		name   string
		shared bool
		effect tool.Effect
		lines  []int // that the second host adds
		says   string
		hides  bool // the journal encrypts internal texts
	}{
		{"shared", true, tool.Workspace, []int{3}, "", false},
		{"shared and external", true, tool.External, []int{3}, "", false},
		{"not shared", false, tool.Workspace, []int{1, 2, 3}, `task "Write": a conversation starts over, since its files were left on host alpha`, false},
		{"not shared and hidden", false, tool.Workspace, []int{1, 2, 3}, `task "Write": a conversation starts over, since its files were left on host alpha`, true},
		{"not shared and external", false, tool.External, nil, `and the conversation is another one now: its files were left on host alpha`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in, folders := place(t), [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
			if tt.shared {
				folders[1] = folders[0]
			}
			first := &writing{host: "alpha", folder: folders[0], effect: tt.effect}
			if tt.hides {
				first.encryptFrom = new(label.Internal)
			}
			left := first.leave(t, in)
			second := &writing{host: "beta", folder: folders[1], effect: tt.effect}
			res := second.run(t.Context(), t, second.open(t, in), true)
			require.Equal(t, tt.lines, second.lines)
			if tt.lines == nil {
				require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
			} else {
				require.NoError(t, res.Err())
				require.Equal(t, map[string]string{"notes.txt": "1\n2\n3\n"}, res.Tasks[0].OutputFiles)
			}
			if tt.shared {
				require.Empty(t, res.Warnings)
				require.NoDirExists(t, left)
			} else {
				said := fmt.Sprint(res.Warnings, res.Tasks[0].Error)
				require.Contains(t, said, tt.says)
				require.Equal(t, !tt.hides, strings.Contains(said, ", in "+folders[0]), said)
				require.DirExists(t, left, "only its host removes it")
			}
		})
	}
}

// Whoever cleans a folder that several journals share leaves the workspaces of the others.
func TestWorkspacesOfOtherJournalsStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "ws")
	first := &writing{host: "alpha", folder: folder, effect: tool.Workspace}
	one := inFile(filepath.Join(dir, "one.db"))
	left := first.leave(t, one)
	at, err := os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), at.Mode().Perm())

	other := &writing{host: "alpha", folder: folder, effect: tool.Workspace}
	j := other.open(t, inFile(filepath.Join(dir, "two.db")))
	require.NoError(t, other.run(t.Context(), t, j, false).Err())
	_, _, err = j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.DirExists(t, left)

	own := first.open(t, one)
	runs, _, err := own.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{"r"}, runs)
	require.NoDirExists(t, left)
}

// When a run begins, it removes what ended runs left, and nothing that another process needs to continue a run.
func TestWorkspacesOfRunsThatCanContinueStay(t *testing.T) {
	t.Parallel()
	for status, stays := range map[string]bool{"ok": false, "failed": false, "cancelled": true, "suspended": true, "": true} {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r"})
		require.NoError(t, err)
		if status != "" {
			require.NoError(t, appendEntries(r, record.Entry{End: &record.RunEnd{Status: status}}))
		}
		left := filepath.Join(r.Workspaces().Disk, "task-a")
		require.NoError(t, os.MkdirAll(left, 0o700)) // as a process leaves it that cannot remove it
		_, err = r.End(t.Context())
		require.NoError(t, err)
		_, err = j.Begin(t.Context(), journal.Info{Run: "other"})
		require.NoError(t, err)
		_, err = os.Stat(left)
		require.Equal(t, stays, err == nil, "status %q: %v", status, err)
		require.NoError(t, j.Close())
	}
}

// A folder for workspaces is refused like that of a journal.
func TestFoldersForWorkspaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "open"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(dir, "open"), 0o777))
	require.NoError(t, os.Symlink("open", filepath.Join(dir, "link")))
	for name, want := range map[string]string{
		"file":        "is not a folder",
		"open":        "can be written by other users (mode 0777)",
		"link":        "is a symbolic link",
		"missing/sub": "missing does not exist: create it first",
		"new/":        "",
	} {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Workspaces: filepath.Join(dir, name)})
		if want == "" {
			require.NoError(t, err, name)
			require.NoError(t, j.Close())
			continue
		}
		require.ErrorContains(t, err, "Workspaces: ", name)
		require.ErrorContains(t, err, want, name)
	}
}
