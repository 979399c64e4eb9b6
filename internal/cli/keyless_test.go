package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// keylessRelay is the relay at an endpoint that needs a key, with all answers in a journal.
func keylessRelay(t *testing.T) (dir, id, base string) {
	t.Helper()
	server, dir := startCounting(t), relayFolder(t)
	env := server.env()
	got := call{dir: dir, args: []string{"run", "-o", "json"}, env: env}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	return dir, object(t, got.stdout)["runId"].(string), env["OPENAI_BASE_URL"]
}

// A command that calls no model needs no key.
func TestNoKeyIsNeededWithoutCalls(t *testing.T) {
	t.Parallel()
	dir, id, base := keylessRelay(t)
	for _, args := range []string{"resume " + id, "run --reuse", "replay " + id + " --without Third"} {
		env := map[string]string{}
		if args == "run --reuse" {
			env["OPENAI_BASE_URL"] = base // only its answers are taken
		}
		got := call{dir: dir, args: strings.Fields(args), env: env}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%s: %+v", args, got)
	}
	edit(t, filepath.Join(dir, "team.yaml"), "Say three.", "Say 3.")
	for _, args := range []string{"run --reuse", "resume " + id} {
		got := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusNoRun, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr, "no API key; set OPENAI_API_KEY")
		require.Contains(t, got.stderr, "add --offline, which needs no key")
	}
	got := call{dir: dir, args: []string{"run"}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Empty(t, got.stdout)
}
