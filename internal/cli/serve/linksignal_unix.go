//go:build unix

package serve

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// linkSignals receives the signal with which the user requests another link, SIGUSR1, until stop is called.
func linkSignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	return c, func() { signal.Stop(c) }
}

// linkCommand returns the command that sends this process the signal for another link.
func linkCommand() string { return fmt.Sprintf("kill -USR1 %d", os.Getpid()) }
