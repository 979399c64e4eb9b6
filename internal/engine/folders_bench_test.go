package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// The chain of the benchmark: each task gets the folder that the one before it left, and changes one file of it.
const (
	chainTasks     = 50
	chainFiles     = 1000
	chainFileBytes = 4 << 10
	chainEditBytes = 1 << 10 // at the end of the file
)

// chainFile returns the path of a file of the folder, of which twenty are in a subfolder.
func chainFile(i int) string { return fmt.Sprintf("part%02d/file%03d.txt", i/20, i) }

// chainFolder is a folder of files that differ.
func chainFolder(b *testing.B) *filetree.Folder {
	b.Helper()
	files := fstest.MapFS{}
	for i := range chainFiles {
		files[chainFile(i)] = &fstest.MapFile{Data: []byte(randomProse(uint64(i), chainFileBytes))}
	}
	f, err := filetree.ReadFolder(files)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// A chainMeter is the tool of the chain, which measures what it does.
type chainMeter struct {
	calls   int
	opening time.Duration // of the workspace
	writing time.Duration // the tool's own work
	changed int           // bytes
}

func (m *chainMeter) run(_ context.Context, c tool.Call) (tool.Result, error) {
	start := time.Now()
	root, err := c.Workspace()
	if err != nil {
		return tool.Result{}, err
	}
	opened := time.Now()
	n := m.calls * 19 % chainFiles
	text := randomProse(uint64(n), chainFileBytes-chainEditBytes) + randomProse(uint64(chainFiles+n), chainEditBytes)
	if err := errors.Join(root.MkdirAll(path.Dir(chainFile(n)), 0o755), root.WriteFile(chainFile(n), []byte(text), 0o644)); err != nil {
		return tool.Result{}, err
	}
	m.calls, m.changed = m.calls+1, m.changed+len(text)
	m.opening += opened.Sub(start)
	m.writing += time.Since(opened)
	return tool.Result{Text: "done"}, nil
}

// BenchmarkFolderChain measures a chain of tasks that pass on a folder: the time of a task without its tool, how long its
// workspace takes to open, and how much the journal grows, in relation to the bytes that the tasks changed. The floor of
// the opening is a plain copy of the files.
func BenchmarkFolderChain(b *testing.B) {
	folder, m := chainFolder(b), &chainMeter{}
	work := newTool(b, "work", tool.Options{Effect: tool.Workspace}, func(context.Context, struct{}) (string, error) { return "", nil })
	work.Run, work.ReadsWorkspace = m.run, true
	tm := newTeam(b, engine.Member{Name: "clerk", Tools: []*tool.Tool{work}, Agent: agent.New(byTurn(func(turn int, _ llm.Request) llm.Response {
		if turn == 1 {
			return llm.Response{ToolCalls: []llm.ToolCall{call("work", `{}`)}}
		}
		return llm.Response{Text: "done"}
	}), agent.Options{})})
	var grown, bare int64
	var floor time.Duration
	input := engine.Input{Name: "repo", Folder: folder}
	for b.Loop() {
		b.StopTimer()
		floor += copyFiles(b, folder)
		measured := *m
		bare += runChain(b, tm, chainOf(nil))
		*m = measured
		m.calls = 0
		b.StartTimer()
		grown += runChain(b, tm, chainOf([]task.Path{task.Whole}), input)
	}
	tasks := float64(b.N * chainTasks)
	milliseconds := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	b.ReportMetric(milliseconds(b.Elapsed()-m.opening-m.writing)/tasks, "ms/task")
	b.ReportMetric(milliseconds(m.opening)/tasks, "ms/opening")
	b.ReportMetric(milliseconds(floor)/float64(b.N), "ms/copy")
	b.ReportMetric(float64(grown-bare)/float64(m.changed), "journal/changed")
	b.ReportMetric(float64(bare)/float64(b.N*chainTasks*chainFileBytes), "bare/changed")
	b.ReportMetric(0, "ns/op")
}

// chainOf returns the tasks of the chain. Without paths they pass on no files.
func chainOf(paths []task.Path) []task.Spec {
	specs := make([]task.Spec, chainTasks)
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprintf("step %d", i), Description: "Work.", Assignee: "clerk"}
		if i > 0 {
			specs[i].DependsOn = []task.Ref{{Task: specs[i-1].Title, Files: paths}}
		} else if paths != nil {
			specs[i].Uses = []task.Use{{Name: "repo", At: "."}}
		}
		if paths != nil {
			specs[i].OutputFiles = []string{"**"}
		}
	}
	return specs
}

// runChain runs tasks with a journal, and returns the size of the file.
func runChain(b *testing.B, tm *engine.Team, specs []task.Spec, inputs ...engine.Input) (bytes int64) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "runs.db")
	j, err := journal.Open(file, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	res, err := tm.RunTasks(b.Context(), specs, &engine.RunOptions{Journal: j, Inputs: inputs})
	if err != nil || !res.Success() {
		b.Fatal(err, res.Err())
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

// copyFiles writes the files of a folder as a program would that copies them, and returns how long that takes.
func copyFiles(b *testing.B, folder *filetree.Folder) time.Duration {
	b.Helper()
	dir, files := b.TempDir(), filetree.TreeOf(folder)
	start := time.Now()
	for name, text := range files {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(path.Dir(to), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(*text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}
