package journals

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/plan"
)

// EnvJournal is the environment variable that names the journal if no flag does: a path, or the address of a database. The
// address may have a password, so nothing that is printed or stored has the value of the variable or of the flag.
const EnvJournal = "RUNTEAM_JOURNAL"

// EnvEncryptFrom is the environment variable with the lowest label of what is encrypted in the journal, if no flag has it.
const EnvEncryptFrom = "RUNTEAM_ENCRYPT_FROM"

// A Location is where a journal is: in a file, or in a database of PostgreSQL.
type Location struct {
	file    string // the path; empty for a database
	address string // of the database, which may have a password; empty for a file
	public  string // the address without passwords
	by      string // the flag, argument or variable that names it; empty if it was found
}

// ParseLocation reads the value of a flag, an argument or a variable with a name.
func ParseLocation(by, value string) (Location, error) {
	if !isAddress(value) {
		return Location{file: value, by: by}, nil
	}
	public, err := postgres.Public(value)
	if err != nil {
		return Location{}, exit.Usagef("%s: %w", by, err)
	}
	return Location{address: value, public: public, by: by}, nil
}

// isAddress reports whether a text is meant as the address of a database. What may have a password is no path, even if it is
// no address that can be used.
func isAddress(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(text, "://") || strings.HasPrefix(lower, "postgres:") || strings.HasPrefix(lower, "postgresql:") || strings.Contains(lower, "password=")
}

// isArgument reports whether an argument of a command names the journal, so that --journal would not help.
func (l Location) isArgument() bool { return l.by == "FROM" || l.by == "TO" }

// String returns the path, or the address without passwords, as a message shows it.
func (l Location) String() string {
	if l.address != "" {
		return terminal.CleanLine(l.public)
	}
	return terminal.CleanLine(l.file)
}

// Place returns where people look for the journal: the folder if it was found, else the file or the address.
func (l Location) Place() string {
	if l.by == "" {
		return terminal.CleanLine(filepath.Dir(l.file))
	}
	return l.String()
}

// Files returns the paths of all files that the journal may use; none if it is in a database.
func (l Location) Files() []string {
	if l.file == "" {
		return nil
	}
	return journal.Files(l.file)
}

// Open opens the journal there. A database requires a key.
func (l Location) Open(con *console.Console, o journal.Options) (*journal.Journal, error) {
	if l.address == "" {
		return journal.Open(l.file, o)
	}
	if o.Key == nil {
		return nil, l.errNoKey()
	}
	return postgres.Open(context.Background(), l.address, o)
}

// Target returns the place for a copy of a journal. A database requires a key.
func (l Location) Target(con *console.Console, o journal.Options) (journal.CopyTarget, error) {
	if l.address == "" {
		return journal.InFile(l.file, o), l.check(con.WorkDir, ToServe)
	}
	if o.Key == nil {
		return nil, l.errNoKey()
	}
	return postgres.InDatabase(l.address, o)
}

// OpenToCopy opens the journal there to copy it.
func (l Location) OpenToCopy(con *console.Console, o journal.Options) (*journal.Journal, error) {
	if err := l.check(con.WorkDir, ToRead); err != nil {
		return nil, err
	}
	o.ReadOnly = true
	j, err := l.Open(con, o)
	return j, CopyError(context.Background(), err)
}

func (l Location) errNoKey() error {
	return exit.Usagef("%s: a journal in a database requires a journal key: give it with --journal-key FILE or %s; `(umask 077; openssl rand -hex 32 > FILE)` makes one, which all that use the journal need", l, EnvJournalKey)
}

// CopyError returns the error of a command that copies a journal; nil for nil.
func CopyError(ctx context.Context, err error) error {
	_, classified := errors.AsType[*exit.Error](err)
	switch {
	case err == nil || classified:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, journal.ErrUncertain):
		return exit.Errorf(exit.KindRuntime, "%w", err)
	}
	return exit.Errorf(exit.KindRuntime, "%w; nothing was copied", addKeyHint(err))
}

// Database returns the database that the flags or the environment name as the journal; nil if it is a file.
func (g *Flags) Database(con *console.Console) (*plan.JournalDatabase, error) {
	at, _, err := g.location(con)
	if err != nil || at.address == "" {
		return nil, err
	}
	from, _, err := g.limit(con)
	if err != nil {
		return nil, err
	}
	return plan.NewJournalDatabase(at.public, from)
}

// location returns where the flags or the environment say that the journal is; false if they do not say it.
func (g *Flags) location(con *console.Console) (at Location, named bool, err error) {
	by, value := "--journal", g.Named
	if value == "" {
		by = EnvJournal
		value, _ = con.LookupEnv(EnvJournal)
	}
	if value == "" {
		return Location{}, false, nil
	}
	at, err = ParseLocation(by, value)
	return at, true, err
}
