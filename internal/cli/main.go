// Package cli is the runteam command.
package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Main runs the command that the arguments of the process name, and returns its exit status.
func Main() int {
	signal.Ignore(syscall.SIGPIPE) // writing to a closed stdout must return an error instead of ending the process
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return newApp(app{
		args:   os.Args[1:],
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		lookup: os.LookupEnv,
		now:    time.Now,
		isTerminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
		size: func(stream any) (width, height int) {
			if f, ok := stream.(*os.File); ok {
				width, height, _ = term.GetSize(int(f.Fd()))
			}
			return width, height
		},
		signals: signals,
		exit:    os.Exit,
	}).run()
}
