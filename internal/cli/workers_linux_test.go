package cli

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/slowtest"
)

// Three workers share runs on PostgreSQL, 40 each night, and are killed, stopped and drained all the time. Each run ends as it would
// alone: a stored answer is not asked for again, and a worker that was stopped for longer than its lease writes nothing.
func TestWorkersAreKilledAndStopped(t *testing.T) {
	slowtest.Only(t)
	t.Parallel()
	runs, faults := slowtest.Cases(16, 40), slowtest.Cases(24, 50)
	const tasks, workers = 20, 3
	var spec strings.Builder
	spec.WriteString("name: chain\nmodel: m\nparams: {n: null}\nagents: [{name: a, systemPrompt: You work.}]\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&spec, "  - {title: T%d, assignee: a, description: \"Do %d of run ${params.n}.\"", i, i)
		if i >= 2 {
			fmt.Fprintf(&spec, ", dependsOn: [T%d]", i-2)
		}
		spec.WriteString("}\n")
	}
	var mu sync.Mutex
	calls := map[string]int{}
	model := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		prompt, _ := io.ReadAll(r.Body)
		time.Sleep(300 * time.Millisecond)
		text := string(prompt)
		at := strings.Index(text, "Do ")
		of := text[at : at+strings.IndexByte(text[at:], '.')]
		mu.Lock()
		calls[of]++
		mu.Unlock()
		reply(w, "Did it: "+of)
	})
	s := &shop{t, clitest.Folder(t, map[string]string{"team.yaml": spec.String()}), map[string]string{journals.EnvJournalKey: journalTestKey, journals.EnvJournal: pgtest.Address(t), "OPENAI_BASE_URL": model.URL + "/v1"}}
	ids := make([]string, runs)
	for n := range runs {
		ids[n] = strings.TrimSpace(s.run(exit.StatusOK, "submit", "--param", fmt.Sprintf("n=%d", n)).stdout)
	}
	start := func() *exec.Cmd {
		c := (call{bare: true, dir: s.dir, args: []string{"serve", "team.yaml", "--work", "4", "--listen", "127.0.0.1:0", "--drain", "1s"}, env: s.env}).command(t)
		ready := &lineWatcher{wants: regexp.MustCompile(`http://\S+`), found: make(chan string, 1)}
		c.Stderr = ready
		require.NoError(t, c.Start())
		select {
		case <-ready.found: // from now on, it takes signals
		case <-time.After(time.Minute):
			t.Fatalf("a worker does not begin: %s", ready)
		}
		return c
	}
	var stopped []*exec.Cmd // for longer than their leases
	all := make([]*exec.Cmd, workers)
	for i := range all {
		all[i] = start()
	}
	for n := range faults {
		time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		i := n % workers
		switch p := all[i].Process; {
		case n == faults/3 || n == 2*faults/3: // longer than its lease, so that another worker takes its runs
			require.NoError(t, p.Signal(syscall.SIGSTOP))
			time.AfterFunc(17*time.Second, func() { _ = p.Signal(syscall.SIGCONT) })
			stopped = append(stopped, all[i])
			all[i] = start()
		case n%3 == 0:
			require.NoError(t, p.Signal(syscall.SIGSTOP))
			time.Sleep(200 * time.Millisecond)
			require.NoError(t, p.Signal(syscall.SIGCONT))
		case n%3 == 1:
			require.NoError(t, p.Signal(syscall.SIGTERM))
			require.NoError(t, all[i].Wait(), "a drained worker succeeds")
			all[i] = start()
		default:
			require.NoError(t, p.Kill())
			_ = all[i].Wait()
			all[i] = start()
		}
	}
	flags := &journals.Flags{}
	con, _, _ := clitest.Console(t)
	con.LookupEnv = func(name string) (string, bool) { v, ok := s.env[name]; return v, ok }
	j, _, err := journals.Open(con, flags, journals.ToRead)
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it only read
	for n, id := range ids {
		for until := time.Now().Add(2 * time.Minute); mustEnd(t, j, id).Ended.IsZero(); time.Sleep(50 * time.Millisecond) {
			require.False(t, time.Now().After(until), "run %d: %+v", n, mustEnd(t, j, id))
			if mustEnd(t, j, id).Status == journal.SetAside { // of so many faults, three may come before a reply
				s.run(exit.StatusOK, "resume", id)
			}
		}
		require.Equal(t, "ok", mustEnd(t, j, id).Status)
		k, err := journals.Load(context.Background(), con, j, mustEnd(t, j, id), "")
		require.NoError(t, err)
		for _, of := range k.Tasks {
			require.Contains(t, fmt.Sprint(of.Accepted().Result.Text), fmt.Sprintf("of run %d", n))
		}
		requireWhole(t, s, id)
	}
	total := 0
	for _, n := range calls {
		total += n
	}
	t.Logf("%d calls for %d tasks", total, runs*tasks)
	require.Len(t, calls, runs*tasks)
	for _, c := range append(stopped, all...) {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// mustEnd returns the summary of a run.
func mustEnd(t *testing.T, j *journal.Journal, id string) journal.Summary {
	t.Helper()
	found, err := j.Find(t.Context(), id)
	require.NoError(t, err)
	return found
}

// requireWhole fails unless the record of a run verifies.
func requireWhole(t *testing.T, s *shop, id string) {
	t.Helper()
	s.verified(id)
}
