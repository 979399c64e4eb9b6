package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/internal/process"
)

// scriptVariable has a script that this program runs confined, in place of its tests.
const scriptVariable = "PROCESS_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		dir, err := os.Getwd()
		if err == nil {
			_, err = process.Run(context.Background(), &process.Command{
				Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Confine: true,
			}, nil, 1000)
		}
		log.Fatal("the script ended: ", err)
	}
	goleak.VerifyTestMain(m)
}

// shell runs a script, confined or not.
func shell(t testing.TB, dir string, confine bool, script string) (process.Result, error) {
	t.Helper()
	return process.Run(t.Context(), &process.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Confine: confine,
	}, nil, 1<<20)
}

func TestRun(t *testing.T) {
	t.Parallel()
	r, err := shell(t, t.TempDir(), false, "echo out; echo err >&2; exit 3")
	require.NoError(t, err)
	require.Equal(t, process.Result{Stdout: []byte("out\n"), Stderr: []byte("err\n"), ExitStatus: 3}, r)

	r, err = process.Run(t.Context(), &process.Command{Path: "/bin/cat"}, bytes.NewReader([]byte("input")), 100)
	require.NoError(t, err)
	require.Equal(t, "input", string(r.Stdout))

	_, err = process.Run(t.Context(), &process.Command{Path: "/no/such/program"}, nil, 100)
	require.ErrorContains(t, err, "no such file")
}

func TestRunGivesNoVariableThatItWasNotGiven(t *testing.T) {
	t.Setenv("RUNTEAM_TEST_KEY", "canary")
	r, err := process.Run(t.Context(), &process.Command{Path: "/usr/bin/env", Env: process.Environment(map[string]string{"TOKEN": "t"})}, nil, 1<<16)
	require.NoError(t, err)
	require.Contains(t, string(r.Stdout), "TOKEN=t\n")
	require.Contains(t, string(r.Stdout), "PATH=")
	require.NotContains(t, string(r.Stdout), "canary")
	require.Equal(t, []string{"PATH=/own"}, slices.DeleteFunc(process.Environment(map[string]string{"PATH": "/own"}), func(v string) bool { return !strings.HasPrefix(v, "PATH=") }))
}

func TestRunKeepsTheBeginOfAFlood(t *testing.T) {
	t.Parallel()
	r, err := process.Run(t.Context(), &process.Command{Path: "/bin/sh", Args: []string{"-c", "head -c 100000000 /dev/zero; echo x >&2"}}, nil, 1000)
	require.NoError(t, err)
	require.Len(t, r.Stdout, 1000)
	require.True(t, r.Cut)
	require.Equal(t, "x\n", string(r.Stderr))
}

// A program that ignores signals, and whose children do, ends with its context.
func TestRunEndsEverythingThatWasStarted(t *testing.T) {
	t.Parallel()
	for _, confine := range []bool{false, true} {
		t.Run(fmt.Sprint("confined ", confine), func(t *testing.T) {
			t.Parallel()
			skipUnlessConfines(t, confine)
			dir := t.TempDir()
			ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("too slow"))
			defer cancel()
			started := time.Now()
			_, err := process.Run(ctx, &process.Command{
				Path: "/bin/sh", Dir: dir, Confine: confine, Env: []string{"PATH=/usr/bin:/bin"},
				Args: []string{"-c", `trap '' TERM INT; marker=` + filepath.Base(dir) + `-marker; sh -c "trap '' TERM; while :; do sleep 0.05; : $marker; done" & while :; do sleep 0.05; done`},
			}, nil, 1000)
			require.ErrorContains(t, err, "too slow")
			require.Less(t, time.Since(started), 10*time.Second)
			require.Eventually(t, func() bool { return running(filepath.Base(dir)+"-marker") == 0 }, 5*time.Second, 10*time.Millisecond)
		})
	}
}

// A confined program cannot leave a process behind, also not in a session of its own.
func TestConfinedProgramLeavesNoProcess(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	dir := t.TempDir()
	mark := filepath.Base(dir) + "-left"
	_, err := shell(t, dir, true, `setsid sh -c "while :; do sleep 0.05; : `+mark+`; done" >/dev/null 2>&1 & sleep 0.2`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return running(mark) == 0 }, 5*time.Second, 10*time.Millisecond)
}

// A confined program ends with the process that started it, even if that is killed.
func TestConfinedProgramEndsWithItsParent(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	mark := fmt.Sprint("orphan-of-", os.Getpid())
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), append(os.Environ(), scriptVariable+`=setsid sh -c "while :; do sleep 0.05; : `+mark+`; done" & wait`), os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	started := func() bool { return running(mark) == 2 } // the script and its child
	assert.Eventually(t, started, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Eventually(t, func() bool { return running(mark) == 0 }, 5*time.Second, 10*time.Millisecond)
}

// running returns how many processes have a text in their arguments.
func running(text string) (n int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		raw, _ := os.ReadFile(file)
		if bytes.Contains(raw, []byte(text)) {
			n++
		}
	}
	return n
}

// skipUnlessConfines skips a test of confined programs where the system cannot confine them.
func skipUnlessConfines(t testing.TB, confine bool) {
	t.Helper()
	if confine && !process.Confines() {
		t.Skip("this system cannot confine programs")
	}
}

func TestConfinedProgram(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	above := t.TempDir()
	dir := filepath.Join(above, "workspace")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(above, "key"), []byte("canary"), 0o600))
	require.NoError(t, os.Symlink("../key", filepath.Join(dir, "link")))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	unixSocket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	require.NoError(t, err)
	defer unixSocket.Close()
	port := strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)

	for name, script := range map[string]string{
		"works":            "mkdir -p a/b && echo hello > a/b/c && cat a/b/c && mv a/b/c d && rm d && echo done",
		"pipes":            "printf 'b\\na\\n' | sort | head -n 1 > /dev/null; awk 'BEGIN{print 1}' >/dev/null && echo done",
		"temporary folder": "echo x > ./tmp && echo done",
	} {
		r, err := shell(t, dir, true, script)
		require.NoError(t, err, name)
		require.Contains(t, string(r.Stdout), "done", "%s: %s", name, r.Stderr)
	}
	for name, script := range map[string]string{
		"file above":           "cat ../key",
		"link to it":           "cat link",
		"absolute path":        "cat " + filepath.Join(above, "key"),
		"write above":          "echo x > ../new",
		"truncate above":       ": > ../key",
		"remove above":         "rm -f ../key && ! test -e ../key",
		"link above":           "ln ../key own && cat own",
		"list above":           "ls ..",
		"list temporary files": "ls /tmp",
		"write temporary file": "echo x > /tmp/" + filepath.Base(above) + "-new",
		"environment":          "cat /proc/" + strconv.Itoa(os.Getpid()) + "/environ",
		"own environment":      "cat /proc/self/environ",
		"memory":               "cat /proc/" + strconv.Itoa(os.Getpid()) + "/maps",
		"password file":        "cat /etc/shadow",
		"home":                 "ls /root /home",
		"signal":               "kill -0 " + strconv.Itoa(os.Getpid()),
		"TCP":                  "bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + "'",
		"UDP":                  "bash -c 'echo x > /dev/udp/127.0.0.1/53'",
		"unix socket":          `perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0) or exit 1; connect($s, sockaddr_un("socket")) or exit 1'`,
		"new unix socket":      `perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0) or exit 1'`,
		"mount":                "mkdir -p m && mount -t tmpfs none m",
		"other namespaces":     "nsenter -t " + strconv.Itoa(os.Getpid()) + " -n true",
		"device":               "mknod dev b 8 0",
	} {
		r, err := shell(t, dir, true, script)
		require.NoError(t, err, name)
		require.NotZero(t, r.ExitStatus, "%s: %s%s", name, r.Stdout, r.Stderr)
		require.NotContains(t, string(r.Stdout), "canary", name)
	}
	raw, err := os.ReadFile(filepath.Join(above, "key"))
	require.NoError(t, err)
	require.Equal(t, "canary", string(raw))
	require.NoFileExists(t, filepath.Join(above, "new"))
}

// This process keeps its rights after it started a confined one.
func TestConfinementIsTheProgramsOnly(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	for range 20 {
		_, err := shell(t, t.TempDir(), true, "true")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l.Close()
	}
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	p, err := process.Start(&process.Command{Path: "/bin/sh", Args: []string{"-c", "echo problem >&2; exec cat"}})
	require.NoError(t, err)
	_, err = p.Stdin.Write([]byte("hello"))
	require.NoError(t, err)
	buf := make([]byte, 5)
	_, err = p.Stdout.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buf))
	p.Stop()
	p.Stop()
	require.Equal(t, "problem", strings.TrimSpace(p.Stderr()))
}

// What a confined program does to modes and times of files outside has no effect.
func TestConfinedProgramChangesNoModes(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	outside := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	for _, command := range []string{"chmod 644 ", "touch -d 2001-01-01 ", "chown 1:1 "} {
		_, err := shell(t, t.TempDir(), true, command+outside)
		require.NoError(t, err)
	}
	info, err := os.Stat(outside)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.WithinDuration(t, time.Now(), info.ModTime(), time.Minute)
}

// A file that the parent of this process left open does not reach a confined program.
func TestConfinedProgramInheritsNoFiles(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("canary"), 0o600))
	fd, err := syscall.Open(secret, syscall.O_RDONLY, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	r, err := process.Run(t.Context(), &process.Command{Path: "bash", Args: []string{"-c", fmt.Sprintf("cat <&%d", fd)}, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Confine: true}, nil, 1000)
	require.NoError(t, err)
	require.NotContains(t, string(r.Stdout), "canary")
}
