package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// typed returns the arguments of a printed command, as a shell reads them.
func typed(t *testing.T, command string) []string {
	t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	out, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\0' `+command).Output()
	require.NoError(t, err)
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Equal(t, "runteam", words[0])
	return words[1:]
}

// Each command that run, runs and show print for a failed run works as
// printed, with the same journal and key.
func TestPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{status: 400, body: no}]", "key": journalTestKey, "my runs/gitkeep": ""})
	flags := []string{"--journal", filepath.Join(dir, "my runs", "it's.db"), "--journal-key", filepath.Join(dir, "key")}
	require.NoError(t, os.Chmod(filepath.Join(dir, "key"), 0o600))
	run := func(args ...string) outcome { t.Helper(); return call{dir: dir, args: args}.run(t) }
	printed := func(pattern, text string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		require.NotNil(t, found, "%s in:\n%s", pattern, text)
		return found[1]
	}
	got := run(append([]string{"run", "--offline", "--script", "script.yaml"}, flags...)...)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	commands := map[string]string{
		"run":           printed(`  (runteam resume .*)\n`, got.stderr),
		"run, to look":  printed(`  (runteam show .*)\n`, got.stderr),
		"show":          printed(`to resume: (runteam .*)\n`, run(append([]string{"show"}, flags...)...).stdout),
		"runs":          printed(`(runteam resume .*)\n`, run(append([]string{"runs"}, flags...)...).stdout),
		"runs, keyless": printed(`(runteam resume .*)\n`, run("runs", flags[0], flags[1]).stdout),
	}
	for name, command := range commands {
		got := run(typed(t, command)...)
		if name == "run, to look" {
			require.Equal(t, exit.StatusOK, got.status, "%s: %s: %+v", name, command, got)
			continue
		}
		require.Equal(t, exit.StatusFailed, got.status, "%s: %s: %+v", name, command, got)
		require.Contains(t, got.stderr, "resumed: ", "%s: %s", name, command)
		require.Equal(t, name != "runs, keyless", strings.Contains(command, "--journal-key"), command)
	}
}

// A run that a Go program began has no command that resumes it.
func TestRunOfAProgramIsNotResumedByTheCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	for _, status := range []string{"", "error"} {
		w := &writtenRun{t: t, info: journal.Info{Run: "run-" + status, Name: "made", Time: clitest.Noon}}
		var err error
		w.run, err = j.Begin(t.Context(), w.info)
		require.NoError(t, err)
		w.end(status, record.TaskEnd{Task: task.NewID("One"), Title: "One", Status: task.Failed})
		for _, args := range [][]string{{"runs"}, {"show", "run-" + status}} {
			got := call{dir: dir, args: args}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Contains(t, got.stdout, "begun by a Go program", "%v", args)
			require.NotContains(t, got.stdout, "runteam resume", "%v", args)
		}
	}
}

// A text in a printed command is one word for a shell, and has no control character for a terminal.
func TestShellQuoteIsOneWord(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain.db", "two words", "it's", `back\slash`, "a\nb", "\x1b[31mred", "\u202eleft", "\xff", "ümlaut", `'\` + "\t", "-x"} {
		quoted := format.ShellWord(text)
		require.Equal(t, terminal.CleanLine(quoted), quoted)
		require.Equal(t, []string{text}, typed(t, "runteam "+quoted), quoted)
	}
	g := &journals.Flags{Named: "-j.db", Workspaces: "my ws"}
	require.Equal(t, []string{"show", "--journal", "./-j.db", "--", "1f", "-x"}, typed(t, g.Command("show", "1f", "-x")))
	require.Equal(t, []string{"chat", "--resume=-x y", "--journal", "./-j.db", "--workspaces", "my ws"}, typed(t, g.ChatCommand("-x y")))
	require.Equal(t, []string{"resume", "1f", "--journal", "./-j.db", "--workspaces", "my ws"}, typed(t, g.Command("resume", "1f")))
}
