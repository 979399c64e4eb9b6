package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
)

// A visitor has a token of a server, and neither the journal nor the spec.
type visitor struct {
	t      *testing.T
	dir    string
	server *served
	token  string
}

func visit(t *testing.T, s *served) *visitor {
	dir := clitest.Folder(t, map[string]string{"mine.txt": "canary-4711 kWh", "token.txt": "not the token of it\n", "latin1.txt": "caf\xe9", "large.txt": strings.Repeat("x", 1<<20)})
	return &visitor{t, dir, s, serveToken}
}

// submit submits a run of the spec meter, and returns what the command printed.
func (v *visitor) submit(status int, args ...string) outcome {
	v.t.Helper()
	all := append([]string{"submit", "meter", "--server", v.server.url, "--param", "month=June", "--input", "reading=mine.txt"}, args...)
	got := (call{bare: true, dir: v.dir, args: all, env: map[string]string{"RUNTEAM_INSPECT_TOKEN": v.token}}).run(v.t)
	require.Equal(v.t, status, got.status, "%q: %+v", args, got)
	require.NotContains(v.t, got.stderr, v.token)
	return got
}

func TestPeopleSubmitThroughAServer(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		server := serveHere(t, call{dir: s.dir, args: []string{"team.yaml", "--max-queued", "2"}, env: s.env})
		v := visit(t, server)
		id := strings.TrimSpace(v.submit(exit.StatusOK, "--id", "june").stdout)
		again := v.submit(exit.StatusOK, "--id", "june")
		require.Equal(t, id, strings.TrimSpace(again.stdout))
		require.Contains(t, again.stderr, "submitted before")
		require.Equal(t, journal.Queued, s.status(id))
		_, text := server.do("GET", "/runs/"+id, "")
		var run struct {
			Queue struct{ By string }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &run))
		require.Regexp(t, "^token [0-9a-f]{8}$", run.Queue.By)
		_, list := server.do("GET", "/runs", "")
		require.NotContains(t, list+text, serveToken)

		v.submit(exit.StatusOK, "--at", "2h")
		require.Contains(t, v.submit(exit.StatusNoRun).stderr, "2 of your runs wait")
		s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June") // another caller

		s.work()
		s.until(id, "suspended")
		require.Contains(t, s.run(exit.StatusOK, "show", id, "Read").stdout, "I see canary-4711 June.")
		require.Contains(t, v.submit(exit.StatusWaiting, "--id", "june", "--wait").stderr, "waits for a person")
		s.run(exit.StatusOK, "answer", id, "Confirm", "yes")
		require.Contains(t, v.submit(exit.StatusOK, "--id", "june", "--wait").stdout, "yes")
	})
}

func TestAServerFindsWhatIsWrongWithASubmission(t *testing.T) {
	t.Parallel()
	server := serveHere(t, call{dir: clitest.Folder(t, meterFiles), args: []string{"team.yaml", "--offline"}})
	for _, tt := range []struct {
		args   string
		token  string
		status int
		want   string
	}{
		{"submit meter", "", exit.StatusUsage, "RUNTEAM_INSPECT_TOKEN"},
		{"submit meter --param month=June --input reading=mine.txt --token-file token.txt", "", exit.StatusUsage, "does not know the token"},
		{"submit", serveToken, exit.StatusUsage, "needs a SPEC"},
		{"submit other", serveToken, exit.StatusUsage, `serves "meter"`},
		{"submit meter", serveToken, exit.StatusUsage, "month"},
		{"submit meter --param month=June", serveToken, exit.StatusUsage, "reading"},
		{"submit meter --param month=June --input reading=none.txt", serveToken, exit.StatusUsage, "none.txt"},
		{"submit meter --param month=June --input reading=latin1.txt", serveToken, exit.StatusUsage, "UTF-8"},
		{"submit meter --param month=June --input reading=large.txt", serveToken, exit.StatusUsage, "1 MiB"},
		{"submit meter --param month=June --input reading=run:1/Read", serveToken, exit.StatusUsage, "result of a run"},
		{"submit meter --param month=- --goal - --input reading=-", serveToken, exit.StatusUsage, "standard input can be read only once"},
		{"submit meter --param month=June --input other=mine.txt", serveToken, exit.StatusUsage, "other"},
		{"submit meter --param month=June --input reading=mine.txt --goal x", serveToken, exit.StatusUsage, "goal"},
		{"submit meter --model m2", serveToken, exit.StatusUsage, "--model is a setting of the server"},
		{"submit meter --journal x.db", serveToken, exit.StatusUsage, "--journal is a setting of the server"},
	} {
		v := visit(t, server)
		got := (call{bare: true, dir: v.dir, args: append(strings.Fields(tt.args), "--server", server.url), env: map[string]string{"RUNTEAM_INSPECT_TOKEN": tt.token}}).run(t)
		require.Equal(t, tt.status, got.status, "%s: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want, tt.args)
		require.Empty(t, got.stdout, tt.args)
		entries, err := os.ReadDir(v.dir)
		require.NoError(t, err)
		require.Len(t, entries, 4, "the command writes no file")
	}
	_, runs := server.do("GET", "/runs", "")
	require.Contains(t, runs, `"runs":[]`)
	require.Contains(t, (call{bare: true, dir: t.TempDir(), args: []string{"submit", "meter", "--server", "http://127.0.0.1:1"}, env: map[string]string{"RUNTEAM_INSPECT_TOKEN": serveToken}}).run(t).stderr, "cannot be reached")
	for _, tt := range [][]string{
		{"write http://HOST:PORT", "--server", "127.0.0.1:7337"},
		{"--server is empty", "--server", ""},
		{"runteam: --token-file none.txt: no such file", "--server", server.url, "--token-file", "none.txt"},
		{"runteam: --input reading: none.txt: no such file", "--server", server.url, "--input", "reading=none.txt"},
		{"is for --server", "--token-file", "none.txt"},
	} {
		got := (call{bare: true, dir: t.TempDir(), args: append([]string{"submit", "meter"}, tt[1:]...), env: map[string]string{"RUNTEAM_INSPECT_TOKEN": serveToken}}).run(t)
		require.Equal(t, exit.StatusUsage, got.status, tt)
		require.Contains(t, got.stderr, tt[0])
	}
}

func TestAClientSubmits(t *testing.T) {
	t.Parallel()
	server := serveHere(t, call{dir: clitest.Folder(t, meterFiles), args: []string{"team.yaml", "--offline", "--work", "1"}})
	c, err := inspect.New(server.url, serveToken)
	require.NoError(t, err)
	of := inspect.Submission{Start: inspect.Start{Spec: "meter", Inputs: map[string]string{"reading": "4711 kWh"}, Params: map[string]string{"month": "June"}, Reason: "for the bill"}, ID: "one"}
	id, added, err := c.Submit(t.Context(), of)
	require.NoError(t, err)
	require.True(t, added)
	same, added, err := c.Submit(t.Context(), of)
	require.NoError(t, err)
	require.False(t, added)
	require.Equal(t, id, same)
	text := ""
	require.Eventually(t, func() bool {
		got, err := c.Run(t.Context(), id)
		text = string(got)
		return err == nil && strings.Contains(text, `"status":"ok"`)
	}, time.Minute, 50*time.Millisecond)
	require.Regexp(t, `"command":"start","by":"token [0-9a-f]{8}","reason":"for the bill"`, text)
	of.ID, of.At = "two", time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, _, err = c.Submit(t.Context(), of)
	require.ErrorContains(t, err, "2262")
	of.ID = "two\nlines"
	_, _, err = c.Submit(t.Context(), of)
	require.ErrorContains(t, err, "/queue/id")
}

// A worker takes no run of a caller whose runs have cost enough today.
func TestAWorkerCountsWhatCallersSpend(t *testing.T) {
	files := map[string]string{"team.yaml": `
name: hello
model: m
prices: {m: {input: 100000, output: 100000}}
agents: [{name: greeter, systemPrompt: You greet.}]
tasks: [{title: Greet, assignee: greeter, description: Greet.}]
`}
	inBothShops(t, files, func(t *testing.T, s *shop) {
		s.work("--max-cost-per-day", "1.5") // a run costs 1 US dollar
		v := visit(t, serveHere(t, call{dir: s.dir, args: []string{"team.yaml"}, env: s.env}))
		for range 2 {
			s.run(exit.StatusOK, "submit", "--wait")
		}
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit").stdout)
		got := (call{bare: true, dir: v.dir, args: []string{"submit", "hello", "--server", v.server.url, "--wait"}, env: map[string]string{"RUNTEAM_INSPECT_TOKEN": v.token}}).run(t)
		require.Equal(t, "I see.\n", got.stdout, "another caller: %+v", got)
		require.Equal(t, journal.Queued, s.status(id))
		s.write("team.yaml", strings.ReplaceAll(files["team.yaml"], "m: {", "other: {"))
		require.Contains(t, s.run(exit.StatusUsage, "serve", "--listen", "127.0.0.1:0", "team.yaml", "--work", "1", "--max-cost-per-day", "1").stderr, `"m" has no price`)
	})
}

// A message to a run that waits for a worker is in the first prompt of the agent, if its worker lets it.
func TestAMessageWaitsForTheWorker(t *testing.T) {
	inBothShops(t, meterFiles, func(t *testing.T, s *shop) {
		server := serveHere(t, call{dir: s.dir, args: []string{"team.yaml"}, env: s.env})
		id := strings.TrimSpace(s.run(exit.StatusOK, "submit", "team.yaml", "--input", "reading=reading.txt", "--param", "month=June").stdout)
		require.Contains(t, s.run(exit.StatusOK, "message", id, "reader", "Look for root: in it.").stdout, "waits for the worker")
		_, text := server.do("POST", "/runs/"+id+"/messages", `{"agent": "nobody", "text": "Hello."}`)
		require.Contains(t, text, `"waits":true`)
		s.work()
		s.until(id, "suspended")
		require.Contains(t, s.run(exit.StatusOK, "show", id, "Read").stdout, "I see canary-4711 June root:.")
		shown := s.run(exit.StatusOK, "show", id, "-o", "json").stdout
		require.Contains(t, shown, `"command":"message","agent":"reader"`)
		require.NotContains(t, shown, "nobody", "no agent has that name")
		require.Contains(t, shown, "left for the run was not delivered")
		s.run(exit.StatusOK, "answer", id, "Confirm", "yes")
		s.until(id, "ok")
		s.verified(id)
	})
}

// A message to a run with a command that could have written it is not delivered, and the run says why.
func TestAMessageToAQueuedRunWithUnconfinedCommands(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	dir := clitest.Folder(t, processFiles("command: sh, args: [-c, echo done], confine: false"))
	run := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	id := strings.TrimSpace(run("submit", "team.yaml", "--id", "one").stdout)
	require.Equal(t, exit.StatusOK, run("message", id, "counter", "Hello.").status)
	serveHere(t, call{dir: dir, args: []string{"team.yaml", "--offline", "--work", "1"}})
	run("submit", "team.yaml", "--id", "one", "--wait")
	require.Contains(t, run("show", id, "-o", "json").stdout, "was not delivered: agent counter has commands that are not confined")
}

// A run has the clearance of the server that stores it until a worker begins it, so that who submits it sees it.
func TestASubmittedRunIsShownAtTheClearanceOfItsServer(t *testing.T) {
	inBothShops(t, map[string]string{"team.yaml": `
name: meter
model: m
params: {month: null}
inputs: {reading: {classification: confidential}}
agents: [{name: reader, accepts: confidential, systemPrompt: You read.}, {name: greeter, systemPrompt: You greet.}]
tasks:
  - {title: Read, assignee: reader, uses: [reading], description: Read it.}
  - {title: Greet, assignee: greeter, description: Greet.}
`}, func(t *testing.T, s *shop) {
		v := visit(t, serveHere(t, call{dir: s.dir, args: []string{"team.yaml", "--accepts", "internal"}, env: s.env}))
		id := strings.TrimSpace(v.submit(exit.StatusOK, "--id", "june").stdout)
		require.Contains(t, v.server.get("/runs/"+id), `"status":"queued"`)
		status, _ := serveHere(t, call{dir: s.dir, args: []string{"--accepts", "public"}, env: s.env}).do("GET", "/runs/"+id, "")
		require.Equal(t, 404, status)
		serveHere(t, call{dir: s.dir, args: []string{"team.yaml", "--offline", "--accepts", "internal", "--work", "1"}, env: s.env})
		answer := v.submit(exit.StatusOK, "--id", "june", "--wait").stdout
		require.Contains(t, answer, "[withheld: confidential]")
		require.NotContains(t, answer, "canary")
	})
}

// If the server goes away, who waits learns that the run is stored.
func TestWaitForARunOfAServerThatEnds(t *testing.T) {
	t.Parallel()
	server := serveHere(t, call{dir: clitest.Folder(t, meterFiles), args: []string{"team.yaml", "--offline"}})
	v := visit(t, server)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if _, list := server.do("GET", "/runs", ""); strings.Contains(list, "queued") {
				break
			}
		}
		server.stop()
	}()
	require.Regexp(t, "run [0-9a-f]{8} stays submitted", v.submit(exit.StatusUsage, "--wait").stderr)
	<-stopped
}
