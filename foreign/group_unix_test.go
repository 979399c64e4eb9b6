//go:build unix

package foreign

import (
	"os/exec"
	"syscall"
)

// startGroup makes a command the leader of a new process group: llmock serves from
// a process that it starts.
func startGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// stopGroup ends a command and the processes that it started.
func stopGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
