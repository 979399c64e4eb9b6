//go:build linux && (amd64 || arm64)

package process

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runteam/runteam/internal/bytesize"
)

// maxTimers is how many timers and queued signals a program may have. Those of all programs of a user have a
// limit together.
const maxTimers = 1024

// applyLimits sets the limits that the kernel enforces on a process and those that it starts.
// They hold for each process by itself, and the number of processes not for root, so a [quota]
// watches their sums.
func applyLimits(pid int, l *Limits) error {
	cpu := uint64(max(l.CPU/time.Second, 1))
	for resource, value := range map[int]uint64{
		unix.RLIMIT_NPROC: uint64(l.Processes), unix.RLIMIT_DATA: uint64(l.Memory), unix.RLIMIT_FSIZE: uint64(l.FileSize),
		unix.RLIMIT_CPU: cpu, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_NOFILE: maxOpenFiles, unix.RLIMIT_SIGPENDING: maxTimers,
	} {
		limit := unix.Rlimit{Cur: value, Max: value}
		switch resource {
		case unix.RLIMIT_CPU:
			limit.Max++ // after a signal that the program may handle
		case unix.RLIMIT_NOFILE, unix.RLIMIT_SIGPENDING:
			var own unix.Rlimit
			if err := unix.Prlimit(pid, resource, nil, &own); err != nil {
				return os.NewSyscallError("prlimit", err)
			}
			limit = unix.Rlimit{Cur: min(own.Cur, value), Max: min(own.Max, value)}
		}
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
			return os.NewSyscallError("prlimit", err)
		}
	}
	if os.Geteuid() == 0 { // the kernel does not limit how many processes root starts, and the quota must run beside thousands
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	}
	// If memory runs out nevertheless, the kernel ends this program first.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	return nil
}

// A quota watches what a confined program uses, and kills it above a limit. A nil quota
// watches nothing.
type quota struct {
	limits   *Limits
	dir      string
	before   usage // of the disk, before the program started
	stopped  chan struct{}
	watches  sync.WaitGroup
	exceed   sync.Once
	exceeded string // the limit that was reached first; read after watches
}

// Times between two looks at what a program uses.
const (
	countEach = 10 * time.Millisecond  // how often the threads of the machine or the free space are read, which is fast
	watchEach = 100 * time.Millisecond // how often all is looked at, unless there is suddenly much more
	watchLoad = 20                     // a look may take at most one part in this many of the time
)

// reserve is how much of a file system a program must leave free, unless less was free before.
const reserve = 256 << 20

func newQuota(dir string, l *Limits) *quota {
	q := &quota{limits: l, dir: dir, stopped: make(chan struct{})}
	q.before.readDisk(dir, math.MaxInt64, never)
	return q
}

// watch begins to watch a program. Its processes are watched apart from its files, since a program can make
// so many files that a look at them takes seconds.
func (q *quota) watch(cmd *exec.Cmd) {
	root := cmd.Process.Pid
	urgentThreads := countThreads() + q.limits.Processes/2
	q.watches.Go(func() {
		q.repeat(cmd, func() bool { return countThreads() >= urgentThreads }, func() (now usage) {
			now.readProcesses(root, q.limits.Processes)
			urgentThreads = countThreads() + (q.limits.Processes-now.processes)/2
			return now
		})
	})
	urgentFree := q.before.free - q.limits.Disk/2
	q.watches.Go(func() {
		q.repeat(cmd, func() bool { return freeSpace(q.dir) < urgentFree }, func() (now usage) {
			if members := now.readProcesses(root, q.limits.Processes); now.processes < q.limits.Processes {
				now.readOpenFiles(members, now.readDisk(q.dir, q.diskLimit(), q.isStopped), q.limits.FileSize)
			}
			urgentFree = now.free - max(q.limits.Disk-now.disk, q.limits.Disk/8)/2
			return now
		})
	})
}

// repeat looks at what a program uses until that is above a limit or the program has ended. It looks sooner
// when isUrgent reports that all programs together suddenly use much more.
func (q *quota) repeat(cmd *exec.Cmd, isUrgent func() bool, look func() usage) {
	tick := time.NewTicker(countEach)
	defer tick.Stop()
	wait, lookTime, last := watchEach, time.Duration(0), time.Now()
	for {
		select {
		case <-q.stopped:
			return
		case <-tick.C:
		}
		if since := time.Since(last); since < wait && (since < lookTime || !isUrgent()) {
			continue
		}
		began := time.Now()
		now := look()
		if reached := q.reached(&now); reached != "" {
			q.exceed.Do(func() { q.exceeded = reached })
			killGroup(cmd) // the end of the first process of the namespace ends all others
			return
		}
		last = time.Now()
		lookTime = last.Sub(began)
		wait = max(watchEach, watchLoad*lookTime)
	}
}

// diskLimit returns how many bytes the files of a program may take: its limit, or what they took before it started.
func (q *quota) diskLimit() int64 { return max(q.limits.Disk, q.before.disk) }

func (q *quota) isStopped() bool {
	select {
	case <-q.stopped:
		return true
	default:
		return false
	}
}

// countThreads returns the number of threads of the machine.
func countThreads() int {
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	return int(info.Procs)
}

// stop ends the watch once the program has ended, and returns the limit that the program
// reached, or "".
func (q *quota) stop(state *os.ProcessState) string {
	if q == nil {
		return ""
	}
	close(q.stopped)
	q.watches.Wait()
	if q.exceeded != "" || state == nil || state.Success() {
		return q.exceeded
	}
	last := usage{cpu: state.UserTime() + state.SystemTime()}
	deadline := time.Now().Add(time.Second)
	if last.readDisk(q.dir, q.diskLimit(), func() bool { return time.Now().After(deadline) }); last.largest >= q.limits.FileSize {
		return fmt.Sprintf("a file reached %s, the limit for one file", bytesize.Text(int(q.limits.FileSize)))
	}
	return q.reached(&last)
}

// reached says which limit is reached; empty if none.
func (q *quota) reached(u *usage) string {
	l := q.limits
	switch {
	case u.processes >= l.Processes:
		return fmt.Sprintf("it started too many processes and threads, and at most %d may run", l.Processes)
	case u.memory > l.Memory:
		return fmt.Sprintf("it used more than %s of memory", bytesize.Text(int(l.Memory)))
	case u.cpu >= l.CPU:
		return fmt.Sprintf("it used %v of processor time", l.CPU)
	case u.disk > q.diskLimit():
		return fmt.Sprintf("its files take more than %s", bytesize.Text(int(l.Disk)))
	case u.tooDeep:
		return fmt.Sprintf("its folders are nested so deeply that a path has more than %s", bytesize.Text(maxPath))
	case u.handles > maxHandles:
		return fmt.Sprintf("its processes opened and watched more than %d files", maxHandles)
	case u.unseen:
		return "its open files cannot be counted"
	case u.disk > 0 && u.free < min(reserve, q.before.free/2):
		return "the disk is nearly full"
	}
	return ""
}

// totalMemory returns the memory of this machine.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
