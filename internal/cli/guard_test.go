package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/stretchr/testify/require"
)

// TestGuardOfTheReference runs the guard of docs/reference/spec-file.md with both verdicts.
func TestGuardOfTheReference(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/spec-file.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)\n### Guards\n.*?```yaml\ntasks:\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	for verdict, want := range map[string][]any{"approve": {"completed", "completed", "completed"}, "reject": {"completed", "failed", "failed"}} {
		dir := clitest.Folder(t, map[string]string{
			"script.yaml": `replies: [{task: Review the draft, text: '{"verdict": "` + verdict + `", "reasons": "so"}'}, {text: done}]`,
			"team.yaml":   "offline: script.yaml\nagents: [{name: writer}, {name: reviewer}, {name: publisher}]\ntasks:\n  - {title: Write the draft, assignee: writer, description: Write it.}\n" + string(block[1]),
		})
		got := call{bare: true, dir: dir, args: []string{"run", "team.yaml", "--offline", "-o", "json"}}.run(t)
		doc := object(t, got.stdout)
		var statuses []any
		for _, task := range doc["tasks"].([]any) {
			statuses = append(statuses, task.(map[string]any)["status"])
		}
		require.Equal(t, want, statuses, verdict)
		if verdict == "reject" {
			require.Equal(t, "GUARD_FAILED", doc["errors"].([]any)[0].(map[string]any)["code"])
		}
	}
}
