package specfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// save writes the spec of a file and a plan into a folder.
func save(t require.TestingT, f *specfile.File, goal engine.Goal, tasks []task.Spec, dir string) (path string, left []specfile.Problem) {
	data, left, err := f.WithPlan(goal, tasks, dir)
	require.NoError(t, err)
	path = filepath.Join(dir, "saved.yaml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path, left
}

// requireSaved holds that the saved spec says what the first one said, and the plan.
func requireSaved(t require.TestingT, f, got *specfile.File, goal engine.Goal, tasks []task.Spec) {
	if f.Coordinator == nil {
		got.Coordinator = nil
	}
	require.Equal(t, settled(t, f), settled(t, got))
	requirePlanned(t, got, goal, tasks)
}

// requirePlanned holds that a spec says what a plan does.
func requirePlanned(t require.TestingT, got *specfile.File, goal engine.Goal, tasks []task.Spec) {
	if len(tasks) == 0 {
		require.Equal(t, goal.Text, got.Goal.Text)
		return
	}
	require.Nil(t, got.Goal)
	require.Equal(t, goal.Text, got.Run.Answer.Text)
	require.Equal(t, goal.Source.Params, got.Run.Answer.Source.Params)
	require.Equal(t, goal.Classification, got.Run.Answer.Classification)
	require.Len(t, got.Tasks, len(tasks))
	for i := range tasks {
		hasTools := slices.ContainsFunc(got.Agents, func(a specfile.Agent) bool { return len(a.Member.Tools) > 0 })
		require.Equal(t, inWords(t, tasks[i], hasTools), inWords(t, got.Tasks[i], hasTools))
	}
}

// inWords returns what a saved task has in common with the one that was saved, and with the
// tasks in it: the file has another layout, and no lists of tools if there are none to have.
func inWords(t require.TestingT, s task.Spec, hasTools bool) task.Spec {
	s.Source.Origin = provenance.Position{}
	if !hasTools {
		s.Tools = nil
	}
	if s.OutputSchema != nil {
		schema, err := jsonvalue.Parse(string(s.OutputSchema))
		require.NoError(t, err)
		s.OutputSchema = []byte(schema.Canonical())
	}
	inside := func(tasks []task.Spec) []task.Spec {
		tasks = slices.Clone(tasks)
		for i := range tasks {
			tasks[i] = inWords(t, tasks[i], hasTools)
		}
		return tasks
	}
	if s.Repeat != nil {
		s.Repeat = new(*s.Repeat)
		s.Repeat.Tasks = inside(s.Repeat.Tasks)
	}
	if s.ForEach != nil {
		s.ForEach = new(*s.ForEach)
		s.ForEach.Tasks = inside(s.ForEach.Tasks)
	}
	if s.Verify != nil && !hasTools {
		s.Verify = new(*s.Verify)
		s.Verify.Judges = slices.Clone(s.Verify.Judges)
		for i := range s.Verify.Judges {
			s.Verify.Judges[i].Tools = nil
		}
	}
	return s
}

// settled is what a plan does not change of a file, in words: who there is,
// how they are reached, and what they are told.
func settled(t require.TestingT, f *specfile.File) string {
	var b strings.Builder
	agents := append([]specfile.Agent(nil), f.Agents...)
	if c := f.Coordinator; c != nil {
		agents = append(agents, specfile.Agent{Connection: c.Connection, Member: engine.Member{SystemPrompt: c.SystemPrompt, Written: plan.Written{SystemParams: c.SystemParams}, Backend: plan.Backend{Model: c.Coordinator.Model}}})
		fmt.Fprintln(&b, c.Instructions, c.MayGrant, c.MaxContextBytes, c.MaxPromptBytes, c.MaxTokenBudget, c.MaxCostBudget, c.Accepts == nil || *c.Accepts < label.Secret)
	}
	for _, a := range agents {
		a.Member.Origin = provenance.Position{}
		fmt.Fprintln(&b, withoutPointers(&a.Member), specfile.Servers(f))
		fmt.Fprintf(&b, "%+v\n%s %q %v\n", a.Member, a.Connection, a.APIKey.Reveal(), a.Headers)
		for _, c := range a.Fallback {
			fmt.Fprintf(&b, "fallback %s %q %v %v\n", c, c.APIKey.Reveal(), c.Headers, deref(c.Temperature))
		}
		fmt.Fprintln(&b, a.MaxTurns, a.MaxTokens, deref(a.Temperature), deref(a.TopP), a.Timeout, a.CallTimeout)
	}
	for _, in := range f.Run.Inputs {
		fmt.Fprintln(&b, in.Name, in.Text, in.Classification, in.TTL, in.MaxContextBytes, in.Cut)
	}
	for _, m := range f.Run.Messages {
		fmt.Fprintln(&b, m.From, m.To, m.Text, m.Classification, m.TTL)
	}
	if f.Chat != nil {
		fmt.Fprintln(&b, *f.Chat)
	}
	fmt.Fprintln(&b, policyOf(t, f))
	prices, err := json.Marshal(f.Config.Prices)
	require.NoError(t, err)
	fmt.Fprintln(&b, f.Name, string(prices), f.Run.MaxConcurrency, f.Run.MaxTokenBudget, f.Run.MaxCostBudget, f.Run.Timeout, f.Run.Strategy, f.Config.Endpoints, filepath.Base(f.Offline), f.Config.MaxContextBytes, f.Config.MaxPromptBytes, f.Config.MaxMessageBytes)
	return b.String()
}

const planned = `# comments are not kept
name: claims
model: ${MODEL:-small}
baseURL: https://one.example/v1
apiKey: ${KEY}
headers: {X-Title: claims, Authorization: "Bearer ${KEY}"}
fallback: [{model: "${SPARE:-spare}", headers: {X-Title: spare}}, {baseURL: https://three.example/v1, apiKey: "${OWN}"}]
maxConcurrency: 3
maxContextBytes: 400000
maxPromptBytes: 900000
maxMessageBytes: 20000
maxTokenBudget: 90000
maxCostBudget: 12.50
prices: {small: {input: 0.15, output: 0.6, cachedInput: 0.075}, big: {input: 2, output: 8, reasoning: 12.5}, own: {input: 0, output: 0}}
timeoutMs: 1500.5
schedulingStrategy: capability-match
sharedMemory: true
mode: auto
goal: {text: "Settle the claims of ${params.year}, as ${params.$}{params.year}", classification: confidential}
params: {year: 2026, city: "a: b"}
inputs:
  claim: {file: data/claim.md, classification: confidential, ttlMs: 10, maxContextBytes: 300000, cut: true}
  rules: {text: "Be fair.\n"}
schemas: {facts: {type: object, properties: {n: {type: number, minimum: 1.50}}}, all: {file: facts.json}}
endpoints: {https://one.example/v1: {accepts: secret, requestsPerMinute: 60}, https://two.example/v1: {tokensPerMinute: 9000, maxConcurrency: 4}}
agentDefaults: {accepts: confidential, systemPrompt: {file: data/prompt.md}}
taskDefaults: {maxRetries: 3}
coordinator: {model: big, baseURL: https://two.example/v1, apiKey: "${OWN}", instructions: {file: data/claim.md}, systemPrompt: "You plan for ${params.city}.", mayGrant: [memory, inputs], accepts: secret, maxCostBudget: 3}
agents:
  - {name: intake, outputSchema: facts, maxTokenBudget: 5000, maxCostBudget: 0.125, headers: {X-Title: intake}, temperature: 0, capabilities: [read, "x: y"]}
  - {name: letters, model: own, systemPrompt: "Write in ${params.year}.\nTwo lines.", baseURL: https://two.example/v1, outputSchema: {file: facts.json}, fallback: [{baseURL: https://four.example/v1, model: four}]}
edges: [{from: intake, to: letters, maxClassification: secret}]
policy: {file: data/rules.yaml}
messages: [{from: user, to: "*", text: {file: data/claim.md}, classification: confidential}, {from: intake, to: letters, text: Hello}]
offline: ${DIR:-data}/script.yaml
`

// plannedFiles writes the spec above and what it names.
func plannedFiles(t *testing.T, text string) string {
	dir := t.TempDir()
	write(t, dir, "team.yaml", text, "data/claim.md", "The claim.", "data/prompt.md", "You are ${params.city}.", "facts.json", `{"type": "object"}`, "data/script.yaml", "x", "data/rules.yaml", "policy: {rules: [{from: intake, to: letters, block: [ssn]}]}\n")
	return dir
}

var plannedEnv = env(map[string]string{"KEY": "fake-key", "OWN": "fake-own"})

func TestPlanIsSavedAsASpec(t *testing.T) {
	t.Parallel()
	dir := plannedFiles(t, planned)
	f, err := specfile.Load(specfile.Options{Path: dir, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	require.Equal(t, "Settle the claims of 2026, as ${params.year}", f.Goal.Text)
	tasks := []task.Spec{
		{Title: "Extract: facts", Assignee: "intake", Description: "List ${params.year} and ${KEY}.\n\n  # indented\nEnd.\n", Uses: []task.Use{{Name: "claim"}}, Classification: label.Confidential,
			Source: provenance.Source{Record: &provenance.Record{From: "coordinator", Envelope: "coordinator/plan/1", Run: "3f2a", CreatedAt: time.Date(2026, 1, 31, 9, 30, 0, 500, time.UTC), ExpiresAt: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}}},
		{
			Title: "Write", Key: "w", Assignee: "letters", Description: "Tell 2026.", Source: provenance.Source{Params: []provenance.Param{{Name: "year", Start: 5, End: 9}}},
			DependsOn:   []task.Ref{{Task: "Extract: facts"}, {Task: "w2", As: task.Both, Optional: true}},
			MemoryScope: task.ScopeAll, RequiredTags: []string{"t"}, OutputSchema: json.RawMessage(`{"type":"object"}`), TTL: 1500 * time.Microsecond,
			MaxRetries: 2, RetryDelay: task.NoDelay, RetryBackoff: 3, Timeout: time.Minute, Role: "writer", Priority: task.High,
			Metadata: map[string]any{"n": int64(3), "f": 2.0, "b": true, "s": "true"},
			Requires: &task.Requires{Tools: []string{"t"}, Capabilities: []string{"a b"}, Backend: "b", Provider: "openai"},
		},
	}
	for _, to := range []string{dir, filepath.Dir(dir)} {
		path, left := save(t, f, *f.Goal, tasks, to)
		require.Empty(t, left)
		got, err := specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted})
		require.NoError(t, err)
		requireSaved(t, f, got, *f.Goal, tasks)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(text), "fake-")
		require.Contains(t, string(text), "apiKey: \"${KEY}\"")
	}
	data, _, err := f.WithPlan(*f.Goal, tasks, dir)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/saved.golden", data, 0o644))
	}
	want, err := os.ReadFile("testdata/saved.golden")
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))
}

func TestSavedPlanKeepsFlagSettings(t *testing.T) {
	t.Parallel()
	dir := plannedFiles(t, planned)
	write(t, dir, "data/other.md", "Another claim.")
	o := specfile.Options{
		Path: dir, Lookup: plannedEnv, Trusted: trusted, Goal: "Another goal of ${params.year}", Models: []string{"any", "coordinator=planner"}, Params: map[string]string{"year": "MMXXVI"},
		Inputs: map[string]string{"claim": filepath.Join(dir, "data/other.md"), "rules": filepath.Join(dir, "team.yaml")},
	}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, label.Confidential, f.Goal.Classification, "the label stays")
	path, left := save(t, f, *f.Goal, nil, dir)
	require.Empty(t, left)
	got, err := specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	require.Equal(t, settled(t, f), settled(t, got))
	require.Equal(t, "Another goal of MMXXVI", got.Goal.Text)

	elsewhere := t.TempDir()
	write(t, elsewhere, "claim.md", "From elsewhere.")
	o.Inputs = map[string]string{"claim": filepath.Join(elsewhere, "claim.md")}
	f, err = specfile.Load(o)
	require.NoError(t, err)
	path, left = save(t, f, *f.Goal, nil, dir)
	require.Len(t, left, 1)
	require.Equal(t, `input "claim": not saved: Options.Inputs brought it from elsewhere`, left[0].Message)
	_, err = specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted})
	require.ErrorContains(t, err, `input "claim": it has no text`)
	got, err = specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted, Inputs: o.Inputs})
	require.NoError(t, err)
	require.Equal(t, settled(t, f), settled(t, got))
}

func TestPlanOfSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := plannedFiles(t, `{"orchestrator": {"defaultModel": "main", "defaultBaseURL": "https://main.example/v1"}, "tasks": [], "schemas": {"mine": true}}`)
	write(t, dir,
		"roster/team.json", `{"name": "roster", "baseURL": "https://team.example/v1", "apiKey": "${OWN}", "headers": {"X-Team": "a", "X-B": "b"},
			"agentDefaults": {"maxTurns": 4, "systemPrompt": {"file": "p.md"}},
			"agents": [{"name": "a"}, {"name": "b", "baseURL": "https://team.example/v2", "headers": {"x-b": "own"}}], "schemas": {"theirs": false}}`,
		"roster/p.md", "From the roster.",
		"orch.yaml", "defaultApiKey: ${KEY}\nmaxTokenBudget: 7\n",
		"coordinator.yaml", "coordinator: {model: big, systemPrompt: {file: data/prompt.md}, baseURL: https://plan.example/v1}\n",
	)
	in := func(name string) string { return filepath.Join(dir, name) }
	f, err := specfile.Load(specfile.Options{
		Path: in("team.yaml"), Team: in("roster/team.json"), Orchestrator: in("orch.yaml"), Coordinator: in("coordinator.yaml"), Goal: "Go.", Lookup: plannedEnv, Trusted: trusted,
	})
	require.Error(t, err, "data/prompt.md names a parameter that nobody declares")
	write(t, dir, "data/prompt.md", "You plan.")
	f, err = specfile.Load(specfile.Options{
		Path: in("team.yaml"), Team: in("roster/team.json"), Orchestrator: in("orch.yaml"), Coordinator: in("coordinator.yaml"), Goal: "Go.", Lookup: plannedEnv, Trusted: trusted,
	})
	require.NoError(t, err)
	require.Equal(t, "fake-key", f.Agents[0].APIKey.Reveal())
	require.Equal(t, "https://main.example/v1", f.Agents[0].BaseURL)
	require.Empty(t, f.Agents[0].Headers, "they are for another host")
	require.Equal(t, 7, f.Run.MaxTokenBudget)
	path, left := save(t, f, *f.Goal, []task.Spec{{Title: "T", Description: "d", Assignee: "a"}}, dir)
	require.Empty(t, left)
	got, err := specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	require.Equal(t, settled(t, f), settled(t, got))
}

// Requirement: G42.
func TestPlanHoldsNoKey(t *testing.T) {
	t.Parallel()
	dir := plannedFiles(t, `
apiKey: fake-key-1
headers: {X-Title: t, Authorization: fake-key-2, X-Api-Key: "${A:-fake-key-3}", Cookie: "a=${KEY}"}
goal: Go.
coordinator: {apiKey: "x${KEY}fake-key-4"}
agentDefaults: {apiKey: fake-key-5}
agents: [{name: a, apiKey: "${KEY:-fake-key-6}"}, {name: b, apiKey: "${KEY}", headers: {Token: Bearer fake-key-7}}]
`)
	f, err := specfile.Load(specfile.Options{Path: dir, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	path, left := save(t, f, *f.Goal, []task.Spec{{Title: "T", Description: "d"}}, dir)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "fake-key")
	var said []string
	for _, p := range left {
		require.NotContains(t, p.Error(), "fake-key")
		said = append(said, fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message))
		require.Contains(t, string(text), "# team.yaml:"+fmt.Sprint(p.Line)+": "+p.Message)
	}
	require.Equal(t, []string{
		"2:9: apiKey: not saved: the file contains the key itself",
		"3:38: headers: Authorization: not saved: the file contains the key itself",
		"3:61: headers: X-Api-Key: not saved: the file contains the key itself",
		"3:89: headers: Cookie: not saved: the file contains the key itself",
		"5:23: coordinator: apiKey: not saved: the file contains the key itself",
		"6:25: agentDefaults: apiKey: not saved: the file contains the key itself",
		`7:28: agent "a": apiKey: not saved: the file contains the key itself`,
		`7:96: agent "b": headers: Token: not saved: the file contains the key itself`,
	}, said)
	got, err := specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	require.Equal(t, "fake-key", got.Agents[1].APIKey.Reveal())
	require.Equal(t, map[string]string{"X-Title": "t"}, got.Agents[1].Headers)
}

func TestPlanThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	dir := plannedFiles(t, planned)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data/plans"), 0o755))
	f, err := specfile.Load(specfile.Options{Path: dir, Lookup: plannedEnv, Trusted: trusted, Models: []string{"a${b}"}})
	require.NoError(t, err)
	_, _, err = f.WithPlan(*f.Goal, nil, filepath.Join(dir, "data"))
	var where []string
	for _, p := range err.(*specfile.Error).Problems {
		message, _, _ := strings.Cut(p.Message, ": cannot be named from")
		where = append(where, fmt.Sprintf("%d: %s", p.Line, message))
	}
	require.Equal(t, []string{
		`24: outputSchema: file: "facts.json"`, `31: outputSchema: file: "facts.json"`, `35: offline: "${DIR:-data}/script.yaml"`,
		`0: the plan: Options.Models: "a${b}" would be read as a variable of the environment`,
	}, where, "what lies in data can be named from there")

	f, err = specfile.Load(specfile.Options{Path: dir, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "data/claim.md")))
	_, _, err = f.WithPlan(*f.Goal, nil, dir)
	require.ErrorContains(t, err, `input "claim": file: "data/claim.md": cannot be named from`)
	require.ErrorContains(t, err, "it does not exist")

	f, err = load(t, "sharedMemory: false\ngoal: Go.\nagents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		give task.Spec
		want string
	}{
		{"a wait below zero", task.Spec{TTL: -5 * time.Millisecond}, "ttlMs: the number -5 where a number of milliseconds belongs"},
		{"a factor", task.Spec{RetryBackoff: 1e6}, "retryBackoff: the number 1000000 where a number from 1 to 1000 belongs"},
		{"a word", task.Spec{Priority: "soon"}, `priority: unknown word "soon"`},
		{"a form", task.Spec{DependsOn: []task.Ref{{Task: "x", As: "text"}}}, `as: unknown word "text"`},
		{"a need of nothing", task.Spec{DependsOn: []task.Ref{{Task: "x", Need: []task.Path{}}}}, "need: the list is empty"},
		{"a need that is no path", task.Spec{Uses: []task.Use{{Name: "x", Need: []task.Path{"a"}}}}, `need: "a": a path begins with a slash`},
		{"a need of the task that is no path", task.Spec{NeedToKnow: []task.Path{"/0"}}, `needToKnow: "/0": "0" is the number`},
		{"a secret in clear", task.Spec{Uses: []task.Use{{Name: "x", Reveal: map[string][]task.Path{"token": {""}}}}}, "reveal: token is a secret"},
		{"a schema that is a name", task.Spec{OutputSchema: json.RawMessage(`"name"`)}, "outputSchema: it would be read as the name of a schema or a file"},
		{"a schema that is a file", task.Spec{OutputSchema: json.RawMessage(`{"file": "x"}`)}, "outputSchema: it would be read as the name of a schema or a file"},
		{"no JSON", task.Spec{OutputSchema: json.RawMessage(`{`)}, "outputSchema: "},
		{"metadata", task.Spec{Metadata: map[string]any{"k": []int{1}}}, `metadata: "k": it is a []int`},
		{"no text", task.Spec{Description: "\xff"}, "a text is not valid UTF-8"},
		{"a scope", task.Spec{MemoryScope: task.ScopeAll}, "memoryScope: all needs the shared memory"},
		{"size", task.Spec{Description: strings.Repeat("long ", 1<<18)}, "larger than 1024 KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.give.Title = "T"
			if tt.give.Description == "" {
				tt.give.Description = "d"
			}
			_, _, err := f.WithPlan(*f.Goal, []task.Spec{tt.give}, t.TempDir())
			require.ErrorContains(t, err, tt.want)
			_, isOurs := errors.AsType[*specfile.Error](err)
			require.True(t, isOurs)
		})
	}
}

// textPieces are what descriptions and names are drawn from: much of it means
// something to YAML, JSON or the loader.
var textPieces = []string{
	"a", "Write it.", " ", "  ", "\n", "\n\n", "\t", "# ", "- ", ": ", ":", "{", "}", "[", "]", ",", "&a", "*a", "!t", "|", ">", "%", "@", "`", "'", "\"", "\\", "\\n",
	"${", "${params.", "${params.year}", "${params.$}", "${params.$}{params.year}", "${KEY}", "$", "$$", "2026", "true", "null", "~", "---", "...", "\r", "\r\n", "\u0085",
	"\u2028", "\u00a0", "\ufeff", "\x00", "\x1b[31m", "é", "日本", "🦊", "\U000e0001", "? ", "<<", "=", "0x10", "1e3", "-", "?", "\v", "x: y", "- x", "\u200b",
}

// TestSavedPlanLoadsAgain checks for any texts that a saved plan loads unchanged.
func TestSavedPlanLoadsAgain(t *testing.T) {
	t.Parallel()
	dir := plannedFiles(t, planned)
	f, err := specfile.Load(specfile.Options{Path: dir, Lookup: plannedEnv, Trusted: trusted})
	require.NoError(t, err)
	pretty, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		words := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(textPieces), 1, 8).Draw(rt, name), "")
		}
		one := func(name string) string { return "x" + words(name) }
		tasks := make([]task.Spec, rapid.IntRange(0, 3).Draw(rt, "tasks")+1)
		for i := range tasks {
			s := task.Spec{Title: one("title"), Description: one("description"), Assignee: rapid.SampledFrom([]string{"", "intake", "letters"}).Draw(rt, "assignee")}
			if rapid.Bool().Draw(rt, "refs") {
				s.DependsOn = []task.Ref{{Task: one("ref")}, {Task: one("ref"), As: rapid.SampledFrom([]task.Payload{"", "output", "both"}).Draw(rt, "as"), Optional: rapid.Bool().Draw(rt, "optional"), MaxContextBytes: rapid.IntRange(0, 1).Draw(rt, "limit") << 10}}
				s.Uses = []task.Use{{Name: one("use")}, {Name: one("use"), Need: []task.Path{"/a", ""}, Reveal: map[string][]task.Path{"iban": {""}, "ip": {"/a"}}}}
				s.NeedToKnow, s.DependsOn[0].Need = []task.Path{"/a/*/b", "/c/**"}, []task.Path{""}
				s.RequiredTags = []string{words("tag")}
			}
			if rapid.Bool().Draw(rt, "rest") {
				s.Role, s.Key, s.AcceptTruncated = one("role"), one("key"), rapid.Bool().Draw(rt, "truncated")
				s.Classification = rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Secret}).Draw(rt, "label")
				s.TTL = time.Duration(rapid.Int64Range(0, 1e14).Draw(rt, "ttl"))
				s.RetryBackoff = rapid.Float64Range(1, 1000).Draw(rt, "backoff")
				s.Metadata = map[string]any{words("key"): words("value"), "n": rapid.Int64().Draw(rt, "n"), "f": rapid.Float64Range(-1e9, 1e9).Draw(rt, "f")}
				s.Requires = &task.Requires{Capabilities: []string{words("capability")}}
				s.OutputSchema, _ = json.Marshal(map[string]any{"title": words("schema"), "enum": []any{words("enum"), rapid.Float64().Draw(rt, "number"), nil}})
			}
			if rapid.Bool().Draw(rt, "param") {
				before := s.Description
				s.Description += "2026" + words("behind")
				s.Source.Params = []provenance.Param{{Name: "year", Start: len(before), End: len(before) + 4}}
			}
			tasks[i] = s
		}
		goal := engine.Goal{Text: one("goal"), Classification: label.Public}
		data, left, err := f.WithPlan(goal, tasks, dir)
		require.NoError(rt, err)
		require.Empty(rt, left)
		if all++; data[0] != '{' {
			pretty++
		}
		path := filepath.Join(dir, "saved.yaml")
		require.NoError(rt, os.WriteFile(path, data, 0o600))
		got, err := specfile.Load(specfile.Options{Path: path, Lookup: plannedEnv, Trusted: trusted})
		require.NoError(rt, err, "%s", data)
		requireSaved(rt, f, got, goal, tasks)
	})
	require.Greater(t, pretty, all/2, "most is YAML")
}

// requireReloads holds that a file can be saved as it is, and then loads as the same.
func requireReloads(t require.TestingT, f *specfile.File, o specfile.Options) {
	goal := engine.Goal{Text: "Go."}
	switch {
	case f.Goal != nil:
		goal = *f.Goal
	case f.Run.Answer != nil:
		goal = *f.Run.Answer
	}
	data, left, err := f.WithPlan(goal, f.Tasks, ".")
	require.NoError(t, err)
	o.Path, o.Stdin = "-", strings.NewReader(string(data))
	got, err := specfile.Load(o)
	require.NoError(t, err, "%s", data)
	if len(left) > 0 {
		requirePlanned(t, got, goal, f.Tasks)
		return
	}
	requireSaved(t, f, got, goal, f.Tasks)
}

// TestAnySpecCanBeSaved checks for documents with any keys that a spec that loads
// can be saved, and loads again as the same.
func TestAnySpecCanBeSaved(t *testing.T) {
	t.Parallel()
	words := vocabulary()
	saved := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 4 { // most do not load
			family := &family{t: t, words: words, share: rapid.SampledFrom([]int{1, 2, 4, 6}).Draw(t, "share")}
			data, err := json.Marshal(family.object("spec", 0))
			require.NoError(t, err)
			f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
			if err != nil || slices.ContainsFunc(f.Tasks, isMisstated) {
				continue
			}
			saved++
			requireReloads(t, f, specfile.Options{})
		}
	})
	t.Logf("%d specs", saved)
	require.Positive(t, saved)
}

// isMisstated reports a task whose condition no plan may have; that is reported once its tasks are checked.
func isMisstated(s task.Spec) bool {
	if s.When == nil {
		return false
	}
	_, err := s.When.Check()
	return err != nil
}
