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

// crashSpec is a graph of 60 tasks in 12 rows of 5, each of which depends on
// some of the row above. The description of the edited task differs.
func crashSpec(edited int) string {
	var b strings.Builder
	b.WriteString("name: crash\nmodel: m\nagents: [{name: odd, systemPrompt: You are odd.}, {name: even}]\nmaxConcurrency: 4\ntasks:\n")
	for i := range crashTasks {
		agent, words := "even", fmt.Sprintf("Do %d.", i)
		if i%2 == 1 {
			agent = "odd"
		}
		if i == edited {
			words = fmt.Sprintf("Do %d better.", i)
		}
		fmt.Fprintf(&b, "  - {title: T%d, assignee: %s, description: %s, dependsOn: [%s]}\n", i, agent, words, strings.Join(crashDepends(i), ", "))
	}
	return b.String()
}

const crashTasks, crashRow = 60, 5

// crashDepends are the titles of the tasks that task i depends on.
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

// crashPoints is how often a run is killed in each of the two tests below, and
// in how many runs.
func crashPoints() (kills, runs int) {
	if slowtest.Enabled() {
		return 50, 5
	}
	return 4, 1
}

// A crash is a run that is killed again and again.
type crash struct {
	t      *testing.T
	server *teller
	dir    string
	random *rand.Rand
	done   map[string]bool // answers that were in the journal at the last kill, by their words
	cut    int             // kills that met the command at work
}

// newCrash prepares a run of the spec.
func newCrash(t *testing.T, seed uint64) *crash {
	t.Helper()
	t.Logf("seed %d", seed)
	c := &crash{t: t, server: tell(t), dir: clitest.Folder(t, map[string]string{"team.yaml": crashSpec(-1)}), random: rand.New(rand.NewPCG(seed, 0))}
	c.server.delay = 3 * time.Millisecond
	return c
}

// kill starts a command and kills it at some moment, which is counted in calls
// and from there in time. It reports whether the command had ended by itself.
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
		c.cut++
	}
	return ended
}

// look loads what is in the journal after a kill.
func (c *crash) look() {
	c.t.Helper()
	c.done = map[string]bool{}
	j, err := journal.Open(filepath.Join(c.dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
	if err != nil {
		return // killed before it made one
	}
	defer j.Close() //nolint:errcheck // it only read
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

// once requires that no stored answer was requested again. An
// answer repeats its prompt, so a task that must run again after
// an edit has another answer.
func (c *crash) once() {
	c.t.Helper()
	for text, n := range c.server.answered() {
		require.False(c.t, c.done[text], "asked for %d times more, and it was in the journal: %s", n, text)
	}
}

// goOn is the next command: resume, or run if there is nothing to resume yet.
func (c *crash) goOn() string {
	c.t.Helper()
	j, err := journal.Open(filepath.Join(c.dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
	if err != nil {
		return "run"
	}
	defer j.Close() //nolint:errcheck // it only read
	if _, err := j.Find(c.t.Context(), ""); err != nil {
		return "run"
	}
	return "resume"
}

// rewrite edits a task of the spec.
func (c *crash) rewrite(edited int) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, "team.yaml"), []byte(crashSpec(edited)), 0o600))
}

// end lets the run finish, and requires that it equals one that nothing
// interrupted.
func (c *crash) end(edited int) {
	c.t.Helper()
	got := call{dir: c.dir, args: []string{c.goOn(), "-o", "json"}, env: c.server.env()}.run(c.t)
	require.Equal(c.t, exit.StatusOK, got.status, "%+v", got)
	c.once()
	whole := call{dir: clitest.Folder(c.t, map[string]string{"team.yaml": crashSpec(edited)}), args: []string{"run", "-o", "json"}, env: tell(c.t).env()}.run(c.t)
	require.Equal(c.t, exit.StatusOK, whole.status, "%+v", whole)
	require.Equal(c.t, saidBy(c.t, whole.stdout), saidBy(c.t, got.stdout))
	require.Equal(c.t, consistent(c.t, c.dir), object(c.t, got.stdout)["audit"])
	verified := call{dir: c.dir, args: []string{"audit", "verify"}}.run(c.t)
	require.Equal(c.t, exit.StatusOK, verified.status, "%+v", verified)
	require.True(c.t, strings.HasPrefix(verified.stdout, "consistent"), "%s", verified.stdout)
}

// A run that is killed at any moment can be resumed, and pays for no call twice.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	kills, runs := crashPoints()
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := newCrash(t, rand.Uint64())
			for range kills / runs {
				c.kill(c.goOn())
				c.once()
				c.look()
			}
			c.end(-1)
			t.Logf("%d kills met it at work", c.cut)
			require.Positive(t, c.cut)
		})
	}
}

// The same, with a task edited between two kills: affected tasks
// run again, and no others.
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
					c.rewrite(edited)
				}
				c.kill(c.goOn())
				c.once()
				c.look()
			}
			c.end(edited)
			t.Logf("task %d was edited after %d kills; %d met it at work", edited, edit, c.cut)
			require.Positive(t, c.cut)
		})
	}
}
