//go:build linux && (amd64 || arm64)

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemFiles are the files outside its folder that every confined program may read and
// execute.
var systemFiles = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/ssl/certs", "/etc/mime.types", "/etc/magic",
}

// devices are the devices that a confined program may read and write.
var devices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// fileAccess is what a rule for a file, and not a folder, can allow.
	fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	minVersion    = 3  // of Landlock: the first that controls truncation
	scopesVersion = 6  // the first that controls signals
	deviceVersion = 5  // the first that controls requests to devices
	allAccessBits = 15 // in version 3: EXECUTE to TRUNCATE
)

// forbidden are the system calls that a confined program may not make.
var forbidden = []uint32{
	unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET,
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
}

// pretended are the system calls that change modes, owners and times, also of files that a
// confined program may not open, and the processors that a program uses. They report success and do nothing, so that programs that
// make them on files of their own go on.
var pretended = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, sysFchmodat2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SCHED_SETAFFINITY, // see yieldProcessors
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
}

// sysFchmodat2 is the number of fchmodat2 on every architecture.
const sysFchmodat2 = 452

// Confines reports whether this system can confine programs.
var Confines = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "runteam")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	cmd.Dir = dir
	ownGroup(cmd)
	q := newQuota(dir, defaultLimits())
	defer close(q.stopped)
	return startConfined(cmd, nil, q) == nil && cmd.Wait() == nil
})

// startConfined starts cmd with access only to the folder of q and the system's programs. Landlock
// blocks all other files, /proc and /tmp included, and on newer kernels signals to other
// processes. A seccomp filter blocks sockets of every family, key rings and tracing, and makes
// calls that change modes, owners and times do nothing. A PID namespace ends all children with
// the program. What remains possible is to find out with stat whether a file exists.
//
// All of this applies to a thread and its children, so a dedicated thread applies it, starts
// the program and exits once the quota has stopped. The limits on resources apply to a process,
// so the program is traced until they are set: it stops before its first instruction.
//
// If this process is killed, the kernel kills the program, and with it the namespace.
func startConfined(cmd *exec.Cmd, readable []string, q *quota) error {
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET
	cmd.SysProcAttr.Ptrace, cmd.SysProcAttr.Pdeathsig = true, unix.SIGKILL
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Setsid = false, true // schedulers divide time between sessions
	err := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread ends with this goroutine
		if e := restrictThread(q.dir, readable); e != nil {
			err <- fmt.Errorf("confine %s: %w", cmd.Path, e)
			return
		}
		if e := cmd.Start(); e != nil {
			err <- e
			return
		}
		if e := release(cmd.Process.Pid, q.limits); e != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			err <- fmt.Errorf("limit %s: %w", cmd.Path, e)
			return
		}
		err <- nil
		<-q.stopped // Pdeathsig is sent when the thread ends, not the process
	}()
	return <-err
}

// release sets the limits of a program that has stopped before its first instruction, and
// lets it continue. The thread that started the program must call it.
func release(pid int, l *Limits) error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("wait4", err)
		}
	}
	if !status.Stopped() {
		return errors.New("it ended before its limits were set")
	}
	if err := applyLimits(pid, l); err != nil {
		return err
	}
	return os.NewSyscallError("ptrace", unix.PtraceDetach(pid))
}

// restrictThread applies the limits to the current thread.
func restrictThread(dir string, readable []string) error {
	// What the parent of this process left open would pass to the program.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return os.NewSyscallError("close_range", err)
	}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < minVersion {
		return errors.New("the kernel lacks Landlock, or has too old a version")
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: 1<<allAccessBits - 1}
	if version >= deviceVersion {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	size := unsafe.Offsetof(rules.Scoped) // older kernels do not know the fields behind it
	if version >= scopesVersion {
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(rules.Scoped)
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(set))
	for _, path := range slices.Concat(systemFiles, readable) {
		if err := allow(int(set), path, readAccess); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, path := range devices {
		if err := allow(int(set), path, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	own := uint64(1<<allAccessBits-1) &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK)
	if err := allow(int(set), dir, own); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return filterCalls()
}

// allow adds a rule for everything below a path.
func allow(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}

// filterCalls installs a seccomp filter that refuses the forbidden system calls, tracing, and
// all calls of another architecture.
func filterCalls() error {
	const (
		load, jumpEqual, jumpAtLeast, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K

		offsetOfCall, offsetOfArch, offsetOfArgument = 0, 4, 16   // in struct seccomp_data
		otherABI                                     = 0x40000000 // numbers of the x32 ABI of amd64 begin here
	)
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	refuse := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(syscall.EACCES)}
	program := []unix.SockFilter{
		{Code: load, K: offsetOfArch},
		{Code: jumpEqual, K: arch, Jt: 1},
		refuse,
		{Code: load, K: offsetOfCall},
		{Code: jumpAtLeast, K: otherABI, Jf: 1},
		refuse,
	}
	for _, call := range forbidden {
		program = append(program, unix.SockFilter{Code: jumpEqual, K: call, Jf: 1}, refuse)
	}
	pretend := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO} // with no error
	for _, call := range append(pretended, oldCalls...) {
		program = append(program, unix.SockFilter{Code: jumpEqual, K: call, Jf: 1}, pretend)
	}
	permit := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW}
	program = append(program, // a program is traced only until its limits are set; see release
		unix.SockFilter{Code: jumpEqual, K: unix.SYS_PTRACE, Jf: 5},
		unix.SockFilter{Code: load, K: offsetOfArgument},
		unix.SockFilter{Code: jumpEqual, K: unix.PTRACE_TRACEME, Jt: 2},
		unix.SockFilter{Code: jumpEqual, K: unix.PTRACE_DETACH, Jt: 1},
		refuse, permit, permit)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return os.NewSyscallError("seccomp", unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0))
}
