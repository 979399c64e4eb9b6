package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// workspace returns a folder with these files, and a folder above it with a file that no
// tool may reach.
func workspace(t testing.TB, files map[string]string) *os.Root {
	t.Helper()
	above := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(above, "outside.txt"), []byte("canary-outside\n"), 0o600))
	dir := filepath.Join(above, "workspace")
	require.NoError(t, os.Mkdir(dir, 0o700))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	for name, text := range files {
		require.NoError(t, root.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, root.WriteFile(name, []byte(text), 0o644))
	}
	return root
}

var tools = func() []*tool.Tool {
	list, err := builtin.Files("full", tool.Options{})
	if err != nil {
		panic(err)
	}
	return list
}()

// call calls a built-in tool with arguments in JSON.
func call(t testing.TB, root *os.Root, name, arguments string) (string, error) {
	t.Helper()
	for _, f := range tools {
		if f.Name == name {
			r, err := f.Run(t.Context(), tool.Call{ID: "1", Arguments: json.RawMessage(arguments), Workspace: func() (*os.Root, error) { return root, nil }})
			return r.Text, err
		}
	}
	t.Fatalf("no tool %q", name)
	return "", nil
}

func TestFileTools(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.txt":          "one\ntwo\nthree\n",
		"crlf.txt":       "one\r\ntwo",
		"empty.txt":      "",
		"binary":         "a\x00b",
		"latin1.txt":     "caf\xe9\n",
		"src/main.go":    "package main\n\nfunc main() {}\n",
		"src/x/util.go":  "package x\n",
		"src/x/READ.md":  "# main\n",
		"history/s.json": "{}",
	}
	tests := []struct {
		tool, give, want, err string
	}{
		{"file_read", `{"path": "a.txt"}`, "1\tone\n2\ttwo\n3\tthree\n", ""},
		{"file_read", `{"path": "a.txt", "offset": 2}`, "2\ttwo\n3\tthree\n", ""},
		{"file_read", `{"path": "a.txt", "offset": 2, "limit": 1}`, "2\ttwo\n", ""},
		{"file_read", `{"path": "a.txt", "offset": 9}`, "", "offset 9 is past the end; the file has 3 lines"},
		{"file_read", `{"path": "a.txt", "offset": -1}`, "", "must not be negative"},
		{"file_read", `{"path": "./src/../a.txt", "limit": 1}`, "1\tone\n", ""},
		{"file_read", `{"path": "crlf.txt"}`, "1\tone\r\n2\ttwo\n", ""},
		{"file_read", `{"path": "empty.txt"}`, "(The file is empty.)\n", ""},
		{"file_read", `{"path": "binary"}`, "", "not a UTF-8 text file"},
		{"file_read", `{"path": "latin1.txt"}`, "", "not a UTF-8 text file"},
		{"file_read", `{"path": "src"}`, "", "is a folder; list it with glob"},
		{"file_read", `{"path": "missing"}`, "", "missing: no such file"},
		{"file_read", `{"path": "../outside.txt"}`, "", "outside the workspace"},
		{"file_read", `{"path": "/etc/passwd"}`, "", "outside the workspace; write a relative path"},
		{"file_read", `{"path": "a.txt\u0000"}`, "", "NUL"},

		{"file_write", `{"path": "new/dir/b.txt", "content": "hello"}`, "Wrote 5 bytes to new/dir/b.txt.", ""},
		{"file_write", `{"path": "a.txt/b", "content": ""}`, "", "a.txt: file exists"},
		{"file_write", `{"path": "src", "content": ""}`, "", "not a regular file"},
		{"file_write", `{"path": "../outside.txt", "content": ""}`, "", "outside the workspace"},
		{"file_write", `{"path": "history/step_001.json", "content": ""}`, "", "read-only folder"},
		{"file_write", `{"path": "x/../history/step_001.json", "content": ""}`, "", "read-only folder"},

		{"file_edit", `{"path": "a.txt", "old_string": "two", "new_string": "2"}`, "Replaced 1 occurrences in a.txt.", ""},
		{"file_edit", `{"path": "a.txt", "old_string": "e", "new_string": "E"}`, "", "contains old_string 3 times"},
		{"file_edit", `{"path": "a.txt", "old_string": "e", "new_string": "E", "replace_all": true}`, "Replaced 3 occurrences in a.txt.", ""},
		{"file_edit", `{"path": "a.txt", "old_string": "four", "new_string": "4"}`, "", "does not contain old_string"},
		{"file_edit", `{"path": "a.txt", "old_string": "", "new_string": "4"}`, "", "old_string is empty"},
		{"file_edit", `{"path": "a.txt", "old_string": "two", "new_string": "two"}`, "", "are equal"},
		{"file_edit", `{"path": "history/s.json", "old_string": "{", "new_string": "["}`, "", "read-only folder"},

		{"glob", `{"pattern": "**/*.go"}`, "src/main.go\nsrc/x/util.go\n", ""},
		{"glob", `{"pattern": "*.go"}`, "src/main.go\nsrc/x/util.go\n", ""},
		{"glob", `{"path": "src", "pattern": "x/*"}`, "src/x/READ.md\nsrc/x/util.go\n", ""},
		{"glob", `{"pattern": "*.go", "maxFiles": 1}`, "src/main.go\nMore than 1 files match; narrow the pattern.\n", ""},
		{"glob", `{"pattern": "*.c"}`, "No files match.", ""},
		{"glob", `{"pattern": "["}`, "", "invalid pattern"},
		{"glob", `{"path": ".."}`, "", "outside the workspace"},

		{"grep", `{"pattern": "package \\w+"}`, "src/main.go:1:package main\nsrc/x/util.go:1:package x\n", ""},
		{"grep", `{"pattern": "main", "glob": "*.go"}`, "src/main.go:1:package main\nsrc/main.go:3:func main() {}\n", ""},
		{"grep", `{"pattern": "main", "path": "src/x"}`, "src/x/READ.md:1:# main\n", ""},
		{"grep", `{"pattern": "one", "path": "a.txt"}`, "a.txt:1:one\n", ""},
		{"grep", `{"pattern": "main", "maxResults": 1}`, "src/main.go:1:package main\nMore than 1 lines match; narrow the search.\n", ""},
		{"grep", `{"pattern": "canary"}`, "No lines match.", ""},
		{"grep", `{"pattern": "("}`, "", "error parsing regexp"},
	}
	for _, tt := range tests {
		t.Run(tt.tool+" "+tt.give, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, workspace(t, files), tt.tool, tt.give)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAbsolutePathInsideTheWorkspace(t *testing.T) {
	t.Parallel()
	root := workspace(t, map[string]string{"a.txt": "one\n"})
	got, err := call(t, root, "file_read", fmt.Sprintf(`{"path": %q}`, filepath.Join(root.Name(), "a.txt")))
	require.NoError(t, err)
	require.Equal(t, "1\tone\n", got)
}

// Requirement: G36.
func TestSymbolicLinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	root := workspace(t, map[string]string{"a.txt": "one\n"})
	dir := root.Name()
	require.NoError(t, os.Symlink("../outside.txt", filepath.Join(dir, "file")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "slash")))
	for _, tt := range []struct{ tool, give string }{
		{"file_read", `{"path": "file"}`},
		{"file_read", `{"path": "folder/outside.txt"}`},
		{"file_read", `{"path": "slash/etc/passwd"}`},
		{"file_write", `{"path": "file", "content": "x"}`},
		{"file_write", `{"path": "folder/new.txt", "content": "x"}`},
		{"file_edit", `{"path": "file", "old_string": "canary", "new_string": "x"}`},
		{"glob", `{"path": "folder"}`},
		{"grep", `{"pattern": "canary", "path": "folder"}`},
		{"grep", `{"pattern": "canary", "path": "file"}`},
	} {
		got, err := call(t, root, tt.tool, tt.give)
		require.NotContains(t, got, "canary", tt)
		if err == nil {
			require.Contains(t, got, "No ", tt)
		}
	}
	for _, name := range []string{"glob", "grep"} {
		got, err := call(t, root, name, `{"pattern": "canary*"}`)
		require.NoError(t, err)
		require.NotContains(t, got, "outside")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "../outside.txt"))
	require.NoError(t, err)
	require.Equal(t, "canary-outside\n", string(raw))
}

// A link that is swapped while tools read and write never leads out of the workspace.
func TestSwappedSymbolicLink(t *testing.T) {
	t.Parallel()
	root := workspace(t, map[string]string{"in/outside.txt": "harmless\n"})
	dir := root.Name()
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := "in"
			if i%2 == 0 {
				target = ".."
			}
			os.Symlink(target, filepath.Join(dir, "next"))
			os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "link"))
		}
	})
	for range 200 {
		for _, give := range []struct{ tool, args string }{
			{"file_read", `{"path": "link/outside.txt"}`},
			{"file_write", `{"path": "link/outside.txt", "content": "harmless\n"}`},
			{"grep", `{"pattern": ".", "path": "link"}`},
		} {
			got, _ := call(t, root, give.tool, give.args)
			require.NotContains(t, got, "canary")
		}
	}
	close(stop)
	swapping.Wait()
	raw, err := os.ReadFile(filepath.Join(dir, "../outside.txt"))
	require.NoError(t, err)
	require.Equal(t, "canary-outside\n", string(raw))
}

func TestNamedPipesAreNotRead(t *testing.T) {
	t.Parallel()
	root := workspace(t, nil)
	require.NoError(t, syscall.Mkfifo(filepath.Join(root.Name(), "pipe"), 0o600))
	for _, tt := range []struct{ tool, give string }{
		{"file_read", `{"path": "pipe"}`},
		{"file_edit", `{"path": "pipe", "old_string": "a", "new_string": "b"}`},
		{"file_write", `{"path": "pipe", "content": "x"}`},
	} {
		_, err := call(t, root, tt.tool, tt.give)
		require.ErrorContains(t, err, "not a regular file", tt)
	}
	got, err := call(t, root, "grep", `{"pattern": "x"}`)
	require.NoError(t, err)
	require.Equal(t, "No lines match.", got)
}

func TestLargeFilesAreReadInPieces(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 99) + "\n"
	root := workspace(t, map[string]string{"big.txt": strings.Repeat(line, 50_000), "line.txt": strings.Repeat("x", 3<<20)})
	got, err := call(t, root, "file_read", `{"path": "big.txt"}`)
	require.NoError(t, err)
	require.Less(t, len(got), 3<<20)
	require.True(t, strings.HasPrefix(got, "(Lines up to "), got[:40])
	_, rest, found := strings.Cut(got, "Continue with offset ")
	require.True(t, found)
	var next int
	_, err = fmt.Sscan(rest, &next)
	require.NoError(t, err)
	got, err = call(t, root, "file_read", fmt.Sprintf(`{"path": "big.txt", "offset": %d, "limit": 1}`, next))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d\t%s", next, line), got)

	_, err = call(t, root, "file_read", `{"path": "line.txt"}`)
	require.ErrorContains(t, err, "line 1 is longer than 2 MiB")
}

// What a model asks for may be far more than it may get: 3 GB of text after an edit, or all lines of a large file.
//
// Requirement: G66.
func TestResultsAreBoundedBeforeTheyAreMade(t *testing.T) {
	t.Parallel()
	root := workspace(t, map[string]string{"lines.txt": strings.Repeat("a\n", 1<<20), "long.txt": strings.Repeat("b", 8<<20)})
	_, err := call(t, root, "file_edit", fmt.Sprintf(`{"path": "lines.txt", "old_string": "a", "new_string": %q, "replace_all": true}`, strings.Repeat("c", 3<<10)))
	require.ErrorContains(t, err, "lines.txt: would be 3073 MiB after the edit, more than 16 MiB")
	got, err := call(t, root, "grep", `{"pattern": "a", "maxResults": 9007199254740992}`)
	require.NoError(t, err)
	require.Less(t, len(got), 2<<20+100)
	require.Regexp(t, `More than \d+ lines match; narrow the search\.\n$`, got)
	scope, end := membudget.Within(t.Context(), 1<<20)
	defer end()
	for _, f := range tools {
		if f.Name == "file_edit" || f.Name == "grep" {
			_, err := f.Run(scope, tool.Call{ID: "1", Arguments: json.RawMessage(`{"path": "long.txt", "pattern": "b", "old_string": "b", "new_string": "c"}`), Workspace: func() (*os.Root, error) { return root, nil }})
			require.ErrorIs(t, err, membudget.ErrFull, f.Name)
			require.ErrorContains(t, err, "long.txt: too much memory: 16 MiB more, of 1 MiB")
		}
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	root := workspace(t, map[string]string{"a.txt": strings.Repeat("a\n", 10_000)})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for _, f := range tools {
		if f.Name != "grep" && f.Name != "glob" {
			continue
		}
		_, err := f.Run(ctx, tool.Call{Arguments: json.RawMessage(`{"pattern": "b"}`), Workspace: func() (*os.Root, error) { return root, nil }})
		require.ErrorIs(t, err, context.DeadlineExceeded, f.Name)
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	for preset, want := range map[string][]string{
		"readonly":  {"file_read", "grep", "glob"},
		"readwrite": {"file_read", "grep", "glob", "file_write", "file_edit"},
		"full":      {"file_read", "grep", "glob", "file_write", "file_edit", "bash"},
	} {
		list, err := builtin.Files(preset, tool.Options{Accepts: label.Confidential})
		require.NoError(t, err)
		var names []string
		for _, f := range list {
			require.NoError(t, f.Check())
			require.Equal(t, label.Confidential, f.Accepts)
			names = append(names, f.Name)
		}
		require.Equal(t, want, names)
		require.Equal(t, len(list), cap(list), "callers append their own tools")
	}
	public := label.Public
	_, err := builtin.Files("readonly", tool.Options{Accepts: 99})
	require.ErrorContains(t, err, "unknown level")
	_, err = builtin.Files("readonly", tool.Options{Stateful: true, Produces: &public})
	require.ErrorContains(t, err, "could lower the label")
	_, err = builtin.Files("all", tool.Options{})
	require.ErrorContains(t, err, "use readonly, readwrite or full")
}

func BenchmarkFileRead(b *testing.B) {
	root := workspace(b, map[string]string{"a.txt": strings.Repeat(strings.Repeat("x", 79)+"\n", (1<<20)/80)})
	b.SetBytes(1 << 20)
	for b.Loop() {
		_, err := call(b, root, "file_read", `{"path": "a.txt"}`)
		require.NoError(b, err)
	}
}
