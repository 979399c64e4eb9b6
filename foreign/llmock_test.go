package foreign

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// llmock accepts only requests that have each member of its template, and its
// preset "stream" answers with a stream that was not requested.
func TestLlmock(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"whole", "stream"} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			settings, err := json.Marshal(map[string]any{
				"defaultModel": preset,
				"models": map[string]any{preset: map[string]any{
					"name": "openai", "model": "gpt-4o", "endpoint": "v1/chat/completions", "responseType": "lorem", "maxLoremParas": 3,
					"validateRequests": true, "logRequests": false, "debug": false, "stream": preset == "stream",
					"responseDelay": map[string]int{"min": 0, "max": 1}, "embeddings": map[string]any{"enabled": false, "dimensions": 8},
				}},
				"server": map[string]any{"port": 8001, "host": "127.0.0.1"},
			})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".llmockrc.json"), settings, 0o600))
			server := node(t, dir, "llmock/bin/llmock.js", func(port string) []string {
				return []string{"start", "--foreground", "--port=" + port, "--model=" + preset}
			})
			r := row{say: "Write a sentence.", agent: "temperature: 1, extraBody: {n: 1}"}
			got, stderr := r.output(t, "http://"+server+"/v1")
			require.Len(t, got.Tasks, 1, stderr)
			require.Equal(t, "completed", got.Tasks[0].Status, stderr)
			require.NotEmpty(t, got.Tasks[0].Result)

			r = row{say: "Write a sentence.", code: "MODEL_BAD_REQUEST", contains: []string{"400", "Invalid or Missing Request"}}
			r.run(t, "http://"+server+"/v1")
		})
	}
}
