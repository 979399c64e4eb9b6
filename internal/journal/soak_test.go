package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
)

// asWorker says to the test binary that it is to write or to resume a run.
const asWorker = "RUNTEAM_JOURNAL_TEST_WORKER"

// soakTasks is how many tasks each run of the load test has.
func soakTasks() int {
	switch {
	case os.Getenv("SOAK") != "":
		return 400
	case slowtest.Enabled():
		return 25
	}
	return 10
}

// work writes a run to its end, from where it is, and prints the number of each
// task once that is durable.
func work(place string) error {
	path, run, _ := strings.Cut(place, "|")
	ctx := context.Background()
	j, err := openAt(path, journal.Options{})
	if err != nil {
		return err
	}
	r, s, err := j.Resume(ctx, run)
	if errors.Is(err, journal.ErrUnknownRun) {
		s = new(journal.Stored)
		r, err = j.Begin(ctx, journal.Info{Run: run})
	}
	if err != nil {
		return err
	}
	story, n := newFakeRun(run, 1), 0
	for i := range s.History.Log {
		if s.History.Log[i].Exchange != nil {
			n++
		}
	}
	for ; n < soakTasks(); n++ {
		before, after := story.Complete(n, 500)
		for _, entries := range [][]record.Entry{before, after} {
			if err := appendEntries(r, entries...); err != nil {
				return err
			}
		}
		fmt.Println("durable", n)
	}
	_, err = r.Close(ctx)
	return errors.Join(err, j.Close())
}

// A soakWorker is a process that writes a run.
type soakWorker struct {
	run     string
	cmd     *exec.Cmd
	durable int // tasks that it said were durable
	said    string
	ended   chan struct{}
}

func startWorker(t *testing.T, path, run string) *soakWorker {
	self, err := os.Executable()
	require.NoError(t, err)
	w := &soakWorker{run: run, cmd: exec.CommandContext(t.Context(), self), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s", asWorker, path, run))
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	go func() {
		defer close(w.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			n := 0
			if _, err := fmt.Sscanf(lines.Text(), "durable %d", &n); err == nil {
				w.durable = n + 1
			} else {
				w.said += lines.Text()
			}
		}
		_ = w.cmd.Wait()
	}()
	return w
}

// Many processes write to one journal while some of them are killed at random
// moments and old runs are removed. Then each run is complete or is resumed to
// its end, has all that was said to be durable, and verifies. SOAK=1 has 20
// processes of which five are killed, else 4 and one.
func TestManyProcessesOnOneJournal(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		processes, killed := 4, 1
		if os.Getenv("SOAK") != "" {
			processes, killed = 20, 5
		}
		filled(t, path, 30, 5)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		began := time.Now()
		workers := make([]*soakWorker, processes)
		for i := range workers {
			workers[i] = startWorker(t, path, fmt.Sprintf("run-%02d", i))
		}
		cut := 0
		var all sync.WaitGroup
		for _, i := range random.Perm(processes)[:killed] {
			after := random.IntN(soakTasks() * 3 / 4)
			pause := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
			all.Go(func() {
				for list, err := count(t.Context(), path, workers[i].run); (err != nil || list < after) && t.Context().Err() == nil; list, err = count(t.Context(), path, workers[i].run) {
					time.Sleep(5 * time.Millisecond)
				}
				time.Sleep(pause)
				_ = workers[i].cmd.Process.Kill()
			})
		}
		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		gone, _, err := j.Remove(t.Context(), noon.Add(time.Hour))
		require.NoError(t, err)
		require.Len(t, gone, 30)
		all.Wait()
		for i, w := range workers {
			<-w.ended
			require.Empty(t, w.said, "%s", w.run)
			if w.cmd.ProcessState.Success() {
				continue
			}
			require.Equal(t, -1, w.cmd.ProcessState.ExitCode(), "only what was killed fails")
			cut++
			n, err := count(t.Context(), path, w.run)
			if !errors.Is(err, journal.ErrUnknownRun) {
				require.NoError(t, err)
			}
			require.GreaterOrEqual(t, n, w.durable, "%s has lost something", w.run)
			again := startWorker(t, path, w.run)
			<-again.ended
			require.True(t, again.cmd.ProcessState.Success(), "%s is resumed: %s", w.run, again.said)
			workers[i] = again
		}
		t.Logf("%d processes, %d killed at work, in %s", processes, cut, time.Since(began).Round(time.Millisecond))
		for _, w := range workers {
			requireWhole(t, j, w.run)
		}
		require.NoError(t, j.Close())
	})
}

// count returns how many answers a run has by now.
func count(ctx context.Context, path, run string) (n int, err error) {
	j, err := openAt(path, journal.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer j.Close() //nolint:errcheck // it only read
	s, err := j.Load(ctx, run)
	if err != nil {
		return 0, err
	}
	for i := range s.History.Log {
		if s.History.Log[i].Exchange != nil {
			n++
		}
	}
	return n, nil
}

// requireWhole fails unless a run has each of its answers once and verifies.
func requireWhole(t *testing.T, j *journal.Journal, run string) {
	s, err := j.Load(t.Context(), run)
	require.NoError(t, err)
	answers := map[record.Key]int{}
	for i := range s.History.Log {
		if x := s.History.Log[i].Exchange; x != nil {
			answers[x.Key]++
			e, err := x.Result.Envelope()
			require.NoError(t, err)
			require.NoError(t, e.Genuine())
		}
	}
	require.Len(t, answers, soakTasks(), "%s", run)
	for _, n := range answers {
		require.Equal(t, 1, n)
	}
	r, _, err := j.Resume(t.Context(), run)
	require.NoError(t, err, "its lease is free")
	head, err := r.End(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, "verified", requireVerified(t, j, run, nil, head).Status)
}
