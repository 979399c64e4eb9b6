// Package cli is the runteam command.
package cli

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"golang.org/x/term"
)

// Main runs the command that the arguments of the process name, and returns its exit status.
func Main() int {
	signal.Ignore(syscall.SIGPIPE) // a write to a closed stdout must return an error instead of ending the process
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return runCommandLine(console.New(console.Console{
		Args:      os.Args[1:],
		Program:   invokedAs(os.Args[0]),
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		LookupEnv: os.LookupEnv,
		Now:       time.Now,
		IsTerminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
		TerminalSize: func(stream any) (width, height int) {
			if f, ok := stream.(*os.File); ok {
				width, height, _ = term.GetSize(int(f.Fd()))
			}
			return width, height
		},
		Signals: signals,
		Exit:    os.Exit,
	}))
}

// Run runs the command that the arguments of a console name, and returns its exit status.
func Run(con *console.Console) int { return runCommandLine(con) }

// invokedAs returns the command as it was invoked: its name, its path, or go run and the package.
func invokedAs(name string) string {
	if !strings.Contains(filepath.ToSlash(name), "/go-build") { // go run builds there
		return format.ShellPath(name)
	}
	if at, err := os.Stat("cmd/runteam"); err == nil && at.IsDir() {
		return "go run ./cmd/runteam"
	}
	return "go run github.com/runteam/runteam/cmd/runteam"
}
