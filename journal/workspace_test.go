package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
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

// asChild says to the test binary that it is to run tasks until it is killed: the path of the
// journal, and where it waits.
const asChild = "RUNTEAM_WORKSPACE_TEST_CHILD"

func TestMain(m *testing.M) {
	if given := os.Getenv(asChild); given != "" {
		where, rest, _ := strings.Cut(given, "|")
		level, path, _ := strings.Cut(rest, "|")
		n := &notes{where: where}
		if err := n.level.UnmarshalText([]byte(level)); err != nil {
			panic(err)
		}
		if err := n.run(context.Background(), path, false); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// notes is a run whose agent adds five lines to a file, one in each turn.
type notes struct {
	level label.Classification
	where string // it waits to be killed: "model" in the fourth turn, "tool" in the fourth call, after the file was changed

	mu     sync.Mutex // guards the rest
	asked  []int      // the turns that the model was asked for
	result *team.Result
}

const noteTurns = 6

// reached tells the parent that it can kill this process.
func (n *notes) reached(where string, turn int) {
	if n.where == where && turn == 4 {
		fmt.Println("reached")
		select {}
	}
}

// run runs or resumes the run.
func (n *notes) run(ctx context.Context, path string, resume bool) error {
	key := make([]byte, 32) // so that the results of a secret task can be read again
	j, err := journal.Open(path, journal.Options{Key: key})
	if err != nil {
		return err
	}
	defer j.Close()
	add, err := tool.New("add", "Adds a line.", func(ctx context.Context, in struct{ N int }) (string, error) {
		c, _ := tool.CallFrom(ctx)
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		f, err := root.OpenFile("notes.txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintln(f, in.N)
		n.reached("tool", in.N)
		return "ok", f.Close()
	}, tool.Options{Effect: tool.Workspace, Accepts: n.level})
	if err != nil {
		return err
	}
	model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		turn := 1 + len(r.Messages)/2
		n.mu.Lock()
		n.asked = append(n.asked, turn)
		n.mu.Unlock()
		n.reached("model", turn)
		if turn == noteTurns {
			return llm.Response{Text: "done"}, nil
		}
		return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "add", Arguments: fmt.Sprintf(`{"N": %d}`, turn)}}}, nil
	}}
	rules := []handoff.PairRule{{From: "writer", To: "tool:add", Mode: handoff.Full}, {From: "tool:add", To: "writer", Mode: handoff.Full}}
	tm, err := team.New(team.Config{Policy: &handoff.Policy{Rules: rules}, Agents: []team.Member{
		{Name: "writer", Accepts: label.Secret, Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{add}, Backend: team.Backend{Endpoint: "http://localhost:1"}},
	}})
	if err != nil {
		return err
	}
	o := &team.RunOptions{RunID: "notes", Journal: j, UserAccepts: new(label.Secret)}
	specs := []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer", OutputFiles: []string{"notes.txt"}, Classification: n.level}}
	if !resume {
		n.result, err = tm.RunTasks(ctx, specs, o)
		return err
	}
	o.Tasks = specs
	n.result, err = tm.Resume(ctx, "notes", o)
	return err
}

// A namedModel is a model with a name, so that its answers have a version.
type namedModel struct{ llm.ModelFunc }

func (namedModel) Name() string { return "scripted" }

// killed runs the notes in a process of their own, and kills it with SIGKILL where it waits.
func killed(t *testing.T, path, where string, level label.Classification) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%v|%s", asChild, where, level, path))
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan() && said.Text() == "reached", "%s %v", said.Text(), said.Err())
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
}

// leftFolders returns the workspaces beside a journal.
func leftFolders(t *testing.T, path string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*workspaces", "*", "*"))
	require.NoError(t, err)
	return list
}

// memoryFolders returns the folders with workspaces in memory.
func memoryFolders(t *testing.T) map[string]bool {
	t.Helper()
	list, err := filepath.Glob("/dev/shm/runteam-*/*/task-*/notes.txt")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range list {
		found[name] = true
	}
	return found
}

// A process that is killed while it waits for the model leaves a workspace, in which the next
// process continues: no turn is asked again and no call is made again. One that is killed
// within a call leaves files in an unknown state, so the next process starts over and makes all
// calls again; prompts that are the same as before have the same replies.
func TestKilledConversationContinuesInItsWorkspace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		where string
		level label.Classification
		asked []int
	}{
		{"model", label.Internal, []int{4, 5, 6}},
		{"tool", label.Internal, []int{1, 5, 6}},
		{"model", label.Secret, []int{4, 5, 6}},
	} {
		t.Run(fmt.Sprint(tt.where, " ", tt.level), func(t *testing.T) {
			t.Parallel()
			if tt.level == label.Secret && runtime.GOOS != "linux" {
				t.Skip("only Linux has /dev/shm")
			}
			folder := filepath.Join(t.TempDir(), ".runteam")
			require.NoError(t, os.Mkdir(folder, 0o700))
			path := filepath.Join(folder, "runs.db")
			killed(t, path, tt.where, tt.level)
			if tt.level == label.Secret {
				require.Empty(t, leftFolders(t, path), "above confidential nothing is on disk")
			} else {
				require.Len(t, leftFolders(t, path), 1)
			}
			again := &notes{level: tt.level}
			require.NoError(t, again.run(t.Context(), path, true))
			require.Equal(t, tt.asked, again.asked)
			require.Equal(t, map[string]string{"notes.txt": "1\n2\n3\n4\n5\n"}, again.result.OutputFiles("Write"))
			require.Empty(t, leftFolders(t, path))
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			for _, e := range left {
				require.True(t, strings.HasPrefix(e.Name(), "runs.db") && !e.IsDir(), e.Name())
			}
		})
	}
}

// What a killed run left is removed with the run, and once the run has ended.
func TestLeftWorkspacesAreRemoved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /dev/shm")
	}
	for _, level := range []label.Classification{label.Internal, label.Secret} {
		path := filepath.Join(t.TempDir(), "runs.db")
		before := memoryFolders(t)
		killed(t, path, "model", level)
		var left []string
		for name := range memoryFolders(t) {
			if !before[name] {
				left = append(left, filepath.Dir(name))
			}
		}
		left = append(left, leftFolders(t, path)...)
		require.Len(t, left, 1)
		j, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		defer j.Close()
		other := func(id string) {
			_, err := newTeam(t).RunTasks(t.Context(), []task.Spec{{Title: "Other", Description: "Other.", Assignee: "other"}}, &team.RunOptions{RunID: id, Journal: j})
			require.NoError(t, err)
		}
		other("a")
		require.DirExists(t, left[0], "it can be resumed")
		runs, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Contains(t, runs, "notes")
		require.NoDirExists(t, left[0])

		require.NoError(t, os.MkdirAll(left[0], 0o700)) // as a process that was killed at its end leaves it
		other("b")
		require.NoDirExists(t, left[0])
	}
}

// newTeam returns a team of one agent.
func newTeam(t *testing.T) *team.Team {
	t.Helper()
	model := namedModel{func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "done"}, nil
	}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "other", Agent: agent.New(model, agent.Options{})}}})
	require.NoError(t, err)
	return tm
}

// A confined command reads neither the journal beside whose files its workspace is, nor the
// workspace of another task.
func TestConfinedCommandDoesNotReachTheJournal(t *testing.T) {
	t.Parallel()
	if !builtin.CanConfine() {
		t.Skip("this system cannot confine programs")
	}
	folder := filepath.Join(t.TempDir(), ".runteam")
	require.NoError(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "runs.db")
	other := filepath.Join(folder, "runs.db.workspaces", "look", "task-other")
	require.NoError(t, os.MkdirAll(other, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(other, "file"), []byte("canary"), 0o600))
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	defer j.Close()
	files, err := builtin.Files("full", tool.Options{})
	require.NoError(t, err)
	script := `pwd; for f in ../../../runs.db ../../../runs.db.key ../task-other/file ` + path + " " + path + ".key " + filepath.Join(other, "file") + `; do
  cat "$f" >/dev/null && echo "read $f"; head -c1 "$f" && echo "head $f"; ln "$f" own && cat own && echo "linked $f"; echo x >> "$f" && echo "wrote $f"; rm -f "$f" && test ! -e "$f" && echo "removed $f"
done
ls .. && echo listed; ls ../.. && echo listed; mkdir ../new && echo made; mv ../task-other . && echo moved; exit 0`
	turn := 0
	model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if turn++; turn == 1 {
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "bash", Arguments: fmt.Sprintf(`{"command": %q}`, script)}}}, nil
		}
		return llm.Response{Text: r.Messages[len(r.Messages)-1].Text}, nil
	}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: files}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Look", Description: "Look.", Assignee: "clerk"}}, &team.RunOptions{RunID: "look", Journal: j})
	require.NoError(t, err)
	require.Contains(t, res.Output, filepath.Join("runs.db.workspaces", "look"), "the workspace is beside the journal")
	for _, done := range []string{"read ", "head ", "linked ", "wrote ", "removed ", "listed", "made", "moved", "canary"} {
		require.NotContains(t, res.Output, "\n"+done)
	}
	require.FileExists(t, filepath.Join(folder, "runs.db.key"))
}
