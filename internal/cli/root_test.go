package cli

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestBugIsAMessageAndStatusOne(t *testing.T) {
	t.Parallel()
	con, stdout, stderr := clitest.Console(t, "version")
	con.IsTerminal = func(any) bool { panic("a bug of ours") }
	require.Equal(t, exit.StatusFailed, runCommandLine(con))
	require.Contains(t, stderr.String(), "please report it: a bug of ours")
	require.Empty(t, stdout.String())
}

func TestWordsForOtherCommands(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"compare", "diff"} {
		got := call{dir: t.TempDir(), args: []string{word, "a", "b"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status)
		require.Contains(t, got.stderr, "to compare two runs, write runteam replay RUN --diff OTHER")
	}
}

// A full disk has the same status for a file as for a journal.
func TestStatusOfAFullDisk(t *testing.T) {
	t.Parallel()
	err := exit.FileError("--html out.html", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	require.Equal(t, exit.StatusNoRun, exit.StatusOf(err, exit.KindOf(err)))
}

func TestEveryCommandIsFoundByItsName(t *testing.T) {
	t.Parallel()
	for name, make := range commands() {
		con, _, _ := clitest.Console(t, name)
		require.Equal(t, name, make(con).Name())
		addressed := root(con)
		found, _, err := addressed.Find(con.Args)
		require.NoError(t, err)
		require.Equal(t, name, found.Name())
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	con, _, _ := clitest.Console(t)
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		require.NotEmpty(t, c.Short, c.CommandPath())
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(root(con))
}

func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/command.md")
	require.NoError(t, err)
	docs := strings.ReplaceAll(string(text), "-o json", "--output json")
	con, _, _ := clitest.Console(t)
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			require.True(t, regexp.MustCompile("--"+f.Name+`\b`).MatchString(docs), "--%s of %s", f.Name, c.CommandPath())
		})
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && c.Name() != "completion" {
				require.True(t, strings.Contains(docs, "\n"+sub.CommandPath()), sub.CommandPath())
				check(sub)
			}
		}
	}
	check(root(con))
}
