// Command runteam runs a team of agents over a graph of tasks, and says
// beforehand what it would do. docs/command.md describes it for its users.
package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a closed stdout is an error of a write, not the end of the process
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(newApp(app{
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
	}).run())
}
