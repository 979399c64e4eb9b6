//go:build unix

package team_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// script returns an agent that runs a shell script, confined where that is possible.
func script(text string) *agent.Process {
	return &agent.Process{Command: "sh", Args: []string{"-c", text}}
}

// free returns an agent that runs a shell script unconfined.
func free(text string) *agent.Process {
	return &agent.Process{Command: "sh", Args: []string{"-c", text}, Confine: new(false)}
}

// requireConfinement skips a test on a system that cannot confine commands.
func requireConfinement(t testing.TB) {
	t.Helper()
	if script("").Unconfined() {
		t.Skip("this system cannot confine commands")
	}
}

// A command gets what its task is granted, and its answer reaches the next one.
func TestCommandsAsAgents(t *testing.T) {
	t.Parallel()
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "counter", Agent: script(`words=$(wc -w); echo "{\"words\": $words}"`), SystemPrompt: "Count."},
		{Name: "shouter", Agent: free(`tr a-z A-Z | tail -n 3`)},
	}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Count", Description: "Count.", Assignee: "counter", Uses: []task.Use{{Name: "text"}}, OutputSchema: []byte(`{"type":"object","required":["words"],"properties":{"words":{"type":"integer"}}}`)},
		{Title: "Shout", Description: "Shout.", Assignee: "shouter", DependsOn: task.On("Count")},
	}, &team.RunOptions{Inputs: []team.Input{{Name: "text", Text: "one two three"}}})
	require.NoError(t, err)
	require.Regexp(t, `^{"words":\s?\d+}$`, res.Tasks[0].Result)
	require.Contains(t, res.Output, `{"WORDS":`)
}

func TestCommandUsesTheWorkspaceOfItsAttempt(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	for _, level := range []label.Classification{label.Internal, label.Secret} {
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "lister", Agent: script("pwd; ls"), Accepts: level}}})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "List", Description: "List.", Assignee: "lister", Classification: level}}, &team.RunOptions{UserAccepts: new(label.Secret)})
		require.NoError(t, err)
		dir, files, _ := strings.Cut(res.Output, "\n")
		require.Equal(t, "history\noutputs", files)
		require.Equal(t, level == label.Secret, strings.HasPrefix(dir, "/dev/shm/"), dir)
		require.NoDirExists(t, dir)
	}
}

// An answer that does not match the schema is corrected once, unless that could repeat an effect.
func TestAnswerOfACommandIsCorrected(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	const text = `if grep -q 'Answer again'; then cat before >&2; echo '{"score": 7}'; else touch before; echo none; fi`
	repeatable := free(text)
	repeatable.Repeatable = true
	for _, a := range []*agent.Process{script(text), repeatable, free(text)} {
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "scorer", Agent: a, OutputSchema: []byte(`{"type":"object","required":["score"]}`)}}})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Score", Description: "Score.", Assignee: "scorer"}}, nil)
		if a.Unconfined() && !a.Repeatable {
			require.Equal(t, "OUTPUT_SCHEMA_INVALID", res.Tasks[0].Error.Code)
			continue
		}
		require.NoError(t, err)
		require.JSONEq(t, `{"score": 7}`, res.Output)
	}
}

// A command that ended by itself is retried as the task asks. One that was interrupted is not,
// if it may have had an effect.
func TestRetriesOfCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		set    func(*agent.Process)
		runs   int
		code   string
	}{
		"failed":      {"exit 3", nil, 3, "AGENT_ERROR"},
		"interrupted": {"sleep 60", func(a *agent.Process) { a.Timeout = 500 * time.Millisecond }, 1, "EFFECTS_UNCERTAIN"},
		"repeatable":  {"sleep 60", func(a *agent.Process) { a.Timeout, a.Repeatable = 500*time.Millisecond, true }, 3, "TIMEOUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			a := free("echo run >> " + log + "; " + tt.script)
			if tt.set != nil {
				tt.set(a)
			}
			tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: a}}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Mail", Description: "Mail.", Assignee: "clerk", MaxRetries: 2, RetryDelay: 1}}, nil)
			require.Error(t, err)
			require.Equal(t, tt.code, res.Tasks[0].Error.Code)
			require.Equal(t, tt.runs, lines(t, log))
		})
	}
}

// lines returns the number of lines of a file, 0 if there is none.
func lines(t testing.TB, path string) int {
	t.Helper()
	raw, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return strings.Count(string(raw), "\n")
}

// A run that was interrupted while a command ran does not run it again, if it may have had an
// effect and nobody asks for that.
func TestInterruptedCommandIsResumed(t *testing.T) {
	t.Parallel()
	tasks := []task.Spec{{Title: "Mail", Description: "Mail.", Assignee: "clerk"}}
	for name, tt := range map[string]struct {
		repeatable bool
		confined   bool
		fresh      []string
		code       string
	}{
		"unconfined": {code: "EFFECTS_UNCERTAIN"},
		"repeatable": {repeatable: true},
		"fresh":      {fresh: []string{"Mail"}},
		"confined":   {confined: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := journal.InMemory()
			defer j.Close()
			dir := t.TempDir()
			build := func() *team.Team {
				a := free("test -e " + dir + "/ready || sleep 60; echo done")
				if tt.confined {
					requireConfinement(t)
					a = script(`sleep 0.2; exit 0`)
				}
				a.Repeatable = tt.repeatable
				tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: a}}})
				require.NoError(t, err)
				return tm
			}
			ctx, cancel := context.WithCancel(t.Context())
			_, err := build().RunTasks(ctx, tasks, &team.RunOptions{Journal: j, RunID: "mail", Subscribers: []func(event.Event){func(e event.Event) {
				if _, started := e.Data.(event.AgentStart); started {
					cancel()
				}
			}}})
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600))
			for range 2 { // also when it is resumed again
				res, err := build().Resume(t.Context(), "mail", &team.RunOptions{Tasks: tasks, Journal: j, Fresh: tt.fresh})
				if tt.code == "" {
					require.NoError(t, err)
					continue
				}
				require.Error(t, err)
				require.Equal(t, tt.code, res.Tasks[0].Error.Code)
				require.Contains(t, res.Tasks[0].Error.Message, "find out what it did")
			}
		})
	}
}

// Answers of commands are reused, and a replay runs none.
func TestAnswersOfCommandsAreReused(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	j := journal.InMemory()
	defer j.Close()
	tasks := []task.Spec{{Title: "Mail", Description: "Mail.", Assignee: "clerk"}}
	build := func(text string) *team.Team {
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: free("echo run >> " + log + "; echo " + text)}}})
		require.NoError(t, err)
		return tm
	}
	for _, id := range []string{"first", "second"} {
		res, err := build("done").RunTasks(t.Context(), tasks, &team.RunOptions{Journal: j, RunID: id, Reuse: true})
		require.NoError(t, err)
		require.Equal(t, "done", res.Output)
	}
	res, err := build("done").Replay(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: tasks})
	require.NoError(t, err)
	require.Equal(t, "done", res.Output)
	require.Equal(t, 1, lines(t, log))
	_, err = build("other").RunTasks(t.Context(), tasks, &team.RunOptions{Journal: j, RunID: "third", Reuse: true})
	require.NoError(t, err)
	require.Equal(t, 2, lines(t, log))

	res, err = build("third").Replay(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: tasks, RunID: "variant", Replay: &team.Replay{Ask: true}})
	require.Error(t, err)
	require.Contains(t, res.Tasks[0].Error.Message, "a replay runs no command that is not confined")
	require.Equal(t, 2, lines(t, log))
}

// A command gets the files of its task in its workspace, and the files that it leaves there are
// part of the result.
func TestCommandsReadAndWriteFiles(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "names.txt"), []byte("b\na\n"), 0o600))
	files, err := team.ReadFolder(os.DirFS(folder))
	require.NoError(t, err)
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "sorter", Agent: script(`sort data/names.txt > sorted.txt; echo done`)}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{
		Title: "Sort", Description: "Sort.", Assignee: "sorter", OutputFiles: []string{"*.txt"}, Uses: []task.Use{{Name: "names", At: "data"}},
	}}, &team.RunOptions{Inputs: []team.Input{{Name: "names", Folder: files}}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"sorted.txt": "a\nb\n"}, res.OutputFiles("Sort"))
}
