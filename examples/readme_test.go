package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/scripted"
)

// TestReadmesShowWhatCommandsPrint runs the commands of the console blocks in the README of each
// example, from the root of a copy of the repository, and compares their output.
func TestReadmesShowWhatCommandsPrint(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("*/README.md")
	require.NoError(t, err)
	patterns, err := filepath.Glob("patterns/*/README.md")
	require.NoError(t, err)
	readmes = append(readmes, patterns...)
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```")
	commands := 0
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		require.NoError(t, err)
		root := copyOf(t, filepath.Dir(readme))
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			commands += transcript(t, root, strings.ReplaceAll(block[1], "go run ./cmd/runteam", "runteam"))
		}
	}
	require.GreaterOrEqual(t, commands, 3)
}

// TestReadmeCommands runs the commands of the README, with a scripted endpoint in place of those
// that a reader brings.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	script, err := scripted.ReadFile("", "claims/script.yaml")
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(readme), "\n"), 140, "the README is at most 140 lines")
	root := copyOf(t, "claims", "complaint")
	endpoint := regexp.MustCompile(`OPENAI_BASE_URL=\S+`)
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for line := range strings.Lines(block[1]) {
			line, comment, _ := strings.Cut(strings.TrimSpace(line), "   # ")
			if line == "go test ./..." {
				continue // this is it
			}
			commands++
			line = strings.ReplaceAll(line, "go run ./cmd/runteam", "runteam")
			if comment == "until Ctrl-C" { // which ends it without an error
				line = "timeout --foreground --preserve-status --signal INT 3 " + line + " --listen 127.0.0.1:0"
			}
			output, status := shell(t, root, endpoint.ReplaceAllString(line, "OPENAI_BASE_URL="+server.URL()))
			if comment == "exits with status 1" {
				require.Equal(t, 1, status, "%s: %s", line, output)
				continue
			}
			require.Zero(t, status, "%s: %s", line, output)
		}
	}
	require.GreaterOrEqual(t, commands, 7)
}

// TestReadmeSpecIsTheExample compares the spec in the README with examples/complaint.
func TestReadmeSpecIsTheExample(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile("complaint/team.yaml")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(spec), "\n"), 25)
	require.Equal(t, string(spec), readmeBlock(t, "yaml"))
}

// TestReadmeProgramIsTheQuickstart compares the program in the README with examples/quickstart.
func TestReadmeProgramIsTheQuickstart(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("quickstart/main.go")
	require.NoError(t, err)
	require.Contains(t, string(program), "\t"+strings.ReplaceAll(strings.TrimSpace(readmeBlock(t, "go")), "\n", "\n\t"))
}

// TestReadmeProgramRuns runs examples/quickstart against a scripted endpoint.
func TestReadmeProgramRuns(t *testing.T) {
	t.Parallel()
	server, err := scripted.Start(nil, scripted.Options{Keep: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	out, log, status := program(t, "quickstart", "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+server.URL())
	require.Zero(t, status, log)
	require.Contains(t, out, "Task: Tell.")
	requests := server.Requests()
	require.Len(t, requests, 2)
	require.Contains(t, requests[0].Messages[len(requests[0].Messages)-1].Text, "pump stopped")
	require.NotContains(t, requests[1].Messages[len(requests[1].Messages)-1].Text, "pump stopped", "the writer never sees the log")
}

// readmeBlock returns the first block of a language in the README.
func readmeBlock(t *testing.T, language string) string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(string(readme))
	require.NotNil(t, block)
	return block[1]
}

// copyOf returns a folder with copies of some examples, under examples as in the repository, and
// without the delays of their scripts.
func copyOf(t *testing.T, examples ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, example := range examples {
		dir := filepath.Join(root, "examples", example)
		require.NoError(t, os.CopyFS(dir, os.DirFS(example)))
		script, err := os.ReadFile(filepath.Join(dir, "script.yaml"))
		if err == nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), delays.ReplaceAll(script, nil), 0o600))
		}
	}
	return root
}

// TestPatternsAreDescribedInFiveLines checks that each pattern has a title, a description of at most
// five lines, and a run that the tests compare.
func TestPatternsAreDescribedInFiveLines(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("patterns/*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(dirs), 10)
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		require.NoError(t, err)
		title, description, _ := strings.Cut(string(text), "\n\n")
		require.Regexp(t, `^# [A-Z][^\n]*$`, title, dir)
		require.LessOrEqual(t, strings.Count(strings.TrimSpace(description), "\n"), 4, "%s: at most five lines", dir)
		require.Contains(t, description, "go run ./cmd/runteam run examples/"+filepath.ToSlash(dir)+" --offline")
		require.FileExists(t, filepath.Join("testdata", dir+".golden"))
	}
}
