package journal

import (
	"cmp"
	"errors"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A Holder identifies a process, so that other processes can find out whether it still runs,
// also after a crash. Equal Holders are the same process.
type Holder struct {
	Host    string `json:"host,omitempty"`  // the host's name
	Boot    string `json:"boot,omitempty"`  // the boot ID of the kernel; empty where there is none
	Space   string `json:"space,omitempty"` // the namespaces of PID and Started; empty where there are none
	PID     int    `json:"pid"`
	Started string `json:"started,omitempty"` // when the process started, in ticks of the kernel; empty if unknown
}

// ThisHolder returns the Holder of this process. Fields that the system does not tell are
// empty; then the beats of a lease decide.
func ThisHolder() Holder { return procfs("/proc").holder() }

// A liveness is whether a process runs.
type liveness int

const (
	unknown liveness = iota // it cannot be seen from here, or not distinguished from another
	alive
	dead
)

// A process is the state of a process ID.
type process struct {
	gone    bool   // no process has the ID
	started string // when the process started; empty if unknown
}

// namespaced reports whether the system has namespaces. Then the PID of a Holder without
// one has no meaning.
const namespaced = runtime.GOOS == "linux"

// sees reports whether other is on the same host and in the same namespaces, so that its
// PID can be looked up.
func (h Holder) sees(other Holder) bool {
	return h.Host != "" && other.Host == h.Host && other.Space == h.Space && (other.Space != "" || !namespaced)
}

// liveness returns whether other runs. In doubt it returns unknown, and the beats of the
// lease decide.
func (h Holder) liveness(other Holder, find func(pid int) process) liveness {
	if !h.sees(other) {
		return unknown
	}
	if other.Boot != h.Boot && other.Boot != "" && h.Boot != "" {
		return dead
	}
	switch p := find(other.PID); {
	case p.gone:
		return dead
	case p.started == "" || other.Started == "":
		return unknown
	case p.started != other.Started: // another process has the ID now
		return dead
	case other.Boot == "" || h.Boot == "": // it may be the same tick of another boot
		return unknown
	}
	return alive
}

// procfs is the path of the proc file system of Linux.
type procfs string

// findProcess looks up a process of this host.
func findProcess(pid int) process { return procfs("/proc").find(pid) }

func (root procfs) holder() Holder {
	h := Holder{PID: os.Getpid(), Boot: root.boot(), Space: root.space()}
	h.Host, _ = os.Hostname()
	if root.ours() {
		_, h.Started, _ = root.stat(h.PID)
	}
	return h
}

func (root procfs) boot() string {
	id, _ := os.ReadFile(filepath.Join(string(root), "sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(id))
}

// space names the namespace of process IDs and that of clocks, which shifts the start times
// of processes.
func (root procfs) space() string {
	pids, err := os.Readlink(filepath.Join(string(root), "self/ns/pid"))
	if err != nil {
		return ""
	}
	clocks, _ := os.Readlink(filepath.Join(string(root), "self/ns/time")) // since Linux 5.6
	return pids + clocks
}

// ours reports whether the file system is of the namespace of this process. A new namespace
// may still have the one of its parent.
func (root procfs) ours() bool {
	self, err := os.Readlink(filepath.Join(string(root), "self"))
	return err == nil && path.Base(self) == strconv.Itoa(os.Getpid())
}

// stat returns the state of a process, a letter, and when it started, in ticks since boot.
func (root procfs) stat(pid int) (state, started string, err error) {
	text, err := os.ReadFile(filepath.Join(string(root), strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", "", err
	}
	end := strings.LastIndexByte(string(text), ')') // the name of the command before it may contain any character
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 20 {
		return "", "", errors.New("unknown form of stat")
	}
	return fields[0], fields[19], nil
}

// find looks a process up in the files, or else asks the kernel, since the files may hide
// processes of other users.
func (root procfs) find(pid int) process {
	if pid < 1 {
		return process{}
	}
	if root.ours() {
		if state, started, err := root.stat(pid); err == nil {
			return process{gone: strings.Contains("ZXx", state), started: started} // a zombie has ended
		}
	}
	return process{gone: gone(pid)}
}

// gone reports whether certainly no process has the ID.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // on some systems also for a process of another user
	}
	defer p.Release() //nolint:errcheck // nothing was started
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// String describes the process for people.
func (h Holder) String() string {
	return "process " + strconv.Itoa(h.PID) + " on host " + cmp.Or(h.Host, "without a name")
}
