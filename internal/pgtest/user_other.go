//go:build !unix

package pgtest

import (
	"os/exec"
	"os/user"
)

// runAs does nothing where no user is root.
func runAs(*exec.Cmd, *user.User) {}
