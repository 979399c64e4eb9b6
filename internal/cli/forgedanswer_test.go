package cli

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/exit"
)

// An answer that another program wrote into the journal is reported, and not used.
//
// Requirement: G56.
func TestForgedAnswersAreReported(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(line string) string{
		"altered": func(line string) string { return strings.Replace(line, `"text":"Fine."`, `"text":"Bad."`, 1) },
		"invented": func(line string) string {
			var x map[string]any
			_ = json.Unmarshal([]byte(line), &x)
			x["by"], x["digest"] = "mallory", strings.Repeat("00", 32)
			raw, _ := json.Marshal(x)
			return string(raw)
		},
		"no answer": func(string) string { return "yes" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, run := suspendedRun(t)
			at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
			require.Zero(t, at("answer", run, "Review", "Fine.").status)
			require.Zero(t, at("audit", "verify", run).status, "what was left is as it was written")
			db, err := sql.Open("sqlite", filepath.Join(dir, ".runteam", "runs.db"))
			require.NoError(t, err)
			defer db.Close()
			var line []byte
			require.NoError(t, db.QueryRowContext(t.Context(), "select line from commands where kind = 'answer' and outcome = ''").Scan(&line))
			require.NotEqual(t, string(line), forge(string(line)))
			_, err = db.ExecContext(t.Context(), "update commands set line = ?", []byte(forge(string(line))))
			require.NoError(t, err)

			got := at("audit", "verify", run)
			require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
			require.Contains(t, got.stdout+got.stderr, "broken: an answer of a person waits beside the record that was altered, or was not written by runteam")
			got = at("resume", run)
			require.Equal(t, exit.StatusWaiting, got.status, "%+v", got)
			require.Contains(t, got.stderr, "an answer in the journal was altered, or was not written by runteam; it is not used")
			require.Contains(t, got.stderr, "1 of 4 tasks completed, 2 waiting for a person")
			require.Contains(t, at("questions").stdout, "Review")
			require.Zero(t, at("audit", "verify", run).status)
		})
	}
}
