package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
)

type namedModel struct{ name, endpoint string }

func (m namedModel) Name() string     { return m.name }
func (m namedModel) Endpoint() string { return m.endpoint }
func (m namedModel) Call(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
	return llm.Response{}, nil
}

// A versionedModel has settings of its own.
type versionedModel struct {
	namedModel
	version string
}

func (m versionedModel) Version() string { return m.version }

func TestVersionCoversAnswerSettings(t *testing.T) {
	t.Parallel()
	m := namedModel{"small", "http://localhost/v1"}
	versions := map[string]bool{}
	for _, a := range []*agent.LLM{
		agent.New(m, agent.Options{}),
		agent.New(namedModel{"large", m.endpoint}, agent.Options{}),
		agent.New(namedModel{m.name, "https://elsewhere.example/v1"}, agent.Options{}),
		agent.New(m, agent.Options{MaxTurns: 1}),
		agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 5}}),
		agent.New(m, agent.Options{Settings: llm.Settings{Temperature: new(0.0)}}),
		agent.New(m, agent.Options{Settings: llm.Settings{TopP: new(0.5)}}),
		agent.New(m, agent.Options{Settings: llm.Settings{FrequencyPenalty: new(0.0)}}),
		agent.New(m, agent.Options{Settings: llm.Settings{PresencePenalty: new(0.0)}}),
		agent.New(m, agent.Options{Settings: llm.Settings{Seed: new(int64(0))}}),
		agent.New(m, agent.Options{Settings: llm.Settings{Stop: []string{"a", "b"}}}),
		agent.New(m, agent.Options{Settings: llm.Settings{Stop: []string{"a b"}}}),
		agent.New(m, agent.Options{Settings: llm.Settings{ReasoningEffort: "low"}}),
		agent.New(versionedModel{m, "merge"}, agent.Options{}),
	} {
		require.NotEmpty(t, a.Version())
		require.NotContains(t, versions, a.Version())
		versions[a.Version()] = true
	}
	require.Equal(t, agent.New(m, agent.Options{}).Version(), agent.New(m, agent.Options{MaxTurns: 10}).Version())
	require.Equal(t, agent.New(m, agent.Options{}).Version(), agent.New(versionedModel{m, ""}, agent.Options{}).Version())
	require.Empty(t, agent.New(llm.ModelFunc(nil), agent.Options{}).Version(), "nobody knows what a function asks")
}

func TestAgentsThatAreDeterministic(t *testing.T) {
	t.Parallel()
	model := namedModel{name: "m"}
	for _, tt := range []struct {
		give agent.Options
		want bool
	}{
		{agent.Options{}, false},
		{agent.Options{Settings: llm.Settings{Temperature: new(0.0)}}, true},
		{agent.Options{Settings: llm.Settings{Temperature: new(0.1)}}, false},
		{agent.Options{Settings: llm.Settings{Seed: new(int64(7))}}, true},
		{agent.Options{Settings: llm.Settings{Seed: new(int64(7))}, Fallback: []llm.Model{model}}, false},
	} {
		require.Equal(t, tt.want, agent.New(model, tt.give).IsDeterministic(), "%+v", tt.give)
	}
}
