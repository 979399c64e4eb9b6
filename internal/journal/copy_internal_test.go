package journal

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
)

// A copy has every column of every table but leases, workers, and limits, which are what processes use now.
func TestCopiedTablesAreAllTables(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{})
	defer j.Close()
	columns, err := readAll(t.Context(), j.store.db, func(rows *sql.Rows, c *[2]string) error { return rows.Scan(&c[0], &c[1]) },
		"select m.name, c.name from sqlite_schema m, pragma_table_info(m.name) c where m.type = 'table' and m.name not like 'sqlite%' and m.name not in ('leases', 'workers', 'limits') order by m.name, c.cid")
	require.NoError(t, err)
	want, got := map[string][]string{}, map[string][]string{}
	for _, c := range columns {
		want[c[0]] = append(want[c[0]], c[1])
	}
	for _, table := range copied {
		got[table.name] = table.columns
	}
	require.Equal(t, want, got)
}
