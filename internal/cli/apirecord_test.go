package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/stretchr/testify/require"
)

// apiToken is the token of the programs of the tests.
const apiToken = "a-token-of-these-tests"

// A recordedAPI is runteam serve in this process, whose answers are held to the description.
type recordedAPI struct {
	t    *testing.T
	base string
	http *http.Client
	mux  *http.ServeMux // the routes, to find which one a request is for

	schemas  *jsonschema.Schema // with all schemas of the description under $defs
	describe map[string]map[string]struct {
		Responses map[string]json.RawMessage
	}
	responses map[string]json.RawMessage // those that have a name

	mu       sync.Mutex
	seen     map[string]bool                 // METHOD PATH STATUS
	resolved map[string]*jsonschema.Resolved // by the text of the schema
}

// startAPI serves until the test ends.
func startAPI(t *testing.T, dir string, env map[string]string, args ...string) *recordedAPI {
	t.Helper()
	con, _, _ := clitest.Console(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, toStderr := io.Pipe()
	signals := make(chan os.Signal, 1)
	con.Stderr, con.Signals, con.WorkDir, con.ConfigDir = toStderr, signals, workdir.Dir(dir), t.TempDir()
	con.LookupEnv = func(name string) (string, bool) {
		if name == "RUNTEAM_INSPECT_TOKEN" && !slices.Contains(args, "--roles") {
			return apiToken, true
		}
		value, ok := env[name]
		return value, ok
	}
	ended := make(chan int, 1)
	go func() {
		status := runCommandLine(console.New(*con))
		toStderr.Close()
		ended <- status
	}()
	address := make(chan string, 1)
	go func() {
		var all bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := stderr.Read(buf)
			all.Write(buf[:n])
			if m := regexp.MustCompile(`at (http://127\.0\.0\.1:\d+)`).FindSubmatch(all.Bytes()); m != nil && cap(address) > len(address) {
				address <- string(m[1])
			}
			if err != nil {
				close(address)
				return
			}
		}
	}()
	a := &recordedAPI{t: t, seen: map[string]bool{}, resolved: map[string]*jsonschema.Resolved{}, mux: http.NewServeMux()}
	a.http = &http.Client{Transport: &http.Transport{}}
	a.base = <-address
	require.NotEmpty(t, a.base)
	t.Cleanup(func() {
		a.http.CloseIdleConnections()
		signals <- interrupt
		require.Equal(t, exit.StatusOK, <-ended)
	})
	for _, r := range inspector.Routes() {
		a.mux.Handle(r.Method+" "+r.Path, http.NotFoundHandler())
	}
	a.readDescription()
	return a
}

// readDescription reads the schemas, and makes them strict: a member that is not described is an error.
func (a *recordedAPI) readDescription() {
	text := strings.ReplaceAll(string(inspect.OpenAPI()), "#/components/schemas/", "#/$defs/")
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage
		}
		Components struct {
			Schemas   map[string]*jsonschema.Schema
			Responses map[string]json.RawMessage
		}
	}
	require.NoError(a.t, json.Unmarshal([]byte(text), &doc))
	a.describe, a.responses = doc.Paths, doc.Components.Responses
	a.schemas = &jsonschema.Schema{Defs: doc.Components.Schemas}
	for _, s := range doc.Components.Schemas {
		strict(s)
	}
}

// strict forbids members without a description.
func strict(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 && s.AdditionalProperties == nil && len(s.OneOf) == 0 {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	for _, in := range s.Properties {
		strict(in)
	}
	strict(s.Items)
}

// check holds an answer to the description.
func (a *recordedAPI) check(r *http.Request, status int, kind string, body []byte) {
	a.t.Helper()
	_, pattern := a.mux.Handler(r)
	if !strings.Contains(pattern, " ") {
		return // no route
	}
	method, path, _ := strings.Cut(pattern, " ")
	at := fmt.Sprintf("%s %s %d", method, path, status)
	raw, ok := a.describe[path][strings.ToLower(method)].Responses[fmt.Sprint(status)]
	require.True(a.t, ok, "%s is not described: %s", at, body)
	var of struct {
		Ref     string `json:"$ref"`
		Content map[string]struct{ Schema *jsonschema.Schema }
	}
	require.NoError(a.t, json.Unmarshal(raw, &of))
	if name, named := strings.CutPrefix(of.Ref, "#/components/responses/"); named {
		require.NoError(a.t, json.Unmarshal(a.responses[name], &of))
	}
	kind, _, _ = strings.Cut(kind, ";")
	require.Contains(a.t, of.Content, kind, at)
	a.mu.Lock()
	a.seen[at] = true
	a.mu.Unlock()
	if kind == "application/json" {
		a.validate(of.Content[kind].Schema, body, at)
	}
}

// validate validates a document.
func (a *recordedAPI) validate(s *jsonschema.Schema, body []byte, at string) {
	a.t.Helper()
	var value any
	require.NoError(a.t, json.Unmarshal(body, &value), at)
	require.NoError(a.t, a.resolve(s).Validate(value), "%s: %s", at, body)
}

// resolve returns a schema that is strict, with the schemas of the description. Most answers have one of a
// few schemas, which are resolved once.
func (a *recordedAPI) resolve(s *jsonschema.Schema) *jsonschema.Resolved {
	a.t.Helper()
	text, err := json.Marshal(s)
	require.NoError(a.t, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.resolved[string(text)]
	if known == nil {
		strict(s)
		s.Defs = a.schemas.Defs
		known, err = s.CloneSchemas().Resolve(nil)
		require.NoError(a.t, err, "%s", text)
		a.resolved[string(text)] = known
	}
	return known
}

// ask sends a request and returns its answer.
func (a *recordedAPI) ask(method, path, body string) (status int, answer []byte) {
	a.t.Helper()
	return a.send(method, path, body, func(http.Header) {})
}

func (a *recordedAPI) send(method, path, body string, add func(http.Header)) (status int, answer []byte) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.base+"/api/v1"+path, strings.NewReader(body))
	require.NoError(a.t, err)
	r.Header.Set("Authorization", "Bearer "+apiToken)
	add(r.Header)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := a.http.Do(r)
	require.NoError(a.t, err)
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	require.NoError(a.t, err)
	a.check(r, res.StatusCode, res.Header.Get("Content-Type"), answer)
	return res.StatusCode, answer
}

// get returns a document.
func (a *recordedAPI) get(path string) []byte {
	a.t.Helper()
	status, answer := a.ask("GET", path, "")
	require.Equal(a.t, 200, status, "%s: %s", path, answer)
	return answer
}

// TestAnswersAreAsDescribed records the answers to every kind of request that the server takes, and holds
// them to the OpenAPI description.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	calls := make(chan struct{}, 16)
	models := serveModel(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		calls <- struct{}{}
		<-r.Context().Done()
	})
	dir := clitest.Folder(t, map[string]string{
		"people.yaml": approvalSpec,
		"open.yaml":   "name: open\ndescription: Says it.\nparams: {tone: , n: 1}\ninputs: {a: {classification: public}}\nagents: [{name: cat, backend: {kind: process, command: cat}}]\npolicy: {file: policy.yaml}\ntasks: [{title: T, assignee: cat, uses: [a], description: '${params.tone} ${params.n}'}, {title: V, value: {sum: 1}}]",
		"policy.yaml": "policy: {}\n",
		"talk.yaml":   "name: talk\nagents: [{name: cat, backend: {kind: process, command: cat}}]\nchat: {agent: cat}\n",
		"slow.yaml":   "name: slow\nmodel: m\nagents: [{name: a}]\ntasks: [{title: Think, assignee: a, description: D.}, {title: Wait, assignee: a, description: W.}]",
	})
	var specs []string
	for _, name := range []string{"people.yaml", "open.yaml", "slow.yaml", "talk.yaml"} {
		specs = append(specs, filepath.Join(dir, name))
	}
	viewedRun(t, dir, label.Secret) // it is not there for the viewer, but questions of it are
	a := startAPI(t, dir, models.env(), specs...)
	c, err := inspect.New(a.base, apiToken)
	require.NoError(t, err)
	for _, path := range []string{"/viewer", "/openapi.json", "/specs", "/runs", "/questions"} {
		a.get(path)
	}
	require.JSONEq(t, string(inspect.OpenAPI()), string(a.get("/openapi.json")))
	a.recordPolicyOfSpec()
	a.recordStarts(c)
	a.recordChat()
	a.recordPeople(c)
	a.recordPerson(c)
	a.recordSteering(c, calls)
	a.recordRefusals()
	operator := fmt.Sprintf("roles: [{role: operator, users: [olga], runs: all}]\ntokens: [{sha256: %x, user: olga, role: operator, expires: 2099-01-01}]\n", sha256.Sum256([]byte(apiToken)))
	people := startAPI(t, clitest.Folder(t, map[string]string{"open.yaml": openSpec, "policy.yaml": "policy: {}\n", "roles.yaml": operator}), nil, "--roles", "roles.yaml", "open.yaml")
	for _, path := range []string{"/viewer", "/unseen-runs"} {
		people.get(path)
	}
	status, answer := people.ask("POST", "/sign-out", "")
	require.Equal(t, 200, status, "%s", answer)
	maps.Copy(a.seen, people.seen)
	for _, r := range inspector.Routes() {
		ok := slices.ContainsFunc([]int{200, 202}, func(status int) bool { return a.seen[fmt.Sprintf("%s %s %d", r.Method, r.Path, status)] })
		require.True(t, ok, "%s %s", r.Method, r.Path)
	}
}

// recordPolicyOfSpec records how the policy of a spec is read and replaced.
func (a *recordedAPI) recordPolicyOfSpec() {
	const path = "/specs/open/governance/handoff-rules"
	digest := object(a.t, string(a.get(path)))["digest"].(string)
	for _, tt := range []struct {
		spec, digest, policy string
		want                 int
	}{
		{"none", digest, `{}`, 404}, {"people", digest, `{}`, 404}, {"open", "", `{}`, 428}, {"open", "other", `{}`, 412},
		{"open", digest, `{"rules":[{"from":"cat","to":"dog","mode":"minimal"}]}`, 422}, {"open", digest, `{"default":"full"}`, 200},
	} {
		status, answer := a.put("/specs/"+tt.spec+"/governance/handoff-rules", tt.digest, `{"policy":`+tt.policy+`}`)
		require.Equal(a.t, tt.want, status, "%s", answer)
	}
}

// recordChat records two turns of a session.
func (a *recordedAPI) recordChat() {
	say := func(message string, want int) (turn struct{ Session, RunID string }) {
		status, answer := a.ask("POST", "/chats", message)
		require.Equal(a.t, want, status, "%s", answer)
		require.NoError(a.t, json.Unmarshal(answer, &turn))
		return turn
	}
	ended := func(run string) {
		require.Eventually(a.t, func() bool { return strings.Contains(string(a.get("/runs/"+run+"/session")), `"live":false`) }, 10*time.Second, 20*time.Millisecond)
	}
	first := say(`{"spec":"talk","text":"Mail ann@example.com","label":"public"}`, 202)
	ended(first.RunID)
	second := say(`{"session":"`+first.Session+`","text":"And now?"}`, 202)
	ended(second.RunID)
	session := string(a.get("/runs/" + second.RunID + "/session"))
	require.Contains(a.t, session, `"message":"Mail [REDACTED:email]"`)
	require.Contains(a.t, session, `"turn":2`)
	for message, want := range map[string]int{`{"text":"x"}`: 422, `{"spec":"open","text":"x"}`: 404, `{"spec":"talk","text":" "}`: 422, `{"spec":"talk","text":"x","label":"red"}`: 422, `{"session":"none","text":"x"}`: 404} {
		say(message, want)
	}
}

// recordStarts records a run from its start to its end.
func (a *recordedAPI) recordStarts(c *inspect.Client) {
	t := a.t
	status, answer := a.ask("POST", "/runs", `{"spec":"open","inputs":{"a":"Hi"}}`)
	require.Equal(t, 422, status, "%s", answer)
	status, answer = a.ask("POST", "/estimates", `{"spec":"open","inputs":{"a":"Hi"},"params":{"tone":"kind"}}`)
	require.Equal(a.t, 200, status, "%s", answer)
	status, answer = a.ask("POST", "/runs", `{"spec":"open","inputs":{"a":"Hi"},"params":{"tone":"kind"}}`)
	require.Equal(t, 202, status, "%s", answer)
	run, err := c.Start(t.Context(), inspect.Start{Spec: "open", Inputs: map[string]string{"a": "Hello"}, Params: map[string]string{"tone": "kind"}})
	require.NoError(t, err)
	var last inspect.Event
	n := 0
	for e, err := range c.Events(t.Context(), run, 0) {
		require.NoError(t, err)
		n++
		require.Equal(t, n, e.Position)
		a.validate(&jsonschema.Schema{Ref: "#/$defs/Event"}, e.Data, e.Type)
		last = e
	}
	require.Equal(t, "run_complete", last.Type)
	var again []inspect.Event
	for e, err := range c.Events(t.Context(), run, n-2) {
		require.NoError(t, err)
		again = append(again, e)
	}
	require.Len(t, again, 2)
	document, err := c.Run(t.Context(), run)
	require.NoError(t, err)
	require.Contains(t, string(document), "Hello")
	for _, path := range []string{
		"", "/tasks/T", "/tasks/T/blocks", "/blocks", "/usage", "/artifacts", "/receipts", "/receipts?task=T", "/receipts?contains=Hello", "/questions", "/events", "/events?after=3",
		"/graph", "/flow", "/flow?from=a", "/handoffs?task=T", "/handoffs?from=user&to=cat", "/compare/" + run, "/export",
	} {
		a.get("/runs/" + run + path)
	}
	a.get("/runs?limit=1")
	list, err := c.Runs(t.Context(), inspect.RunsOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Runs, 1)
	require.True(t, list.More)
}

// recordPeople records questions and answers.
func (a *recordedAPI) recordPeople(c *inspect.Client) {
	t := a.t
	run, err := c.Start(t.Context(), inspect.Start{Spec: "approval"})
	require.NoError(t, err)
	var open []inspect.Question
	require.Eventually(t, func() bool { // the run waits for the answers
		open, err = c.Questions(t.Context(), run)
		return err == nil && len(open) == 2
	}, time.Minute, 5*time.Millisecond)
	a.get("/questions")
	a.get("/runs/" + run)
	decide := open[slices.IndexFunc(open, func(q inspect.Question) bool { return q.Title == "Decide" })]
	at := "/runs/" + run + "/questions/" + decide.ID + "/answer"
	status, answer := a.ask("POST", at, `{"fields":{"choice":"maybe"}}`)
	require.Equal(t, 422, status, "%s", answer)
	status, answer = a.ask("POST", at, `{"fields":{"choice":"send"},"reason":"fine"}`)
	require.Equal(t, 200, status, "%s", answer)
	_, err = c.Answer(t.Context(), run, decide.ID, inspect.Answer{Fields: map[string]any{"choice": "stop"}})
	var refused *inspect.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "conflict", refused.Code)
	_, err = c.Steer(t.Context(), run, steer.Command{Kind: steer.Cancel})
	require.NoError(t, err)
	for _, err := range c.Events(t.Context(), run, 0) { // until the end
		require.NoError(t, err)
	}
}

// recordPerson records the answer to a question that names no run.
func (a *recordedAPI) recordPerson(c *inspect.Client) {
	t := a.t
	open, err := c.Questions(t.Context(), "")
	require.NoError(t, err)
	i := slices.IndexFunc(open, func(q inspect.Question) bool { return q.Run == "" })
	require.GreaterOrEqual(t, i, 0)
	status, answer := a.ask("POST", "/questions/"+open[i].ID+"/answer", `{"text":"yes"}`)
	require.Equal(t, 200, status, "%s", answer)
	_, err = c.Answer(t.Context(), "", open[i].ID, inspect.Answer{Text: "yes"})
	var refused *inspect.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "not_found", refused.Code)
}

// recordSteering records commands to runs whose model does not answer.
func (a *recordedAPI) recordSteering(c *inspect.Client, calls chan struct{}) {
	t := a.t
	run, err := c.Start(t.Context(), inspect.Start{Spec: "slow"})
	require.NoError(t, err)
	<-calls
	<-calls
	a.readStream("/runs/" + run + "/stream")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	streamed := make(chan error, 1)
	go func() {
		for _, err := range c.Stream(ctx, run) {
			streamed <- err
			return
		}
		streamed <- nil
	}()
	a.recordPolicies(c, run)
	for _, c := range []struct{ path, body string }{
		{"/pause", `{"reason":"wait"}`}, {"/messages", `{"agent":"a","text":"Hurry.","classification":"internal"}`}, {"/nodes/Think/interrupt", `{"text":"Stop."}`},
		{"/resume", ""}, {"/nodes/Think/cancel", ""}, {"/nodes/Think/rerun", `{"reason":"once more"}`},
	} {
		status, answer := a.ask("POST", "/runs/"+run+c.path, c.body)
		for status == 409 && bytes.Contains(answer, []byte("runs; interrupt it")) { // until its canceled call has returned
			status, answer = a.ask("POST", "/runs/"+run+c.path, c.body)
		}
		require.Equal(t, 200, status, "%s: %s", c.path, answer)
	}
	taken, err := c.Steer(t.Context(), run, steer.Command{Kind: steer.Pause})
	require.NoError(t, err)
	require.NotEmpty(t, taken.By)
	status, answer := a.ask("POST", "/runs/"+run+"/cancel", "")
	require.Equal(t, 200, status, "%s", answer)
	require.NoError(t, <-streamed)
	a.get("/runs/" + run)
}

// recordPolicies records the policy of a run, and others in its place.
func (a *recordedAPI) recordPolicies(c *inspect.Client, run string) {
	t := a.t
	for _, base := range []string{"", "/runs/" + run} {
		base += "/governance/handoff-rules"
		a.get(base + "/user/a")
		p, err := c.Policy(t.Context(), run)
		require.NoError(t, err)
		require.JSONEq(t, string(a.get(base)), string(a.get("/runs/"+run+"/governance/handoff-rules")))
		for text, want := range map[string]string{ // of a text, problems have lines; it has the policy and nothing else
			"# why\npolicy:\n  rules:\n    - {from: user, to: a, moode: full}\n": `"line":4`, "rules:\n  - {from: user, to: nobody}\n": `"line":2`,
			"file: team.yaml\n": `"line":1`, "rules: []\nagents: []\n": `"line":2`, "policy:\n  rules: []\nagents: []\n": `"line":`, "rules: [\n": `"line":`,
		} {
			body, err := json.Marshal(map[string]string{"text": text})
			require.NoError(t, err)
			status, answer := a.put(base, p.Digest, string(body))
			require.Equal(t, 422, status, "%s: %s", text, answer)
			require.Contains(t, string(answer), want, text)
		}
		for _, tt := range []struct {
			digest, policy string
			want           int
			pointer, about string
		}{
			{"", `{}`, 428, "", "If-Match"},
			{"other", `{}`, 412, "", "has changed"},
			{p.Digest, `{"rules":[{"from":"user","to":"b","mode":"minimal"}]}`, 422, "/policy/rules/0/to", "unknown"},
			{p.Digest, `{"rules":[{"from":"computed","to":"a","block":["governance","handoff-rules","x"]}],"assert":["a never reaches user"]}`, 422, "/policy/assert/0", "no input and no result"},
			{p.Digest, `{"rules":[{"from":"user","to":"a","moode":"full"}]}`, 422, "/policy/rules/0/moode", "moode"},
			{p.Digest, `{},"text":"rules: []"`, 422, "/text", "two policies"},
			{p.Digest, `{"rules":[{"from":"user","to":"a","reveal":{"email":[""]}}]}`, 409, "/policy", "user"},
			{p.Digest, `{"rules":[{"from":"computed","to":"a","block":["` + strings.ReplaceAll(base[1:], "/", `","`) + `"]}]}`, 200, "", "digest"},
			{p.Digest, `{}`, 412, "", "has changed"},
		} {
			status, answer := a.put(base, tt.digest, `{"policy":`+tt.policy+`}`)
			require.Equal(t, tt.want, status, "%s: %s", tt.policy, answer)
			require.Contains(t, string(answer), tt.about, tt.policy)
			require.Contains(t, string(answer), tt.pointer, tt.policy)
		}
	}
}

// put replaces a policy that has this digest.
func (a *recordedAPI) put(path, digest, body string) (status int, answer []byte) {
	a.t.Helper()
	return a.send("PUT", path, body, func(h http.Header) {
		if digest != "" {
			h.Set("If-Match", strconv.Quote(digest))
		}
	})
}

// readStream records the head of a stream.
func (a *recordedAPI) readStream(path string) {
	r, err := http.NewRequestWithContext(a.t.Context(), "GET", a.base+"/api/v1"+path, nil)
	require.NoError(a.t, err)
	r.Header.Set("Authorization", "Bearer "+apiToken)
	res, err := a.http.Do(r)
	require.NoError(a.t, err)
	defer res.Body.Close()
	a.check(r, res.StatusCode, res.Header.Get("Content-Type"), nil)
}

// recordRefusals records what is wrong in other ways.
func (a *recordedAPI) recordRefusals() {
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/runs/none", "", 404},
		{"GET", "/runs/none/events", "", 404},
		{"GET", "/runs/none/stream", "", 404},
		{"GET", "/runs?limit=0", "", 400},
		{"GET", "/runs?size=1", "", 400},
		{"POST", "/runs", `{"spec":"none"}`, 404},
		{"POST", "/runs", `{"spec":"open","bogus":1}`, 400},
		{"POST", "/runs", `{"spec":"open","inputs":{"b":"x"}}`, 422},
		{"POST", "/runs", `{"spec":"open","goal":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		{"POST", "/runs/none/pause", "", 404},
		{"POST", "/runs/none/messages", `{"agent":"a","text":"x","classification":"high"}`, 422},
	} {
		status, answer := a.ask(tt.method, tt.path, tt.body)
		require.Equal(a.t, tt.want, status, "%s %s: %s", tt.method, tt.path, answer)
	}
}
