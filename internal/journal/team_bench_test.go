package journal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A worker answers every prompt with 1,000 characters after a while. Its
// answers are a function of the prompt.
type worker struct{ takes time.Duration }

func (worker) Version() string { return "1" }

func (w worker) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	if w.takes > 0 {
		select {
		case <-time.After(w.takes):
		case <-ctx.Done():
			return agent.Reply{}, ctx.Err()
		}
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
	return agent.Reply{Text: strings.Repeat("The answer to "+title+" is long. ", 40)[:1000], Turns: 1}, nil
}

// chains are tasks in so many chains of equal length; as many chains as tasks
// are no dependency at all.
func chains(tasks, n int) []task.Spec {
	specs := make([]task.Spec, tasks)
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprintf("task %d", i), Description: "Do your part.", Assignee: "worker"}
		if i >= n {
			specs[i].DependsOn = task.On(specs[i-n].Title)
		}
	}
	return specs
}

func teamOf(b testing.TB, w worker) *engine.Team {
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: w}}})
	require.NoError(b, err)
	return tm
}

// kept runs tasks with a journal in a new file of the folder, and returns the run's id.
func kept(b testing.TB, path string, specs []task.Spec, w worker, set func(*engine.RunOptions)) *engine.Result {
	j, err := journal.Open(path, journal.Options{})
	require.NoError(b, err)
	r, err := j.Begin(b.Context(), journal.Info{Run: fmt.Sprintf("run-%d", time.Now().UnixNano()), Time: time.Now()})
	require.NoError(b, err)
	o := engine.RunOptions{RunID: r.Info().Run, Journal: journaltest.Opened(r), MaxConcurrency: 16}
	if set != nil {
		set(&o)
	}
	res, err := teamOf(b, w).RunTasks(b.Context(), specs, &o)
	require.NoError(b, err)
	require.NoError(b, res.Err())
	_, err = r.Close(b.Context())
	require.NoError(b, err)
	require.NoError(b, j.Close())
	return res
}

// BenchmarkRun measures what a journal costs a run of 1,000 calls of 50 ms, 16
// of them at a time, against the same run without one.
func BenchmarkRun(b *testing.B) {
	for _, shape := range []struct {
		name   string
		chains int
	}{{"wide", 1000}, {"16 chains", 16}} {
		b.Run(shape.name, func(b *testing.B) {
			specs, w := chains(1000, shape.chains), worker{50 * time.Millisecond}
			var bare, with time.Duration
			for range b.N {
				start := time.Now()
				res, err := teamOf(b, w).RunTasks(b.Context(), specs, &engine.RunOptions{MaxConcurrency: 16})
				bare += time.Since(start)
				require.NoError(b, err)
				require.NoError(b, res.Err())
				path := filepath.Join(b.TempDir(), "runs.db")
				start = time.Now()
				kept(b, path, specs, w, nil)
				with += time.Since(start)
			}
			b.ReportMetric(100*(with.Seconds()/bare.Seconds()-1), "%slower")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkReuse measures a run of 1,000 tasks that takes every answer from an
// earlier one.
func BenchmarkReuse(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	specs := chains(1000, 16)
	kept(b, path, specs, worker{}, nil)
	for b.Loop() {
		res := kept(b, path, specs, worker{time.Hour}, func(o *engine.RunOptions) { o.Reuse = true })
		for i := range res.Tasks {
			require.NotEmpty(b, res.Tasks[i].Reused)
		}
	}
}

// BenchmarkRead reads a run of 10,000 tasks: all of it, one task, what became of
// one task, and the search for a text. Before rows had marks and lines were
// filtered, "explain TASK" took 6.0 s and 243 MB on two busy cores, "show TASK"
// 6.4 s and 282 MB, "explain --contains" 4.3 s and 272 MB, and "explain" did not end.
// Now they take 0.10 s and 68 MB, 0.19 s and 85 MB, 2.4 s and 209 MB, and 2.8 s
// and 345 MB of processor time and memory. The goals are 200 ms and 100 MB for one
// task, and 6 s and 500 MB for all.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	specs := chains(10_000, 100)
	j, err := journal.Open(path, journal.Options{})
	require.NoError(b, err)
	defer j.Close()
	r, err := j.Begin(b.Context(), journal.Info{Run: "r1", Time: time.Now()})
	require.NoError(b, err)
	_, err = teamOf(b, worker{}).RunTasks(b.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), MaxConcurrency: 16})
	require.NoError(b, err)
	for _, read := range []struct {
		name string
		read func() error
	}{
		{"all", func() error { _, err := j.Trace(b.Context(), "r1"); return err }},
		{"one task", func() error { _, err := j.TraceTask(b.Context(), "r1", "task 5000"); return err }},
		{"one task with its history", func() error { _, _, err := j.LoadTask(b.Context(), "r1", "task 5000"); return err }},
		{"search", func() error { _, _, err := j.Search(b.Context(), "r1", "task 5000"); return err }},
	} {
		b.Run(read.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, read.read())
			}
		})
	}
}

// BenchmarkResume measures how long it takes until a run of 10,000 tasks, of
// which all but one completed, asks for that one.
func BenchmarkResume(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	specs := chains(10_000, 100)
	res := kept(b, path, specs, worker{}, nil)
	specs = append(specs, task.Spec{Title: "the last", Description: "Do your part.", Assignee: "worker", DependsOn: task.On(specs[9_999].Title)})
	for b.Loop() {
		j, err := journal.Open(path, journal.Options{})
		require.NoError(b, err)
		r, _, err := j.Resume(b.Context(), res.RunID)
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		last, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: engine.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			b.StopTimer() // it is ready, and asks
			cancel()
			return agent.Reply{}, ctx.Err()
		}), Backend: plan.Backend{Version: "1"}}}})
		require.NoError(b, err)
		got, err := last.Resume(ctx, res.RunID, &engine.RunOptions{Tasks: specs, Journal: journaltest.Opened(r), MaxConcurrency: 16})
		require.NoError(b, err)
		require.Equal(b, engine.StatusCanceled, got.Status)
		_, err = r.Close(b.Context())
		require.NoError(b, err)
		require.NoError(b, j.Close())
		cancel()
		b.StartTimer()
	}
}
