package cli

import (
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// relay is a spec with a chain of three tasks and one independent task.
const relay = `
name: relay
model: test-model
inputs: {note: {file: note.md}}
agents: [{name: solo, systemPrompt: You answer.}]
tasks:
  - {title: First, assignee: solo, uses: [note], description: Say one.}
  - {title: Second, assignee: solo, dependsOn: [First], description: Say two.}
  - {title: Third, assignee: solo, dependsOn: [Second], description: Say three.}
  - {title: Aside, assignee: solo, description: Say aside.}
`

// relayFolder returns a folder with that spec and the file of its input.
func relayFolder(t *testing.T) string {
	t.Helper()
	return clitest.Folder(t, map[string]string{"team.yaml": relay, "note.md": "the note"})
}

// A countingServer is an endpoint whose answers depend only on the prompts. It counts its calls by
// task and by answer.
type countingServer struct {
	*endpointServer

	mu           sync.Mutex
	byTask       map[string]int
	byAnswer     map[string]int
	delay        time.Duration   // before each answer
	blocked      map[string]bool // titles of tasks whose calls get no answer
	blockedCalls chan string     // the title of each call that gets no answer
	released     chan struct{}   // closed to answer these calls after all
}

var (
	taskInPrompt   = regexp.MustCompile(`# Task: (\S[^\n]*)\n([^#]*)`)
	answerInPrompt = regexp.MustCompile(`<[^<>]*>`)
)

// startCounting starts an endpoint that does not answer the blocked tasks.
func startCounting(t *testing.T, blocked ...string) *countingServer {
	t.Helper()
	s := &countingServer{byTask: map[string]int{}, byAnswer: map[string]int{}, blocked: map[string]bool{}, blockedCalls: make(chan string, 100), released: make(chan struct{})}
	for _, title := range blocked {
		s.blocked[title] = true
	}
	s.endpointServer = serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		title, text := answerTo(t, r)
		s.mu.Lock()
		s.byTask[title]++
		s.byAnswer[text]++
		blocked := s.blocked[title]
		s.mu.Unlock()
		if blocked {
			s.blockedCalls <- title
			select {
			case <-s.released:
			case <-r.Context().Done():
				return
			}
		}
		time.Sleep(s.delay)
		reply(w, text)
	})
	return s
}

// answerTo returns the title of the task of a prompt, and an answer that repeats the title, the
// description and the answers in the prompt.
func answerTo(t *testing.T, r *http.Request) (title, text string) {
	t.Helper()
	var call struct {
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || len(call.Messages) == 0 {
		t.Errorf("a request without a prompt: %v", err)
		return "", ""
	}
	user := call.Messages[len(call.Messages)-1].Content
	m := taskInPrompt.FindStringSubmatch(user)
	if m == nil {
		t.Errorf("no task in %q", user)
		return "", ""
	}
	seen := answerInPrompt.FindAllString(user, -1)
	return m[1], "<" + m[1] + " | " + strings.TrimSpace(m[2]) + " | " + strings.Join(unwrapped(seen), "; ") + ">"
}

// unwrapped replaces the brackets of answers, so that an answer in an answer is not counted.
func unwrapped(list []string) (out []string) {
	for _, one := range list {
		out = append(out, "("+strings.Trim(one, "<>")+")")
	}
	return out
}

// takeCalls returns how often each task was called since the last call, and resets the counts.
func (s *countingServer) takeCalls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.byTask
	s.byTask, s.byAnswer = map[string]int{}, map[string]int{}
	return was
}

// takeAnswers returns how often each answer was given since the last call, and resets the counts.
func (s *countingServer) takeAnswers() map[string]int {
	s.mu.Lock()
	was := s.byAnswer
	s.mu.Unlock()
	s.takeCalls()
	return was
}

// unblock lets the server answer all tasks from now on.
func (s *countingServer) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = map[string]bool{}
}

// stored opens the journal of a folder to read it.
func stored(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// requireConsistent requires that the record of the newest run of a folder is consistent, and
// returns its head.
func requireConsistent(t *testing.T, dir string) string {
	t.Helper()
	j := stored(t, dir)
	report, err := j.Verify(t.Context(), "", audit.VerifyOptions{})
	require.NoError(t, err)
	require.Equal(t, audit.Consistent, report.Status, "%+v", report)
	return report.Head.String()
}

// shortIDIn returns the ID of the run that stderr names.
func shortIDIn(t *testing.T, stderr string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^Run ([0-9a-f]{8}) is saved in `).FindStringSubmatch(stderr)
	require.NotNil(t, m, "%s", stderr)
	return m[1]
}

func TestRunIsStored(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	first := call{bare: true, dir: dir, args: []string{"run", "-o", "json"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	result := object(t, first.stdout)
	require.True(t, strings.HasPrefix(result["runId"].(string), shortIDIn(t, first.stderr)))
	require.Contains(t, first.stderr, "runteam: created .runteam to store runs; use --no-journal to store nothing\n")
	require.Equal(t, requireConsistent(t, dir), result["audit"])

	at, err := os.Stat(filepath.Join(dir, ".runteam"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700)|os.ModeDir, at.Mode())
	require.Equal(t, "*\n", clitest.Contents(t, filepath.Join(dir, ".runteam", ".gitignore")))
	file, err := os.Stat(filepath.Join(dir, ".runteam", "runs.db"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), file.Mode())

	second := call{bare: true, dir: dir, args: []string{"task", "--file", "team.yaml"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, second.status, "%+v", second)
	require.NotContains(t, second.stderr, "created .runteam")
	require.NotEqual(t, result["runId"], object(t, second.stdout)["runId"])
	require.NotEqual(t, result["audit"], object(t, second.stdout)["audit"])
	runs, err := stored(t, dir).Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Equal(t, []string{"task", "run"}, []string{runs[0].Command, runs[1].Command})
	require.Equal(t, "ok", runs[0].Status)
}

func TestRunWithoutAJournal(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	got := call{bare: true, dir: dir, args: []string{"run", "--no-journal", "-o", "json"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, object(t, got.stdout), "audit")
	require.NotContains(t, got.stderr, "runteam show")
	for _, args := range []string{"plan", "check", "run --max-concurrency 0", "run nowhere.yaml", "resume", "run --model nobody=x"} {
		call{bare: true, dir: dir, args: strings.Fields(args), env: server.env()}.run(t)
	}
	require.Equal(t, []string{"note.md", "team.yaml"}, clitest.Listing(t, dir))
}

func TestProgressNoneDoesNotMentionTheJournal(t *testing.T) {
	t.Parallel()
	server := startCounting(t)
	got := call{bare: true, dir: relayFolder(t), args: []string{"run", "--progress", "none"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr)
}

func TestJournalIsFoundUpToTheRepository(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, git, made, from, want string }{
		{"here", "", "a/b", "a/b", "a/b"},
		{"above, in the repository", "a", "a", "a/b/c", "a"},
		{"the nearest", ".", "a/b", "a/b/c", "a/b"},
		{"not above the repository", "a/b", "a", "a/b/c", "a/b/c"},
		{"not above where there is no repository", "", "a", "a/b/c", "a/b/c"},
		{"made where the command is", "a", "", "a/b/c", "a/b/c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"a/b/c/team.yaml": one, "a/b/team.yaml": one})
			if tt.git != "" {
				require.NoError(t, os.Mkdir(filepath.Join(dir, tt.git, ".git"), 0o755))
			}
			if tt.made != "" {
				require.NoError(t, journals.MakeFolder(filepath.Join(dir, tt.made, journals.FolderName)))
			}
			got := call{bare: true, dir: filepath.Join(dir, tt.from), args: []string{"run", "--offline"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, tt.want != tt.made, strings.Contains(got.stderr, "created .runteam"), "%s", got.stderr)
			require.FileExists(t, filepath.Join(dir, tt.want, ".runteam", "runs.db"))
		})
	}
}

// bytesOf reads a file; nil if there is none.
func bytesOf(path string) []byte {
	b, _ := os.ReadFile(path)
	return b
}

func TestJournalsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	server := startCounting(t)
	made := relayFolder(t)
	require.Equal(t, exit.StatusOK, call{dir: made, args: []string{"run"}, env: server.env()}.run(t).status)
	server.takeCalls()
	good, key := bytesOf(filepath.Join(made, ".runteam", "runs.db")), bytesOf(filepath.Join(made, ".runteam", "runs.db.key"))
	newer := append([]byte{}, good...)
	newer[63] = 99 // user_version
	torn := append([]byte{}, good...)
	for i := 4096; i < len(torn); i++ {
		torn[i] ^= 0xa5
	}
	tests := []struct {
		name   string
		file   []byte
		key    []byte
		args   string
		status int
		want   []string
	}{
		{"a folder", nil, nil, "--journal sub", exit.StatusUsage, []string{"--journal sub: it is a folder: name a file in it"}},
		{"in no folder", nil, nil, "--journal none/x.db", exit.StatusUsage, []string{"the folder none does not exist; create it first"}},
		{"another file", []byte("a text that is no journal\n"), nil, "--journal x.db", exit.StatusNoRun, []string{"x.db", "is no journal", "--no-journal"}},
		{"of a newer version", newer, key, "--journal x.db", exit.StatusNoRun, []string{"x.db", "99", "--no-journal", "--journal FILE"}},
		{"damaged", torn, key, "--journal x.db", exit.StatusNoRun, []string{"x.db", "--no-journal", "nothing was run"}},
		{"without its key file", good, nil, "--journal x.db", exit.StatusNoRun, []string{"the key file x.db.key is missing", "--no-journal"}},
		{"no key of 32 bytes", nil, nil, "--journal-key note.md", exit.StatusUsage, []string{"--journal-key note.md: a journal key is 64 hex digits"}},
		{"the file of the trace", nil, nil, "--journal x.db --trace x.db", exit.StatusUsage, []string{"--trace x.db: this is a file of the journal"}},
		{"no such key of the record", nil, nil, "--audit-key none", exit.StatusUsage, []string{"--audit-key none: no such file"}},
		{"no such key", nil, nil, "--journal-key none", exit.StatusUsage, []string{"--journal-key none: no such file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := relayFolder(t)
			require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
			path := filepath.Join(dir, "x.db")
			if tt.file != nil {
				require.NoError(t, os.WriteFile(path, tt.file, 0o600))
			}
			if tt.key != nil {
				require.NoError(t, os.WriteFile(path+".key", tt.key, 0o600))
			}
			commands := []string{"run", "task --file team.yaml"}
			if tt.file != nil {
				commands = append(commands, "resume")
			}
			for _, command := range commands {
				got := call{bare: true, dir: dir, args: append(strings.Fields(command), strings.Fields(tt.args)...), env: server.env()}.run(t)
				require.Equal(t, tt.status, got.status, "%+v", got)
				for _, want := range tt.want {
					if command == "resume" && (strings.HasPrefix(want, "--") || want == "nothing was run") {
						want = "; use --journal FILE for another one" // there is no run without it
					}
					require.Contains(t, got.stdout+got.stderr, want)
				}
				if command == "run" {
					require.Empty(t, got.stdout)
				}
				require.Equal(t, tt.file, bytesOf(path), "the file is unchanged")
			}
		})
	}
	t.Cleanup(func() { require.Empty(t, server.takeCalls(), "nothing was run") })
}

func TestJournalFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".runteam"), []byte("x"), 0o600))
	got := call{bare: true, dir: dir, args: []string{"run"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "create the folder of the journal .runteam: ")
	require.Contains(t, got.stderr, "--no-journal")
	require.Empty(t, server.takeCalls())
	require.Equal(t, "x", clitest.Contents(t, filepath.Join(dir, ".runteam")))
}

// Results are printed even if they could not be stored.
func TestJournalOnAFullDisk(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	long := randomText(200 << 10)
	dir := clitest.Folder(t, map[string]string{"team.yaml": many(8), "script.yaml": "replies: [{text: " + long + "}]"})
	cmd := exec.Command(shell, "-c", `ulimit -f 900 || exit 99; exec "$0" run --offline --script script.yaml --max-concurrency 1 -o json`, binary)
	cmd.Dir = dir
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	status := statusAfter(t, cmd.Run())
	if status == 99 {
		t.Skip("the shell has no ulimit -f")
	}
	require.Equal(t, exit.StatusNoRun, status, "%s", stderr.String())
	require.Contains(t, stderr.String(), "the journal does not have the end of the run: the journal of the run failed")
	require.Regexp(t, `(?s)does not have the end.*runteam show has only what was saved.*Run [0-9a-f]{8} is saved in \.runteam without its end\. Next:\n.*runteam resume `, stderr.String())
	require.NotContains(t, stderr.String(), "WRN", "the run has said why")
	result := object(t, stdout.String())
	done, skipped := 0, 0
	for _, one := range result["tasks"].([]any) {
		switch task := one.(map[string]any); task["status"] {
		case "completed":
			done++
			require.Equal(t, long, task["result"])
		case "skipped":
			skipped++
		}
	}
	require.Positive(t, done)
	require.Positive(t, skipped)

	again := call{dir: dir, args: []string{"resume", "--progress", "none", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, again.status, "%s", again.stderr)
	require.Equal(t, result["runId"], object(t, again.stdout)["runId"])
}

// randomText returns a text of n characters that cannot be compressed much.
func randomText(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	b, noise := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = letters[noise.IntN(len(letters))]
	}
	return "x" + string(b)
}

// lockDatabase locks an SQLite file, so that other connections cannot write.
func lockDatabase(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path) // the driver of the journal
	require.NoError(t, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "begin immediate")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(t.Context(), "rollback")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, db.Close())
	}
}

func TestLockedJournal(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run"}, env: server.env()}.run(t).status)
	server.takeCalls()
	unlock := lockDatabase(t, filepath.Join(dir, ".runteam", "runs.db"))
	defer unlock()
	run := func(signalAfter time.Duration) (int, string, string) {
		con, stdout, stderr := clitest.Console(t, "run", filepath.Join(dir, "team.yaml"))
		signals := make(chan os.Signal, 1)
		con.WorkDir, con.Signals, con.LookupEnv = workdir.Dir(dir), signals, func(name string) (string, bool) { value, ok := server.env()[name]; return value, ok }
		time.AfterFunc(signalAfter, func() { signals <- syscall.SIGTERM }) // else it waits for 30 s
		return runCommandLine(con), stdout.String(), stderr.String()
	}
	const terminated = 128 + int(syscall.SIGTERM)
	status, stdout, stderr := terminated, "", ""
	for after := 200 * time.Millisecond; status == terminated; after *= 2 { // the signal came before it had the journal to open
		status, stdout, stderr = run(after)
	}
	require.Equal(t, exit.StatusNoRun, status, "%s", stderr)
	require.Contains(t, stderr, "another process has kept the file locked for too long")
	require.Contains(t, stderr, "--no-journal")
	require.Empty(t, server.takeCalls())
	require.Empty(t, stdout)
}

// The command waits for a short lock of another process.
func TestBrieflyLockedJournalIsWaitedFor(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), relayFolder(t)
	require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run"}, env: server.env()}.run(t).status)
	unlock := lockDatabase(t, filepath.Join(dir, ".runteam", "runs.db"))
	time.AfterFunc(300*time.Millisecond, unlock)
	got := call{dir: dir, args: []string{"run"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

func TestInterruptedRunIsResumed(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := startCounting(t, "Second"), relayFolder(t)
			whole := call{dir: relayFolder(t), args: []string{"run", "-o", "json"}, env: startCounting(t).env()}.run(t)
			cmd := call{dir: dir, args: []string{"run", "-o", "json"}, env: server.env()}.command(t)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			<-server.blockedCalls
			require.Eventually(t, func() bool { return hasResults(t, dir, 2) }, 30*time.Second, 5*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(signal))
			_ = cmd.Wait()
			id := ""
			if signal == syscall.SIGINT {
				require.Equal(t, exit.StatusSIGINT, cmd.ProcessState.ExitCode())
				id = shortIDIn(t, stderr.String())
				require.Contains(t, stderr.String(), "\n  runteam resume "+id+"\n")
			}
			require.Equal(t, map[string]int{"First": 1, "Second": 1, "Aside": 1}, server.takeCalls())
			server.unblock()
			got := call{dir: dir, args: strings.Fields("resume -o json " + id), env: server.env()}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, map[string]int{"Second": 1, "Third": 1}, server.takeCalls())
			require.Contains(t, got.stderr, "resumed: 2 tasks completed before")
			if signal == syscall.SIGKILL {
				require.Contains(t, got.stderr, "; 1 attempt had been interrupted")
			}
			require.Contains(t, got.stderr, "cached    First (solo)\n")
			require.Equal(t, stableResult(t, whole.stdout), stableResult(t, got.stdout))
			require.Equal(t, requireConsistent(t, dir), object(t, got.stdout)["audit"])

			again := call{dir: dir, args: []string{"resume", "-o", "json"}, env: server.env()}.run(t)
			require.Equal(t, exit.StatusOK, again.status, "%+v", again)
			require.Empty(t, server.takeCalls())
			require.Contains(t, again.stderr, "resumed: every task was completed before, and no agent was called\n")
			require.Equal(t, stableResult(t, whole.stdout), stableResult(t, again.stdout))
		})
	}
}

// hasResults reports whether the journal has results of at least n tasks of the newest run.
func hasResults(t *testing.T, dir string, n int) bool {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
	if err != nil {
		return false
	}
	defer j.Close() //nolint:errcheck // nothing was written
	s, err := j.Load(t.Context(), "")
	if err != nil {
		return false
	}
	for _, of := range runstate.Of(&s.History).Tasks() {
		if of.Accepted() != nil {
			n--
		}
	}
	return n <= 0
}

// stableResult returns the parts of a result that are the same in each run.
func stableResult(t *testing.T, stdout string) map[string]any {
	t.Helper()
	result := object(t, stdout)
	out := map[string]any{"status": result["status"], "output": result["output"]}
	for _, one := range result["tasks"].([]any) {
		task := one.(map[string]any)
		out[task["title"].(string)] = []any{task["status"], task["result"]}
	}
	return out
}
