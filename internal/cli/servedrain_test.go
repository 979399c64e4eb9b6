package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
)

// five is a team of five tasks that work at the same time, and of one that reads them.
const five = `
name: five
model: test-model
maxConcurrency: 5
agents: [{name: solo, systemPrompt: You answer.}]
tasks:
  - {title: One, assignee: solo, description: Say one.}
  - {title: Two, assignee: solo, description: Say two.}
  - {title: Three, assignee: solo, description: Say three.}
  - {title: Four, assignee: solo, description: Say four.}
  - {title: Five, assignee: solo, description: Say five.}
  - {title: Sum, assignee: solo, dependsOn: [One, Two, Three, Four, Five], description: Say all.}
`

var titlesOfFive = []string{"One", "Two", "Three", "Four", "Five"}

// startFive starts a run of the five tasks on a server, and returns it once all of their calls are under way.
func startFive(t *testing.T, args ...string) (s *served, server *countingServer, dir, run string) {
	t.Helper()
	server, dir = startCounting(t, titlesOfFive...), clitest.Folder(t, map[string]string{"team.yaml": five})
	s = serveHere(t, call{dir: dir, args: append(args, filepath.Join(dir, "team.yaml")), env: server.env()})
	status, text := s.do("POST", "/runs", `{"spec":"five"}`)
	require.Equal(t, 202, status, text)
	for range titlesOfFive {
		<-server.blockedCalls
	}
	return s, server, dir, object(t, text)["runId"].(string)
}

// says waits until the server has written a text on stderr.
func (s *served) says(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.stderr.String(), text) }, 10*time.Second, 5*time.Millisecond, text)
}

// left returns a stored run that the server has let go of.
func left(t *testing.T, dir, run string) journal.Summary {
	t.Helper()
	found, err := stored(t, dir).Find(t.Context(), run)
	require.NoError(t, err)
	require.Nil(t, found.Holder, "nobody has to wait for it")
	require.Zero(t, found.Ended)
	return found
}

// A server that is told to stop begins no call, stores what is under way, and lets go of the run, which another
// process continues with exactly the calls that are missing.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	s, server, dir, run := startFive(t)
	events, stream := s.follow(t.Context(), "/runs/"+run+"/events"), s.follow(t.Context(), "/runs/"+run+"/stream")
	s.signal(syscall.SIGTERM)
	s.says("runteam: stopping: waiting up to 30s for 5 calls of 1 run; a second signal interrupts them\n")

	for _, path := range []string{"/runs", "/chats", "/runs/" + run + "/resume", "/runs/" + run + "/pause", "/runs/" + run + "/nodes/One/interrupt"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1"+path, strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + serveToken}, "Content-Type": {"application/json"}}
		got, err := s.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Equal(t, 503, got.StatusCode, path)
		require.Equal(t, "5", got.Header.Get("Retry-After"), path)
	}
	_, text := s.do("POST", "/runs", `{"spec":"five"}`)
	require.JSONEq(t, `{"error":{"code":"unavailable","message":"the server is stopping: it starts, resumes and steers no runs","hint":"send the request to the server that follows it"}}`, text)
	require.Contains(t, s.get("/runs/"+run), `"status":"running"`, "it still shows its runs")

	close(server.released)
	ended := s.wait()
	require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
	require.Contains(t, ended.stderr, "runteam: stopped: 5 calls ended; to continue the run: runteam resume "+run[:8]+"\n")
	for events.Scan() { // both end
		require.NotContains(t, events.Text(), "run_complete")
	}
	for stream.Scan() {
	}
	require.Equal(t, "interrupted", left(t, dir, run).Status)
	require.Regexp(t, `(?m)^`+run[:1]+`\S* +five +interrupted .* 5 of 6 completed +runteam resume `, call{dir: dir, args: []string{"runs"}}.run(t).stdout)

	server.unblock()
	require.Len(t, server.takeCalls(), 5)
	got := call{dir: dir, args: []string{"resume", run}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Equal(t, map[string]int{"Sum": 1}, server.takeCalls())
	got = call{dir: dir, args: []string{"audit", "verify", run}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
}

// What calls under way return is stored though another process locks the journal for longer than a command that is to end
// would wait.
func TestServeStoresWhatADrainWaitsFor(t *testing.T) {
	t.Parallel()
	s, server, dir, run := startFive(t)
	s.signal(syscall.SIGTERM)
	s.says("runteam: stopping: waiting up to 30s for 5 calls of 1 run; a second signal interrupts them\n")
	unlock := lockDatabase(t, filepath.Join(dir, ".runteam", "runs.db"))
	close(server.released)
	time.Sleep(1500 * time.Millisecond)
	unlock()
	require.Contains(t, s.wait().stderr, "runteam: stopped: 5 calls ended; to continue the run: runteam resume ")
	server.unblock()
	require.Len(t, server.takeCalls(), 5)
	got := call{dir: dir, args: []string{"resume", run}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Equal(t, map[string]int{"Sum": 1}, server.takeCalls())
}

// A second signal, or the end of the time, interrupts the calls that are left. The run has no end all the same, and
// another server continues it.
func TestServeInterruptsTheCallsOfADrain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args   []string
		second syscall.Signal
	}{
		"a second SIGTERM":        {nil, syscall.SIGTERM},
		"an interrupt":            {nil, syscall.SIGINT},
		"the time is over":        {[]string{"--drain", "100ms"}, 0},
		"there is no time for it": {[]string{"--drain", "0s"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server, dir, run := startFive(t, tt.args...)
			s.signal(syscall.SIGTERM)
			s.says("runteam: stopping: waiting up to ")
			if tt.second != 0 {
				s.signal(tt.second)
			}
			ended := s.wait()
			require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
			require.Contains(t, ended.stderr, "runteam: stopped: 0 calls ended, 5 interrupted; to continue the run: runteam resume "+run[:8]+"\n")
			require.Equal(t, "interrupted", left(t, dir, run).Status)

			server.unblock()
			server.takeCalls()
			next := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml")}, env: server.env()})
			status, text := next.do("POST", "/runs/"+run+"/resume", "{}")
			require.Equal(t, 200, status, text)
			await(t, next.follow(t.Context(), "/runs/"+run+"/events"), `"type":"run_complete"`)
			require.Equal(t, map[string]int{"One": 1, "Two": 1, "Three": 1, "Four": 1, "Five": 1, "Sum": 1}, server.takeCalls())
		})
	}
}

// What holds no call is left at once: a run that waits for a person, and one that is paused. Without runs, there is
// nothing to say.
func TestServeLeavesAtOnceWhatOnlyWaits(t *testing.T) {
	t.Parallel()
	const asks = `
name: asks
model: test-model
agents: [{name: solo, systemPrompt: You answer.}, {name: editor, backend: {kind: person}}]
tasks:
  - {title: Decide, assignee: editor, description: May it be sent?}
  - {title: Send, assignee: solo, dependsOn: [Decide], description: Send it.}
`
	server := startCounting(t, titlesOfFive...)
	dir := clitest.Folder(t, map[string]string{"team.yaml": asks, "five.yaml": five})
	s := serveHere(t, call{dir: dir, args: []string{"--drain", "1h", filepath.Join(dir, "team.yaml"), filepath.Join(dir, "five.yaml")}, env: server.env()})
	_, text := s.do("POST", "/runs", `{"spec":"asks"}`)
	asking := object(t, text)["runId"].(string)
	require.Eventually(t, func() bool { return strings.Contains(s.get("/questions"), `"Decide"`) }, 10*time.Second, 5*time.Millisecond)
	_, text = s.do("POST", "/runs", `{"spec":"five"}`)
	paused := object(t, text)["runId"].(string)
	for range titlesOfFive {
		<-server.blockedCalls
	}
	status, text := s.do("POST", "/runs/"+paused+"/pause", "{}")
	require.Equal(t, 200, status, text)
	close(server.released)
	require.Eventually(t, func() bool { return strings.Contains(s.get("/runs/"+paused), `"completed":5`) }, 10*time.Second, 5*time.Millisecond)

	s.signal(syscall.SIGTERM)
	ended := s.wait()
	require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
	require.Contains(t, ended.stderr, "runteam: stopping: waiting up to 1h0m0s for 0 calls of 2 runs; a second signal interrupts them\nrunteam: stopped: 0 calls ended; 2 runs can be continued: runteam runs\n")
	require.Equal(t, "paused", left(t, dir, paused).Status)
	require.Equal(t, "interrupted", left(t, dir, asking).Status)

	got := call{dir: dir, args: []string{"answer", asking, "Decide", "yes"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	got = call{dir: dir, args: []string{"resume", asking}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)

	idle := serveHere(t, call{dir: dir, args: []string{filepath.Join(dir, "team.yaml")}, env: server.env()})
	idle.signal(syscall.SIGTERM)
	ended = idle.wait()
	require.Equal(t, exit.StatusOK, ended.status)
	require.NotContains(t, ended.stderr, "stopping")
}

// A turn of a chat that is under way is answered, and one that is interrupted is continued by the next server.
func TestServeDrainsChats(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args   []string
		status string
		calls  int // of the next server, for the turn
	}{
		"it is answered":    {nil, "ok", 1},
		"it is interrupted": {[]string{"--drain", "0s"}, "interrupted", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			asked, release := make(chan struct{}, 9), make(chan struct{})
			server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				calls.Add(1)
				asked <- struct{}{}
				select {
				case <-release:
					reply(w, "Good day.")
				case <-r.Context().Done():
				}
			})
			dir := clitest.Folder(t, map[string]string{"team.yaml": "name: desk\nmodel: test-model\nagents: [{name: solo, systemPrompt: You help.}]\nchat: {agent: solo}\n"})
			c := call{dir: dir, args: append(tt.args, filepath.Join(dir, "team.yaml")), env: server.env()}
			s := serveHere(t, c)
			status, text := s.do("POST", "/chats", `{"spec":"desk","text":"Hello."}`)
			require.Equal(t, 202, status, text)
			first := object(t, text)
			<-asked
			s.signal(syscall.SIGTERM)
			s.says("for 1 call of 1 run")
			if tt.args == nil {
				close(release)
			}
			require.Equal(t, exit.StatusOK, s.wait().status)
			found, err := stored(t, dir).Find(t.Context(), first["runId"].(string))
			require.NoError(t, err)
			require.Equal(t, tt.status, found.Status)
			require.Nil(t, found.Holder)

			calls.Store(0)
			if tt.args != nil {
				close(release)
			}
			next := serveHere(t, c)
			status, text = next.do("POST", "/chats", `{"session":"`+first["session"].(string)+`","text":"And now?"}`)
			require.Equal(t, 202, status, text)
			await(t, next.follow(t.Context(), "/runs/"+object(t, text)["runId"].(string)+"/events"), `"type":"run_complete"`)
			require.EqualValues(t, tt.calls, calls.Load())
		})
	}
}

// A submitted run that a worker lets go of goes to the next worker.
func TestADrainGivesSubmittedRunsToTheNextWorker(t *testing.T) {
	t.Parallel()
	server := startCounting(t, titlesOfFive...)
	dir := clitest.Folder(t, map[string]string{"team.yaml": five})
	got := call{dir: dir, args: []string{"submit"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	work := call{dir: dir, args: []string{"--work", "1", filepath.Join(dir, "team.yaml")}, env: server.env()}
	s := serveHere(t, work)
	for range titlesOfFive {
		<-server.blockedCalls
	}
	got = call{dir: dir, args: []string{"submit"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	s.signal(syscall.SIGTERM)
	s.says("for 5 calls of 1 run")
	close(server.released)
	ended := s.wait()
	require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
	require.Contains(t, ended.stderr, "stopped: 5 calls ended")
	list, err := stored(t, dir).Runs(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"queued", "queued"}, []string{list[0].Status, list[1].Status}, "it takes no other run")

	server.unblock()
	server.takeCalls()
	next := serveHere(t, work)
	require.Eventually(t, func() bool { return strings.Count(next.get("/runs"), `"status":"ok"`) == 2 }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, map[string]int{"One": 1, "Two": 1, "Three": 1, "Four": 1, "Five": 1, "Sum": 2}, server.takeCalls())
}
