package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/slowtest"
)

// Every example has the same result with a journal in a database as with one in a file, and is shown the same.
func TestExamplesInADatabase(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	server := pgtest.Shared(t)
	specs, err := filepath.Glob("*/team.yaml")
	require.NoError(t, err)
	patterns, err := filepath.Glob("patterns/*/team.yaml")
	require.NoError(t, err)
	for _, spec := range append(specs, patterns...) {
		example := filepath.Dir(spec)
		if example == "chat" { // it has no tasks
			continue
		}
		t.Run(filepath.ToSlash(example), func(t *testing.T) {
			t.Parallel()
			dir := example
			if example == "web-research" { // whose server is a program of this module
				build(t, "web-research/server")
			} else {
				dir = edited(t, example)
			}
			key := filepath.Join(t.TempDir(), "key")
			require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("4b", 32)), 0o600))
			run := func(journal string) (said [2]result, status int) {
				flags := []string{"-o", "json", "--journal", journal, "--journal-key", key}
				stdout, stderr, status := runteam(t, "", append([]string{"run", dir, "--offline"}, flags...)...)
				require.NoError(t, json.Unmarshal([]byte(stdout), &said[0]), stderr)
				stdout, stderr, _ = runteam(t, "", append([]string{"show"}, flags...)...)
				require.NoError(t, json.Unmarshal([]byte(stdout), &said[1]), stderr)
				return said, status
			}
			want, status := run(filepath.Join(t.TempDir(), "runs.db"))
			got, inDatabase := run(server.Schema(t))
			require.Equal(t, want, got)
			require.Equal(t, status, inDatabase)
			require.NotEmpty(t, got[0].Tasks)
			require.Len(t, got[1].Tasks, len(got[0].Tasks))
		})
	}
}
