package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// application distinguishes a journal from other SQLite files: "rtj1".
const application = 0x72746a31

// migrations bring a file from one version of the schema to the next. The first turns an
// empty file into version 1. They cannot be undone.
var migrations = []func(ctx context.Context, tx *sql.Tx) error{first, indexAnswers, allowMarks, allowPadding, addCommands, allowSteering, addSessions, addLabels, keepTaskEvents, storeOnce, addQueue}

// version is the version of the schema that this package writes.
var version = len(migrations)

// first creates the tables. Times are nanoseconds since 1970. Large columns come last, so
// that the others are read without them.
func first(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
create table runs (
	n       integer primary key,
	id      text not null unique,
	name    text not null,
	command text not null,
	started integer not null
) strict;
create table batches (
	n     integer primary key,
	run   integer not null,
	at    integer not null,
	state blob not null, -- of the chain behind the lines
	parts blob not null, -- the order of the lines, and the tasks that they are about; see bundle and markedParts
	kept  blob not null, -- the lines of the history, compressed with zstd
	rest  blob not null  -- the other lines, the same
) strict;
create index batches_of on batches (run);
create table answers ( -- that other runs may take
	key   blob not null, -- a keyed digest
	batch integer not null,
	run   integer not null,
	primary key (key, batch)
) strict, without rowid;
create table turns ( -- who took a run up, and how it ended
	n      integer primary key,
	run    integer not null,
	at     integer not null,
	status text not null, -- empty: it was taken up
	tasks  text not null  -- JSON: how many have which status
) strict;
create index turns_of on turns (run);
create table leases (
	run     integer primary key,
	holder  text not null, -- JSON
	beat    integer not null,
	taken   integer not null,
	renewed integer not null
) strict;`)
	return err
}

// indexAnswers indexes the answers of a run, for removals. Everything else works without
// the index; see [sqliteDB.migrate]. The index has the batch so that a commit adds to its
// end; files of earlier programs have it without the batch.
func indexAnswers(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "create index answers_of on answers (run, batch)")
	return err
}

// allowMarks changes no table: from version 3 on, the parts of a row may begin
// with marks, which earlier programs cannot read. Existing rows get none.
func allowMarks(context.Context, *sql.Tx) error { return nil }

// allowPadding changes no table: from version 4 on, encrypted texts are padded, which
// earlier programs cannot read. Existing texts are not changed.
func allowPadding(context.Context, *sql.Tx) error { return nil }

// addCommands adds the table of what other processes ask of the one that works on a run. Of the
// answers to one question, one waits or was taken.
func addCommands(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
create table if not exists commands (
	n       integer primary key,
	run     integer not null,
	kind    text not null, -- answer, or steer
	subject blob not null, -- the masked key of the question; of another command, its number
	outcome text not null, -- empty: it waits; claimed, taken, or why it was refused
	line    blob not null  -- as the lines of the run have it; empty once it was taken
) strict;
create unique index if not exists commands_of on commands (run, kind, subject) where outcome in ('', 'taken');`)
	return err
}

// allowSteering changes no table: from version 6 on, runs may have lines of commands, which earlier
// programs would ignore when they resume one.
func allowSteering(context.Context, *sql.Tx) error { return nil }

// addSessions adds the table of the runs that are turns of sessions. A session has one run for each
// turn, so two processes cannot both add the next.
func addSessions(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
create table if not exists sessions (
	session text not null, -- its ID
	turn    integer not null, -- from 1
	run     integer not null unique,
	primary key (session, turn)
) strict, without rowid;`)
	return err
}

// addLabels adds the label of each run, which earlier runs do not have.
func addLabels(ctx context.Context, tx *sql.Tx) error {
	return addColumn(ctx, tx, "label", "integer")
}

// addColumn adds a column to the table of runs, unless it is there.
func addColumn(ctx context.Context, tx *sql.Tx, name, form string) error {
	var has bool
	err := tx.QueryRowContext(ctx, "select exists (select 1 from pragma_table_info('runs') where name = $1)", name).Scan(&has)
	if err != nil || has {
		return err
	}
	_, err = tx.ExecContext(ctx, "alter table runs add column "+name+" "+form)
	return err
}

// keepTaskEvents changes no table: from version 9 on, the events of tasks are among the lines of the history, the line of
// the end of a run does not repeat them, and rows are compressed with a dictionary. Earlier programs cannot read that.
func keepTaskEvents(context.Context, *sql.Tx) error { return nil }

// storeOnce changes no table: from version 10 on, events that follow from other lines are not stored, and only the line in
// which a process begins lists the tasks of the run. Earlier programs would find neither.
func storeOnce(context.Context, *sql.Tx) error { return nil }

// addQueue adds the tables of runs that were submitted, of who submits them, of who takes them, and of the limits that these
// share; and who started each run, and of which spec it is, which earlier runs do not have.
func addQueue(ctx context.Context, tx *sql.Tx) error {
	for _, name := range []string{"starter", "spec"} {
		if err := addColumn(ctx, tx, name, "text not null default ''"); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `
create table if not exists submissions (
	run       integer primary key,
	spec      text not null, -- its name
	version   text not null, -- of the spec and its agents, masked
	submitter text not null,
	request   text not null, -- empty, or unique among what the submitter asks of the spec
	due       integer not null,
	priority  integer not null,
	state     text not null, -- queued, taken, aside, or empty: it needs no worker
	losses    integer not null, -- of owners, since an agent replied
	replies   integer not null, -- of agents, when it was taken
	reason    text not null, -- why it was set aside
	digest    blob not null, -- keyed, of what was submitted
	day       integer not null default 0, -- on which it last cost something, since 1970 in UTC
	spent     integer not null default 0 -- on that day, in millionths of a US dollar
) strict;
create unique index if not exists submissions_once on submissions (submitter, spec, request) where request <> '';
create index if not exists submissions_queued on submissions (spec, version, submitter, priority desc, due, run) where state = 'queued';
create index if not exists submissions_taken on submissions (submitter, run) where state = 'taken';
create index if not exists submissions_spent on submissions (submitter, day) where day > 0;
create table if not exists callers ( -- who submits
	spec    text not null,
	version text not null,
	name    text not null,
	claimed integer not null, -- when a run of theirs was last taken
	primary key (spec, version, name)
) strict, without rowid;
create table if not exists workers (
	id      text not null, -- of an open journal
	spec    text not null, -- that it serves
	version text not null,
	seen    integer not null, -- when it last said so
	primary key (id, spec, version)
) strict, without rowid;
create table if not exists limits (
	endpoint text primary key, -- masked
	stored   text not null -- what the processes that use it say of their calls
) strict, without rowid;`)
	return err
}

// withCommands is the first version that has the table commands, withSessions the first that has the table sessions,
// withLabels the first whose runs may have labels, withTaskList the first whose starts of processes have all that is
// written of the tasks, and withQueue the first that has the table submissions, and a starter and a spec of runs.
const (
	withCommands = 5
	withSessions = 7
	withLabels   = 8
	withTaskList = 10
	withQueue    = 11
)

// A VersionError reports a journal that a newer program wrote, or a database that an earlier one did: only files are brought
// to the newest version.
type VersionError struct{ Have, Know int }

func (e *VersionError) Error() string {
	if e.Have < e.Know {
		return fmt.Sprintf("it was written by an earlier runteam, in version %d of its form, and this one needs version %d: copy it to a file with the earlier one, and the file to a new schema or database with this one", e.Have, e.Know)
	}
	return fmt.Sprintf("it was written by a newer runteam, in version %d of its form; this one knows up to version %d: use the newer one, or another journal", e.Have, e.Know)
}

// migrate brings a file to the newest version, in one transaction, and returns what it is then. If the disk
// is too full for that, the file stays at its version, so that runs can be removed to make room. Nothing is added to it.
func (d *sqliteDB) migrate(ctx context.Context) (is ident, err error) {
	is, err = identity(ctx, d.write)
	if err != nil || is.version == version {
		return is, err
	}
	now, err := migrate(ctx, d.write.db)
	if is.version >= 1 && errors.Is(d.Explain(err), ErrFull) {
		d.o.Logger.Warn("the disk has no room to bring the journal to its newest form", "path", d.path, "error", err)
		return is, nil
	}
	return now, err
}

func migrate(ctx context.Context, db *sql.DB) (is ident, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return is, err
	}
	defer tx.Rollback() //nolint:errcheck // of what is not committed
	is, err = identity(ctx, tx)
	if err != nil || is.version == version {
		return is, err
	}
	if err := is.check(); err != nil {
		return is, err
	}
	for _, step := range migrations[is.version:] {
		if err := step(ctx, tx); err != nil {
			return is, err
		}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("pragma application_id = %d; pragma user_version = %d", application, version))
	if err == nil {
		err = tx.Commit()
	}
	return ident{application, version, is.tables}, err
}

// An ident identifies the kind and version of a file.
type ident struct {
	application int
	version     int
	tables      int
}

func identity(ctx context.Context, q Querier) (is ident, err error) {
	err = queryRow(ctx, q, "select application_id, user_version, (select count(*) from sqlite_schema) from pragma_application_id, pragma_user_version", nil, &is.application, &is.version, &is.tables)
	return is, err
}

// check returns an error if the file is no journal that this program can use.
func (is ident) check() error {
	switch {
	case is == ident{}:
		return nil
	case is.application != application:
		return errForeign
	case is.version > version:
		return &VersionError{is.version, version}
	case is.version < 1:
		return errForeign
	}
	return nil
}
