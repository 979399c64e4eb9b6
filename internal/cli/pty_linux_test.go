package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pty is a command at a pseudo-terminal, and what the terminal shows.
type pty struct {
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex // guards what follows
	screen *fakeTerminal
	raw    strings.Builder
	read   chan struct{} // closed at the end of the output
	seen   int           // bytes of raw that a test has waited for
}

// atTerminal starts a call at a terminal of the given size.
func atTerminal(t *testing.T, width, height int, c call) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()
	p := &pty{master: master, cmd: c.command(t), screen: newFakeTerminal(width, height), read: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.cmd.Start())
	go p.watch()
	return p
}

// watch reads until the last process has closed the terminal.
func (p *pty) watch() {
	defer close(p.read)
	buf := make([]byte, 4096)
	var rest []byte // a sequence or a rune may arrive in two reads; what is written at once is below a buffer
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		rest = append(rest, buf[:n]...)
		p.raw.Write(buf[:n])
		if n > 0 && (n < len(buf) || err != nil) {
			_, _ = p.screen.Write(rest)
			rest = nil
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// resize changes the size of the terminal.
func (p *pty) resize(t *testing.T, width, height int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.screen.width, p.screen.height = width, height
	require.NoError(t, unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}))
}

// text returns what the terminal shows.
func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.screen.text(), "\n")
}

// end waits for the command and returns its exit status and what it left on the terminal.
func (p *pty) end(t *testing.T) (status int, lines []string, raw string) {
	t.Helper()
	status = statusAfter(t, p.cmd.Wait())
	<-p.read
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.screen.unknown)
	require.False(t, p.screen.nowrap)
	return status, p.screen.text(), p.raw.String()
}

// At a terminal trust asks, and only yes is a consent.
func TestTrustAsksAtATerminal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{"y": exit.StatusOK, "YES": exit.StatusOK, "n": exit.StatusFailed, "": exit.StatusFailed, "yess": exit.StatusFailed} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": "baseURL: https://llm.acme.example/v1\napiKey: ${ACME_KEY}\nagents: [{name: a}]\n"})
		p := atTerminal(t, 100, 30, call{dir: dir, args: []string{"trust"}, env: map[string]string{"TERM": "xterm"}})
		_, err := p.master.WriteString(answer + "\n")
		require.NoError(t, err)
		status, _, raw := p.end(t)
		require.Equal(t, want, status, "%q: %q", answer, raw)
		require.Contains(t, raw, "ACME_KEY  to https://llm.acme.example")
		require.Contains(t, raw, "Allow this? [y/N]")
		got := call{dir: dir, env: map[string]string{"ACME_KEY": "k"}, args: []string{"check"}}.run(t)
		require.Equal(t, want == exit.StatusOK, got.status == exit.StatusOK, "%q: %+v", answer, got)
	}
}

func TestLiveTable(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": many(12), "script.yaml": "replies: [{delay: 70ms, text: an answer}]"})
	sizes := []struct{ width, height int }{{100, 30}, {100, 6}, {40, 8}, {16, 5}, {5, 3}}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%dx%d", size.width, size.height), func(t *testing.T) {
			t.Parallel()
			p := atTerminal(t, size.width, size.height, call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}, env: map[string]string{"TERM": "xterm"}})
			status, lines, raw := p.end(t)
			require.Equal(t, exit.StatusOK, status, "%q", raw)
			text := strings.Join(lines, "\n")
			require.Equal(t, 12, countPrefix(lines, "com"), "each task once, nothing of an earlier frame is left:\n%s", text)
			for i := range 12 {
				want := fmt.Sprintf("completed Task %d", i+1)
				require.True(t, strings.HasPrefix(lines[i]+" ", want+" ") || len(want) >= size.width, "%d: %s", i, text)
			}
			require.Contains(t, strings.ReplaceAll(text, "\n", ""), "an answer")
			require.Contains(t, raw, "\x1b[32m", "colors")
		})
	}
}

func countPrefix(lines []string, prefix string) (n int) {
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func TestLiveTableWhileItRuns(t *testing.T) {
	t.Parallel()
	started, stuck := make(chan struct{}, 8), make(chan struct{})
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			reply(w, "an answer")
			return
		}
		started <- struct{}{}
		select {
		case <-stuck:
		case <-r.Context().Done():
		}
	})
	defer close(stuck)
	env := server.env()
	env["TERM"] = "xterm"
	dir := clitest.Folder(t, map[string]string{"team.yaml": many(9)})
	p := atTerminal(t, 60, 6, call{dir: dir, args: []string{"run", "--max-concurrency", "2"}, env: env})
	<-started
	<-started
	require.Eventually(t, func() bool {
		text := p.text()
		return strings.Count(text, "running   Task") == 2 && strings.Contains(text, "1 of 9 tasks completed") && strings.Contains(text, "rows not shown")
	}, 10*time.Second, 10*time.Millisecond)
	_, err := p.master.Write([]byte{3}) // Ctrl-C, as the terminal's driver turns it into a signal
	require.NoError(t, err)
	status, lines, _ := p.end(t)
	require.Equal(t, exit.StatusSIGINT, status)
	text := strings.Join(lines, "\n")
	require.Contains(t, text, "an answer", "finished work is printed")
	require.Equal(t, 2, countPrefix(lines, "cancelled Task"), "%s", text)
	require.Equal(t, 6, countPrefix(lines, "skipped   Task"), "%s", text)
	require.Contains(t, text, "interrupted")
}

// If a frame is written while a terminal changes its size, one of its rows may stay, in any
// terminal. So the test tries again until no frame was written then.
func TestLiveTableOfATerminalThatShrinksAndGrows(t *testing.T) {
	t.Parallel()
	for range 5 {
		if shrinkAndGrow(t) {
			return
		}
	}
	t.Fatal("something of an earlier frame is left each time")
}

// shrinkAndGrow reports whether no row of an earlier frame was left.
func shrinkAndGrow(t *testing.T) (clean bool) {
	stuck := make(chan struct{})
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		select {
		case <-stuck:
		case <-r.Context().Done():
		}
		reply(w, "an answer")
	})
	env := server.env()
	env["TERM"] = "xterm"
	p := atTerminal(t, 90, 30, call{dir: clitest.Folder(t, map[string]string{"team.yaml": many(9)}), args: []string{"run"}, env: env})
	for _, size := range []struct{ width, height, rows int }{{90, 30, 9}, {60, 6, 4}, {90, 30, 9}} {
		p.resize(t, size.width, size.height)
		require.Eventually(t, func() bool {
			lines := strings.Split(p.text(), "\n")
			table := lines[max(0, len(lines)-size.rows-1):]
			return countPrefix(table, "running   Task")+countPrefix(table, "waiting   Task") == size.rows &&
				strings.Contains(table[len(table)-1], "rows not shown") == (size.rows < 9)
		}, 10*time.Second, 10*time.Millisecond, size)
	}
	for range 200 {
		if clean = len(strings.Split(p.text(), "\n")) == 10; clean {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(stuck)
	status, lines, raw := p.end(t)
	require.Equal(t, exit.StatusOK, status, "%q", raw)
	if clean {
		require.Equal(t, 9, countPrefix(lines, "completed Task"), "%q", lines)
		require.Zero(t, countPrefix(lines, "running")+countPrefix(lines, "waiting"), "%q", lines)
	}
	return clean
}

// An empty line separates the table and the result in every form.
func TestEmptyLineSeparatesResultAndTable(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{text: an answer}]"})
	for form, first := range map[string]string{"text": "an answer", "json": "{"} {
		_, lines, _ := atTerminal(t, 100, 24, call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "-o", form}, env: map[string]string{"TERM": "xterm"}}).end(t)
		require.Contains(t, lines[1], "1 of 1 task completed, ")
		require.Empty(t, lines[2])
		require.True(t, strings.HasPrefix(lines[3], first), "%q", lines)
	}
}

func TestTerminalsWithoutColorOrCursor(t *testing.T) {
	t.Parallel()
	spec := clitest.Folder(t, map[string]string{"team.yaml": one})
	p := atTerminal(t, 80, 24, call{args: []string{"run", spec, "--offline"}, env: map[string]string{"TERM": "xterm", "NO_COLOR": "1"}})
	_, _, raw := p.end(t)
	require.NotRegexp(t, `\x1b\[[0-9;]*m`, raw)
	require.Contains(t, raw, "\x1b[?7l", "the table is drawn anyway")
	for _, c := range []call{
		{args: []string{"run", spec, "--offline"}, env: map[string]string{"TERM": "dumb"}},
		{args: []string{"run", spec, "--offline", "--progress", "plain"}, env: map[string]string{"TERM": "xterm"}},
	} {
		_, lines, raw := atTerminal(t, 80, 24, c).end(t)
		require.NotContains(t, raw, "\x1b[")
		require.Contains(t, strings.Join(lines, "\n"), "start     Answer (solo)")
	}
}

func TestLiveTableOfAGoal(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{80, 24}, {40, 5}} {
		seen := make(chan struct{})
		server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 || n == 4 { // the plan, the synthesis
				select {
				case <-seen:
				case <-r.Context().Done():
				}
			}
			reply(w, map[bool]string{true: twoTasks, false: "a fact"}[n == 1])
		})
		env := server.env()
		env["TERM"] = "xterm"
		p := atTerminal(t, size.width, size.height, call{dir: goalFolder(t, ""), args: []string{"run", "--goal", "Say."}, env: env})
		for _, pieces := range [][]string{{"running   plan ", "planning, "}, {"running   synthesis ", "2 of 2 tasks completed, "}} {
			require.Eventually(t, func() bool {
				return strings.Contains(p.text(), pieces[0]) && strings.Contains(p.text(), pieces[1])
			}, 10*time.Second, 10*time.Millisecond, pieces)
			seen <- struct{}{}
		}
		status, lines, raw := p.end(t)
		require.Equal(t, exit.StatusOK, status, "%q", raw)
		for i, title := range []string{"plan", "Find", "Write", "synthesis"} {
			require.True(t, strings.HasPrefix(lines[i], "completed "+title+" "), "%q", lines)
		}
		require.Equal(t, 4, countPrefix(lines, "com"), "each once, nothing of an earlier frame is left: %q", lines)
		require.Contains(t, lines, "a fact")
	}
}

// Warnings about the whole run are above the table.
func TestLiveTableLeavesRoomForWarnings(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(one, "agents: [", "messages: [{from: user, to: idle, text: Hello.}]\nagents: [{name: idle},", 1)})
	for _, mode := range []string{"live", "plain"} {
		_, lines, _ := atTerminal(t, 100, 24, call{dir: dir, args: []string{"run", "--offline", "--progress", mode}, env: map[string]string{"TERM": "xterm"}}).end(t)
		require.Contains(t, strings.Join(lines, "\n"), `a message from "user" to "idle" was not delivered`)
	}
}

// A run that cannot start shows no table.
func TestNoTableWithoutARun(t *testing.T) {
	t.Parallel()
	_, lines, raw := atTerminal(t, 80, 24, call{dir: goalFolder(t, ""), args: []string{"run", "--offline", "--goal", "# Task: x"}, env: map[string]string{"TERM": "xterm"}}).end(t)
	require.Contains(t, strings.Join(lines, "\n"), "a line of the goal begins with")
	require.NotContains(t, raw, "planning")
}

// Requirement: G47.
func TestRevealShowsSecretsOnATerminalOnly(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": secretive, "script.yaml": "replies: [{task: Closed, text: 'canary-4711'}, {text: open}]"})
	args := []string{"run", "--offline", "--script", "script.yaml"}
	for _, form := range []string{"text", "json"} {
		got := call{dir: dir, args: append(args, "-o", form, "--log-level", "debug")}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "[withheld: secret]")
		require.NotContains(t, got.stdout+got.stderr, "canary-4711")
	}
	_, lines, _ := atTerminal(t, 80, 24, call{dir: dir, args: args, env: map[string]string{"TERM": "xterm"}}).end(t)
	require.NotContains(t, strings.Join(lines, "\n"), "canary-4711")
	_, lines, _ = atTerminal(t, 80, 24, call{dir: dir, args: append(args, "--reveal", "--progress", "plain"), env: map[string]string{"TERM": "xterm"}}).end(t)
	text := strings.Join(lines, "\n")
	require.Contains(t, text, "canary-4711")
	require.Contains(t, text, "reveal    ")
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, strings.Repeat("x", 1<<20)) })
	cmd := call{args: []string{"run", "-"}, stdin: one, env: server.env()}.command(t)
	r, w, err := os.Pipe() // that nobody reads, so that printing the result never ends
	require.NoError(t, err)
	defer r.Close()
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	one := make([]byte, 1)
	_, err = r.Read(one) // the run is over, and the result is being printed
	require.NoError(t, err)
	for {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case err := <-ended:
			require.Equal(t, exit.StatusSIGINT, statusAfter(t, err))
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
