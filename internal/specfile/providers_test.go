package specfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
)

// A model of Anthropic without a provider, as in files of open-multi-agent, would be asked for at OpenAI.
func TestModelsOfAnthropicWithoutAProvider(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string][]string{
		`"model": "claude-sonnet-4-5"`:                                       {`provider: the models of "ann" are asked for at https://api.openai.com, since none is set`},
		`"model": "claude-sonnet-4-5", "provider": "openai"`:                 nil,
		`"model": "claude-sonnet-4-5", "baseURL": "https://gateway.example"`: nil,
		`"model": "gpt-4o"`:                                                  nil,
	} {
		path := filepath.Join(t.TempDir(), "team.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"agents": [{"name": "ann", `+agent+`}], "tasks": [{"title": "Look", "description": "Look."}]}`), 0o600))
		f, err := check(specfile.Options{Path: path})
		require.NoError(t, err)
		var got []string
		for _, w := range f.Warnings {
			got = append(got, w.Message)
			require.Contains(t, w.Hint, "https://api.anthropic.com/v1/")
		}
		require.Equal(t, want, got, agent)
	}
}

// A description that names a file by an absolute path, as those of open-multi-agent do, sends an agent out of its workspace.
func TestAbsolutePathsForToolsOfTheWorkspace(t *testing.T) {
	t.Parallel()
	for task, want := range map[string]int{
		`"description": "Read /tmp/workspace/notes.txt.", "assignee": "ann"`:           1,
		`"description": "Write it to '/home/ann/out.md'", "assignee": "ann"`:           1,
		`"description": "Take /facts/score, from https://a/tmp/x.", "assignee": "ann"`: 0,
		`"description": "Read /tmp/notes.txt.", "assignee": "without"`:                 0,
	} {
		path := filepath.Join(t.TempDir(), "team.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"agents": [{"name": "ann", "model": "m", "tools": ["file_read"]}, {"name": "without", "model": "m"}],
			"tasks": [{"title": "Look", `+task+`}]}`), 0o600))
		f, err := check(specfile.Options{Path: path})
		require.NoError(t, err)
		require.Len(t, f.Warnings, want, task)
	}
}
