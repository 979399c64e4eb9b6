package journal

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"
)

// A Database holds the tables of a journal. A journal asks every database the same queries; a Database is what differs:
// how it is opened, its schema and its errors, how it locks rows, and how it gives back space. It is safe for concurrent
// use. Every wait for a database ends with its context, and soon after [Options].Hurry is closed.
type Database interface {
	// Identity names the database for people, without a password: an absolute path, or a URL; empty in memory.
	Identity() string

	// ID distinguishes the journal from every other one, such as a copy, by whatever address it is opened; empty in memory.
	ID() string

	// Form is the version of its schema.
	Form() int

	// Read calls do with a source of the newest rows. It may call do several times, which begins anew each time.
	Read(ctx context.Context, do func(Querier) error) error

	// Snapshot calls do once, with a source of the rows of one time, for as long as that takes.
	Snapshot(ctx context.Context, do func(Querier) error) error

	// Write calls do in a transaction. It may call do several times: again says that an earlier transaction may have
	// been committed.
	Write(ctx context.Context, do func(tx Tx, again bool) error) error

	// Commit executes groups of statements in one transaction, which begins and ends in the database, so that a process
	// that is stopped meanwhile locks nothing. It leaves out a group whose first statement would store a null where none
	// may be, and marks it as refused. It returns [ErrUncertain] if it cannot know whether the transaction was committed.
	// In PostgreSQL it takes one round trip.
	Commit(ctx context.Context, groups []*Group) error

	// Prepare prepares queries that are executed often, if that makes them faster.
	Prepare(ctx context.Context, queries ...string) error

	// Lock is the end of a query whose rows must not change until the transaction ends.
	Lock() string

	// SkipLocked is the end of a query that leaves out rows which another transaction has locked, and locks the others.
	SkipLocked() string

	// Now is the time of the database in nanoseconds since 1970, as a query has it, and Age for how many nanoseconds the
	// lease in a row of leases was not renewed. Both are [clocksOfHolders] if the clocks of the processes count, which are
	// those of one host.
	Now() string
	Age() string

	// Await waits until a run may have been submitted, or given back, but no longer than this.
	Await(ctx context.Context, most time.Duration) error

	// IsDuplicate reports whether an error says that a unique value is there already.
	IsDuplicate(err error) bool

	// Explain returns the error of this package that an error of the database means, or the error itself.
	Explain(err error) error

	// Trim begins to give back the space of rows that are being removed.
	Trim(ctx context.Context) (Trimmer, error)

	Close() error
}

// clocksOfHolders is a null in place of the clock of a database.
const clocksOfHolders = "null"

// A Trimmer gives back the space of removed rows.
type Trimmer interface {
	// Checkpoint makes room after a transaction on a full disk.
	Checkpoint(ctx context.Context)

	// Trim gives back free space, page by page, until there is no more or enough returns true. It reports whether there
	// is more.
	Trim(ctx context.Context, enough func() bool) (more bool, err error)

	// UseReserve frees what is kept for a full disk, and reports whether there was something.
	UseReserve() bool

	// Size returns how many bytes the rows take.
	Size(ctx context.Context) (int64, error)

	// Close ends the work, and keeps something for a full disk again.
	Close(ctx context.Context)
}

// A Group is statements of which all are executed, or none.
type Group struct {
	Statements []Statement
	Refused    bool // set by [Database.Commit]: a row was to be added without a value that it must have
}

func (g *Group) add(query string, args ...any) {
	g.Statements = append(g.Statements, Statement{Query: query, Args: args})
}

// A Statement is one statement with its arguments.
type Statement struct {
	Query string
	Args  []any
	Into  []any // where the columns of its first row are stored; nil if it returns none

	Changed int64 // set by [Database.Commit]: how many rows it added, changed or removed, unless it returns rows
}

// A Querier is a database or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Tx is a transaction.
type Tx interface {
	Querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// ErrUncertain reports a transaction that may have been committed or not, since the answer of the database was lost.
var ErrUncertain = errors.New("the answer of the database was lost, so it is not known whether it stored what was sent")

// A store asks a database for the rows of a journal. Rows are added and never changed, except
// leases; only whole runs are removed. It is safe for concurrent use.
type store struct {
	db       Database
	o        Options
	commands commandTable

	ofLease, ofNewRun inserts
	leaveQueue        string // sets the state in the queue of a run that this process gives up, if it has the lease
}

// inserts are statements that add rows to one run, whose first arguments say which.
type inserts struct{ batch, turn string }

// insertsInto returns the statements with the query for the number of the run, which has so many arguments.
func insertsInto(run string, args int) inserts {
	at := func(n int) string { return "$" + strconv.Itoa(args+n) }
	return inserts{
		batch: "insert into batches (run, at, state, parts, kept, rest) values (" + run + ", " + at(1) + ", " + at(2) + ", " + at(3) + ", " + at(4) + ", " + at(5) + ")",
		turn:  "insert into turns (run, at, status, tasks) values (" + run + ", " + at(1) + ", " + at(2) + ", " + at(3) + ")",
	}
}

// newStore returns a store of an open database.
func newStore(ctx context.Context, db Database, o Options) (*store, error) {
	// Each row of a commit names its run by the lease. If another process has the lease, that is null, which no row may be.
	owned := "(select run from leases where run = $1 and beat = $2 and holder = $3" + db.Lock() + ")"
	s := &store{db: db, o: o, commands: commandTable{db}, ofLease: insertsInto(owned, 3), ofNewRun: insertsInto(newRun, 1)}
	s.leaveQueue = "update submissions set state = $4 where state <> '' and run = " + owned
	if o.ReadOnly {
		return s, nil
	}
	return s, db.Prepare(ctx, s.ofLease.batch, s.ofLease.turn, insertAnswers)
}

// isShared reports whether processes of other hosts may take runs, by the clock of the database.
func (s *store) isShared() bool { return s.db.Now() != "null" }
