package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/journal"
)

func TestJournalInFile(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) openFunc {
		path := filepath.Join(t.TempDir(), "runs.db")
		return func(o journal.Options) (*journal.Journal, error) { return journal.Open(path, o) }
	})
}

func TestJournalInMemory(t *testing.T) {
	t.Parallel()
	testContract(t, func(*testing.T) openFunc {
		return func(o journal.Options) (*journal.Journal, error) { return journal.InMemory(o), nil }
	})
}
