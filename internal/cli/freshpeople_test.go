package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// A person who is asked again gives another answer, which later resumes keep.
func TestAPersonIsAskedAfresh(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
name: p
agents: [{name: ed, backend: {kind: person}}]
tasks: [{title: Decide, assignee: ed, description: Well?, outputSchema: {enum: [send, stop]}}]
`})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	require.Equal(t, exit.StatusWaiting, at("run").status)
	run := openQuestions(t, at)[0].RunID
	require.Zero(t, at("answer", run, "Decide", "send").status)
	require.Contains(t, at("resume", run).stdout, "send")
	require.Equal(t, exit.StatusWaiting, at("resume", run, "--fresh", "Decide").status)
	require.Len(t, openQuestions(t, at), 1)
	require.Zero(t, at("answer", run, "Decide", "stop").status)
	require.Contains(t, at("resume", run).stdout, "stop")
	require.Contains(t, at("resume", run).stdout, "stop", "the last answer stays")
}

// An item that has moved is found by its name, and the name is of no harm to a later resume.
func TestAnItemThatHasMovedIsRunAfresh(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"leads.csv": "email\nann@x.org\nbob@x.org\n", "s.yaml": "replies: [{text: ok}]\n", "team.yaml": `
model: m
offline: s.yaml
inputs: {leads: {file: leads.csv}}
agents: [{name: writer}]
tasks: [{title: Mail, assignee: writer, description: Write., forEach: {input: leads, key: /email, as: lead, maxItems: 10}}]
`})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	require.Zero(t, at("run", "--offline", "--progress", "plain").status)
	fresh := func(args ...string) {
		t.Helper()
		got := at(append([]string{"resume", "--progress", "plain"}, args...)...)
		require.Zero(t, got.status, got.stderr)
		require.Contains(t, got.stderr, "cached    Mail[bob@x.org]")
		require.Equal(t, len(args) > 0, !strings.Contains(got.stderr, "cached    Mail[ann@x.org]"), got.stderr)
	}
	fresh("--fresh", "Mail[ann@x.org]")
	fresh()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "leads.csv"), []byte("email\nbob@x.org\nann@x.org\n"), 0o600))
	fresh("--fresh", "Mail[ann@x.org]")
}
