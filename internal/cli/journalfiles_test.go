package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/stretchr/testify/require"
)

// No flag that writes a file accepts a file of the journal, whether that file exists yet or not.
func TestNoOutputReplacesTheJournal(t *testing.T) {
	t.Parallel()
	const text = "offline: script.yaml\nagents: [{name: writer}]\ntasks: [{title: Draft, description: Write it.}, {title: Check, description: Check it.}]\n"
	dir := clitest.Folder(t, map[string]string{"script.yaml": "replies: [{text: fine}]", "team.yaml": text, "agents.yaml": "agents: [{name: solo}]\n", "tasks.json": `{"tasks":[{"title":"T","description":"d","assignee":"solo"}]}`, "sub/team.yaml": text, "sub/script.yaml": "replies: [{text: fine}]"})
	run := func(in string, args ...string) outcome {
		return call{bare: true, dir: filepath.Join(dir, in), args: args}.run(t)
	}
	require.Equal(t, exit.StatusOK, run("", "run", "--offline").status)
	journal := filepath.Join(dir, journals.FolderName, journals.FileName)
	require.NoError(t, os.Symlink(journals.FolderName, filepath.Join(dir, "link")))
	before, err := os.ReadFile(journal)
	require.NoError(t, err)
	const own = journals.FolderName + "/" + journals.FileName
	tests := []struct{ in, command string }{
		{"", "run --offline --events FILE --force"},
		{"", "run --offline --trace FILE --force"},
		{"", "run --offline --trace t --audit-anchor FILE --force"},
		{"", "run --offline --record FILE --force"},
		{"", "run --offline --no-journal --events FILE --force"},
		{"", "run --offline --journal other.db --events FILE --force"},
		{"", "run --offline --events FILE-wal --force"},
		{"", "run --offline --no-journal --events FILE-shm"},
		{"", "run --offline --trace FILE-journal"},
		{"", "run --offline --record FILE.key"},
		{"", "run --offline --no-journal --record FILE.reserve --force"},
		{"", "run --offline --events link/runs.db --force"},
		{"", "run --offline --trace link/runs.db-shm"},
		{"sub", "run --offline --events ../FILE --force"},
		{"sub", "run --offline --journal here.db --events here.db"},
		{"sub", "run --offline --journal here.db --trace here.db-wal"},
		{"", "task --file tasks.json --team agents.yaml --offline --events FILE --force"},
		{"", "task --file tasks.json --team agents.yaml --offline --trace FILE-shm"},
		{"", "resume --offline --events FILE --force"},
		{"", "resume --offline --trace FILE-shm"},
		{"", "plan --goal Go --offline --save FILE --force"},
	}
	for _, tt := range tests {
		got := run(tt.in, strings.Fields(strings.ReplaceAll(tt.command, "FILE", own))...)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", tt.command, got)
		require.Contains(t, got.stdout+got.stderr, "this is a file of the journal; name another file", tt.command)
		after, err := os.ReadFile(journal)
		require.NoError(t, err)
		require.Equal(t, before[:16], after[:16], tt.command) // SQLite's
	}
	for _, name := range []string{own + "-journal", "t", "sub/here.db", "sub/here.db-wal"} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	require.Equal(t, exit.StatusOK, run("", "run", "--offline", "--events", journals.FolderName+"/events.ndjson").status, "another file of the folder")
	require.Equal(t, exit.StatusOK, run("", "show").status)
}
