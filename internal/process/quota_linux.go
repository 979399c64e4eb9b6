//go:build linux && (amd64 || arm64)

package process

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	} {
		limit := unix.Rlimit{Cur: most, Max: most}
		if resource == unix.RLIMIT_CPU {
			limit.Max++ // after a signal that the program may handle
		}
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
			return os.NewSyscallError("prlimit", err)
		}
	}
	if os.Geteuid() == 0 {
		yieldProcessors(pid)
	}
	// If memory runs out nevertheless, the kernel ends this program first.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	return nil
}

// yieldProcessors gives a process of root the lowest priority, and keeps it from one of several
// processors. The kernel does not limit how many processes root starts, so the quota must get
// to run beside thousands of them.
func yieldProcessors(pid int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil || set.Count() < 2 {
		return
	}
	for cpu := 0; ; cpu++ {
		if set.IsSet(cpu) {
			set.Clear(cpu)
			break
		}
	}
	_ = unix.SchedSetaffinity(pid, &set)
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

// A usage is what a program uses.
type usage struct {
	processes int
	memory    int64
	cpu       time.Duration
	disk      int64
	largest   int64 // bytes of the largest file
	free      int64 // bytes of the file system
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
			now.readProcesses(cmd.Process.Pid, q.limits.Processes)
			if now.processes < q.limits.Processes {
				now.readDisk(q.dir)
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
	case u.disk > 0 && u.free < min(reserve, q.before.free/2):
		return "the disk is nearly full"
	}
	return ""
}

// readProcesses adds what a process and its descendants use. Orphans become children of the
// first process of the namespace, so no process is missed. It stops at a number of processes
// and threads: among thousands, reading takes long.
func (u *usage) readProcesses(root, most int) {
	var pids []int
	for _, name := range namesIn("/proc") {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.SortFunc(pids, func(a, b int) int { // those that are newer than the root first, and parents before their children
		return cmp.Or(boolInt(a < root)-boolInt(b < root), a-b)
	})
	members, others := map[int]bool{}, map[int]*process{}
	add := func(pid int, p *process) {
		members[pid] = true
		u.processes += p.threads
		u.memory += p.memory
		u.cpu += p.cpu
	}
	for _, pid := range pids {
		p := readProcess(pid)
		switch {
		case p == nil:
		case pid == root || members[p.parent]:
			if add(pid, p); u.processes >= most {
				return
			}
		default:
			others[pid] = p
		}
	}
	for found := true; found; { // numbers begin again at 1 some time, so a child may come before its parent
		found = false
		for pid, p := range others {
			if members[p.parent] {
				add(pid, p)
				delete(others, pid)
				found = true
			}
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A process is what the kernel says about one process.
type process struct {
	parent  int
	threads int
	memory  int64
	cpu     time.Duration // its own and that of its children that have ended
}

// ticks is the unit of processor times in /proc on all architectures here.
const ticks = time.Second / 100

// readProcess returns what the kernel says about a process, or nil if it has ended.
func readProcess(pid int) *process {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	const state, parent, userTime, threads, resident = 0, 1, 11, 17, 21 // behind the name, which is in parentheses
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) <= resident || fields[state] == "Z" {
		return nil
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return n
	}
	p := &process{parent: int(number(parent)), threads: int(number(threads)), memory: number(resident) * int64(os.Getpagesize())}
	for i := range 4 { // of the process in user and system mode, and of its children
		p.cpu += time.Duration(number(userTime+i)) * ticks
	}
	return p
}

// namesIn returns the names in a folder.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// readDisk adds what the files of a folder take.
func (u *usage) readDisk(dir string) {
	const least, block = 4 << 10, 512
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed, or took its own rights away
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			u.disk += max(stat.Blocks*block, least)
		}
		if info.Mode().IsRegular() {
			u.largest = max(u.largest, info.Size())
		}
		return nil
	})
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err == nil {
		u.free = int64(system.Bavail) * system.Bsize
	}
}

// totalMemory returns the memory of this machine.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
