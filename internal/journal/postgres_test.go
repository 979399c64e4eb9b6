package journal_test

import (
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

// An address without passwords keeps all else, and one whose parts could be mistaken is refused.
func TestPublicAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://ann:pa%2Fss@db.example:5433/runs":                        "postgres://ann@db.example:5433/runs",
		"postgresql://ann:@db.example":                                       "postgresql://ann@db.example",
		"postgres://db.example/runs?user=ann&password=pass&sslmode=disable":  "postgres://db.example/runs?user=ann&sslmode=disable",
		"postgres://a:1,b:2/runs?pass%77ord=pass&sslpassword=a&PASSWORD=a":   "postgres://a:1,b:2/runs",
		"postgres:///runs?host=/run/postgresql&options=-c%20x;password=pass": "postgres:///runs?host=/run/postgresql",
		"postgres://ann:pa@ss@db.example/runs":                               "",
		"postgres://ann:1/pass@db.example/runs":                              "",
		"postgres://ann:1?pass@db.example/runs":                              "",
		"postgres://ann:1#pass@db.example/runs":                              "",
		"postgres://ann:pass@db.example/runs#1":                              "",
		"postgres://ann:%zz@db.example/runs":                                 "",
		"postgres:ann:pass@db.example/runs":                                  "",
		"mysql://ann:pass@db.example/runs":                                   "",
	} {
		got, err := postgres.Public(address)
		require.Equal(t, want, got, address)
		require.Equal(t, want == "", err != nil, address)
		if err != nil {
			require.NotContains(t, err.Error(), "pass")
		}
	}
}
