// Command runteam runs a team of agents over a graph of tasks. docs/reference/command.md describes it.
package main

import (
	"os"
	"runtime"

	"github.com/runteam/runteam/internal/cli"
	"github.com/runteam/runteam/internal/membudget"
)

// headroom is memory that counts as live for the garbage collector and is never touched,
// so that it takes no room. Without it, the collector would go through the 10 MB of an
// ordinary run every few milliseconds.
const headroom = 16 << 20

func main() {
	membudget.LimitHeap()
	reserved := make([]byte, headroom)
	status := cli.Main()
	runtime.KeepAlive(reserved)
	os.Exit(status)
}
