//go:build linux && (amd64 || arm64)

package process

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runteam/runteam/internal/bytesize"
)

// applyLimits sets the limits that the kernel enforces on a process and those that it starts.
// They hold for each process by itself, and the number of processes not for root, so a [quota]
// watches their sums.
func applyLimits(pid int, l *Limits) error {
	cpu := uint64(max(l.CPU/time.Second, 1))
	for resource, most := range map[int]uint64{
		unix.RLIMIT_NPROC: uint64(l.Processes), unix.RLIMIT_DATA: uint64(l.Memory), unix.RLIMIT_FSIZE: uint64(l.FileSize),
		unix.RLIMIT_CPU: cpu, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_NOFILE: maxOpenFiles,
	} {
		limit := unix.Rlimit{Cur: most, Max: most}
		switch resource {
		case unix.RLIMIT_CPU:
			limit.Max++ // after a signal that the program may handle
		case unix.RLIMIT_NOFILE:
			var own unix.Rlimit
			if err := unix.Prlimit(pid, resource, nil, &own); err != nil {
				return os.NewSyscallError("prlimit", err)
			}
			limit = unix.Rlimit{Cur: min(own.Cur, most), Max: min(own.Max, most)}
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
	done     chan struct{} // closed when nothing is watched any more
	exceeded string        // the limit that was reached; read after done
}

// Times between two looks at what a program uses.
const (
	countEach = 10 * time.Millisecond  // how often all threads of the machine are counted, which is fast
	watchEach = 100 * time.Millisecond // how often all is looked at, unless there are suddenly many threads
	watchLoad = 20                     // a look may take at most one part in this many of the time
)

// reserve is how much of a file system a program must leave free, unless less was free before.
const reserve = 256 << 20

func newQuota(dir string, l *Limits) *quota {
	q := &quota{limits: l, dir: dir, stopped: make(chan struct{}), done: make(chan struct{})}
	q.before.readDisk(dir)
	return q
}

// watch begins to watch a program.
func (q *quota) watch(cmd *exec.Cmd) {
	go func() {
		defer close(q.done)
		tick := time.NewTicker(countEach)
		defer tick.Stop()
		most, wait, took, last := countThreads()+q.limits.Processes/2, watchEach, time.Duration(0), time.Now()
		for {
			select {
			case <-q.stopped:
				return
			case <-tick.C:
			}
			crowded := countThreads() >= most
			if since := time.Since(last); since < wait && !(crowded && since >= took) {
				continue
			}
			began := time.Now()
			var now usage
			members := now.readProcesses(cmd.Process.Pid, q.limits.Processes)
			if now.processes < q.limits.Processes {
				now.readOpenFiles(members, now.readDisk(q.dir), q.limits.FileSize)
			}
			if q.exceeded = q.reached(&now); q.exceeded != "" {
				killGroup(cmd) // the end of the first process of the namespace ends all others
				return
			}
			if crowded { // by other programs, or nearly
				most = countThreads() + (q.limits.Processes-now.processes)/2
			}
			last = time.Now()
			took = last.Sub(began)
			wait = max(watchEach, watchLoad*took)
		}
	}()
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
	<-q.done
	if q.exceeded != "" || state == nil || state.Success() {
		return q.exceeded
	}
	last := usage{cpu: state.UserTime() + state.SystemTime()}
	if last.readDisk(q.dir); last.largest >= q.limits.FileSize {
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
	case u.disk > l.Disk && u.disk > q.before.disk:
		return fmt.Sprintf("its files take more than %s", bytesize.Text(int(l.Disk)))
	case u.tooDeep:
		return fmt.Sprintf("its folders are nested so deeply that a path has more than %s", bytesize.Text(maxPath))
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
