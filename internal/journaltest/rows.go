package journaltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync/atomic"

	"modernc.org/sqlite"
)

var drivers atomic.Int64

// CountRows returns a driver for the options of a journal, and a function that returns how many rows its queries have
// returned since it was last called.
func CountRows() (name string, rows func() int) {
	d := &countingDriver{sqlite: &sqlite.Driver{}}
	name = fmt.Sprintf("sqlite-rows-%d", drivers.Add(1))
	sql.Register(name, d)
	return name, func() int { return int(d.rows.Swap(0)) }
}

// A countingDriver is the driver of SQLite, and counts the rows that queries return.
type countingDriver struct {
	sqlite driver.Driver
	rows   atomic.Int64
}

func (d *countingDriver) Open(name string) (driver.Conn, error) {
	c, err := d.sqlite.Open(name)
	if err != nil {
		return nil, err
	}
	return &countingConn{c.(connection), d}, nil
}

// A connection is what database/sql uses of a connection of SQLite.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type countingConn struct {
	connection
	d *countingDriver
}

func (c *countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.d.count(c.connection.QueryContext(ctx, query, args))
}

func (c *countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.connection.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &countingStmt{s.(statement), c.d}, nil
}

// A statement is what database/sql uses of a statement of SQLite.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countingStmt struct {
	statement
	d *countingDriver
}

func (s *countingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.d.count(s.statement.QueryContext(ctx, args))
}

func (d *countingDriver) count(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	return &countingRows{rows, d}, nil
}

type countingRows struct {
	driver.Rows
	d *countingDriver
}

func (r *countingRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if err == nil {
		r.d.rows.Add(1)
	}
	return err
}
