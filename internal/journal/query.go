package journal

import (
	"context"
	"database/sql"
)

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// queryAll returns all rows of a query, each as scan reads it.
func queryAll[T any](ctx context.Context, from querier, scan func(*sql.Rows, *T) error, query string, args ...any) (list []T, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	return scanAll(rows, err, scan)
}

// scanAll returns all rows of a query that returned these rows and this error, each as scan reads it.
func scanAll[T any](rows *sql.Rows, err error, scan func(*sql.Rows, *T) error) (list []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // it was read to its end, or there is another error
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}
