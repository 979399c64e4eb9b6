package postgres

import (
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runteam/runteam/internal/journal"
)

// is reports whether an error is one of PostgreSQL with this code.
func is(err error, code string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == code
}

// isAnswered reports whether an error is the answer of a server that goes on working, so that what was sent was not done.
func isAnswered(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && !strings.HasPrefix(e.Code, "57P") && !strings.HasPrefix(e.Code, "08")
}

// isPassing reports whether an error may be over soon: the server cannot be reached or is starting, or transactions met.
func isPassing(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57P01", "57P02", "57P03", "53300", "40001", "40P01", "25P03", lockTimeout: // shutdown, crash, starting, connections, conflicts, stuckTime
			return true
		}
		return strings.HasPrefix(e.Code, "08")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, ofNetwork := errors.AsType[net.Error](err)
	return ofNetwork || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

// lockTimeout is the code of a statement that has waited for a lock for stuckTime.
const lockTimeout = "55P03"

// isUnreached reports whether there is no server.
func isUnreached(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok && !is(err, "57P03") // it is starting
}

func (d *database) IsDuplicate(err error) bool { return is(err, "23505") }

// Explain names the cause of an error, and what to do.
func (d *database) Explain(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrAway):
		return err
	case !ok && isPassing(err):
		if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return fmt.Errorf("the server has no certificate that proves its name: write sslrootcert=FILE in the address if it is signed by an authority of your own (%w)", e)
		}
		return fmt.Errorf("%w (%w)", journal.ErrAway, cause(err))
	case errors.Is(err, sql.ErrConnDone):
		return journal.ErrClosed
	case !ok:
		return err
	}
	why := ""
	switch e.Code {
	case "53100":
		return fmt.Errorf("%w (on the server: %s)", journal.ErrFull, e.Message)
	case "28P01", "28000":
		why = "the server does not accept the user or the password: give them in the address, the password better in PGPASSWORD or a passfile"
	case "3D000":
		why = "there is no such database: create it with `createdb`, or give another one"
	case "3F000":
		why = "the schema in search_path does not exist: create it, or give another one"
	case "42501":
		why = "the user may not do that in the database: grant usage and create on the schema to the user, or make the user the owner of the tables"
	case "25006":
		why = "the server is a read-only standby, or the session is read-only: give the address of the primary"
	case "53300", "57P01", "57P02", "57P03", lockTimeout:
		return fmt.Errorf("%w (%s)", journal.ErrAway, e.Message)
	case "23503":
		return journal.ErrUnknownRun // its lease has no run any more
	case "XX001", "XX002":
		return fmt.Errorf("%w (%s)", journal.ErrCorrupt, e.Message)
	default:
		return err
	}
	return fmt.Errorf("%s (%s)", why, e.Message)
}

// cause returns what the network says of a connection, without the address of each attempt.
func cause(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return err
}
