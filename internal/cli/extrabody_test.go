package cli

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/llm/openai"
	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
)

// A file refuses a member of a chat completion request in extraBody exactly if the client does.
// Package spec may not import the client, so each has a list of its own.
func TestExtraBodyIsCheckedTheSameInFilesAndPrograms(t *testing.T) {
	t.Parallel()
	request := reflect.TypeFor[goopenai.ChatCompletionRequest]()
	names := []string{"models", "prompt", "top_k", "min_p", "provider", "chat_template_kwargs"}
	for field := range request.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	require.Greater(t, len(names), 30)
	refused := 0
	for _, name := range names {
		body, err := json.Marshal(map[string]any{name: 1})
		require.NoError(t, err)
		_, clientErr := openai.New(openai.Config{Model: "m", BaseURL: "http://localhost:1/v1", ExtraBody: body})
		dir := clitest.Folder(t, map[string]string{
			"team.yaml": "baseURL: http://localhost:1/v1\nagents: [{name: a, model: m, extraBody: " + string(body) + "}]\ntasks: [{title: T, assignee: a, description: d}]\n",
		})
		got := call{args: []string{"check", filepath.Join(dir, "team.yaml")}}.run(t)
		require.Equal(t, clientErr == nil, got.status == exit.StatusOK, "%s: the client says %v, the file %+v", name, clientErr, got)
		if clientErr != nil {
			refused++
		}
	}
	require.Greater(t, refused, 15)
}
