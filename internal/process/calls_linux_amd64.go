package process

import "golang.org/x/sys/unix"

// oldPermitted and oldPretended are older forms of the calls of permitted and pretended.
var (
	oldPermitted = []callGroup{
		{"older programs on amd64", calls{
			"open": unix.SYS_OPEN, "creat": unix.SYS_CREAT, "stat": unix.SYS_STAT, "lstat": unix.SYS_LSTAT, "access": unix.SYS_ACCESS, "readlink": unix.SYS_READLINK, "getdents": unix.SYS_GETDENTS,
			"mkdir": unix.SYS_MKDIR, "rmdir": unix.SYS_RMDIR, "mknod": unix.SYS_MKNOD, "link": unix.SYS_LINK, "unlink": unix.SYS_UNLINK, "symlink": unix.SYS_SYMLINK, "rename": unix.SYS_RENAME,
			"dup2": unix.SYS_DUP2, "pipe": unix.SYS_PIPE, "poll": unix.SYS_POLL, "select": unix.SYS_SELECT,
			"epoll_create": unix.SYS_EPOLL_CREATE, "epoll_wait": unix.SYS_EPOLL_WAIT, "eventfd": unix.SYS_EVENTFD, "signalfd": unix.SYS_SIGNALFD,
			"fork": unix.SYS_FORK, "vfork": unix.SYS_VFORK, "getpgrp": unix.SYS_GETPGRP, "arch_prctl": unix.SYS_ARCH_PRCTL,
			"alarm": unix.SYS_ALARM, "pause": unix.SYS_PAUSE, "time": unix.SYS_TIME,
		}},
	}
	oldPretended = []callGroup{
		{"older forms on amd64", calls{
			"chmod": unix.SYS_CHMOD, "chown": unix.SYS_CHOWN, "lchown": unix.SYS_LCHOWN, "utime": unix.SYS_UTIME, "utimes": unix.SYS_UTIMES, "futimesat": unix.SYS_FUTIMESAT,
		}},
	}
)
