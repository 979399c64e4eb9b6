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

// A Holder names a process so that another process, now or after a crash, can
// tell whether it still runs. Two are the same process if they are equal.
type Holder struct {
	Host    string `json:"host,omitempty"`  // the host's name
	Boot    string `json:"boot,omitempty"`  // the id that the kernel gave itself when it booted; empty where there is none
	Space   string `json:"space,omitempty"` // the namespaces in which PID and Started count; empty where there are none
	PID     int    `json:"pid"`
	Started string `json:"started,omitempty"` // when the process started, as the kernel counts; empty if that cannot be read
}

// ThisHolder returns the name of this process. What the system does not say
// stays empty; then a lease is judged by its beats.
func ThisHolder() Holder { return procfs("/proc").holder() }

// A life is what is known of a process.
type life int

const (
	unknown life = iota // it runs where it cannot be seen, or cannot be told from another
	alive
	dead
)

// A process is what is found under a process id.
type process struct {
	gone    bool   // certainly nothing runs there
	started string // when what runs there started; empty if that cannot be read
}

// namespaced systems have namespaces, so that a Holder without one says nothing
// of where its PID counts.
const namespaced = runtime.GOOS == "linux"

// near reports whether h names a process of the host and of the namespaces of
// me, so that a look at the process of that id says something.
func (me Holder) near(h Holder) bool {
	return me.Host != "" && h.Host == me.Host && h.Space == me.Space && (h.Space != "" || !namespaced)
}

// life says what me knows of h. It errs towards unknown: whoever is unknown is
// asked by the beats of its lease.
func (me Holder) life(h Holder, find func(pid int) process) life {
	if !me.near(h) {
		return unknown
	}
	if h.Boot != me.Boot && h.Boot != "" && me.Boot != "" {
		return dead
	}
	switch p := find(h.PID); {
	case p.gone:
		return dead
	case p.started == "" || h.Started == "":
		return unknown
	case p.started != h.Started: // the id was given to another process since
		return dead
	case h.Boot == "" || me.Boot == "": // it may be the same moment of another boot
		return unknown
	}
	return alive
}

// procfs is where Linux says what it knows of processes.
type procfs string

// findProcess looks for a process of this host.
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

// space names the namespace of process ids, and that of clocks, by which the
// kernel shifts what it says of a process's start.
func (root procfs) space() string {
	pids, err := os.Readlink(filepath.Join(string(root), "self/ns/pid"))
	if err != nil {
		return ""
	}
	clocks, _ := os.Readlink(filepath.Join(string(root), "self/ns/time")) // since Linux 5.6
	return pids + clocks
}

// ours reports whether the numbers there are process ids as this process counts
// them. A new namespace may still have the files of the one around it.
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
	end := strings.LastIndexByte(string(text), ')') // the command's name before it may hold anything
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 20 {
		return "", "", errors.New("not as Linux writes it")
	}
	return fields[0], fields[19], nil
}

// find asks the files, and where they say nothing, the kernel: other users'
// processes can be hidden in the files.
func (root procfs) find(pid int) process {
	if pid < 1 {
		return process{}
	}
	if root.ours() {
		if state, started, err := root.stat(pid); err == nil {
			return process{gone: strings.Contains("ZXx", state), started: started} // a zombie only waits to be forgotten
		}
	}
	return process{gone: gone(pid)}
}

// gone reports whether certainly no process has the id.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // where this fails at once, a process may have been refused and not missed
	}
	defer p.Release() //nolint:errcheck // nothing was started
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// String says which process it is, for people.
func (h Holder) String() string {
	return "process " + strconv.Itoa(h.PID) + " on host " + cmp.Or(h.Host, "without a name")
}
