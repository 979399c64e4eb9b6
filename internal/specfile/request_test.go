package specfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
)

const withSettings = `
model: m
structuredOutput: prompt
agentDefaults: {stop: END, seed: 1, extraBody: {user: u}}
agents:
  - {name: a, maxTokensKey: max_completion_tokens, systemRole: merge, frequencyPenalty: -0.5, presencePenalty: 0, seed: 7, stop: [A, "\n"], reasoningEffort: " low ", extraBody: {min_p: 0.10, a: {b: [1, null, "x"]}}, structuredOutput: object}
  - {name: b, baseURL: "https://acme.openai.azure.com/openai/deployments/d?api-version=2024-10-21"}
coordinator: {seed: -3, systemRole: developer}
goal: g
`

// TestSettingsOfModelCalls reads each setting, with its defaults, and again from a
// saved plan.
func TestSettingsOfModelCalls(t *testing.T) {
	t.Parallel()
	f, err := load(t, withSettings, specfile.Options{})
	require.NoError(t, err)
	check := func(t *testing.T, f *specfile.File) {
		a, b, c := f.Agents[0].Connection, f.Agents[1].Connection, f.Coordinator.Connection
		require.Equal(t, []any{"max_completion_tokens", "merge", -0.5, 0.0, int64(7), "low"}, []any{a.MaxTokensKey, a.SystemRole, *a.FrequencyPenalty, *a.PresencePenalty, *a.Seed, a.ReasoningEffort})
		require.Equal(t, []string{"A", "\n"}, a.Stop)
		require.JSONEq(t, `{"min_p":0.1,"a":{"b":[1,null,"x"]}}`, string(a.ExtraBody))
		require.Equal(t, []string{"END"}, b.Stop)
		require.Equal(t, int64(1), *b.Seed)
		require.JSONEq(t, `{"user":"u"}`, string(b.ExtraBody))
		require.Nil(t, b.FrequencyPenalty)
		require.Equal(t, "https://acme.openai.azure.com/openai/deployments/d?api-version=2024-10-21", b.BaseURL)
		require.Equal(t, int64(-3), *c.Seed)
		require.Equal(t, "developer", c.SystemRole)
		require.Equal(t, []string{"object", "prompt", "prompt"}, []string{a.StructuredOutput, b.StructuredOutput, c.StructuredOutput})
		require.Nil(t, c.Stop, "agentDefaults do not count for the coordinator")
	}
	check(t, f)
	text, left, err := f.WithPlan(engine.Goal{Text: "g"}, nil, t.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
	again, err := load(t, string(text), specfile.Options{})
	require.NoError(t, err, "%s", text)
	check(t, again)
	require.Equal(t, f.Agents[0].Member.Version, again.Agents[0].Member.Version)
}

// TestStructuredOutputOfSeveralFiles checks that a plan of several files keeps what
// one of them says for all agents.
func TestStructuredOutputOfSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	f, err := specfile.Load(specfile.Options{
		Path: write("tasks.yaml", "model: m\nstructuredOutput: prompt\ngoal: g\ncoordinator: {maxTurns: 2}"),
		Team: write("team.yaml", "agents: [{name: a}, {name: b, structuredOutput: schema}]"),
	})
	require.NoError(t, err)
	text, _, err := f.WithPlan(engine.Goal{Text: "g"}, nil, t.TempDir())
	require.NoError(t, err)
	again, err := load(t, string(text), specfile.Options{})
	require.NoError(t, err, "%s", text)
	for _, f := range []*specfile.File{f, again} {
		require.Equal(t, []string{"prompt", "schema", "prompt"},
			[]string{f.Agents[0].StructuredOutput, f.Agents[1].StructuredOutput, f.Coordinator.StructuredOutput})
	}
}

// TestVersionHasTheSettings checks that an answer that was asked for with other
// settings is not used, and that names of the transport do not count.
func TestVersionHasTheSettings(t *testing.T) {
	t.Parallel()
	version := func(settings string) string {
		f, err := load(t, "model: m\nagents: [{name: a"+settings+"}]", specfile.Options{})
		require.NoError(t, err)
		return f.Agents[0].Member.Version
	}
	base := version("")
	for _, same := range []string{", maxTokensKey: max_tokens", ", systemRole: system", ", extraBody: {}", ", structuredOutput: auto"} {
		require.Equal(t, base, version(same), same)
	}
	seen := map[string]string{base: "none"}
	for _, other := range []string{
		", frequencyPenalty: 0", ", presencePenalty: 0", ", frequencyPenalty: 1", ", seed: 0", ", seed: 1", ", stop: a b", ", stop: [a, b]", ", stop: a", ", reasoningEffort: default",
		", reasoningEffort: low", ", systemRole: merge", ", systemRole: developer", ", extraBody: {a: 1}", ", extraBody: {a: 2}", ", structuredOutput: schema", ", structuredOutput: object", ", structuredOutput: prompt",
	} {
		require.NotContains(t, seen, version(other), other)
		seen[version(other)] = other
	}
	require.Equal(t, version(", stop: a"), version(", stop: [a]"))
}

// TestExtraBodyIsBounded checks the size of extraBody, and that the schema for editors
// refuses the members that the loader refuses.
func TestExtraBodyIsBounded(t *testing.T) {
	t.Parallel()
	_, err := load(t, "agents: [{name: a, extraBody: {a: "+strings.Repeat("x", 64<<10)+"}}]", specfile.Options{})
	require.ErrorContains(t, err, "write at most 64 KiB")
	_, err = load(t, "agents: [{name: a, extraBody: {a: [.inf]}}]", specfile.Options{})
	require.ErrorContains(t, err, "not a JSON number")
	s := schemaOf(t)
	for _, name := range []string{"model", "messages", "max_tokens", "stream", "tools", "a b", "é"} {
		require.False(t, requireSame(t, s, fmt.Sprintf("agents: [{name: a, extraBody: {%q: 1}}]", name)), name)
	}
	require.True(t, requireSame(t, s, "agents: [{name: a, extraBody: {min_p: 1, x-y.z: {model: 1}}}]"))
	for _, stop := range []string{"[]", `""`, "[" + strings.Repeat("a,", 32) + "a]", strings.Repeat("x", 257)} {
		require.False(t, requireSame(t, s, "agents: [{name: a, stop: "+stop+"}]"), stop)
	}
}

// TestKeysOfAzureNeedConsent checks that no key goes to a host that anybody can create
// below a domain of Azure, unless the user allows that host.
func TestKeysOfAzureNeedConsent(t *testing.T) {
	t.Parallel()
	const text = "agents: [{name: a, baseURL: \"https://acme.openai.azure.com/openai/v1\", apiKey: \"${AZURE_OPENAI_API_KEY}\"}]\n"
	lookup := env(map[string]string{"AZURE_OPENAI_API_KEY": "k"})
	nobody := func(string, []specfile.EnvUse) bool { return false }
	_, err := load(t, text, specfile.Options{Lookup: lookup, Trusted: nobody})
	require.ErrorContains(t, err, "AZURE_OPENAI_API_KEY is not allowed to go to https://acme.openai.azure.com")
	for origin, allowed := range map[string]bool{"https://acme.openai.azure.com": true, "https://other.openai.azure.com": false} {
		use, err := specfile.ParseEnvUse("AZURE_OPENAI_API_KEY=" + origin)
		require.NoError(t, err)
		_, err = load(t, text, specfile.Options{Lookup: lookup, Trusted: nobody, AllowEnv: []specfile.EnvUse{use}})
		require.Equal(t, allowed, err == nil, "%s: %v", origin, err)
	}
}

// TestConcealCoversBaseURLsWithAQuery checks that a message, which names an endpoint
// without its query, does not show what a short variable brought into its base URL.
func TestConcealCoversBaseURLsWithAQuery(t *testing.T) {
	t.Parallel()
	f, err := load(t, "agents: [{name: a, baseURL: \"http://localhost:${P}/v1?api-version=preview\"}]\n", specfile.Options{Lookup: env(map[string]string{"P": "81"})})
	require.NoError(t, err)
	c := f.Agents[0].Connection
	require.Equal(t, "http://localhost:81/v1?api-version=preview", c.BaseURL)
	require.Equal(t, "http://localhost:${P}/v1: 404, also http://localhost:${P}/v1/models", c.Conceal("http://localhost:81/v1: 404, also http://localhost:81/v1/models"))
}
