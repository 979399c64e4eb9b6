package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A provider is a server that refuses each call with a status, or answers it with
// its name. It records the requests.
type provider struct {
	*httptest.Server
	name   string
	status int // 0 means that it answers

	mu    sync.Mutex // guards what follows
	heard []recordedCall
}

type recordedCall struct{ model, key, title, body string }

func startProvider(t *testing.T, name string, status int) *provider {
	t.Helper()
	p := &provider{name: name, status: status}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var sent struct{ Model string }
		_ = json.Unmarshal(body, &sent)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.heard = append(p.heard, recordedCall{
			model: sent.Model, key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), title: r.Header.Get("X-Title"), body: string(body),
		})
		if p.status != 0 {
			hurry(w)
			refuseWith(w, p.status, "", "out of order")
			return
		}
		fmt.Fprintf(w, `{"id":"id-%d","object":"chat.completion","model":"%s-2026","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"by %s"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, len(p.heard), p.name, p.name)
	}))
	t.Cleanup(p.Close)
	return p
}

// calls returns the requests.
func (p *provider) calls() []recordedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard)
}

const threeTasks = `tasks:
  - {title: Read, description: Read it.}
  - {title: Judge, dependsOn: [Read], description: Judge it.}
  - {title: Write, dependsOn: [Judge], description: Write it.}
`

// If the first of two servers fails, all tasks complete, and all output names the second server.
func TestFallbackAnswersForAServerThatIsDown(t *testing.T) {
	t.Parallel()
	for status, tries := range map[int]int{503: 3, 402: 1} {
		down, up := startProvider(t, "down", status), startProvider(t, "up", 0)
		dir := clitest.Folder(t, map[string]string{"team.yaml": fmt.Sprintf(`model: first
baseURL: %s/v1
apiKey: ${KEY}
headers: {X-Title: mine}
fallback: [{model: second, baseURL: "%s/v1"}]
agents: [{name: solo}]
`+threeTasks, down.URL, up.URL)})
		run := func(args ...string) outcome {
			return call{bare: true, dir: dir, env: map[string]string{"KEY": "fake-key-one"}, args: args}.run(t)
		}
		got := run("run", "--allow-env", "KEY="+down.URL, "-o", "json", "--events", "events.ndjson", "--log-level", "debug")
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Len(t, down.calls(), 3*tries)
		require.Len(t, up.calls(), 3, "once for each task")
		require.Equal(t, "fake-key-one", down.calls()[0].key)
		for _, c := range up.calls() {
			require.Equal(t, recordedCall{model: "second", body: c.body}, c, "no key and no header of the first host")
		}
		answer := object(t, got.stdout)
		for _, task := range answer["tasks"].([]any) {
			info := task.(map[string]any)["call"].(map[string]any)
			require.Equal(t, []any{"up-2026", up.URL + "/v1"}, []any{info["model"], info["endpoint"]})
		}
		warning := fmt.Sprintf(`(%d); answered by model "up-2026" at %s/v1`, status, up.URL)
		require.Equal(t, 1, strings.Count(fmt.Sprint(answer["warnings"]), warning), "once for the run: %v", answer["warnings"])
		events, err := os.ReadFile(filepath.Join(dir, "events.ndjson"))
		require.NoError(t, err)
		require.Regexp(t, `"type":"warning".*answered by model`, string(events))
		require.Contains(t, got.stderr, "answered by model")
		require.Contains(t, run("show", "Read").stdout, "answered by up-2026 · at "+up.URL+"/v1")
		require.Contains(t, run("show", "Read").stdout, fmt.Sprintf(`warning: model "first" at %s/v1: `, down.URL))

		replayed := run("replay", "-o", "json")
		require.Equal(t, exit.StatusOK, replayed.status, "%+v", replayed)
		reused := run("run", "--allow-env", "KEY="+down.URL, "--reuse", "-o", "json")
		require.Equal(t, exit.StatusOK, reused.status, "%+v", reused)
		require.Len(t, up.calls(), 3, "an answer of a fallback is an answer")
	}
}

// The plan shows a fallback as a reader, with the lowest clearance of the chain.
func TestFallbackIsInThePlan(t *testing.T) {
	t.Parallel()
	const text = `name: plan
model: first
baseURL: http://localhost:1/v1
endpoints: {"https://far.example/v1": {accepts: %s}}
inputs: {claim: {text: a claim, classification: confidential}}
agents:
  - name: solo
    accepts: confidential
    fallback: [{baseURL: "https://far.example/v1", apiKey: "${FAR_KEY}"}]
tasks: [{title: Read, assignee: solo, uses: [claim], description: Read it.}]
%s`
	dir := clitest.Folder(t, map[string]string{
		"low.yaml": fmt.Sprintf(text, "internal", ""), "high.yaml": fmt.Sprintf(text, "confidential", ""),
		"assert.yaml": fmt.Sprintf(text, "confidential", "assert: [input claim never reaches https://far.example/v1]\n"),
	})
	run := func(args ...string) outcome {
		return call{bare: true, dir: dir, env: map[string]string{"FAR_KEY": "fake-key-far"}, args: args}.run(t)
	}
	refused := run("plan", "high.yaml")
	require.Equal(t, exit.StatusUsage, refused.status, "%+v", refused)
	require.Contains(t, refused.stderr, "fallback 1: apiKey: FAR_KEY is not allowed to go to https://far.example")
	trust := run("trust", "high.yaml", "--yes")
	require.Contains(t, trust.stdout+trust.stderr, "https://far.example")
	const allowed = "--allow-env=FAR_KEY=https://far.example"
	low := run("plan", "low.yaml", allowed)
	require.Equal(t, exit.StatusUsage, low.status, "%+v", low)
	require.Contains(t, low.stderr, "the context is confidential, and its endpoint https://far.example/v1 accepts internal")
	plan := run("plan", "high.yaml", allowed)
	require.Equal(t, exit.StatusOK, plan.status, "%+v", plan)
	require.Contains(t, plan.stdout, "leaves to http://localhost:1/v1, else to https://far.example/v1")
	require.Contains(t, plan.stdout, "FAR_KEY")
	made := object(t, run("plan", "high.yaml", allowed, "-o", "json").stdout)
	task := made["tasks"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"http://localhost:1/v1", []any{"https://far.example/v1"}}, []any{task["leavesTo"], task["fallback"]})
	require.Contains(t, fmt.Sprint(made["environment"]), "FAR_KEY")
	for _, form := range []string{"dot", "mermaid"} {
		require.Regexp(t, `far(\.|#46;)example`, run("plan", "high.yaml", allowed, "-o", form).stdout, form)
	}
	require.Regexp(t, `│ https://far.example/v1, confidential\n`, plan.stdout, "a column of the table")
	denied := run("plan", "assert.yaml", allowed)
	require.NotEqual(t, exit.StatusOK, denied.status)
	require.Contains(t, denied.stdout+denied.stderr, "https://far.example/v1")
}

// A missing key of a fallback is an error before anything runs; offline no key is needed.
func TestFallbackWithoutAKey(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":   "model: first\nbaseURL: http://localhost:1/v1\nagents: [{name: solo, fallback: [{baseURL: https://api.openai.com/v1}]}]\ntasks: [{title: Read, description: Read it.}]\noffline: script.yaml\n",
		"script.yaml": "replies: [{status: 402, body: '{\"error\": {\"message\": \"pay\"}}', times: 1}, {text: fine}]\n",
	})
	got := call{bare: true, dir: dir, args: []string{"run"}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, `agent "solo": fallback 1: `)
	require.Contains(t, got.stderr, "OPENAI_API_KEY")
	got = call{bare: true, dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "fine")
}

// plan and check list the variable whose key an entry of a fallback gets.
func TestFallbackKeyIsListed(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `model: first
baseURL: http://localhost:1/v1
fallback: [{model: second, baseURL: "https://api.openai.com/v1"}]
agents: [{name: solo}]
` + threeTasks})
	for _, command := range []string{"check", "plan"} {
		got := call{bare: true, dir: dir, env: map[string]string{"OPENAI_API_KEY": "fake-key-one"}, args: []string{command, "-o", "json"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, []any{map[string]any{"name": "OPENAI_API_KEY", "to": "https://api.openai.com", "known": true}}, object(t, got.stdout)["environment"], command)
	}
}

// A fallback answers for a server that limits the rate for longer than a call waits. Later calls do
// not try that server again.
func TestFallbackAnswersForAServerThatLimitsTheRate(t *testing.T) {
	t.Parallel()
	up := startProvider(t, "up", 0)
	var refused atomic.Int32
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refused.Add(1)
		w.Header().Set("Retry-After", "600")
		refuseWith(w, 429, "", "slow down")
	}))
	t.Cleanup(busy.Close)
	dir := clitest.Folder(t, map[string]string{"team.yaml": fmt.Sprintf("model: first\nbaseURL: %s/v1\nfallback: [{baseURL: \"%s/v1\"}]\nagents: [{name: solo}]\n", busy.URL, up.URL) + threeTasks})
	got := call{bare: true, dir: dir, args: []string{"run"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Len(t, up.calls(), 3)
	require.EqualValues(t, 1, refused.Load())
}

// With a cost budget each model of the chain needs a price, and the budget pays for the model that
// answers.
func TestFallbackUnderACostBudget(t *testing.T) {
	t.Parallel()
	down, up := startProvider(t, "down", 402), startProvider(t, "up", 0)
	const text = "maxCostBudget: 1\nprices: {%s}\nmodel: first\nbaseURL: %s/v1\nfallback: [{model: second, baseURL: \"%s/v1\"}]\nagents: [{name: solo}]\n" + threeTasks
	dir := clitest.Folder(t, map[string]string{
		"half.yaml":  fmt.Sprintf(text, "first: {input: 1, output: 1}", down.URL, up.URL),
		"whole.yaml": fmt.Sprintf(text, "first: {input: 1, output: 1}, second: {input: 1000000, output: 1000000}", down.URL, up.URL),
	})
	run := func(args ...string) outcome { return call{bare: true, dir: dir, args: args}.run(t) }
	half := run("check", "half.yaml")
	require.NotEqual(t, exit.StatusOK, half.status)
	require.Contains(t, half.stderr, `half.yaml:6:10: agent "solo": the model "second" has no price`)
	whole := run("run", "whole.yaml")
	require.Equal(t, exit.StatusFailed, whole.status, "%+v", whole)
	require.Empty(t, up.calls(), "a call of the second model does not fit into the budget, one of the first does")
	require.Len(t, down.calls(), 1)
}
