//go:build !unix

package process

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends the program; its children end when their input does.
func killGroup(c *exec.Cmd) { _ = c.Process.Kill() }

// terminateGroup does nothing: the program is killed after its grace period.
func terminateGroup(*exec.Cmd) {}
