package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// A folder is where a test works.
type folder string

// newFolder returns a folder with files, by their names.
func newFolder(t testing.TB, files map[string]string) folder {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return folder(dir)
}

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// command returns a call of runteam in the folder, which has nothing of the environment of the tests.
func (f folder) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, runteam, args...)
	cmd.Dir = string(f)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + string(f), "USER=ann", "LANG=C.UTF-8"}
	return cmd
}

// run calls runteam and returns what it prints. Its status may be any of the allowed ones; 0 if there is none.
func (f folder) run(t testing.TB, args ...string) (stdout string) {
	t.Helper()
	cmd := f.command(t.Context(), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s\n%s", out.String(), errs.String())
	return out.String()
}

// A server is a running `runteam serve`.
type server struct {
	url   string // without a slash at its end
	token string
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	links []string
	said  strings.Builder
}

var (
	servingLine = regexp.MustCompile(`serving .* at (http://\S+)`)
	linkLine    = regexp.MustCompile(`open (http://\S+/login\?key=\S+)`)
)

// serve starts `runteam serve` with arguments until the test ends.
func (f folder) serve(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	s := f.start(t, env, args...)
	t.Cleanup(func() {
		defer s.stop()
		if t.Failed() {
			s.report(t)
		}
	})
	return s
}

// report says what the server of a failed test said, and what it knows of the run that began last.
func (s *server) report(t testing.TB) {
	t.Helper()
	t.Logf("the server said: %s", s.output())
	select {
	case <-s.ended:
		return
	default:
	}
	_, list := s.call(t, http.MethodGet, "/api/v1/runs?limit=1", "")
	t.Logf("its newest run is %s", list)
	var doc struct{ Runs []struct{ RunID string } }
	if _ = json.Unmarshal(list, &doc); len(doc.Runs) > 0 {
		_, events := s.call(t, http.MethodGet, "/api/v1/runs/"+doc.Runs[0].RunID+"/events", "")
		t.Logf("and its events are %s", events)
	}
}

// start starts `runteam serve` at a free port, or at that of args. With roles, it has no link and no token of its own.
func (f folder) start(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "token.txt") // of one server
	hasRoles := slices.Contains(args, "--roles")
	if !hasRoles {
		args = append([]string{"--token-file", tokens}, args...)
	}
	args = append([]string{"serve"}, args...)
	if !strings.Contains(strings.Join(args, " "), "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	s := &server{cmd: f.command(context.Background(), args...), ended: make(chan struct{})}
	s.cmd.Env = append(s.cmd.Env, env...)
	out, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	ready := make(chan struct{})
	go s.listen(out, hasRoles, ready)
	select {
	case <-ready:
	case <-s.ended:
		t.Fatalf("serve ended: %s", s.output())
	case <-time.After(patience):
		s.stop()
		t.Fatalf("serve printed no link: %s", s.output())
	}
	if !hasRoles {
		token, err := os.ReadFile(tokens)
		require.NoError(t, err)
		s.token = strings.TrimSpace(string(token))
	}
	return s
}

// listen reads what the server says.
func (s *server) listen(out io.Reader, hasRoles bool, ready chan<- struct{}) {
	defer close(s.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.mu.Lock()
		fmt.Fprintln(&s.said, lines.Text())
		if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
			if s.url = m[1]; hasRoles {
				close(ready)
			}
		}
		if m := linkLine.FindStringSubmatch(lines.Text()); m != nil {
			if s.links = append(s.links, m[1]); len(s.links) == 1 {
				close(ready)
			}
		}
		s.mu.Unlock()
	}
}

func (s *server) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// stop interrupts the server as Ctrl-C does, and waits for its end.
func (s *server) stop() {
	select {
	case <-s.ended:
		return
	default:
	}
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Wait()
}

// call makes a request of a program, and returns status and body of the answer.
func (s *server) call(t testing.TB, method, path, body string, headers ...string) (status int, answer []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, s.url+path, strings.NewReader(body)) // which a report of a test that has ended makes, too
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // it was read
	answer, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, answer
}

// get reads a document of the API into a value.
func (s *server) get(t testing.TB, path string, into any) {
	t.Helper()
	status, body := s.call(t, http.MethodGet, "/api/v1"+path, "")
	require.Equal(t, http.StatusOK, status, "%s", body)
	require.NoError(t, json.Unmarshal(body, into), "%s", body)
}

// A shownRun is what the tests read of the document of a run.
type shownRun struct {
	RunID  string
	Status string
	Tasks  []struct{ ID, Title, Status, Result string }
}

// taskID returns the ID of a task.
func (r *shownRun) taskID(t testing.TB, title string) string {
	t.Helper()
	for _, task := range r.Tasks {
		if task.Title == title {
			return task.ID
		}
	}
	t.Fatalf("no task %q", title)
	return ""
}

// newest returns the run that began last, and its document.
func (s *server) newest(t testing.TB) (r shownRun) {
	t.Helper()
	var list struct{ Runs []struct{ RunID string } }
	s.get(t, "/runs", &list)
	require.NotEmpty(t, list.Runs)
	s.get(t, "/runs/"+list.Runs[0].RunID, &r)
	return r
}

// link returns a link that was not used. The server prints one; more come from the terminal, which a
// test does not have, so only one browser of a server can get in.
func (s *server) link(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.links, "the link was used")
	link := s.links[0]
	s.links = s.links[1:]
	return link
}
