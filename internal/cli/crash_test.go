package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"
)

// crashSpec returns a graph of 60 tasks in 12 rows of 5. Each task depends on tasks of the row
// above. The description of the edited task differs.
func crashSpec(edited int) string {
	var b strings.Builder
	b.WriteString("name: crash\nmodel: m\nagents: [{name: odd, systemPrompt: You are odd.}, {name: even}]\nmaxConcurrency: 4\ntasks:\n")
	for i := range crashTasks {
		agent, text := "even", fmt.Sprintf("Do %d.", i)
		if i%2 == 1 {
			agent = "odd"
		}
		if i == edited {
			text = fmt.Sprintf("Do %d better.", i)
		}
		fmt.Fprintf(&b, "  - {title: T%d, assignee: %s, description: %s, dependsOn: [%s]}\n", i, agent, text, strings.Join(crashDepends(i), ", "))
	}
	return b.String()
}

const crashTasks, crashRow = 60, 5

// crashDepends returns the titles of the tasks that task i depends on.
func crashDepends(i int) (titles []string) {
	if i < crashRow {
		return nil
	}
	above := (i/crashRow - 1) * crashRow
	for _, k := range []int{i % crashRow, (i + 1) % crashRow}[:1+i%2] {
		titles = append(titles, fmt.Sprintf("T%d", above+k))
	}
	return titles
}

// crashPoints returns how many kills each of the two tests below makes, and over how many runs it
// spreads them.
func crashPoints() (kills, runs int) {
	if slowtest.Enabled() {
		return 24, 3
	}
	return 4, 1
}

// A crash is a run that is killed repeatedly.
type crash struct {
	t           *testing.T
	server      *countingServer
	dir         string
	random      *rand.Rand
	done        map[string]bool // texts of the answers that the journal had after the last kill
	interrupted int             // kills that ended a command before it had finished
}

// newCrash prepares a run of the spec.
func newCrash(t *testing.T, seed uint64) *crash {
	t.Helper()
	t.Logf("seed %d", seed)
	c := &crash{t: t, server: startCounting(t), dir: clitest.Folder(t, map[string]string{"team.yaml": crashSpec(-1)}), random: rand.New(rand.NewPCG(seed, 0))}
	c.server.delay = 3 * time.Millisecond
	return c
}

// kill starts a command and kills it after a random number of calls and a random time. It reports
// whether the command had ended by itself.
func (c *crash) kill(args ...string) (ended bool) {
	c.t.Helper()
	cmd := call{dir: c.dir, args: append(args, "--progress", "none"), env: c.server.env()}.command(c.t)
	want := c.server.calls.Load() + c.random.Int64N(12)
	pause := time.Duration(c.random.Int64N(int64(9 * time.Millisecond)))
	require.NoError(c.t, cmd.Start())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = cmd.Wait()
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := 2000; c.server.calls.Load() < want && limit > 0 && !ended; limit-- {
		select {
		case <-waited:
			ended = true
		case <-tick.C:
		}
	}
	select {
	case <-waited:
		ended = true
	case <-time.After(pause):
	}
	_ = cmd.Process.Kill() // with SIGKILL
	<-waited
	if cmd.ProcessState.ExitCode() == -1 {
		c.interrupted++
	}
	return ended
}

// loadCompleted loads the answers that the journal has after a kill.
func (c *crash) loadCompleted() {
	c.t.Helper()
	c.done = map[string]bool{}
	j, err := journal.Open(filepath.Join(c.dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
	if err != nil {
		return // the command was killed before it created one
	}
	defer j.Close() //nolint:errcheck // nothing was written
	s, err := j.Load(c.t.Context(), "")
	if err != nil {
		require.ErrorIs(c.t, err, journal.ErrUnknownRun)
		return
	}
	for i := range s.History.Log {
		if x := s.History.Log[i].Exchange; x != nil && x.Completed() {
			c.done[x.Result.Text] = true
		}
	}
}

// requireNoRepeats requires that no stored answer was requested again. An answer repeats its
// prompt, so a task that must run again after an edit has another answer.
func (c *crash) requireNoRepeats() {
	c.t.Helper()
	for text, n := range c.server.takeAnswers() {
		require.False(c.t, c.done[text], "requested %d more times, although the journal has it: %s", n, text)
	}
}

// nextCommand returns resume, or run if there is nothing to resume yet.
func (c *crash) nextCommand() string {
	c.t.Helper()
	j, err := journal.Open(filepath.Join(c.dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
	if err != nil {
		return "run"
	}
	defer j.Close() //nolint:errcheck // nothing was written
	if _, err := j.Find(c.t.Context(), ""); err != nil {
		return "run"
	}
	return "resume"
}

// editTask changes the description of a task in the spec.
func (c *crash) editTask(edited int) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, "team.yaml"), []byte(crashSpec(edited)), 0o600))
}

// finish lets the run end, and requires that its result equals that of an uninterrupted run.
func (c *crash) finish(edited int) {
	c.t.Helper()
	got := call{dir: c.dir, args: []string{c.nextCommand(), "-o", "json"}, env: c.server.env()}.run(c.t)
	require.Equal(c.t, exit.StatusOK, got.status, "%+v", got)
	c.requireNoRepeats()
	whole := call{dir: clitest.Folder(c.t, map[string]string{"team.yaml": crashSpec(edited)}), args: []string{"run", "-o", "json"}, env: startCounting(c.t).env()}.run(c.t)
	require.Equal(c.t, exit.StatusOK, whole.status, "%+v", whole)
	require.Equal(c.t, stableResult(c.t, whole.stdout), stableResult(c.t, got.stdout))
	require.Equal(c.t, requireConsistent(c.t, c.dir), object(c.t, got.stdout)["audit"])
	verified := call{dir: c.dir, args: []string{"audit", "verify"}}.run(c.t)
	require.Equal(c.t, exit.StatusOK, verified.status, "%+v", verified)
	require.True(c.t, strings.HasPrefix(verified.stdout, "consistent"), "%s", verified.stdout)
}

// A run that is killed at any moment can be resumed, and no stored answer is paid for twice.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	kills, runs := crashPoints()
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := newCrash(t, rand.Uint64())
			for range kills / runs {
				c.kill(c.nextCommand())
				c.requireNoRepeats()
				c.loadCompleted()
			}
			c.finish(-1)
			t.Logf("%d kills interrupted a command", c.interrupted)
			require.Positive(t, c.interrupted)
		})
	}
}

// If a task is edited between two kills, only the tasks that it affects run again.
func TestResumeAfterKillAndEdit(t *testing.T) {
	t.Parallel()
	kills, runs := crashPoints()
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := newCrash(t, rand.Uint64())
			n := kills / runs
			edit := 1 + c.random.IntN(n-1)
			edited := c.random.IntN(crashTasks)
			for k := range n {
				if k == edit {
					c.editTask(edited)
				}
				c.kill(c.nextCommand())
				c.requireNoRepeats()
				c.loadCompleted()
			}
			c.finish(edited)
			t.Logf("task %d was edited after %d kills; %d interrupted a command", edited, edit, c.interrupted)
			require.Positive(t, c.interrupted)
		})
	}
}
