// Package console connects the command to the outside: streams, environment, clock, signals and the
// form of the output. Every command gets a [Console], and tests replace any part of it.
package console

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/llm/limit"
)

// A Console is one invocation of the command with everything outside that it uses.
type Console struct {
	Args    []string
	Program string // the command as it was invoked, for suggested commands; empty means runteam
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer

	ConfigDir    string                           // the folder of the user's configuration; empty means the system's default
	WorkDir      workdir.Dir                      // where relative paths start; empty means the working directory of the process
	LookupEnv    func(name string) (string, bool) // the environment
	Now          func() time.Time
	IsTerminal   func(stream any) bool
	TerminalSize func(stream any) (width, height int) // of a terminal, in characters; 0, 0 if it is unknown
	Signals      <-chan os.Signal                     // SIGINT and SIGTERM
	Exit         func(status int)                     // ends the process at once

	CompletionTime time.Duration // limits a completion, for which a shell waits at every key; zero means a second

	Stopping <-chan struct{} // closed by the first signal
	Settings Settings
	Screen   *terminal.Screen // stderr, for all messages to the user
	Log      *slog.Logger
	Limits   *limit.Group // of the endpoints that the command calls

	taker *taker
}

// New returns a console with the fields that main or a test set, and the others initialized.
func New(a Console) *Console {
	a.Screen = &terminal.Screen{W: a.Stderr, Size: func() (int, int) { return a.TerminalSize(a.Stderr) }}
	a.Log = slog.New(slog.DiscardHandler)
	a.Limits, a.taker = new(limit.Group), new(taker)
	a.Settings.guess(a.Args, a.LookupEnv)
	return &a
}

// PrintError prints an error on stderr, or the problems in files that it lists.
func (c *Console) PrintError(err error) {
	problems := exit.Problems(err)
	if len(problems) == 0 {
		c.Say("runteam: %s", terminal.Clean(err.Error()))
		return
	}
	for i, p := range problems {
		if i == exit.MaxProblemText {
			c.Say("… and %d more", len(problems)-i)
			break
		}
		c.Say("%s", terminal.Clean(p.Error()))
	}
	c.Say("runteam: %s; %s", format.Plural(len(problems), "problem"), cmp.Or(c.Settings.Undone, "nothing was run"))
}

// Say prints a line on stderr.
func (c *Console) Say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	_, _ = io.WriteString(c.Screen, strings.TrimRight(text, "\n")+"\n") // a failure of stderr cannot be reported
}

// Warn prints warnings about a spec, unless the log level hides them.
func (c *Console) Warn(warnings []specfile.Problem) {
	if c.Settings.Level > slog.LevelWarn {
		return
	}
	for _, p := range warnings {
		p.Excerpt = ""
		text := "warning: " + p.Message
		if at := p.At(); at != "" {
			text = at + ": " + text
		}
		if p.Hint != "" {
			text += "; " + p.Hint
		}
		c.Say("%s", terminal.Clean(text))
	}
}
