//go:build !unix

package foreign

import "os/exec"

func startGroup(*exec.Cmd) {}

func stopGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
