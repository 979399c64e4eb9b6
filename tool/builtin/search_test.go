package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/tool"
)

// longLines returns a workspace with a file of one long line, and one with a long path.
func longLines(t testing.TB) *os.Root {
	deep := strings.Repeat(strings.Repeat("x", 250)+"/", 14)
	return workspace(t, map[string]string{"line.txt": strings.Repeat("x", 4<<20), deep + strings.Repeat("x", 250): ""})
}

func TestSearchEndsAtOnceWithItsContext(t *testing.T) { // it counts goroutines
	root, stopped := longLines(t), errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	ends := make(chan time.Time, 1)
	time.AfterFunc(200*time.Millisecond, func() { cancel(stopped); ends <- time.Now() })
	before := runtime.NumGoroutine()
	_, err := callWith(ctx, t, root, "grep", `{"pattern": "`+strings.Repeat("x?", 1_000)+`!"}`)
	require.Less(t, time.Since(<-ends), 2*time.Second) // on a busy computer; it takes some milliseconds
	require.ErrorIs(t, err, stopped)
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestSearchesTellWhichPatternIsTooMuchWork(t *testing.T) {
	t.Parallel()
	root := longLines(t)
	for _, tt := range []struct{ tool, give, want string }{
		{"glob", `{"pattern": "` + strings.Repeat("{x,x}", 30) + `b"}`, `the pattern "{x,x}{x,x}`},
		{"glob", `{"pattern": "` + strings.Repeat("{x,*x}", 10) + strings.Repeat("*x", 1_500) + `!"}`, `stands for more than 1000 alternatives; write a simpler one`},
		{"glob", `{"pattern": "` + strings.Repeat("*a", 3_000) + `"}`, `the pattern "*a*a`},
		{"glob", `{"pattern": "{` + strings.Repeat("{", 5_000) + `"}`, `has more than 4096 bytes; write a simpler one`},
		{"grep", `{"pattern": "` + strings.Repeat("x{1000}", 11) + `"}`, `compiles to more than 10000 instructions; write a simpler one`},
		{"grep", `{"pattern": "` + strings.Repeat("x", 20_000) + `"}`, `has more than 16384 bytes`},
		{"grep", `{"pattern": "zz` + strings.Repeat("x?", 3_000) + `"}`, `takes too much work to match; write a simpler one`},
		{"grep", `{"pattern": "x", "glob": "` + strings.Repeat("{x,x}", 30) + `b"}`, `the pattern "{x,x}{x,x}`},
	} {
		_, err := call(t, root, tt.tool, tt.give)
		require.ErrorContains(t, err, tt.want, tt.give)
	}
}

// BenchmarkSearch searches 1,000 files of 4 KB.
func BenchmarkSearch(b *testing.B) {
	files := map[string]string{}
	for i := range 1_000 {
		files[fmt.Sprintf("src/pkg%02d/file%03d.go", i%40, i)] = strings.Repeat("func name(ctx context.Context, in string) error { return nil }\n", 65)
	}
	root := workspace(b, files)
	for _, s := range []struct{ name, tool, give string }{
		{"glob", "glob", `{"pattern": "**/*[0-9].{go,js}", "maxFiles": 2000}`},
		{"glob-flat", "glob", `{"pattern": "file*0.go", "maxFiles": 2000}`},
		{"grep-word", "grep", `{"pattern": "missing"}`},
		{"grep-class", "grep", `{"pattern": "nam[a-z]+\\(ctx [a-z]+\\.C[a-z]+, out", "glob": "*.go"}`},
	} {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				_, err := call(b, root, s.tool, s.give)
				require.NoError(b, err)
			}
		})
	}
}

// callWith does what call does, with a context.
func callWith(ctx context.Context, t testing.TB, root *os.Root, name, arguments string) (string, error) {
	t.Helper()
	for _, f := range tools {
		if f.Name == name {
			r, err := f.Run(ctx, tool.Call{ID: "1", Arguments: json.RawMessage(arguments), Workspace: func() (*os.Root, error) { return root, nil }})
			return r.Text, err
		}
	}
	t.Fatalf("no tool %q", name)
	return "", nil
}
