//go:build linux && (amd64 || arm64)

package process

import "golang.org/x/sys/unix"

// A confined program may make the system calls of these tables and no others. Whatever is not
// listed does not exist for it: the call fails with ENOSYS, so that libraries use an older one.
// docs/reference/confinement.md has the same tables, which a test writes.

// calls are system calls by their names.
type calls map[string]uint32

// A callGroup is system calls that one kind of program needs.
type callGroup struct {
	need  string // what for
	calls calls
}

// permitted are the calls that a confined program may make with any arguments.
var permitted = []callGroup{
	{"every program: files", calls{
		"openat": unix.SYS_OPENAT, "close": unix.SYS_CLOSE, "read": unix.SYS_READ, "write": unix.SYS_WRITE, "readv": unix.SYS_READV, "writev": unix.SYS_WRITEV,
		"pread64": unix.SYS_PREAD64, "pwrite64": unix.SYS_PWRITE64, "lseek": unix.SYS_LSEEK, "fstat": unix.SYS_FSTAT, "newfstatat": unix.SYS_NEWFSTATAT,
		"statx": unix.SYS_STATX, "faccessat": unix.SYS_FACCESSAT, "faccessat2": unix.SYS_FACCESSAT2, "readlinkat": unix.SYS_READLINKAT, "getdents64": unix.SYS_GETDENTS64,
		"getcwd": unix.SYS_GETCWD, "chdir": unix.SYS_CHDIR, "dup": unix.SYS_DUP, "dup3": unix.SYS_DUP3, "pipe2": unix.SYS_PIPE2, "umask": unix.SYS_UMASK,
	}},
	{"every program: memory", calls{
		"brk": unix.SYS_BRK, "mmap": unix.SYS_MMAP, "munmap": unix.SYS_MUNMAP, "mprotect": unix.SYS_MPROTECT, "mremap": unix.SYS_MREMAP, "madvise": unix.SYS_MADVISE, "msync": unix.SYS_MSYNC,
	}},
	{"every program: processes and threads", calls{
		"execve": unix.SYS_EXECVE, "exit": unix.SYS_EXIT, "exit_group": unix.SYS_EXIT_GROUP, "wait4": unix.SYS_WAIT4, "waitid": unix.SYS_WAITID,
		"futex": unix.SYS_FUTEX, "set_tid_address": unix.SYS_SET_TID_ADDRESS, "set_robust_list": unix.SYS_SET_ROBUST_LIST, "get_robust_list": unix.SYS_GET_ROBUST_LIST,
		"rseq": unix.SYS_RSEQ, "membarrier": unix.SYS_MEMBARRIER, "getpid": unix.SYS_GETPID, "getppid": unix.SYS_GETPPID, "gettid": unix.SYS_GETTID,
		"getuid": unix.SYS_GETUID, "geteuid": unix.SYS_GETEUID, "getgid": unix.SYS_GETGID, "getegid": unix.SYS_GETEGID,
		"getresuid": unix.SYS_GETRESUID, "getresgid": unix.SYS_GETRESGID, "getgroups": unix.SYS_GETGROUPS, "capget": unix.SYS_CAPGET,
		"sched_yield": unix.SYS_SCHED_YIELD, "sched_getaffinity": unix.SYS_SCHED_GETAFFINITY, "sched_setaffinity": unix.SYS_SCHED_SETAFFINITY, "getcpu": unix.SYS_GETCPU,
		"getrandom": unix.SYS_GETRANDOM, "uname": unix.SYS_UNAME, "sysinfo": unix.SYS_SYSINFO,
	}},
	{"every program: signals", calls{
		"rt_sigaction": unix.SYS_RT_SIGACTION, "rt_sigprocmask": unix.SYS_RT_SIGPROCMASK, "rt_sigreturn": unix.SYS_RT_SIGRETURN, "sigaltstack": unix.SYS_SIGALTSTACK,
		"rt_sigsuspend": unix.SYS_RT_SIGSUSPEND, "rt_sigpending": unix.SYS_RT_SIGPENDING, "rt_sigtimedwait": unix.SYS_RT_SIGTIMEDWAIT,
		"rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "rt_tgsigqueueinfo": unix.SYS_RT_TGSIGQUEUEINFO,
		"kill": unix.SYS_KILL, "tkill": unix.SYS_TKILL, "tgkill": unix.SYS_TGKILL, "restart_syscall": unix.SYS_RESTART_SYSCALL,
	}},
	{"every program: time", calls{
		"clock_gettime": unix.SYS_CLOCK_GETTIME, "clock_getres": unix.SYS_CLOCK_GETRES, "clock_nanosleep": unix.SYS_CLOCK_NANOSLEEP, "nanosleep": unix.SYS_NANOSLEEP,
		"gettimeofday": unix.SYS_GETTIMEOFDAY, "times": unix.SYS_TIMES, "getrusage": unix.SYS_GETRUSAGE, "setitimer": unix.SYS_SETITIMER, "getitimer": unix.SYS_GETITIMER,
	}},
	{"shells and coreutils: files and folders", calls{
		"mkdirat": unix.SYS_MKDIRAT, "mknodat": unix.SYS_MKNODAT, "unlinkat": unix.SYS_UNLINKAT, "symlinkat": unix.SYS_SYMLINKAT, "linkat": unix.SYS_LINKAT,
		"renameat": unix.SYS_RENAMEAT, "renameat2": unix.SYS_RENAMEAT2, "fchdir": unix.SYS_FCHDIR,
		"truncate": unix.SYS_TRUNCATE, "ftruncate": unix.SYS_FTRUNCATE, "fallocate": unix.SYS_FALLOCATE, "fadvise64": unix.SYS_FADVISE64,
		"copy_file_range": unix.SYS_COPY_FILE_RANGE, "sendfile": unix.SYS_SENDFILE, "splice": unix.SYS_SPLICE, "tee": unix.SYS_TEE,
		"getxattr": unix.SYS_GETXATTR, "lgetxattr": unix.SYS_LGETXATTR, "fgetxattr": unix.SYS_FGETXATTR,
		"listxattr": unix.SYS_LISTXATTR, "llistxattr": unix.SYS_LLISTXATTR, "flistxattr": unix.SYS_FLISTXATTR,
	}},
	{"shells and coreutils: jobs", calls{
		"setpgid": unix.SYS_SETPGID, "getpgid": unix.SYS_GETPGID, "setsid": unix.SYS_SETSID, "getsid": unix.SYS_GETSID,
		"pselect6": unix.SYS_PSELECT6, "ppoll": unix.SYS_PPOLL, "getpriority": unix.SYS_GETPRIORITY, "setpriority": unix.SYS_SETPRIORITY,
		"getrlimit": unix.SYS_GETRLIMIT, "setrlimit": unix.SYS_SETRLIMIT, "prlimit64": unix.SYS_PRLIMIT64, // a limit can only be lowered
	}},
	{"git: files on the disk", calls{"fsync": unix.SYS_FSYNC, "fdatasync": unix.SYS_FDATASYNC, "sync_file_range": unix.SYS_SYNC_FILE_RANGE}},
	{"Python, Node and Go: many files at once", calls{
		"epoll_create1": unix.SYS_EPOLL_CREATE1, "epoll_ctl": unix.SYS_EPOLL_CTL, "epoll_pwait": unix.SYS_EPOLL_PWAIT, "epoll_pwait2": unix.SYS_EPOLL_PWAIT2,
		"eventfd2": unix.SYS_EVENTFD2, "signalfd4": unix.SYS_SIGNALFD4,
		"timerfd_create": unix.SYS_TIMERFD_CREATE, "timerfd_settime": unix.SYS_TIMERFD_SETTIME, "timerfd_gettime": unix.SYS_TIMERFD_GETTIME,
		"timer_create": unix.SYS_TIMER_CREATE, "timer_settime": unix.SYS_TIMER_SETTIME, "timer_gettime": unix.SYS_TIMER_GETTIME,
		"timer_getoverrun": unix.SYS_TIMER_GETOVERRUN, "timer_delete": unix.SYS_TIMER_DELETE,
	}},
	{"Python, Node and Go: files and children", calls{
		"preadv": unix.SYS_PREADV, "pwritev": unix.SYS_PWRITEV, "readahead": unix.SYS_READAHEAD,
		"close_range": unix.SYS_CLOSE_RANGE, "pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL,
		"sched_getparam": unix.SYS_SCHED_GETPARAM, "sched_getscheduler": unix.SYS_SCHED_GETSCHEDULER,
		"sched_get_priority_max": unix.SYS_SCHED_GET_PRIORITY_MAX, "sched_get_priority_min": unix.SYS_SCHED_GET_PRIORITY_MIN,
	}},
	{"Python's asyncio and Node: pairs of sockets", calls{
		"sendto": unix.SYS_SENDTO, "recvfrom": unix.SYS_RECVFROM, "recvmsg": unix.SYS_RECVMSG, "shutdown": unix.SYS_SHUTDOWN,
		"getsockopt": unix.SYS_GETSOCKOPT, "getsockname": unix.SYS_GETSOCKNAME, "getpeername": unix.SYS_GETPEERNAME,
	}},
}

// pretended are the calls that report success and do nothing, so that programs that make them
// on files of their own go on. The kernel would allow them on files that a program may not
// open, and locks on files that all programs share.
var pretended = []callGroup{
	{"modes, owners, times and attributes of files", calls{
		"fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat2": sysFchmodat2, "fchown": unix.SYS_FCHOWN, "fchownat": unix.SYS_FCHOWNAT, "utimensat": unix.SYS_UTIMENSAT,
		"setxattr": unix.SYS_SETXATTR, "lsetxattr": unix.SYS_LSETXATTR, "fsetxattr": unix.SYS_FSETXATTR,
		"removexattr": unix.SYS_REMOVEXATTR, "lremovexattr": unix.SYS_LREMOVEXATTR, "fremovexattr": unix.SYS_FREMOVEXATTR,
	}},
	{"locks of files", calls{"flock": unix.SYS_FLOCK}},
	{"sizes of socket buffers", calls{"setsockopt": unix.SYS_SETSOCKOPT}},
}

// sysFchmodat2 is the number of fchmodat2 on every architecture.
const sysFchmodat2 = 452

// An answer is what the filter returns for a call.
type answer uint32

const (
	permit  answer = unix.SECCOMP_RET_ALLOW
	pretend answer = unix.SECCOMP_RET_ERRNO // with no error
	refuse  answer = unix.SECCOMP_RET_ERRNO | answer(unix.EACCES)
	noCall  answer = unix.SECCOMP_RET_ERRNO | answer(unix.ENOSYS)
	noValue answer = unix.SECCOMP_RET_ERRNO | answer(unix.EINVAL)
	notTTY  answer = unix.SECCOMP_RET_ERRNO | answer(unix.ENOTTY)
)

// A checkedCall is a call whose answer depends on its arguments.
type checkedCall struct {
	name      string
	number    uint32
	rule      string // in words
	tests     []argumentTest
	otherwise answer // if no test holds
	starting  bool   // whether it is listed only because this process needs it to start a program
}

// An argumentTest holds if an argument, with a mask, is one of some values. The kernel reads these
// arguments as numbers of 32 bits too.
type argumentTest struct {
	argument int
	mask     uint32
	values   []uint32
	answer   answer
}

const (
	everyBit = ^uint32(0)

	fionread, fionbio, fioclex, fionclex = 0x541b, 0x5421, 0x5451, 0x5450 // requests of ioctl

	// namespaces are the flags of clone that make a namespace.
	namespaces = ownNamespaces | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	// ownNamespaces are the flags for those that a confined program starts in. A program in them can
	// make no others, since the kernel refuses a user namespace to a user who has no number in the
	// namespace above.
	ownNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET
)

// checked are the calls with some arguments.
var checked = []checkedCall{
	{
		name: "clone", number: unix.SYS_CLONE, rule: "no new namespaces, except those of the program itself, by its start; no thread with a table of open files of its own", otherwise: refuse,
		tests: []argumentTest{
			{argument: 0, mask: unix.CLONE_THREAD | unix.CLONE_FILES, values: []uint32{unix.CLONE_THREAD}, answer: refuse}, // /proc/PID/fd shows that of one thread
			{argument: 0, mask: namespaces, values: []uint32{0, ownNamespaces}, answer: permit},
		},
	},
	{name: "clone3", number: unix.SYS_CLONE3, rule: "does not exist (`ENOSYS`), since its flags are not in its arguments; libraries use `clone` instead", otherwise: noCall},
	{
		name: "ptrace", number: unix.SYS_PTRACE, rule: "`TRACEME` and `DETACH`: a program is traced until its limits are set", otherwise: refuse, starting: true,
		tests: []argumentTest{{0, everyBit, []uint32{unix.PTRACE_TRACEME, unix.PTRACE_DETACH}, permit}},
	},
	{
		name: "fcntl", number: unix.SYS_FCNTL, otherwise: refuse,
		rule: "`DUPFD`, `DUPFD_CLOEXEC`, `GETFD`, `SETFD`, `GETFL`, `SETFL`, `GETPIPE_SZ`; `SETLK`, `SETLKW` and their `OFD` forms report success and lock nothing",
		tests: []argumentTest{
			{1, everyBit, []uint32{unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETPIPE_SZ}, permit},
			{1, everyBit, []uint32{unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW}, pretend},
		},
	},
	{
		name: "ioctl", number: unix.SYS_IOCTL, rule: "`FIONREAD`, `FIONBIO`, `FIOCLEX`, `FIONCLEX`; nothing is a terminal (`ENOTTY`)", otherwise: notTTY,
		tests: []argumentTest{{1, everyBit, []uint32{fionread, fionbio, fioclex, fionclex}, permit}},
	},
	{
		name: "prctl", number: unix.SYS_PRCTL, rule: "names of threads and of memory, `NO_NEW_PRIVS`, `PDEATHSIG`, `DUMPABLE`, `CAPBSET_READ`, `THP_DISABLE`", otherwise: noValue,
		tests: []argumentTest{{0, everyBit, []uint32{
			unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG,
			unix.PR_SET_DUMPABLE, unix.PR_GET_DUMPABLE, unix.PR_CAPBSET_READ, unix.PR_SET_THP_DISABLE,
		}, permit}},
	},
	{
		name: "socketpair", number: unix.SYS_SOCKETPAIR, rule: "`AF_UNIX` with `SOCK_STREAM` or `SOCK_SEQPACKET`: ends that only children can inherit", otherwise: refuse,
		tests: []argumentTest{
			{argument: 1, mask: 0xf, values: []uint32{unix.SOCK_DGRAM, unix.SOCK_RAW}, answer: refuse}, // a datagram can be sent to any socket that has a path
			{argument: 0, mask: everyBit, values: []uint32{unix.AF_UNIX}, answer: permit},
		},
	},
	{name: "socket", number: unix.SYS_SOCKET, rule: "none", otherwise: refuse},
}
