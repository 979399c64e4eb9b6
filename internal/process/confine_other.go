//go:build !(linux && (amd64 || arm64))

package process

import (
	"errors"
	"os/exec"
)

// Confines reports whether this system can confine programs.
func Confines() bool { return false }

func startConfined(*exec.Cmd, []string, *quota) error { return errors.ErrUnsupported }
