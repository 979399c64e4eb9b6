package journal_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

// A process that was killed in a transaction of the rollback journal, such as
// the one that creates the tables, leaves a file that can still be written.
func TestOpenRollsBackTheTransactionOfAKilledProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	key, err := os.ReadFile(path + ".key")
	require.NoError(t, err)

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{
		"pragma journal_mode = delete", "pragma cache_size = 10", "begin immediate", "create table unfinished (x)",
		"insert into unfinished values (zeroblob(1000000))", // more than the cache holds, so it is written before the commit
	} {
		_, err := db.Exec(q)
		require.NoError(t, err, q)
	}
	killed := filepath.Join(t.TempDir(), "runs.db") // what is on the disk now
	for _, suffix := range []string{"", "-journal"} {
		text, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NotEmpty(t, text)
		require.NoError(t, os.WriteFile(killed+suffix, text, 0o600))
	}
	require.NoError(t, os.WriteFile(killed+".key", key, 0o600))

	j, err = journal.Open(killed, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoFileExists(t, killed+"-journal")
}
