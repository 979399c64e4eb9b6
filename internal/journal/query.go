package journal

import (
	"context"
	"database/sql"
)

// readAll returns all rows of a query, each as scan reads it.
func readAll[T any](ctx context.Context, from Database, scan func(*sql.Rows, *T) error, query string, args ...any) (list []T, err error) {
	err = from.Read(ctx, func(q Querier) (err error) {
		list, err = queryAll(ctx, q, scan, query, args...)
		return err
	})
	return list, err
}

// readRow scans the first row of a query, if there is one; otherwise the error is [sql.ErrNoRows].
func readRow(ctx context.Context, from Database, query string, args []any, into ...any) error {
	return from.Read(ctx, func(q Querier) error { return queryRow(ctx, q, query, args, into...) })
}

// queryAll is [readAll] within a transaction.
func queryAll[T any](ctx context.Context, from Querier, scan func(*sql.Rows, *T) error, query string, args ...any) (list []T, _ error) {
	rows, err := from.QueryContext(ctx, query, args...)
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

// queryRow is [readRow] within a transaction.
func queryRow(ctx context.Context, from Querier, query string, args []any, into ...any) error {
	list, err := queryAll(ctx, from, func(rows *sql.Rows, _ *struct{}) error { return rows.Scan(into...) }, query, args...)
	if err == nil && len(list) == 0 {
		return sql.ErrNoRows
	}
	return err
}
