package foreign

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// aimock starts aimock with the fixtures of a file and returns its address.
func aimock(t *testing.T, file string) string {
	t.Helper()
	fixtures, err := filepath.Abs(file)
	require.NoError(t, err)
	return node(t, t.TempDir(), "@copilotkit/aimock/dist/cli.js", func(port string) []string {
		return []string{"-p", port, "-f", fixtures, "--strict"}
	})
}

// aimock plays OpenAI, Azure and OpenRouter.
func TestAimock(t *testing.T) {
	t.Parallel()
	server := "http://" + aimock(t, "testdata/aimock.json")
	rows := []struct {
		path string
		row
	}{
		{"/v1", row{name: "a text", say: "plain", result: "Hello there."}},
		{"/v1", row{name: "a schema", say: "score", task: "outputSchema: {type: object, properties: {score: {type: integer}}, required: [score]}", result: `{"score": 7}`}},
		{"/v1", row{name: "a truncated text", say: "length", code: "ANSWER_TRUNCATED"}},
		{"/v1", row{name: "a truncated text that is accepted", say: "length", task: "acceptTruncated: true", result: "It begins and"}},
		{"/v1", row{name: "a filtered text", say: "filter", code: "ANSWER_FILTERED"}},
		{"/v1", row{name: "a tool call beside a text", say: "tool beside", result: "Done.", contains: []string{"the text beside the call is the answer"}}},
		{"/v1", row{name: "a tool call alone", say: "tool alone", code: "TOOL_NOT_GRANTED"}},
		{"/v1", row{name: "429 with Retry-After", say: "busy", result: "Free again."}},
		{"/v1", row{name: "529", say: "overloaded", result: "Free again."}},
		{"/v1", row{name: "no credit", say: "no credit", code: "MODEL_NO_CREDIT"}},
		{"/v1", row{name: "a prompt that is too long", say: "too long", code: "MODEL_PROMPT_TOO_LONG"}},
		{"/v1", row{name: "reasoning apart", say: "reasoning", model: "deepseek-reasoner", result: "42"}},
		{"/api/v1", row{name: "OpenRouter", say: "plain", model: "openai/gpt-4o", result: "Hello there."}},
		{"/api/v1", row{name: "OpenRouter, moderated", say: "moderated", model: "openai/gpt-4o", code: "MODEL_MODERATED"}},
		{"/openai/deployments/gpt-4o?api-version=2024-10-21", row{name: "Azure", say: "plain", agent: "apiKey: test", result: "Hello there."}},
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, server+tt.path)
		})
	}
}
