package process

import "golang.org/x/sys/unix"

// oldCalls are older system calls that change modes, owners and times.
var oldCalls = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
