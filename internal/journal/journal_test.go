package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
)

func TestFileKeepsWhatARunReliesOn(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t *testing.T) journaltest.Open {
		path := filepath.Join(t.TempDir(), "runs.db")
		return func(o journal.Options) (*journal.Journal, error) { return journal.Open(path, o) }
	})
}

func TestMemoryKeepsWhatARunReliesOn(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(*testing.T) journaltest.Open {
		return func(o journal.Options) (*journal.Journal, error) { return journal.InMemory(o), nil }
	})
}
