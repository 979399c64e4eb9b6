// Package postgres keeps a journal in a database of PostgreSQL, so that several hosts can share its runs:
//
//	j, err := postgres.Open(ctx, "postgres://ann@db.example/runs", journal.Options{Key: key})
//	…
//	res, err := tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "audit", Journal: j})
//
// A program links the driver, pgx, only if it imports this package.
package postgres

import (
	"context"

	stored "github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/journal"
)

// Open opens the journal in a database, whose address is a URL or a connection string of libpq; its environment
// variables, such as PGPASSWORD and PGSSLROOTCERT, count too. Open creates the tables if the schema in use has none, unless
// the journal is read-only: search_path=NAME in the address names another schema. The server is PostgreSQL 12 or later.
//
// [journal.Options].Key is required. The database has no key: that of the digests is stored encrypted under it, and values
// up to confidential are readable. A server on another host must have a certificate for its name (sslmode=verify-full).
//
// Each operation waits up to 30 s for a server that cannot be reached. ctx limits opening only.
func Open(ctx context.Context, address string, o journal.Options) (*journal.Journal, error) {
	return journal.OpenWith(o, func(o stored.Options) (*stored.Journal, error) { return postgres.Open(ctx, address, o) })
}
