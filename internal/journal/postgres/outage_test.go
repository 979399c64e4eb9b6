package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A counter is an agent that counts its calls by the titles of their tasks.
type counter struct {
	takes func() time.Duration

	mu    sync.Mutex // guards calls
	calls map[string]int
}

func (*counter) Version() string { return "1" }

func (c *counter) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	select {
	case <-time.After(c.takes()):
	case <-ctx.Done():
		return agent.Reply{}, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[string(p.Receipt().Task)]++
	return agent.Reply{Text: "Done.", Turns: 1}, nil
}

// requireOnce fails unless each task was called once, but for those that may have been called twice.
func (c *counter) requireOnce(t *testing.T, tasks int, twice map[string]bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Len(t, c.calls, tasks)
	for of, n := range c.calls {
		if n != 1 {
			require.True(t, twice[of] && n == 2, "task %s was called %d times", of, n)
		}
	}
}

// chains returns a team, its agent, and tasks in chains of equal length.
func chains(t *testing.T, tasks, n int, takes func() time.Duration) (*engine.Team, *counter, []task.Spec) {
	t.Helper()
	c := &counter{takes: takes, calls: map[string]int{}}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: c}}})
	require.NoError(t, err)
	specs := make([]task.Spec, tasks)
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprintf("task %d", i), Description: "Do your part.", Assignee: "worker"}
		if i >= n {
			specs[i].DependsOn = task.On(specs[i-n].Title)
		}
	}
	return tm, c, specs
}

// requireAnswered fails unless a run has so many answers, of different tasks, and its chain verifies.
func requireAnswered(t *testing.T, j *journal.Journal, run string, answers int) {
	t.Helper()
	s, err := j.Load(t.Context(), run)
	require.NoError(t, err)
	of := map[task.ID]int{}
	for i := range s.History.Log {
		if x := s.History.Log[i].Exchange; x != nil && x.Completed() {
			of[x.Task]++
		}
	}
	require.Len(t, of, answers)
	for id, n := range of {
		require.Equal(t, 1, n, id)
	}
	requireVerified(t, j, run)
}

// A run of a team works while its server is killed again and again, or its connections are closed: it does not notice.
func TestRunWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	tasks, kills := slowtest.Cases(60, 200), slowtest.Cases(15, 50)
	s := pgtest.Start(t)
	j := open(t, s.Address(nil), journal.Options{})
	tm, agent, specs := chains(t, tasks, 4, func() time.Duration { return rand.N(900 * time.Millisecond) })
	ended := make(chan *engine.Result, 1)
	go func() {
		res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: j})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	killed := 0
	var res *engine.Result
	for res == nil {
		select {
		case res = <-ended:
		case <-time.After(rand.N(300 * time.Millisecond)):
			switch killed++; killed % 3 {
			case 0:
				s.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'runteam'")
			default:
				s.Kill(t)
				s.Restart(t)
			}
		}
	}
	require.NoError(t, res.Err())
	require.GreaterOrEqual(t, killed, kills)
	agent.requireOnce(t, tasks, nil)
	requireAnswered(t, j, "r1", tasks)
}

// A server that is away for too long ends a run, which is resumed without another call for what is stored.
func TestServerIsAwayForTooLong(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	const tasks = 40
	s := pgtest.Start(t)
	dead := journal.ThisHolder()
	dead.Started += "0" // its ID was given to this process since
	j, err := postgres.OpenPatient(t.Context(), s.Address(nil), journal.Options{Key: key, Holder: &dead}, time.Second)
	require.NoError(t, err)
	tm, agent, specs := chains(t, tasks, 4, func() time.Duration { return 20 * time.Millisecond })
	time.AfterFunc(150*time.Millisecond, func() { s.Kill(t) })
	res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: j})
	require.NoError(t, err)
	require.ErrorIs(t, res.JournalErr, journal.ErrAway)
	require.ErrorIs(t, j.Close(), journal.ErrAway)

	s.Restart(t)
	j = open(t, s.Address(nil), journal.Options{})
	h, err := j.LoadRun(t.Context(), "r1")
	require.NoError(t, err)
	unstored := map[string]bool{}
	for _, spec := range specs {
		unstored[string(task.NewID(spec.Title))] = true
	}
	for i := range h.Log {
		if x := h.Log[i].Exchange; x != nil {
			delete(unstored, string(x.Task))
		}
	}
	require.Less(t, len(unstored), tasks)
	res, err = tm.Resume(t.Context(), "r1", &engine.RunOptions{Tasks: specs, Journal: j})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	agent.requireOnce(t, tasks, unstored)
	requireAnswered(t, j, "r1", tasks)
}

// A process that is to end soon does not wait for a server that is away.
func TestHurryWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	hurry := make(chan struct{})
	j, err := postgres.Open(t.Context(), s.Address(nil), journal.Options{Key: key, Hurry: hurry})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	s.Kill(t)
	time.AfterFunc(100*time.Millisecond, func() { close(hurry) })
	began := time.Now()
	require.ErrorIs(t, add(r, ready("a")), journal.ErrAway)
	require.WithinRange(t, time.Now(), began.Add(time.Second), began.Add(3*time.Second))
	_, err = r.End(t.Context())
	require.ErrorIs(t, err, journal.ErrAway)
	require.ErrorIs(t, j.Close(), journal.ErrAway)
	require.WithinRange(t, time.Now(), began, began.Add(6*time.Second))
}
