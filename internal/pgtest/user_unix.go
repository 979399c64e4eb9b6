//go:build unix

package pgtest

import (
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// runAs lets a user run a command; nil is this one.
func runAs(c *exec.Cmd, as *user.User) {
	if as == nil {
		return
	}
	uid, _ := strconv.ParseUint(as.Uid, 10, 32)
	gid, _ := strconv.ParseUint(as.Gid, 10, 32)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
