package spec_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/team"
)

func load(t *testing.T, text string, o spec.Options) (*spec.File, error) {
	t.Helper()
	o.Path, o.Stdin = "-", strings.NewReader(text)
	return spec.Load(o)
}

func variables(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := values[name]
		return value, set
	}
}

// silent is an agent that answers nothing.
var silent = team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })

func TestBuildWithoutConnectCallsTheModelsOfTheFile(t *testing.T) {
	t.Parallel()
	var asked struct {
		Model       string
		Temperature float64
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]}`))
	}))
	defer server.Close()
	file, err := load(t, `
agents: [{name: worker, model: small, temperature: 0.5, baseURL: "${MODEL_URL}"}]
tasks: [{title: Work, description: Do it.}]
`, spec.Options{Lookup: variables(map[string]string{"MODEL_URL": server.URL + "/v1"}), AllowEnv: []string{"MODEL_URL=" + server.URL}})
	require.NoError(t, err)
	tm, err := file.Build(nil)
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), file.Tasks, &file.Run)
	require.NoError(t, err)
	require.Equal(t, "done", res.Output)
	require.Equal(t, "small", asked.Model)
	require.InDelta(t, 0.5, asked.Temperature, 0)
}

func TestConnectReceivesFileSettings(t *testing.T) {
	t.Parallel()
	file, err := load(t, `
model: large
fallback: [{model: small}]
agents: [{name: worker, maxTokens: 100}]
endpoints: {"https://api.openai.com/v1": {requestsPerMinute: 3}}
`, spec.Options{})
	require.NoError(t, err)
	var got []spec.Agent
	_, err = file.Build(func(a spec.Agent) (team.Agent, error) {
		got = append(got, a)
		return silent, nil
	})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "worker", got[0].Member.Name)
	require.Equal(t, 100, got[0].Options.MaxTokens)
	require.NotNil(t, got[0].Options.Limits)
	require.Len(t, got[0].Models, 2)
	require.Equal(t, "large", got[0].Models[0].Model)
	require.Equal(t, "small", got[0].Models[1].Model)
}

func TestErrorsListProblemsWithPlaces(t *testing.T) {
	t.Parallel()
	_, err := spec.Load(spec.Options{Path: "no-such-file.yaml"})
	require.ErrorIs(t, err, fs.ErrNotExist)

	_, err = load(t, "agents: [{name: worker}]\n", spec.Options{AllowEnv: []string{"KEY"}})
	require.ErrorContains(t, err, "AllowEnv: \"KEY\": write NAME=ORIGIN")

	_, err = load(t, "agents: [{name: worker}]\n", spec.Options{Params: map[string]string{"year": "2026"}})
	require.EqualError(t, err, "Options.Params \"year\": no such parameter\n  hint: declare it under params")

	var problems spec.Problems
	file, err := load(t, "agents: [{name: worker}]\ntasks:\n  - {title: Work, assignee: wroker, description: Do it.}\n", spec.Options{})
	require.NoError(t, err)
	tm, err := file.Build(func(spec.Agent) (team.Agent, error) { return silent, nil })
	require.NoError(t, err)
	_, err = tm.Plan(file.Tasks, &file.Run)
	require.ErrorAs(t, file.Locate(err), &problems)
	require.Equal(t, []any{"-", 3, 29}, []any{problems[0].File, problems[0].Line, problems[0].Column})
	require.ErrorIs(t, file.Locate(err), plan.ErrUnknownAgent)
}

func TestBuildWithoutConnectNamesAMissingKey(t *testing.T) {
	t.Parallel()
	file, err := load(t, "agents: [{name: worker, model: large}]\n", spec.Options{})
	require.NoError(t, err)
	_, err = file.Build(nil)
	require.ErrorContains(t, err, `agent "worker": model 1: `)
}
