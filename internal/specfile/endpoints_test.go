package specfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm/limit"
)

// TestLimitsOfEndpoints reads how often endpoints may be called.
func TestLimitsOfEndpoints(t *testing.T) {
	t.Parallel()
	f, err := load(t, `endpoints:
  https://a.example/v1: {accepts: secret}
  https://b.example/v1: {requestsPerMinute: 60, tokensPerMinute: 90000, maxConcurrency: 4}
  http://localhost:1/v1: {accepts: internal, maxConcurrency: 1}
agents: [{name: a}]`, specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]limit.Limits{
		"https://b.example/v1":  {RequestsPerMinute: 60, TokensPerMinute: 90000, MaxConcurrency: 4},
		"http://localhost:1/v1": {MaxConcurrency: 1},
	}, f.Limits)
	require.Equal(t, map[string]label.Classification{
		"https://a.example/v1": label.Secret, "https://b.example/v1": label.Confidential, "http://localhost:1/v1": label.Internal,
	}, f.Config.Endpoints, "limits do not change what an endpoint may read")

	for value, want := range map[string]string{
		"{requestsPerMinute: 0}":    "1:57: requestsPerMinute: the number 0 where a whole number of at least 1 belongs",
		"{tokensPerMinute: 1.5}":    "1:55: tokensPerMinute: the number 1.5 where a whole number of at least 1 belongs",
		"{maxConcurrency: -1}":      "1:54: maxConcurrency: the number -1 where",
		"{requestsPerMinute: many}": "1:57: requestsPerMinute: ",
		"{requestPerMinute: 1}":     "1:38: ",
		"confidential":              "1:37: ",
	} {
		_, err := load(t, `endpoints: {"https://b.example/v1": `+value+"}\nagents: [{name: a}]", specfile.Options{})
		require.ErrorContains(t, err, want, value)
	}
}

// TestLimitsOfEndpointsInSeveralFiles checks that the first file with a key counts.
func TestLimitsOfEndpointsInSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	f, err := specfile.Load(specfile.Options{
		Path: file("tasks.yaml", "endpoints: {\"http://localhost:1/v1\": {requestsPerMinute: 5}}\ntasks: [{title: T, description: d, assignee: a}]"),
		Team: file("team.yaml", "endpoints: {\"http://localhost:1/v1\": {accepts: public, requestsPerMinute: 9, maxConcurrency: 2}}\nagents: [{name: a}]"),
	})
	require.NoError(t, err)
	require.Equal(t, map[string]limit.Limits{"http://localhost:1/v1": {RequestsPerMinute: 5, MaxConcurrency: 2}}, f.Limits)
	require.Equal(t, map[string]label.Classification{"http://localhost:1/v1": label.Public}, f.Config.Endpoints)
}

// TestTextToolCallsOfAgentsAndEndpoints checks that an agent's own setting counts, then what all of its endpoints say.
func TestTextToolCallsOfAgentsAndEndpoints(t *testing.T) {
	t.Parallel()
	f := loaded(t, `
model: m
endpoints:
  http://localhost:11434/v1/: {textToolCalls: true}
  http://localhost:8000/v1: {textToolCalls: false}
  http://localhost:9000/v1: {accepts: secret}
agents:
  - {name: endpoint, baseURL: http://LOCALHOST:11434/v1}
  - {name: agent, baseURL: http://localhost:8000/v1, textToolCalls: true}
  - {name: no, baseURL: http://localhost:11434/v1, textToolCalls: false}
  - {name: other, baseURL: http://localhost:9000/v1}
  - {name: fallback, baseURL: http://localhost:11434/v1, fallback: [{baseURL: http://localhost:9000/v1}]}
  - {name: both, baseURL: http://localhost:11434/v1, fallback: [{model: n}]}
  - {name: openai}
tasks: [{title: A, assignee: endpoint, description: Do it.}]
`)
	want := map[string]bool{"endpoint": true, "agent": true, "both": true}
	for i := range f.Agents {
		a := &f.Agents[i]
		require.Equal(t, want[a.Member.Name], a.TextToolCalls, a.Member.Name)
	}
	require.NotEqual(t, f.Agents[0].Member.Version, f.Agents[2].Member.Version, "equal but for the setting")
}
