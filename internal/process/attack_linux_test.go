package process_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/slowtest"
)

const dnModify = 2 // of the fcntl command F_NOTIFY

// attackVariable names an attack that this program makes, in place of its tests.
const attackVariable = "PROCESS_TEST_ATTACK"

// attack runs this program confined, to make an attack.
func attack(t *testing.T, name string, limits *process.Limits) process.Result {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	r, err := process.Run(t.Context(), &process.Command{
		Path: program, Dir: t.TempDir(), Env: []string{attackVariable + "=" + name, "PATH=/usr/bin:/bin"}, Confine: true, Readable: []string{program}, Limits: limits,
	}, nil, 1<<20)
	require.NoError(t, err)
	return r
}

// attacks are what a confined program must not be able to do. Each returns an error if it fails.
var attacks = map[string]func() error{
	"lock a record":            func() error { return lockTwice(unix.F_OFD_SETLK, "/dev/null") },
	"lock a record of a file":  func() error { return lockTwice(unix.F_OFD_SETLKW, "own") },
	"read locks":               readLocks(unix.F_GETLK),
	"read locks of open files": readLocks(unix.F_OFD_GETLK),
	"lock a file":              flockTwice,
	"lease a file":             func() error { return fcntl("own", unix.F_SETLEASE, unix.F_WRLCK) },
	"watch a folder":           func() error { return fcntl(".", unix.F_NOTIFY, dnModify) },
	"signals of a file":        func() error { return fcntl("own", unix.F_SETSIG, int(unix.SIGUSR1)) },
	"enlarge a pipe":           enlargePipe,
	"enlarge a socket":         enlargeSocket,
	"pair of datagram sockets": func() error { return pair(unix.SOCK_DGRAM) },
	"pair of raw sockets":      func() error { return pair(unix.SOCK_RAW) },
	"pass a file":              passFile,
	"flags of a system file":   readFlags,
	"device random":            func() error { return open("/dev/random") },
	"device full":              func() error { return open("/dev/full") },
	"terminals":                func() error { return open("/dev/ptmx") },
	"raise a limit":            raiseLimit,
	"timers of the user":       manyTimers,
	"namespace by clone":       func() error { return clone(unix.CLONE_NEWNS) },
	"namespaces of the start": func() error {
		return clone(unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET)
	},
	"thread with own files": ownFiles,
	"trace":                 func() error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(os.Getppid())) },
	"unlisted calls":        unlistedCalls,
	"filter of its own":     func() error { return call(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER) },
}

// missingCalls are system calls that do not exist for a confined program.
var missingCalls = map[string]uintptr{
	"inotify_init1": unix.SYS_INOTIFY_INIT1, "inotify_add_watch": unix.SYS_INOTIFY_ADD_WATCH, "fanotify_init": unix.SYS_FANOTIFY_INIT, "fanotify_mark": unix.SYS_FANOTIFY_MARK,
	"memfd_create": unix.SYS_MEMFD_CREATE, "memfd_secret": unix.SYS_MEMFD_SECRET, "userfaultfd": unix.SYS_USERFAULTFD, "io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER,
	"add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY, "keyctl": unix.SYS_KEYCTL, "bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
	"process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV, "process_madvise": unix.SYS_PROCESS_MADVISE, "kcmp": unix.SYS_KCMP, "pidfd_getfd": unix.SYS_PIDFD_GETFD,
	"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT, "fsopen": unix.SYS_FSOPEN, "open_tree": unix.SYS_OPEN_TREE, "move_mount": unix.SYS_MOVE_MOUNT,
	"setns": unix.SYS_SETNS, "unshare": unix.SYS_UNSHARE, "clone3": unix.SYS_CLONE3, "personality": unix.SYS_PERSONALITY, "capset": unix.SYS_CAPSET, "setuid": unix.SYS_SETUID,
	"kexec_load": unix.SYS_KEXEC_LOAD, "init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE, "reboot": unix.SYS_REBOOT, "syslog": unix.SYS_SYSLOG,
	"settimeofday": unix.SYS_SETTIMEOFDAY, "clock_settime": unix.SYS_CLOCK_SETTIME, "clock_adjtime": unix.SYS_CLOCK_ADJTIME, "sethostname": unix.SYS_SETHOSTNAME, "setdomainname": unix.SYS_SETDOMAINNAME,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "openat2": unix.SYS_OPENAT2, "preadv2": unix.SYS_PREADV2, "pwritev2": unix.SYS_PWRITEV2, "mincore": unix.SYS_MINCORE, "cachestat": unix.SYS_CACHESTAT, "statfs": unix.SYS_STATFS, "fstatfs": unix.SYS_FSTATFS, "quotactl": unix.SYS_QUOTACTL,
	"mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK, "shmget": unix.SYS_SHMGET, "shmat": unix.SYS_SHMAT, "semget": unix.SYS_SEMGET, "semop": unix.SYS_SEMOP, "msgget": unix.SYS_MSGGET, "msgsnd": unix.SYS_MSGSND,
	"connect": unix.SYS_CONNECT, "bind": unix.SYS_BIND, "listen": unix.SYS_LISTEN, "accept4": unix.SYS_ACCEPT4, "sendmsg": unix.SYS_SENDMSG, "sendmmsg": unix.SYS_SENDMMSG, "recvmmsg": unix.SYS_RECVMMSG,
	"vmsplice": unix.SYS_VMSPLICE, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER, "ioprio_set": unix.SYS_IOPRIO_SET, "acct": unix.SYS_ACCT, "swapon": unix.SYS_SWAPON, "seccomp": unix.SYS_SECCOMP, "vhangup": unix.SYS_VHANGUP,
}

// unlistedCalls works if one of these calls exists.
func unlistedCalls() error {
	found := false
	for name, number := range missingCalls {
		if err := call(number, ^uintptr(0), 0); !errors.Is(err, unix.ENOSYS) {
			fmt.Println(name, err)
			found = true
		}
	}
	if found {
		return nil
	}
	return unix.ENOSYS
}

func call(number, first, second uintptr, more ...uintptr) error {
	if _, _, errno := unix.RawSyscall6(number, first, second, append(more, 0)[0], 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func open(path string) error {
	f, err := os.Open(path)
	if err == nil {
		f.Close()
	}
	return err
}

// lockTwice locks a record by two descriptions of a file, and works if the second lock is refused.
func lockTwice(command int, path string) error {
	first, second, err := openTwice(path)
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0x1234, Len: 1}
	if err := unix.FcntlFlock(first, command, &lock); err != nil {
		return err
	}
	if err := unix.FcntlFlock(second, unix.F_OFD_SETLK, &lock); err == nil {
		return errors.New("nothing is locked")
	}
	return nil
}

func flockTwice() error {
	first, second, err := openTwice("own")
	if err != nil {
		return err
	}
	if err := unix.Flock(int(first), unix.LOCK_EX); err != nil {
		return err
	}
	if err := unix.Flock(int(second), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return errors.New("nothing is locked")
	}
	return nil
}

// openTwice returns two descriptions of a file, which stay open.
func openTwice(path string) (first, second uintptr, err error) {
	var found [2]int
	for i := range found {
		if found[i], err = unix.Open(path, unix.O_RDWR|unix.O_CREAT, 0o600); err != nil {
			return 0, 0, err
		}
	}
	return uintptr(found[0]), uintptr(found[1]), nil
}

func readLocks(command int) func() error {
	return func() error {
		first, _, err := openTwice("/dev/null")
		if err != nil {
			return err
		}
		return unix.FcntlFlock(first, command, &unix.Flock_t{Type: unix.F_WRLCK})
	}
}

func fcntl(path string, command, argument int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CREAT, 0o600)
	if errors.Is(err, unix.EISDIR) {
		fd, err = unix.Open(path, unix.O_RDONLY, 0)
	}
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(fd), command, argument)
	return err
}

func enlargePipe() error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], 0); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(ends[0]), unix.F_SETPIPE_SZ, 1<<20)
	return err
}

func enlargeSocket() error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	before, err := unix.GetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return err
	}
	for _, size := range []int{4 << 10, 1 << 30} {
		if err := unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF, size); err != nil {
			return err
		}
		if after, err := unix.GetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil || after != before {
			return err
		}
	}
	return errors.New("the buffer keeps its size")
}

func pair(kind int) error {
	_, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	return err
}

func passFile() error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendmsg(ends[0], []byte("x"), unix.UnixRights(0), nil, 0)
}

// readFlags reads attributes of a file that it may only read; as the owner it could change them too.
func readFlags() error {
	fd, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, err = unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	return err
}

func raiseLimit() error {
	for _, resource := range []int{unix.RLIMIT_NPROC, unix.RLIMIT_NOFILE, unix.RLIMIT_DATA, unix.RLIMIT_FSIZE, unix.RLIMIT_CPU, unix.RLIMIT_CORE} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(resource, &limit); err != nil {
			return err
		}
		limit.Max++
		if err := unix.Prlimit(0, resource, &limit, nil); err == nil {
			return nil
		}
	}
	return errors.New("no limit can be raised")
}

// manyTimers makes more timers than a program needs; the kernel counts them for the user.
func manyTimers() error {
	for range 2000 {
		timer := 0
		if err := call(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&timer))); err != nil {
			return err
		}
	}
	return nil
}

// clone starts a process, which ends at once.
func clone(flags uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		return errno
	case pid == 0:
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

// ownFiles asks for a thread with a table of open files of its own. The kernel demands other flags
// for threads too.
func ownFiles() error {
	if err := clone(unix.CLONE_THREAD); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// Requirement: G65.
func TestConfinedProgramCannotAttack(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	var names []string
	for name := range attacks {
		if _, limited := limitedAttacks[name]; !limited {
			names = append(names, name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := attack(t, name, nil)
			require.Equal(t, 1, r.ExitStatus, "%s%s", r.Stdout, r.Stderr)
		})
	}
}

// limitedAttacks are attacks on limits, with the limit that ends each. They wait to be ended.
var limitedAttacks = map[string]string{
	"deleted files":          "its files take more than 8 MiB",
	"mapped files":           "its files take more than 8 MiB",
	"folders without rights": "its files take more than 8 MiB",
	"long paths":             "its files take more than 8 MiB",
	"very long paths":        "a path has more than 16 KiB",
	"names of one file":      "its files take more than 8 MiB",
	"watched files":          "opened and watched more than 65536 files",
	"sockets":                "120 MiB of memory",
	"pipes":                  "120 MiB of memory",
	"no first thread":        "processes and threads",
}

func init() {
	attacks["deleted files"] = func() error {
		for range 12 {
			f, err := os.Create("file")
			if err != nil {
				return err
			}
			if _, err := f.Write(block[:]); err != nil {
				return err
			}
			if err := os.Remove("file"); err != nil {
				return err
			}
			kept = append(kept, f)
		}
		return wait()
	}
	attacks["mapped files"] = func() error {
		for range 4 {
			f, err := os.Create("file")
			if err != nil {
				return err
			}
			if err := unix.Fallocate(int(f.Fd()), 0, 0, 3<<20); err != nil {
				return err
			}
			if _, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED); err != nil {
				return err
			}
			f.Close()
			if err := os.Remove("file"); err != nil {
				return err
			}
		}
		return wait()
	}
	attacks["folders without rights"] = func() error {
		if err := unix.Mkdir("hidden", 0o300); err != nil {
			return err
		}
		for i := range 12 {
			if err := os.WriteFile(fmt.Sprint("hidden/", i), block[:], 0o600); err != nil {
				return err
			}
		}
		return wait()
	}
	attacks["long paths"] = func() error {
		if err := descend(6 << 10); err != nil {
			return err
		}
		for i := range 12 {
			if err := os.WriteFile(strconv.Itoa(i), block[:], 0o600); err != nil {
				return err
			}
		}
		return wait()
	}
	attacks["very long paths"] = func() error {
		if err := descend(20 << 10); err != nil {
			return err
		}
		return wait()
	}
	attacks["names of one file"] = func() error {
		if err := os.WriteFile("file", nil, 0o600); err != nil {
			return err
		}
		for i := range 3000 {
			if err := os.Link("file", fmt.Sprintf("%0200d", i)); err != nil {
				return err
			}
		}
		return wait()
	}
	attacks["watched files"] = func() error {
		file, err := unix.Eventfd(0, 0)
		if err != nil {
			return err
		}
		for range 70 {
			set, err := unix.EpollCreate1(0)
			if err != nil {
				return err
			}
			for number := 1000; number < 2000; number++ {
				if err := unix.Dup3(file, number, 0); err != nil {
					return err
				}
				if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, number, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
					return err
				}
			}
		}
		return wait()
	}
	attacks["sockets"] = func() error {
		for range 300 {
			ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			for range 64 {
				_, _ = unix.Write(ends[0], block[:32<<10])
			}
		}
		return wait()
	}
	attacks["pipes"] = func() error {
		for range 2000 { // Go has raised the limit of open files
			var ends [2]int
			if err := unix.Pipe2(ends[:], unix.O_NONBLOCK); err != nil {
				return err
			}
			_, _ = unix.Write(ends[1], block[:64<<10])
		}
		return wait()
	}
	attacks["no first thread"] = func() error {
		go func() {
			for range 100 {
				_ = exec.Command("/bin/sleep", "60").Start()
			}
			time.Sleep(time.Minute)
			os.Exit(0)
		}()
		runtime.Gosched()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
		return nil
	}

	// The exit status of an attack is 0 if it works. It begins here, in the first thread.
	name, ok := os.LookupEnv(attackVariable)
	if !ok {
		return
	}
	if err := attacks[name](); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// kept are files that an attack keeps open.
var kept []*os.File

// block is what attacks write. It is not on the heap, which would take a second area of 64 MiB where it begins at the
// end of the first.
var block [1 << 20]byte

// wait waits to be ended.
func wait() error {
	time.Sleep(30 * time.Second)
	return nil
}

// descend makes folders with a path of about a length, and works in the last one.
func descend(length int) error {
	name := strings.Repeat("d", 200)
	for range length / len(name) {
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
		if err := unix.Chdir(name); err != nil {
			return err
		}
	}
	return nil
}

// Not parallel, since its programs take all that they can get from other tests.
//
// Requirement: G65.
func TestConfinedProgramHidesNothingFromItsLimits(t *testing.T) {
	slowtest.NotUnderRace(t) // whose programs take more memory than the limit
	skipUnlessConfines(t, true)
	for name, want := range limitedAttacks {
		t.Run(name, func(t *testing.T) {
			limits := small
			limits.Memory = 120 << 20 // for a program in Go
			r := attack(t, name, &limits)
			require.Contains(t, r.Exceeded, want, "%s%s", r.Stdout, bytes.TrimSpace(r.Stderr))
		})
	}
}

// Not parallel, since it measures the memory of this process.
//
// Requirement: G66.
func TestFoldersOfAConfinedProgramTakeLittleMemory(t *testing.T) {
	skipUnlessConfines(t, true)
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH, 0)
	require.NoError(t, err)
	for range 70 {
		name := strings.Repeat("d", 200)
		require.NoError(t, unix.Mkdirat(at, name, 0o700))
		below, err := unix.Openat(at, name, unix.O_PATH, 0)
		require.NoError(t, err)
		unix.Close(at)
		at = below
	}
	for i := range 5_000 {
		require.NoError(t, unix.Mkdirat(at, strconv.Itoa(i), 0o700))
	}
	unix.Close(at)
	ended, most := make(chan struct{}), make(chan uint64)
	go func() {
		peak := uint64(0)
		for isRunning := true; isRunning; {
			select {
			case <-ended:
				isRunning = false
			case <-time.After(5 * time.Millisecond):
			}
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
		most <- peak
	}()
	_, err = shell(t, dir, true, "exit")
	close(ended)
	require.NoError(t, err)
	require.Less(t, <-most, uint64(40<<20)) // the paths of all these folders have 70 MB
}

// Whether a system can confine programs does not depend on its folder for temporary files.
func TestConfinedProgramNeedsNoTemporaryFolder(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+filepath.Join(dir, "missing"), scriptVariable+"=echo ran > file")
	out, _ := cmd.CombinedOutput() // its status is that of a failure
	require.FileExists(t, filepath.Join(dir, "file"), "%s", out)
}
