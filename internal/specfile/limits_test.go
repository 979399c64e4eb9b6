package specfile_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/specfile"
)

func TestDeepAndWideFilesAreRefused(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	var wide strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&wide, "k%d: v\n", i)
	}
	size := 1 << 14
	if slowtest.Enabled() {
		size = 1 << 19 // files as large as they may be
	}
	for _, tt := range []struct{ name, text, want string }{
		{"deep.yaml", "x: " + strings.Repeat("[", size), "1:103: nested deeper than 100 levels"},
		{"deep.json", strings.Repeat("[", size), "1:102: nested deeper than 100 levels"},
		{"brace.json", strings.Repeat(`{"a":`, size), "1:506: nested deeper than 100 levels"},
		{"block.yaml", deep(500), "101:102: nested deeper than 100 levels"},
		{"dashes.yaml", strings.Repeat("- ", size), "1:201: nested deeper than 100 levels"},
		{"wide.yaml", wide.String(), "1001:1: more than 1000 keys in one mapping"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, tt.name, tt.text)
			_, err := specfile.Load(specfile.Options{Path: filepath.Join(dir, tt.name)})
			require.Equal(t, []string{tt.want}, messages(t, err))
		})
	}
}

func TestTooManyValuesAreRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, specfile.ParseJSON("[0,[],{},0]", 5))
	for _, text := range []string{"[0,0,0,0,0]", "[[[[[[]]]]]]", `{"a":{"b":1,"c":[2,{}]}}`} {
		require.EqualError(t, specfile.ParseJSON(text, 5), "more than 5 values in one file", text)
	}
}

// TestFileWithTooManyValuesIsRefused reads a file with one value more than the limit.
func TestFileWithTooManyValuesIsRefused(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	dir := t.TempDir()
	write(t, dir, "many.json", "[0"+strings.Repeat(",0", 1<<21)+"]")
	_, err := specfile.Load(specfile.Options{Path: filepath.Join(dir, "many.json")})
	require.Equal(t, []string{"1:4194304: more than 2097152 values in one file"}, messages(t, err))
}

func TestManyProblemsAreCut(t *testing.T) {
	t.Parallel()
	_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(`{"tasks": [0` + strings.Repeat(",0", 10_000) + `]}`)})
	got := messages(t, err)
	require.Len(t, got, 101)
	require.Equal(t, "1:12: task 1: the number 0 where a task belongs", got[0])
	require.Equal(t, "and 900 more", got[100])
	require.Less(t, len(err.Error()), 1<<16)
}

// TestLargeJSON loads a file just below the limit, or a thinned one, without a
// multiple of it in memory.
// It does not run in parallel, since it counts what the process holds.
func TestLargeJSON(t *testing.T) {
	limit := 64 << 20 / slowtest.Every(5)
	if !slowtest.Enabled() {
		limit /= 8
	}
	var b strings.Builder
	b.Grow(limit)
	b.WriteString(`{"agents": [{"name": "a"}], "tasks": [`)
	words := strings.Repeat("word ", 100)
	n := 0
	for ; b.Len() < limit-2000; n++ {
		if n > 0 {
			fmt.Fprintf(&b, `,{"title":"Task %d","description":"%s","assignee":"a","dependsOn":["Task %d"]}`, n, words, n-1)
			continue
		}
		b.WriteString(`{"title":"Task 0","description":"x","assignee":"a"}`)
	}
	b.WriteString("]}")
	b.WriteString(strings.Repeat(" ", limit-b.Len()))
	dir := t.TempDir()
	write(t, dir, "large.json", b.String())
	b = strings.Builder{}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f, err := specfile.Load(specfile.Options{Path: filepath.Join(dir, "large.json")})
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, f.Tasks, n)
	require.Equal(t, 1, f.Tasks[n-1].Source.Origin.Line)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(limit/64*460+1<<20), "bytes allocated in all") // with a part that does not grow
	t.Logf("%d tasks in %v, %d MiB allocated", n, took, (after.TotalAlloc-before.TotalAlloc)>>20)
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tasks := make([]map[string]any, n)
			for i := range tasks {
				tasks[i] = map[string]any{"title": fmt.Sprint("Task ", i), "description": "Do it.", "assignee": "a", "dependsOn": []string{fmt.Sprint("Task ", (i+1)%n)}}
			}
			data, err := json.Marshal(map[string]any{"agents": []map[string]any{{"name": "a"}}, "tasks": tasks})
			require.NoError(b, err)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				_, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}
