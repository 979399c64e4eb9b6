//go:build !(linux && (amd64 || arm64))

package process

import (
	"errors"
	"os/exec"
)

// Missing says what this system lacks to confine programs.
func Missing() string { return "Linux on amd64 or arm64" }

func startConfined(*exec.Cmd, []string, *quota) error { return errors.ErrUnsupported }
