package journal

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

var self = Holder{Host: "vm", Boot: "b1", Space: "pid:[1]", PID: 100, Started: "500"}

// with returns a holder that differs from self.
func with(change func(*Holder)) Holder {
	h := self
	h.PID = 7
	change(&h)
	return h
}

func TestLeaseLifecycle(t *testing.T) {
	t.Parallel()
	here := process{started: "500"}
	tests := []struct {
		name  string
		give  Holder
		found process
		want  liveness
	}{
		{"it runs", with(func(*Holder) {}), here, alive},
		{"it is gone", with(func(*Holder) {}), process{gone: true}, dead},
		{"it is a zombie", with(func(*Holder) {}), process{gone: true, started: "500"}, dead},
		{"its id was given to another process", with(func(h *Holder) { h.Started = "499" }), here, dead},
		{"before a reboot", with(func(h *Holder) { h.Boot = "b0" }), here, dead},
		{"nobody knows when it started", with(func(h *Holder) { h.Started = "" }), here, unknown},
		{"it is hidden", with(func(*Holder) {}), process{}, unknown},
		{"hidden, and gone", with(func(h *Holder) { h.Started = "" }), process{gone: true}, dead},
		{"no id of a boot", with(func(h *Holder) { h.Boot = "" }), here, unknown},
		{"no id of a boot, and gone", with(func(h *Holder) { h.Boot = "" }), process{gone: true}, dead},
		{"no id of a boot, another process", with(func(h *Holder) { h.Boot, h.Started = "", "499" }), here, dead},
		{"another host", with(func(h *Holder) { h.Host = "vm2" }), process{gone: true}, unknown},
		{"another host that booted otherwise", with(func(h *Holder) { h.Host, h.Boot = "vm2", "b0" }), process{gone: true}, unknown},
		{"another container", with(func(h *Holder) { h.Space = "pid:[2]" }), process{gone: true}, unknown},
		{"another container that has our id", with(func(h *Holder) { h.Space, h.PID = "pid:[2]", self.PID }), here, unknown},
		{"another container on a host of that name", with(func(h *Holder) { h.Space, h.Boot = "pid:[2]", "b0" }), process{gone: true}, unknown},
		{"no name", with(func(h *Holder) { h.Host = "" }), process{gone: true}, unknown},
		{"nothing known", Holder{}, process{gone: true}, unknown},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, self.liveness(tt.give, func(pid int) process {
			require.Equal(t, tt.give.PID, pid)
			return tt.found
		}), tt.name)
	}
	nameless := self
	nameless.Host = ""
	require.Equal(t, unknown, nameless.liveness(nameless, func(int) process { return process{gone: true} }), "two without a name may be two hosts")
}

// TestNoNamespaceOnLinux checks that a process id is nowhere looked for without
// knowing where it counts.
func TestNoNamespaceOnLinux(t *testing.T) {
	t.Parallel()
	me := Holder{Host: "vm", PID: 1}
	want := dead
	if namespaced {
		want = unknown
	}
	require.Equal(t, want, me.liveness(Holder{Host: "vm", PID: 7}, func(int) process { return process{gone: true} }))
}

func TestThisHolder(t *testing.T) {
	t.Parallel()
	h := ThisHolder()
	require.Equal(t, os.Getpid(), h.PID)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, h.Host)
	require.Equal(t, h, ThisHolder(), "a process has one name")
	require.Equal(t, "process "+strconv.Itoa(h.PID)+" on host "+host, h.String())
}

// fakeProc returns a folder that looks like that of processes, and says that
// pid is this one.
func fakeProc(t *testing.T, pid string, files map[string]string) procfs {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(pid, filepath.Join(root, "self")))
	return procfs(root)
}

const statRest = " 1 1 1 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 2315600 3133440 390 18446744073709551615\n"

func TestProcessesAreFound(t *testing.T) {
	t.Parallel()
	me := strconv.Itoa(os.Getpid())
	parent := strconv.Itoa(os.Getppid()) // a process that is there
	tests := []struct {
		name, stat string
		want       process
	}{
		{"asleep", parent + " (runteam) S" + statRest, process{started: "2315600"}},
		{"a name that looks like more", parent + " (a) Z 1 (b) R) S" + statRest, process{started: "2315600"}},
		{"a zombie", parent + " (runteam) Z" + statRest, process{gone: true, started: "2315600"}},
		{"dying", parent + " (runteam) X" + statRest, process{gone: true, started: "2315600"}},
		{"not as Linux writes it", "unreadable", process{}},
		{"no name in it", parent + statRest + statRest, process{}},
		{"cut", parent + " (runteam) S 1 1", process{}},
		{"hidden from us", "", process{}},
	}
	for _, tt := range tests {
		files := map[string]string{me + "/stat": me + " (x) R" + statRest}
		if tt.stat != "" {
			files[parent+"/stat"] = tt.stat
		}
		require.Equal(t, tt.want, fakeProc(t, me, files).find(os.Getppid()), tt.name)
	}
}

// TestFilesOfAnotherNamespace checks that files in which this process has another
// id say nothing.
func TestFilesOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	other := strconv.Itoa(os.Getpid() + 1)
	parent := strconv.Itoa(os.Getppid())
	root := fakeProc(t, other, map[string]string{
		other + "/stat": other + " (runteam) S" + statRest, parent + "/stat": parent + " (x) Z" + statRest,
		strconv.Itoa(os.Getpid()) + "/stat": "1 (init) S" + statRest, "sys/kernel/random/boot_id": "b1\n",
	})
	require.Equal(t, process{}, root.find(os.Getppid()))
	h := root.holder()
	require.Empty(t, h.Started)
	require.Equal(t, "b1", h.Boot)
	require.Empty(t, h.Space)

	require.NoError(t, os.Mkdir(filepath.Join(string(root), other, "ns"), 0o700))
	for _, of := range []struct{ file, names, want string }{{"pid", "pid:[4026531836]", "pid:[4026531836]"}, {"time", "time:[4026531834]", "pid:[4026531836]time:[4026531834]"}} {
		require.NoError(t, os.Symlink(of.names, filepath.Join(string(root), other, "ns", of.file)))
		require.Equal(t, of.want, root.holder().Space)
	}
}

func TestHoldersWithoutProcessFiles(t *testing.T) {
	t.Parallel()
	root := procfs(filepath.Join(t.TempDir(), "absent"))
	h := root.holder()
	require.Equal(t, Holder{Host: h.Host, PID: os.Getpid()}, h)
	require.Equal(t, process{}, root.find(os.Getppid()), "it is there, and may be another than it was")
	for _, pid := range []int{0, -1, -os.Getpid()} {
		require.Equal(t, process{}, findProcess(pid), "no process has the id %d, and some calls take it for many", pid)
	}
}
