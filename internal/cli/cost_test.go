package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/llm"
	"github.com/stretchr/testify/require"
)

// chargedTeam is a spec with two tasks for agents whose models have prices.
const chargedTeam = `name: charged
model: small
maxCostBudget: 0.05
prices:
  small: {input: 100, output: 1000, cachedInput: 10, reasoning: 2000}
agents:
  - {name: ada, maxTokens: 20}
  - name: bob
    model: big
tasks:
  - {title: One, assignee: ada, description: Do one.}
  - {title: Two, assignee: bob, dependsOn: [One], description: Do two.}
`

// If a model has no price, so that maxCostBudget cannot count it, check, plan and run name the model
// with its line and say what to write.
func TestCheckNamesModelsWithoutAPrice(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": chargedTeam, "script.yaml": "replies: [{text: ok}]"})
	const want = `team.yaml:9:12: agent "bob": the model "big" has no price, and maxCostBudget needs the price of each model`
	for _, args := range []string{"check", "plan", "run --offline --script script.yaml"} {
		got := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr, want, args)
		require.Contains(t, got.stderr, "hint: add big: {input: …, output: …} to prices, in US dollars per million tokens; 0 for a free model", args)
	}
	for name, tt := range map[string]struct{ text, args, want string }{
		"a budget of the flag":        {strings.Replace(chargedTeam, "maxCostBudget: 0.05\n", "", 1), "run --offline --script script.yaml --max-cost-budget 2", `team.yaml:8:12: agent "bob": the model "big" has no price`},
		"a budget of the agent":       {strings.Replace(strings.Replace(chargedTeam, "maxCostBudget: 0.05\n", "", 1), "model: big", "model: big\n    maxCostBudget: 1", 1), "check", `team.yaml:8:12: agent "bob": the model "big" has no price`},
		"a model of a fallback":       {strings.Replace(chargedTeam, "model: big", "fallback: [{model: backup}]", 1), "check", `team.yaml:9:24: agent "bob": the model "backup" has no price`},
		"the coordinator of a goal":   {strings.Replace(strings.Replace(chargedTeam, "model: big", "model: small", 1), "name: charged", "name: charged\ngoal: Do it.\ncoordinator: {model: planner}", 1), "check", `team.yaml:3:22: coordinator: the model "planner" has no price`},
		"the model of a flag":         {strings.Replace(chargedTeam, "    model: big\n", "", 1), "check --model ada=other", `agent "ada": the model "other" has no price`},
		"a budget of another kind":    {chargedTeam, "run --max-cost-budget 0", "--max-cost-budget 0: write a number of US dollars from 0.000001 to 1000000"},
		"a budget that is no number":  {chargedTeam, "run --max-cost-budget NaN", "--max-cost-budget NaN: write a number of US dollars"},
		"a budget with a currency":    {strings.Replace(chargedTeam, "0.05", "$5", 1), "check", `team.yaml:3:16: maxCostBudget: the text "$5" where a number of US dollars from 0.000001 to 1000000 belongs`},
		"the price of a cached token": {strings.Replace(chargedTeam, "cachedInput: 10", "cachedInput: -1", 1), "check", `team.yaml:5:50: prices: "small": cachedInput: the number -1 where a number of US dollars belongs`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": tt.text, "script.yaml": "replies: [{text: ok}]"})
			got := call{dir: dir, args: strings.Fields(tt.args)}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Contains(t, got.stderr, tt.want)
		})
	}
}

// billed serves replies whose tokens are partly cached and partly reasoning.
func billed(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"fine"}}],
		"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":6}}}`)
}

// Cached and reasoning tokens are shown wherever tokens are shown, and they are in the cost.
func TestCachedAndReasoningTokensAreShown(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { billed(w) })
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(strings.Replace(chargedTeam, "model: big", "model: small", 1), "0.05", "5", 1)})
	got := call{dir: dir, env: server.env(), args: []string{"run", "-o", "json", "--events", "events.ndjson"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	twice := map[string]any{"input_tokens": 200.0, "output_tokens": 20.0, "cached_tokens": 160.0, "reasoning_tokens": 12.0}
	require.Equal(t, twice, object(t, got.stdout)["totalTokenUsage"])
	require.Contains(t, got.stderr, "; 200 tokens in (160 cached), 20 out (12 reasoning)")
	events, err := os.ReadFile(filepath.Join(dir, "events.ndjson"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(events), `"cached_tokens":80,"reasoning_tokens":6`), "agent_complete and task_complete of each task")
	require.Contains(t, string(events), `"cached_tokens":160,"reasoning_tokens":12`)

	shows := func(args ...string) string {
		got := call{dir: dir, args: append([]string{"show"}, args...)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return got.stdout
	}
	require.Contains(t, shows(), "200 tokens in (160 cached), 20 out (12 reasoning)")
	require.Contains(t, shows("One"), "100 tokens in (80 cached), 10 out (6 reasoning)")
	require.Equal(t, twice, object(t, shows("-o", "json"))["totalTokenUsage"])
	// 20 × 100 + 80 × 10 + 4 × 1000 + 6 × 2000 millionths of a dollar for each task
	require.Regexp(t, `One +ada +small +1 +100 +10 +\$0\.0188 +80 in cached; 6 out reasoning\n`, shows("--usage"))
	require.Contains(t, shows("--usage"), "sum: 2 calls, 200 tokens in (160 cached), 20 out (12 reasoning), $0.0376\n")
	var b history.UsageDocument
	require.NoError(t, json.Unmarshal([]byte(shows("--usage", "-o", "json")), &b))
	require.Equal(t, 0.0376, *b.Total.Cost) //nolint:testifylint // sums are exact
	require.Equal(t, llm.Usage{InputTokens: 200, OutputTokens: 20, CachedTokens: 160, ReasoningTokens: 12}, b.Total.Usage)

	// A reused answer shows what it saved.
	got = call{dir: dir, env: server.env(), args: []string{"run", "--reuse", "--max-cost-budget", "0.000001"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, shows("--usage"), "saved 200 tokens in (160 cached), 20 out (12 reasoning) ($0.0376)")
	require.EqualValues(t, 2, server.calls.Load())
}

// maxCostBudget ends a run. With a higher budget the run can be resumed, and the earlier cost counts.
// A replay costs nothing.
func TestCostBudgetOfARun(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { billed(w) })
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(chargedTeam, "{name: ada, maxTokens: 20}\n  - name: bob\n    model: big", "{name: ada, maxTokens: 20}\n  - {name: bob, maxTokens: 20}", 1)})
	runs := func(args ...string) outcome { return call{dir: dir, env: server.env(), args: args}.run(t) }
	got := runs("run", "--max-concurrency", "1")
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "failed    Two (bob): the cost budget is spent\n")
	require.Regexp(t, `failed: +Two \(bob\): cost budget exceeded: \$0\.0188 of \$0\.05 spent, and a call of "bob" may cost up to \$0\.\d+; raise maxCostBudget of the run`, got.stderr)
	require.Contains(t, got.stderr, "raise --max-cost-budget, or maxCostBudget of the spec or the agent")
	require.Contains(t, got.stderr, "1 of 2 tasks completed, 1 failed")
	require.Contains(t, call{dir: dir, args: []string{"runs"}}.run(t).stdout, "budget_exhausted")
	require.EqualValues(t, 1, server.calls.Load())

	got = runs("resume", "--max-cost-budget", "0.06")
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "$0.0188 of $0.06 spent")
	require.EqualValues(t, 1, server.calls.Load())
	got = runs("resume", "--max-cost-budget", "0.08")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.EqualValues(t, 2, server.calls.Load())
	got = runs("replay")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.EqualValues(t, 2, server.calls.Load())
}

// If a fallback answers, the cost and the budget use the price of the model that was called.
func TestFallbackIsPricedByItsOwnModel(t *testing.T) {
	t.Parallel()
	down, up := startProvider(t, "down", http.StatusPaymentRequired), startProvider(t, "up", 0)
	text := fmt.Sprintf(`model: "${FIRST:-first}"
baseURL: %s/v1
prices: {first: {input: 1, output: 1}, second: {input: 1000, output: 5000}}
maxCostBudget: 0.5
fallback: [{model: second, baseURL: "%s/v1"}]
agents: [{name: solo, maxTokens: 20}]
`, down.URL, up.URL)
	dir := clitest.Folder(t, map[string]string{"team.yaml": text + threeTasks})
	got := call{bare: true, dir: dir, args: []string{"run"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, call{bare: true, dir: dir, args: []string{"show", "--usage"}}.run(t).stdout, "30 tokens in, 3 out, $0.0450")
	got = call{bare: true, dir: dir, args: []string{"run", "--max-cost-budget", "0.05"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "cost budget exceeded")
}

// If an endpoint reports no usage for a call, show --usage says that the sum does not include it.
func TestUsageNamesUncountedCalls(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		usage := "null"
		if n > 1 {
			usage = `{"prompt_tokens": 10, "completion_tokens": 10}`
		}
		fmt.Fprintf(w, `{"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}], "usage": %s}`, usage)
	})
	spec := strings.NewReplacer("    model: big\n", "    maxTokens: 20\n", "maxCostBudget: 0.05\n", "").Replace(chargedTeam)
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec})
	got := call{dir: dir, args: []string{"run"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"show", "--usage"}}.run(t)
	require.Regexp(t, `\nOne +ada +small +1 +0 +0 +\$0 +1 not counted\n`, got.stdout)
	require.Regexp(t, `\nTwo +bob +small +1 +10 +10 +\$0\.0110\n`, got.stdout)
	require.Regexp(t, `\nsum: 2 calls, 10 tokens in, 10 out, \$0\.0110; without the tokens of 1 call, which the endpoint did not count\n$`, got.stdout)
	got = call{dir: dir, args: []string{"show", "--usage", "-o", "json"}}.run(t)
	require.EqualValues(t, 1, object(t, got.stdout)["total"].(map[string]any)["uncounted"])
}
