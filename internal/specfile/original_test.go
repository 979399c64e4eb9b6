package specfile_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
)

// TestKeysOfTheOriginal: a file of the original is told by name what of it
// changes nothing here, which is a warning, and what would and is not supported, with
// what to write instead.
func TestKeysOfTheOriginal(t *testing.T) {
	t.Parallel()
	tests := []struct{ place, key, value, want string }{
		{"orchestrator", "observability", `{"sinks": []}`, "warning: observability: no effect here: where traces go; each run is always recorded"},
		{"orchestrator", "evaluation", `{"sampleRate": 1}`, "warning: evaluation: no effect here: scores of finished runs"},
		{"orchestrator", "requireConsequentialConfirmation", `true`, "warning: requireConsequentialConfirmation: no effect here: confirmation of tool calls; external calls from untrusted context need allowUntrusted"},
		{"orchestrator", "onToolCall", `"f"`, "warning: onToolCall: no effect here: a function of a program"},
		{"orchestrator", "schedulingWeights", `{"fit": 1}`, "schedulingWeights: not supported: no strategy has weights; remove it; write an assignee for each task that needs another choice"},
		{"orchestrator", "schedulingWeights", `{}`, ""},
		{"orchestrator", "executionRouting", `{"mode": "team"}`, "executionRouting: not supported: how a goal is carried out; remove it; write mode: auto or mode: plan in the spec"},
		{"orchestrator", "executionRouter", `"f"`, "executionRouter: not supported: a function of a program; remove it; write mode: auto or mode: plan in the spec"},
		{"orchestrator", "recovery", `{"maxAttempts": 2}`, "recovery: not supported: repair of plans and of failed tasks; remove it, or write maxRetries for a task"},
		{"agent", "costTier", `"low"`, `warning: agent "a": costTier: no effect here: a note for routing; assignment compares capabilities, descriptions and load`},
		{"agent", "latencyClass", `"fast"`, `warning: agent "a": latencyClass: no effect here: a note for routing; assignment compares capabilities, descriptions and load`},
		{"agent", "onToolCall", `"f"`, `warning: agent "a": onToolCall: no effect here: a function of a program; a Go program sets OnToolCall of its team`},
		{"agent", "permissionBoundary", `"read-only"`, `agent "a": permissionBoundary: not supported: a limit on what an agent may do; remove it; write accepts, and what its endpoint may read under endpoints`},
		{"agent", "history", `[{"role": "user"}]`, `agent "a": history: not supported: earlier messages of an agent; remove it; write what it needs to know as an input`},
		{"agent", "history", `[]`, ""},
		{"agent", "credentials", `{"STRIPE_KEY": "sk-1"}`, `agent "a": credentials: not supported: secrets for tools; remove it; write ${NAME} in env or headers of an MCP server`},
		{"agent", "provider", `"anthropic"`, `agent "a": provider: "anthropic" is not built in; write provider: openai, baseURL: https://api.anthropic.com/v1/ and apiKey: ${ANTHROPIC_API_KEY}`},
		{"agent", "provider", `"gemini"`, `agent "a": provider: "gemini" is not built in; write provider: openai, baseURL: https://generativelanguage.googleapis.com/v1beta/openai/ and apiKey: ${GEMINI_API_KEY}`},
		{"agent", "provider", `"bedrock"`, `agent "a": provider: "bedrock" is not built in; write provider: openai, and as baseURL an OpenAI-compatible endpoint of that provider`},
		{"orchestrator", "defaultProvider", `"anthropic"`, `defaultProvider: "anthropic" is not built in; write defaultProvider: openai, defaultBaseURL: https://api.anthropic.com/v1/ and defaultApiKey: ${ANTHROPIC_API_KEY}`},
	}
	for _, tt := range tests {
		t.Run(tt.place+"."+tt.key+"="+tt.value, func(t *testing.T) {
			t.Parallel()
			pair, orchestrator := `"`+tt.key+`": `+tt.value, `{}`
			inAgent := ""
			if tt.place == "agent" {
				inAgent = ", " + pair
			} else {
				orchestrator = "{" + pair + "}"
			}
			f, err := load(t, `{"orchestrator": `+orchestrator+`, "team": {"name": "t", "agents": [{"name": "a"`+inAgent+`}]}, "tasks": [{"title": "T", "description": "d"}]}`, specfile.Options{})
			var got []string
			if err != nil {
				bad := err.(*specfile.Error) //nolint:errorlint // of Load
				for _, p := range bad.Problems {
					got = append(got, p.Message+"; "+p.Hint)
					require.NotContains(t, p.Message+p.Hint+p.Excerpt, "sk-1")
				}
			} else {
				for _, p := range f.Warnings {
					got = append(got, "warning: "+p.Message)
				}
			}
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []string{tt.want}, got)
		})
	}
}

// endpointOf matches what a hint says to write.
var endpointOf = regexp.MustCompile(`baseURL: (\S+) and apiKey: (\S+)$`)

// TestSuggestedProviderEndpointWorks: the endpoint of the hint takes the key
// of the hint without consent.
func TestSuggestedProviderEndpointWorks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"anthropic", "cheaperinference", "deepseek", "doubao", "gemini", "grok", "hunyuan", "mimo", "minimax", "openrouter", "qiniu"} {
		_, err := load(t, "agents: [{name: a, provider: "+name+"}]\n", specfile.Options{})
		bad := err.(*specfile.Error) //nolint:errorlint // of Load
		fields := endpointOf.FindStringSubmatch(bad.Problems[0].Hint)
		require.Len(t, fields, 3, bad.Problems[0].Hint)
		_, err = load(t, "agents: [{name: a, provider: openai, baseURL: "+fields[1]+", apiKey: \""+fields[2]+"\"}]\n",
			specfile.Options{Lookup: hostile(nil), Trusted: func(string, []specfile.EnvUse) bool { return false }})
		require.NoError(t, err, name)
	}
}

// TestMetadataTakesListsOfOneType, as the original does.
func TestMetadataTakesListsOfOneType(t *testing.T) {
	t.Parallel()
	const text = "agents: [{name: a}]\ntasks: [{title: T, description: d, metadata: %s}]\n"
	f, err := load(t, "agents: [{name: a}]\ntasks: [{title: T, description: d, metadata: {tags: [x, y], sizes: [1, 2.5], flags: [true, false], none: []}}]\n", specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"tags": []any{"x", "y"}, "sizes": []any{int64(1), 2.5}, "flags": []any{true, false}, "none": []any{}}, f.Tasks[0].Metadata)
	for _, tt := range []struct{ metadata, want string }{
		{"{k: [1, x]}", "value 2 is a string, and the first is a number"},
		{"{k: [[1]]}", "a list where a value belongs"},
		{"{k: [{a: 1}]}", "a mapping where a value belongs"},
		{"{k: [null]}", "where a value belongs"},
		{"{k: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", "17 values, more than 16"},
		{"{apiKey: [x]}", "it looks like the name of a credential"},
	} {
		_, err := load(t, fmt.Sprintf(text, tt.metadata), specfile.Options{})
		require.ErrorContains(t, err, tt.want, tt.metadata)
	}
}
