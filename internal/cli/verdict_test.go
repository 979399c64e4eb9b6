package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/stretchr/testify/require"
)

// A result that only begins like one that is withheld is compared.
func TestResultThatLooksWithheld(t *testing.T) {
	t.Parallel()
	const script = "replies: [{task: Second, text: '[withheld: so he said]'}]"
	dir := clitest.Folder(t, map[string]string{"team.yaml": relay, "note.md": "the note", "s.yaml": script})
	first := offlineRun(t, call{dir: dir}, "--script", "s.yaml", "-o", "json")
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("replies: [{task: Second, text: '[withheld: so she said]'}]"), 0o600))
	second := offlineRun(t, call{dir: dir}, "--script", "s.yaml")
	require.Equal(t, exit.StatusOK, second.status, "%+v", second)
	got := call{dir: dir, args: []string{"replay", object(t, first.stdout)["runId"].(string), "--diff", shownOf(t, dir).Run, "-o", "json"}}.run(t)
	var d struct{ Tasks []replay.ComparedTask }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &d), got.stdout)
	require.Equal(t, []any{"Second", replay.Changed}, []any{d.Tasks[1].Title, d.Tasks[1].Result})
}
