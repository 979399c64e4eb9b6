package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A changed script is reported, since all its answers are requested again.
func TestChangedScriptIsReported(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{text: one}]", "other.yaml": "replies: [{text: two}]"})
	run := func(args string) string {
		t.Helper()
		got := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%s: %+v", args, got)
		return got.stderr
	}
	put := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(text), 0o600))
	}
	run("run --offline --script s.yaml")
	put("# why not\nreplies:\n- text: one\n")
	require.NotContains(t, run("resume"), "has changed")
	require.Contains(t, run("run --reuse --offline --script s.yaml"), "1 task reused")
	put("replies: [{text: another}]")
	text := run("resume")
	require.Contains(t, text, "resume:  s.yaml has changed: earlier answers are not used; running again: Answer\n")
	require.Contains(t, text, "resumed: 0 tasks completed before; 1 earlier answer not used, because s.yaml has changed\n")
	require.NotContains(t, run("resume"), "has changed")
	put("replies: [{text: a third}]")
	got := run("run --reuse --offline --script s.yaml")
	require.Contains(t, got, "reuse:   s.yaml has changed: its answers are requested again\n")
	require.NotContains(t, got, "reused")
	require.NotContains(t, run("run --reuse --offline --script s.yaml"), "has changed")
	require.Contains(t, run("resume --script other.yaml"), "resume:  other.yaml is another script than before: earlier answers are not used; running again: Answer\n")
}

// If a script answers a resumed run instead of models, or the other way round, the command
// says why earlier answers are not used.
func TestScriptInPlaceOfModelsIsReported(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t), clitest.Folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{text: one}]"})
	for _, step := range []struct{ args, want string }{
		{"run", ""},
		{"resume --offline", "built-in answers replace those of the models: "},
		{"resume --offline=false", "models answer instead of a script: "},
		{"resume --script s.yaml", "s.yaml answers instead of the models: "},
		{"resume", ""},
	} {
		got := call{dir: dir, args: strings.Fields(step.args), env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%s: %+v", step.args, got)
		require.Equal(t, step.want != "", strings.Contains(got.stderr, "resume:  "), "%s: %s", step.args, got.stderr)
		require.Contains(t, got.stderr, step.want)
	}
}
