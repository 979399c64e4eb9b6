package journal_test

import (
	"testing"

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
