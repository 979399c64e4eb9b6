package examples_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTutorial does what docs/tutorial.md says, from an empty folder: it saves and appends the
// files as the sentence before each block says, and runs the commands of its console blocks.
// Their output must contain the parts that the tutorial shows. A line with nothing but … stands
// for lines that are left out.
func TestTutorial(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/tutorial.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)([^\n]*(?:\n[^\n]+)*)\n\n```(json|yaml|console)\n(.*?)```")
	saved := regexp.MustCompile("(?s)[Ss]ave .*?as\\s`([^`]+)`")
	appended := regexp.MustCompile("(?s)(?:[Aa]ppend|[Aa]dd) .*?to\\s+(?:the\\s+end\\s+of\\s+)?`([^`]+)`")
	dir, commands := t.TempDir(), 0
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		paragraph, kind, body := m[1], m[2], m[3]
		switch name, more := saved.FindStringSubmatch(paragraph), appended.FindStringSubmatch(paragraph); {
		case kind == "console":
			commands += transcript(t, dir, body)
		case name != nil:
			require.NoError(t, os.WriteFile(filepath.Join(dir, name[1]), []byte(body), 0o600))
		case more != nil:
			path := filepath.Join(dir, more[1])
			old, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, append(old, body...), 0o600))
		default:
			t.Fatalf("the sentence before this block does not say what to do with it:\n%s\n%s", paragraph, body)
		}
	}
	require.Greater(t, commands, 10)
}

// TestGuidesQuoteTheExamples checks that the programs in the how-to guides are parts of the examples,
// of the documentation of flowtest or of that of team.
func TestGuidesQuoteTheExamples(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	sources, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	for _, source := range append(sources, "../flowtest/flowtest.go", "../team/example_test.go") {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		code.WriteString(strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", "")), " "))
	}
	guides, err := filepath.Glob("../docs/how-to/*.md")
	require.NoError(t, err)
	blocks := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			lines := strings.Join(strings.Fields(strings.ReplaceAll(block[1], "//", "")), " ")
			require.Contains(t, code.String(), lines, guide)
		}
	}
	require.GreaterOrEqual(t, blocks, 4)
}

// transcript runs the commands of a console block and compares what each prints, stdout and then
// stderr, with the lines that follow it. It returns how many commands ran.
func transcript(t *testing.T, dir, body string) (commands int) {
	t.Helper()
	status := 0
	for step := range strings.SplitSeq("\n"+body, "\n$ ") {
		line, want, _ := strings.Cut(step, "\n")
		if line == "" {
			continue
		}
		commands++
		if line == "echo $?" {
			require.Equal(t, strings.TrimSpace(want), strconv.Itoa(status))
			status = 0
			continue
		}
		require.Zero(t, status, "the command before %q failed", line)
		var output string
		output, status = shell(t, dir, line)
		requireParts(t, line, output, want)
	}
	require.Zero(t, status, "the last command of\n%s", body)
	return commands
}

// simple matches a call of the command whose words the shell does not change, but for double quotes around some.
var simple = regexp.MustCompile(`^runteam((?: [\w./:=,-]+| "[\w ]+")+)( 2>/dev/null)?$`)

// shell runs a line. A simple call of the command runs in this process.
func shell(t *testing.T, dir, line string) (output string, status int) {
	t.Helper()
	if m := simple.FindStringSubmatch(line); m != nil {
		var words []string
		for _, word := range regexp.MustCompile(`[^ "]+|"[^"]+"`).FindAllString(m[1], -1) {
			words = append(words, strings.Trim(word, `"`))
		}
		out, log, status := runteam(t, dir, words...)
		if m[2] != "" {
			log = ""
		}
		return out + "\n" + log, status
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(clean(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	return out.String() + "\n" + log.String(), status
}

// requireParts fails unless the output contains the parts of want, which lines of … separate, as
// whole lines and in their order.
func requireParts(t *testing.T, command, output, want string) {
	t.Helper()
	rest := "\n" + output
	for part := range strings.SplitSeq("\n"+want, "\n…\n") {
		part = strings.Trim(strings.TrimSuffix(part, "…"), "\n")
		if part == "" {
			continue
		}
		_, after, found := strings.Cut(rest, "\n"+part+"\n")
		require.True(t, found, "%s does not print\n%s\nbut\n%s", command, part, output)
		rest = "\n" + after
	}
}
