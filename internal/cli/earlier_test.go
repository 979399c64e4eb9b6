package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// The command lists, shows, explains and verifies a journal and a trace that an earlier version
// wrote, and resumes a run whose process was killed.
func TestFilesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	const from = "../journal/testdata/earlier"
	files := map[string]string{}
	list, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, entry := range list {
		text, err := os.ReadFile(filepath.Join(from, entry.Name()))
		require.NoError(t, err)
		name, zipped := strings.CutSuffix(entry.Name(), ".gz")
		if zipped {
			in, err := gzip.NewReader(bytes.NewReader(text))
			require.NoError(t, err)
			text, err = io.ReadAll(in)
			require.NoError(t, err)
		}
		if strings.HasPrefix(name, "runs.db") {
			name = ".runteam/" + name
		}
		files[name] = string(text)
	}
	dir := clitest.Folder(t, files)
	require.NoError(t, os.Chmod(filepath.Join(dir, ".runteam"), 0o700))
	run := func(args string) outcome {
		got := call{bare: true, dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%s: %+v", args, got)
		return got
	}
	var runs []struct{ RunID, Name, Status string }
	require.NoError(t, json.Unmarshal([]byte(run("runs -o json").stdout), &runs))
	require.Len(t, runs, 4)
	killed, failed, first := runs[0].RunID, runs[2].RunID, runs[3].RunID
	require.Equal(t, "interrupted", runs[0].Status)
	require.Contains(t, run("show "+failed+" Judge").stdout, `{"verdict": "reject", "note": "no"}`)
	require.Contains(t, run("show "+first+" Report").stdout, "Report: The repair costs 4,711 EUR.")
	require.Contains(t, run("explain --contains 4,711 "+first).stdout, "input claim of user")
	require.Contains(t, run("explain --contains 4,711 run.trace").stdout, "input claim of user")
	require.Contains(t, run("audit verify run.trace --key-file audit.key --head "+strings.TrimSpace(files["run.anchor"])).stdout, "verified: ")
	require.Contains(t, run("audit verify "+first+" --key-file audit.key").stdout, "consistent, not anchored: ")

	got := run("resume " + killed + " --offline --script held.yaml --journal-key journal.key --audit-key audit.key -o json")
	require.Equal(t, true, object(t, got.stdout)["success"])
	var shown struct {
		Tasks []struct {
			Title    string
			Attempts int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(run("show "+killed+" -o json --journal-key journal.key").stdout), &shown))
	attempts := map[string]int{}
	for _, of := range shown.Tasks {
		attempts[of.Title] = of.Attempts
	}
	require.Equal(t, map[string]int{"Read the claim": 1, "Score the claim": 1, "Wait": 2, "Report": 1}, attempts, "completed tasks did not run again")
}
