// Package postgres keeps a journal in a database of PostgreSQL, which several hosts may share:
//
//	j, err := postgres.Open(ctx, "postgres://ann@db.example/runs?sslmode=verify-full", journal.Options{Key: key})
//
// It is what PostgreSQL does otherwise than SQLite; package journal has the queries.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/runteam/runteam/internal/journal"
)

const (
	// patience is how long an operation waits for a server that cannot be reached, and hurriedWait how long once
	// [journal.Options].Hurry is closed.
	patience    = 30 * time.Second
	hurriedWait = time.Second

	// connectTime limits one attempt to connect, if the address does not.
	connectTime = 10 * time.Second

	// stuckTime is after how long the server ends a transaction whose client does nothing, such as a stopped process, or
	// another client ends it that waits for a lock.
	stuckTime = 5 * time.Second

	maxConnections = 4
	oldestVersion  = 120000 // of a server: 12
)

// Open opens the journal in a database, whose tables it creates if there are none in the schema in use, unless the
// journal is read-only. The key in o is required. ctx limits opening only.
func Open(ctx context.Context, address string, o journal.Options) (*journal.Journal, error) {
	return open(ctx, address, o, patience)
}

// open is [Open] with a time for which an operation waits for the server.
func open(ctx context.Context, address string, o journal.Options, patience time.Duration) (*journal.Journal, error) {
	config, err := parse(address)
	if err != nil {
		return nil, &journal.Error{Op: "open", Path: "in PostgreSQL", Err: err}
	}
	name := Name(config)
	d, key, err := connect(ctx, config, name, o, patience)
	if err != nil {
		return nil, &journal.Error{Op: "open", Path: name, Err: err}
	}
	j, err := journal.New(name, d, key, o)
	if err != nil {
		return nil, &journal.Error{Op: "open", Path: name, Err: err}
	}
	return j, nil
}

// A database is a [journal.Database] of PostgreSQL.
type database struct {
	name     string
	id       string // see [journal.Database]
	o        journal.Options
	patience time.Duration
	config   *pgx.ConnConfig
	pool     *sql.DB
	hurry    context.Context // ends when [journal.Options].Hurry is closed
	ignore   context.CancelFunc
	opened   atomic.Bool
	away     atomic.Bool // the last operation did not reach the server

	listening sync.Mutex // guards listener
	listener  *pgx.Conn  // of Await; nil until it is used
}

// newDatabase returns a database that connects when it is used.
func newDatabase(config *pgx.ConnConfig, name string, o journal.Options, patience time.Duration) (*database, error) {
	if o.Key == nil {
		return nil, fmt.Errorf("a journal in PostgreSQL needs a journal key, which is not stored there: make one with `openssl rand -hex 32`, and keep it: %w", journal.ErrKeyMissing)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	config.RuntimeParams["application_name"] = "runteam"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(stuckTime.Milliseconds(), 10)
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(stuckTime.Milliseconds(), 10)
	if o.ReadOnly {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	d := &database{name: name, o: o, patience: patience, config: config, pool: stdlib.OpenDB(*config, stdlib.OptionAfterConnect(prepareSession))}
	d.pool.SetMaxOpenConns(maxConnections)
	d.pool.SetMaxIdleConns(maxConnections)
	d.pool.SetConnMaxIdleTime(time.Minute)
	d.hurry, d.ignore = context.WithCancel(context.Background())
	if o.Hurry != nil {
		go func() {
			select {
			case <-o.Hurry:
				d.ignore()
			case <-d.hurry.Done():
			}
		}()
	}
	return d, nil
}

// connect connects to a database, creates the tables if necessary, and returns the key of the digests.
func connect(ctx context.Context, config *pgx.ConnConfig, name string, o journal.Options, patience time.Duration) (d *database, key []byte, err error) {
	if d, err = newDatabase(config, name, o, patience); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(d.Explain(err), d.Close())
		}
	}()
	if key, err = d.load(ctx); errors.Is(err, errNoTables) && !o.ReadOnly {
		err = d.create(ctx)
		if err == nil {
			key, err = d.load(ctx)
		}
	}
	d.opened.Store(true)
	return d, key, err
}

// prepareSession makes commits durable before they are answered, also where the server has another default.
func prepareSession(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'")
	return err
}

var (
	errNoTables = errors.New("there is no journal in the database yet; a run makes one")
	errForeign  = errors.New("the database has tables of these names that are no journal of runteam: give another database, or another schema with search_path=NAME in the address")
)

// load reads and checks what the table journal says, and returns the key of the digests.
func (d *database) load(ctx context.Context) (key []byte, err error) {
	err = d.Read(ctx, func(q journal.Querier) (err error) {
		key, err = d.loadFrom(ctx, q)
		return err
	})
	return key, err
}

func (d *database) loadFrom(ctx context.Context, q journal.Querier) (key []byte, err error) {
	var server, version int
	var isJournal, has bool
	var sealed []byte
	rows, err := q.QueryContext(ctx, "select current_setting('server_version_num')::int, to_regclass('journal') is not null, to_regclass('runs') is not null or to_regclass('journal') is not null")
	if err == nil {
		err = scanRow(rows, &server, &isJournal, &has)
	}
	switch {
	case err != nil:
		return nil, err
	case server < oldestVersion:
		return nil, fmt.Errorf("the server is PostgreSQL %d: use version %d or later", server/10000, oldestVersion/10000)
	case !has:
		return nil, errNoTables
	case !isJournal:
		return nil, errForeign
	}
	rows, err = q.QueryContext(ctx, "select form from journal")
	if err == nil {
		err = scanRow(rows, &version)
	}
	switch {
	case is(err, "42703") || errors.Is(err, sql.ErrNoRows): // undefined_column
		return nil, errForeign
	case err != nil:
		return nil, err
	case version != form:
		return nil, &journal.VersionError{Have: version, Know: form}
	}
	// A dump that is restored beside its database has the same tag, in other tables.
	rows, err = q.QueryContext(ctx, "select digest_key, tag || ' ' || d.oid || ' ' || 'journal'::regclass::oid from journal, pg_database d where datname = current_database()")
	if err == nil {
		err = scanRow(rows, &sealed, &d.id)
	}
	if err != nil {
		return nil, err
	}
	return journal.OpenDigestKey(d.o.Key, sealed)
}

// scanRow reads the first row.
func scanRow(rows *sql.Rows, into ...any) error {
	defer rows.Close() //nolint:errcheck // it only read
	if !rows.Next() {
		return errors.Join(rows.Err(), sql.ErrNoRows)
	}
	return errors.Join(rows.Scan(into...), rows.Close())
}

// begin begins a transaction that may take long, and wait for another database.
func (d *database) begin(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error) {
	tx, err := d.pool.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	if _, err = tx.ExecContext(ctx, "set local idle_in_transaction_session_timeout = '10min'"); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

func (d *database) Snapshot(ctx context.Context, do func(journal.Querier) error) error {
	tx, err := d.begin(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return d.Explain(err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	return d.Explain(do(tx))
}

func (d *database) Identity() string { return d.name }

func (d *database) ID() string { return d.id }

func (d *database) Form() int { return form }

func (d *database) Lock() string { return " for update" }

func (d *database) SkipLocked() string { return " for update skip locked" }

func (d *database) Now() string { return now }

func (d *database) Age() string { return age }

// Await listens on a connection of its own, which it keeps. A server that is away is looked for once in this time.
func (d *database) Await(ctx context.Context, most time.Duration) error {
	d.listening.Lock()
	defer d.listening.Unlock()
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if d.listener == nil || d.listener.IsClosed() {
		c, err := pgx.ConnectConfig(limited, d.config)
		if err == nil {
			_, err = c.Exec(limited, "listen "+channel)
		}
		if err != nil {
			if c != nil {
				_ = c.Close(context.WithoutCancel(ctx)) // it is of no use
			}
			<-limited.Done()
			return context.Cause(ctx)
		}
		d.listener = c
		return nil // something may have come before
	}
	if _, err := d.listener.WaitForNotification(limited); err != nil && limited.Err() == nil { // the connection broke
		_ = d.listener.Close(context.WithoutCancel(ctx))
		<-limited.Done()
	}
	return context.Cause(ctx)
}

// Prepare has nothing to do: the driver prepares each query when it is first used.
func (d *database) Prepare(context.Context, ...string) error { return nil }

func (d *database) Read(ctx context.Context, do func(journal.Querier) error) error {
	return d.Explain(d.retry(ctx, func(context.Context) error { return do(d.pool) }))
}

func (d *database) Write(ctx context.Context, do func(tx journal.Tx, again bool) error) error {
	if d.o.ReadOnly {
		return journal.ErrReadOnly
	}
	again := false
	return d.Explain(d.retry(ctx, func(ctx context.Context) error {
		tx, err := d.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // of what is not committed
		if err := do(tx, again); err != nil {
			return err
		}
		err = tx.Commit()
		again = again || err != nil && !isAnswered(err)
		return err
	}))
}

// Commit sends all statements at once, and what begins and ends their transaction. It takes one round trip.
func (d *database) Commit(ctx context.Context, groups []*journal.Group) error {
	if d.o.ReadOnly {
		return journal.ErrReadOnly
	}
	return d.Explain(d.retry(ctx, func(ctx context.Context) error {
		c, err := d.pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // it goes back to the pool
		return c.Raw(func(of any) error {
			for {
				refused, err := send(ctx, of.(*stdlib.Conn).Conn(), groups)
				if !refused {
					return err
				}
			}
		})
	}))
}

// send sends all groups that were not refused. If one is, nothing of the others is done either.
func send(ctx context.Context, c *pgx.Conn, groups []*journal.Group) (refused bool, err error) {
	var all pgx.Batch
	for _, g := range groups {
		for i := range g.Statements {
			if !g.Refused {
				all.Queue(g.Statements[i].Query, g.Statements[i].Args...)
			}
		}
	}
	if all.Len() == 0 {
		return false, nil
	}
	results := c.SendBatch(ctx, &all)
	for _, g := range groups {
		for i := range g.Statements {
			if g.Refused || err != nil {
				continue
			}
			if s := &g.Statements[i]; s.Into != nil {
				err = results.QueryRow().Scan(s.Into...)
			} else {
				var done pgconn.CommandTag
				done, err = results.Exec()
				s.Changed = done.RowsAffected()
			}
			if is(err, "23502") { // not_null_violation
				g.Refused, refused = true, true
			}
		}
	}
	closed := results.Close()
	switch {
	case refused:
		return true, nil
	case err == nil:
		err = closed
	}
	if err != nil && !isAnswered(err) && !pgconn.SafeToRetry(err) {
		err = fmt.Errorf("%w (%w)", journal.ErrUncertain, err)
	}
	return false, err
}

// endStuck ends the sessions that have waited for the rest of a message for stuckTime, in a transaction: those of processes
// that were stopped while they sent a commit, or of hosts that are gone. The server does not count them as idle.
func (d *database) endStuck(ctx context.Context) {
	_, err := d.pool.ExecContext(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = current_user
and application_name = 'runteam' and state = 'active' and wait_event = 'ClientRead' and state_change < clock_timestamp() - $1 * interval '1 second'`, stuckTime.Seconds())
	if err != nil {
		d.o.Logger.Debug("sessions that may lock something could not be ended", "journal", d.name, "error", err)
	}
}

// retry calls do until the server answers, the time for it is over, or the context ends. Opening does not wait for a server
// that cannot be reached, unless it is starting. It logs that the server is away, and that it is back, once each.
func (d *database) retry(ctx context.Context, do func(context.Context) error) error {
	limit := d.patience
	if d.hurry.Err() != nil {
		limit = hurriedWait
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(d.hurry, func() { time.AfterFunc(hurriedWait, cancel) })()
	var last error // what the server or the network said, and not that time is over
	_, err := backoff.Retry(limited, func() (struct{}, error) {
		err := do(limited)
		if err == nil {
			if d.away.CompareAndSwap(true, false) {
				d.o.Logger.Info("the database of the journal is there again", "journal", d.name)
			}
			return struct{}{}, nil
		}
		if limited.Err() == nil || last == nil {
			last = err
		}
		if is(err, lockTimeout) {
			d.endStuck(limited)
		}
		if errors.Is(err, journal.ErrUncertain) || !isPassing(err) || !d.opened.Load() && isUnreached(err) {
			err = backoff.Permanent(err)
		} else if limited.Err() == nil && d.away.CompareAndSwap(false, true) {
			d.o.Logger.Warn("the database of the journal cannot be reached; waiting for it", "journal", d.name, "error", err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(limit), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 5 * time.Millisecond, Multiplier: 1.6, MaxInterval: 500 * time.Millisecond, RandomizationFactor: 0.5,
	}))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil && last != nil:
		return last
	}
	return err
}

func (d *database) Close() error {
	d.ignore()
	d.listening.Lock()
	defer d.listening.Unlock()
	if d.listener != nil {
		_ = d.listener.Close(context.Background()) // nothing was sent
	}
	return d.pool.Close()
}
