//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// askedSpec asks a person about an input of a request.
const askedSpec = `
name: asked
inputs: {letter: {classification: confidential}}
params: {tone: , lang: en}
agents: [{name: editor, backend: {kind: person}, accepts: confidential}]
tasks:
  - {title: Review, key: r, assignee: editor, uses: [letter], description: "May it be sent, in a ${params.tone} tone in ${params.lang}?"}
  - {title: Send, uses: [letter], dependsOn: [r], template: "{{.results.r}}: {{.inputs.letter}}"}
`

// A background is a command without a terminal, and what it writes on stderr.
type background struct {
	*exec.Cmd
	stderr *lineWatcher
	ended  chan error
}

// startBackground starts a command whose stderr must have a text that matches.
func startBackground(t *testing.T, c call, wants string) (b *background, found string) {
	t.Helper()
	b = &background{Cmd: c.command(t), stderr: &lineWatcher{wants: regexp.MustCompile(wants), found: make(chan string, 1)}, ended: make(chan error, 1)}
	b.Stderr = b.stderr
	var stdout bytes.Buffer
	b.Stdout = &stdout
	require.NoError(t, b.Start())
	go func() { b.ended <- b.Wait() }()
	t.Cleanup(func() { _ = b.Process.Kill() })
	select {
	case found = <-b.stderr.found:
	case err := <-b.ended:
		t.Fatalf("%v ended: %v: %s", c.args, err, b.stderr)
	}
	return b, found
}

// login opens a link in a new browser, and returns the status of the page behind it.
func login(t *testing.T, link string) int {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	home, _, _ := strings.Cut(link, "login")
	status := 0
	for _, at := range []string{link, home} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		require.NoError(t, err)
		got, err := browser.Do(r)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		status = got.StatusCode
	}
	return status
}

// A server in the background prints another link when it gets the signal, and so does a run with --inspect.
func TestASignalPrintsAnotherLink(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"serve":         {"serve", "team.yaml", "--listen", "127.0.0.1:0"},
		"read-only":     {"serve", "--read-only", "--listen", "127.0.0.1:0"},
		"run --inspect": {"run", "--inspect", "--input", "letter=letter.md", "--param", "tone=kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": askedSpec, "letter.md": "Dear Ann"})
			suspended := call{dir: dir, args: []string{"run", "--input", "letter=letter.md", "--param", "tone=kind"}}.run(t)
			require.Equal(t, exit.StatusWaiting, suspended.status, suspended.stderr)
			b, link := startBackground(t, call{dir: dir, args: args}, `(?m)http://\S+/login\?key=\w{20,}$`)
			require.Equal(t, 200, login(t, link))
			require.Equal(t, 401, login(t, link), "it works once")
			require.Eventually(t, func() bool { return strings.Contains(b.stderr.String(), "kill -USR1 ") }, 5*time.Second, 5*time.Millisecond)
			require.Contains(t, b.stderr.String(), fmt.Sprintf("kill -USR1 %d\n", b.Process.Pid))
			require.NoError(t, b.Process.Signal(syscall.SIGUSR1))
			links := regexp.MustCompile(`http://\S+/login\?key=\w{20,}`)
			require.Eventually(t, func() bool { return len(links.FindAllString(b.stderr.String(), -1)) == 2 }, 5*time.Second, 5*time.Millisecond)
			require.Equal(t, 200, login(t, links.FindAllString(b.stderr.String(), -1)[1]))
			require.NoError(t, b.Process.Signal(syscall.SIGINT))
			<-b.ended
		})
	}
}

// Away from a terminal, run --inspect waits for the answer to a question, which the page or another process
// gives. An interrupt leaves the question open. With --no-input it does not wait.
func TestRunInspectWaitsForAnswers(t *testing.T) {
	t.Parallel()
	args := []string{"run", "--inspect", "--input", "letter=letter.md", "--param", "tone=kind"}
	files := map[string]string{"team.yaml": askedSpec, "letter.md": "Dear Ann"}
	answer := func(t *testing.T, dir string) {
		t.Helper()
		var open []struct{ RunID, ID string }
		got := call{dir: dir, args: []string{"questions", "-o", "json"}}.run(t)
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &open), got.stderr)
		require.Len(t, open, 1)
		got = call{dir: dir, args: []string{"answer", open[0].RunID, "Review", "yes"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, got.stderr)
	}
	const waits = "a question waits for an answer in the inspector"
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		dir := clitest.Folder(t, files)
		b, _ := startBackground(t, call{dir: dir, args: args}, waits)
		answer(t, dir)
		require.NoError(t, <-b.ended, b.stderr)
		require.Equal(t, "yes: Dear Ann\n", b.Stdout.(*bytes.Buffer).String())
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		dir := clitest.Folder(t, files)
		b, _ := startBackground(t, call{dir: dir, args: args}, waits)
		require.NoError(t, b.Process.Signal(syscall.SIGINT))
		require.Error(t, <-b.ended)
		answer(t, dir)
		got := call{dir: dir, args: []string{"resume"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, got.stderr)
		require.Equal(t, "yes: Dear Ann\n", got.stdout)
	})
	t.Run("--no-input", func(t *testing.T) {
		t.Parallel()
		got := call{dir: clitest.Folder(t, files), args: append(args, "--no-input")}.run(t)
		require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
		require.NotContains(t, got.stderr, waits)
	})
}

// What a request gave is in the journal: after the server has ended, the run resumes with it. The journal
// also has who requested the run, and why.
func TestARunOfARequestResumes(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": askedSpec, "--input letter": "a file that a resumed run must not read"})
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
	s := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml")}})
	status, text := s.do("POST", "/runs", `{"spec":"asked","inputs":{"letter":"Dear Bob"},"params":{"tone":"kind"},"reason":"Bob has called"}`)
	require.Equal(t, 202, status, text)
	run := object(t, text)["runId"].(string)
	var open []struct{ ID, Prompt string }
	require.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal([]byte(s.get("/runs/"+run+"/questions")), &open))
		return len(open) == 1
	}, 5*time.Second, 5*time.Millisecond)
	require.Contains(t, open[0].Prompt, "in a kind tone in en?")
	status, text = s.do("POST", "/runs/"+run+"/pause", "{}")
	require.Equal(t, 200, status, text)
	status, text = s.do("POST", "/runs/"+run+"/resume", "{}")
	require.Equal(t, 200, status, text)
	require.Equal(t, exit.StatusOK, s.stop().status)

	again := serveHere(t, call{dir: dir})
	status, text = again.do("POST", "/runs/"+run+"/resume", "{}")
	require.Equal(t, 409, status, text)
	require.Contains(t, text, "runteam resume "+run[:8], "no request starts a run that is not live: a resumed run may read the files of its spec")
	status, text = again.do("POST", "/runs/"+run+"/questions/"+open[0].ID+"/answer", `{"text":"yes"}`)
	require.Equal(t, 200, status, text)
	got := call{dir: dir, args: []string{"resume", run}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Equal(t, "yes: Dear Bob\n", got.stdout)
	shown := call{dir: dir, args: []string{"show", run}}.run(t).stdout
	require.Regexp(t, `(?m)^\S+ \S+ started by .+: Bob has called$`, shown, "a resumed run keeps it")
	var doc struct {
		Commands []struct{ Command, By, Reason string }
	}
	require.NoError(t, json.Unmarshal([]byte(again.get("/runs/"+run)), &doc))
	require.Equal(t, "start", doc.Commands[0].Command)
	require.Equal(t, "Bob has called", doc.Commands[0].Reason)
	require.NotEmpty(t, doc.Commands[0].By)

	starts := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml")}})
	status, text = starts.do("POST", "/runs", `{"spec":"asked","reason":"`+strings.Repeat("x", 64<<10+1)+`"}`)
	require.Equal(t, 413, status, text)
}
