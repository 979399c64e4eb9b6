package runteam_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/scripted"
)

// TestReadmeCommandsRun runs every command of the README's shell blocks, with
// a scripted endpoint in place of the ones that a reader would bring.
func TestReadmeCommandsRun(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "runteam")
	out, err := exec.Command("go", "build", "-o", binary, "./cmd/runteam").CombinedOutput()
	require.NoError(t, err, string(out))
	script, err := scripted.ReadFile("examples/claims/script.yaml")
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	dir := t.TempDir() // the commands write files and a journal
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("examples")))

	for _, line := range shellLines(t, "README.md") {
		t.Run(line, func(t *testing.T) {
			if line == "go test ./..." {
				t.Skip("this is it")
			}
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, "go run ./cmd/runteam", binary))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+server.URL())
			if strings.HasPrefix(line, "OPENAI_BASE_URL=") {
				_, rest, _ := strings.Cut(line, " ")
				cmd.Args[2] = strings.ReplaceAll(rest, "go run ./cmd/runteam", binary)
			}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
}

// TestReadmeProgramIsTheQuickstart holds the README's program to one that is built.
func TestReadmeProgramIsTheQuickstart(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(readme)
	require.NotNil(t, block)
	indented := "\t" + strings.ReplaceAll(strings.TrimSpace(block[1]), "\n", "\n\t")
	require.Contains(t, read(t, "examples/quickstart/main.go"), indented)
}

// TestReadmeProgramRuns runs that program against a scripted endpoint.
func TestReadmeProgramRuns(t *testing.T) {
	t.Parallel()
	server, err := scripted.Start(nil, scripted.Options{Keep: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	cmd := exec.Command("go", "run", "./examples/quickstart")
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+server.URL())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "Task: Tell.")
	asked := server.Requests()
	require.Len(t, asked, 2)
	require.Contains(t, asked[0].Messages[len(asked[0].Messages)-1].Text, "pump stopped")
	require.NotContains(t, asked[1].Messages[len(asked[1].Messages)-1].Text, "pump stopped", "the writer never sees the log")
}

// TestDocsLinksLead holds every relative link of the documents to a file.
func TestDocsLinksLead(t *testing.T) {
	t.Parallel()
	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	decisions, err := filepath.Glob("docs/decisions/*.md")
	require.NoError(t, err)
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, name := range append(append(docs, decisions...), "README.md", "ARCHITECTURE.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if !strings.Contains(m[1], "://") {
				_, err := os.Stat(filepath.Join(filepath.Dir(name), m[1]))
				require.NoError(t, err, "%s links to %s", name, m[1])
			}
		}
	}
}

// shellLines returns the commands of a document's sh blocks.
func shellLines(t *testing.T, name string) []string {
	t.Helper()
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, name), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, "   #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "export ") {
				lines = append(lines, line)
			}
		}
	}
	require.NotEmpty(t, lines)
	return lines
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}
