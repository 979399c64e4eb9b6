//go:build linux && (amd64 || arm64)

package process

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A usage is what a program uses.
type usage struct {
	processes int
	memory    int64 // with what pipes and sockets can hold
	cpu       time.Duration
	disk      int64
	largest   int64 // bytes of the largest file
	free      int64 // bytes of the file system
	handles   int   // open files, and what epolls watch
	tooDeep   bool  // a path is longer than maxPath
	unseen    bool  // a process keeps others from seeing its open files
}

// readProcesses adds what a process and its descendants use, and returns the folders of /proc in
// which they show. Orphans become children of the first process of the namespace, so no process is
// missed. It stops at a limit of processes and threads: among thousands, reading takes long.
func (u *usage) readProcesses(root, limit int) (tasks []string) {
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
		tasks = append(tasks, p.task)
		u.processes += p.threads
		u.memory += p.memory
		u.cpu += p.cpu
	}
	for _, pid := range pids {
		p := readProcess(pid)
		switch {
		case p == nil:
		case pid == root || members[p.parent]:
			if add(pid, p); u.processes >= limit {
				return tasks
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
	return tasks
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A process is what the kernel says about one process.
type process struct {
	task    string // the folder of /proc of one of its threads that has not ended
	parent  int
	threads int
	memory  int64
	cpu     time.Duration // its own and that of its children that have ended
}

// ticks is the unit of processor times in /proc on all architectures here.
const ticks = time.Second / 100

// readProcess returns what the kernel says about a process, or nil if it has ended.
func readProcess(pid int) *process {
	const state, parent, userTime, threads, resident = 0, 1, 11, 17, 21 // of the fields of a task
	folder := fmt.Sprintf("/proc/%d", pid)
	fields := statOf(folder)
	if len(fields) <= resident {
		return nil
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return n
	}
	p := &process{task: folder, parent: int(number(parent)), threads: int(number(threads))}
	for i := range 4 { // of the process in user and system mode, and of its children
		p.cpu += time.Duration(number(userTime+i)) * ticks
	}
	ended := func() bool { return len(fields) <= resident || fields[state] == "Z" || fields[state] == "X" }
	if ended() { // the others may go on after the first thread, which shows no memory and files then
		for _, thread := range namesIn(folder + "/task") {
			p.task = folder + "/task/" + thread
			if fields = statOf(p.task); !ended() {
				break
			}
		}
		if ended() {
			return nil
		}
	}
	p.memory = number(resident) * int64(os.Getpagesize())
	return p
}

// statOf returns what the kernel says about a task, without its number and name.
func statOf(folder string) []string {
	raw, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // the name is in parentheses
}

// namesIn returns the names in a folder; none if it cannot be read.
func namesIn(dir string) []string {
	names, _ := readNames(dir)
	return names
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
