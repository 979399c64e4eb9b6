package journal_test

import (
	"bytes"
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
)

func TestJournalInPostgres(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) openFunc {
		address := pgtest.Address(t)
		return func(o journal.Options) (*journal.Journal, error) { return postgres.Open(t.Context(), address, o) }
	})
}

// inStores runs a test with the path of a file, and with the address of a database of PostgreSQL, for [openAt].
func inStores(t *testing.T, test func(t *testing.T, path string)) {
	t.Helper()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "runs.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Address(t))
	})
}

// inPostgres reports whether a path is the address of a database.
func inPostgres(path string) bool { return strings.HasPrefix(path, "postgres://") }

// openAt opens the journal in a file, or in a database, which has a key if the options have none.
func openAt(path string, o journal.Options) (*journal.Journal, error) {
	if !inPostgres(path) {
		return journal.Open(path, o)
	}
	if o.Key == nil {
		o.Key = bytes.Repeat([]byte{7}, journal.KeyBytes)
	}
	return postgres.Open(context.Background(), path, o)
}

// tables returns the tables of a journal.
func tables(t testing.TB, path string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if inPostgres(path) {
		driver = "pgx"
	}
	db, err := sql.Open(driver, path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// refuseRemoval lets the removal of a row fail that has a condition, until allow is called.
func refuseRemoval(t testing.TB, path, condition string) (allow func()) {
	t.Helper()
	refuse, end := []string{"create trigger stop before delete on batches when " + condition + " begin select raise(abort, 'no'); end"}, "drop trigger stop"
	if inPostgres(path) {
		refuse = []string{
			"create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$",
			"create trigger stop before delete on batches for each row when (" + condition + ") execute function refuse()",
		}
		end += " on batches"
	}
	db := tables(t, path)
	for _, statement := range refuse {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	return func() {
		_, err := db.ExecContext(t.Context(), end)
		require.NoError(t, err)
	}
}
