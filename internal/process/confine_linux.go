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
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemFiles are the files outside its folder that every confined program may read and
// execute.
var systemFiles = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/mime.types", "/etc/magic",
}

// devices are the devices that a confined program may read and write.
var devices = []string{"/dev/null", "/dev/zero", "/dev/urandom"}

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// fileAccess is what a rule for a file, and not a folder, can allow.
	fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	minVersion    = 3  // of Landlock: the first that controls truncation
	scopesVersion = 6  // the first that controls signals
	deviceVersion = 5  // the first that controls requests to devices
	allAccessBits = 15 // in version 3: EXECUTE to TRUNCATE
)

// Missing says what this system lacks to confine programs; empty if it can confine them. Only what
// the kernel says counts: if something else fails, such as a want of memory, programs are still
// to be confined, and do not start until that works.
var Missing = sync.OnceValue(func() string {
	const noProgram = "/dev/null/program" // what fails here is its start, once everything is set
	cmd := exec.Command(noProgram)
	cmd.Dir = "/"
	ownGroup(cmd)
	q := &quota{dir: cmd.Dir, limits: defaultLimits(), stopped: make(chan struct{})}
	close(q.stopped)
	return whatLacks(startConfined(cmd, nil, q))
})

// whatLacks returns what the kernel lacks if a confined program could not start for this reason.
func whatLacks(err error) string {
	if lack, ok := errors.AsType[*lackError](err); ok {
		return lack.what
	}
	if start, ok := errors.AsType[*fs.PathError](err); !ok || start.Op != "fork/exec" {
		return "" // of no call that makes namespaces
	}
	const how = "user namespaces, or does not permit them"
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return how
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		if limit, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err == nil && strings.TrimSpace(string(limit)) == "0" {
			return how
		}
	}
	return ""
}

// A lackError reports a part of the kernel that confinement needs.
type lackError struct{ what string }

func (e *lackError) Error() string { return "the kernel lacks " + e.what }

// startConfined starts cmd with access only to the folder of q and the system's programs. Landlock
// blocks all other files, /proc and /tmp included, and on newer kernels signals to other
// processes. A seccomp filter permits the calls of the tables in calls_linux.go. A PID namespace
// ends all children with the program. What remains possible is to find out with stat whether a
// file exists.
//
// All of this applies to a thread and its children, so a dedicated thread applies it, starts
// the program and exits once the quota has stopped. The limits on resources apply to a process,
// so the program is traced until they are set: it stops before its first instruction.
//
// If this process is killed, the kernel kills the program, and with it the namespace.
func startConfined(cmd *exec.Cmd, readable []string, q *quota) error {
	cmd.SysProcAttr.Cloneflags |= ownNamespaces
	cmd.SysProcAttr.Ptrace, cmd.SysProcAttr.Pdeathsig = true, unix.SIGKILL
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Setsid = false, true // schedulers divide time between sessions
	began, limited, released := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread ends with this goroutine
		if err := restrictThread(q.dir, readable); err != nil {
			began <- fmt.Errorf("confine %s: %w", cmd.Path, err)
			return
		}
		if err := cmd.Start(); err != nil {
			began <- err
			return
		}
		began <- awaitStop(cmd.Process.Pid)
		if <-limited != nil {
			return
		}
		err := os.NewSyscallError("ptrace", unix.PtraceDetach(cmd.Process.Pid))
		if released <- err; err == nil {
			<-q.stopped // Pdeathsig is sent when the thread ends, not the process
		}
	}()
	err := <-began
	if cmd.Process == nil {
		return err
	}
	if err == nil {
		err = applyLimits(cmd.Process.Pid, q.limits) // not by the thread above, which may no longer
	}
	if err != nil { // before that thread ends, since a program that is no longer traced continues
		_ = cmd.Process.Kill()
	}
	if limited <- err; err == nil {
		err = <-released
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("limit %s: %w", cmd.Path, err)
	}
	return nil
}

// awaitStop waits until a program has stopped before its first instruction. The thread that started
// the program must call it.
func awaitStop(pid int) error {
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
	return nil
}

// restrictThread applies the limits to the current thread.
func restrictThread(dir string, readable []string) error {
	// What the parent of this process left open would pass to the program.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return os.NewSyscallError("close_range", err)
	}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < minVersion {
		return &lackError{fmt.Sprintf("Landlock of version %d or later (Linux 6.2)", minVersion)}
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

// filterCalls installs a seccomp filter for the calls that a confined program may make.
func filterCalls() error {
	program := filter()
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
		return &lackError{"seccomp filters, or does not permit them"}
	}
	return os.NewSyscallError("seccomp", err)
}
