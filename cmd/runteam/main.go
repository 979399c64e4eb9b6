// Command runteam runs a team of agents over a graph of tasks. docs/reference/command.md describes it.
package main

import (
	"os"

	"github.com/runteam/runteam/internal/cli"
)

func main() { os.Exit(cli.Main()) }
