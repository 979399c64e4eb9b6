// Package journals finds the journal and the run that a command works on, and reads the run back.
package journals

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workdir"
)

const (
	FolderName = ".runteam"
	FileName   = "runs.db"
)

// A Purpose says what a journal is opened for.
type Purpose int

const (
	ToRead   Purpose = iota // changes nothing and creates nothing
	ToChange                // needs an existing journal
	ToRemove                // the same, even on a full disk
	ToStore                 // creates the journal if there is none, for a command that has --no-journal
	ToServe                 // the same, for one that has not
)

// NoJournal says that there is no journal, and what to do.
const NoJournal = `there is no journal here or in a folder above; "runteam run" creates one, and --journal FILE names another`

// Open opens the journal that the flags name, and returns where it is. The caller closes it. To keep a run, Open creates a missing folder and file; for other purposes a missing
// journal is an error, which says how to create one.
func Open(con *console.Console, g *Flags, why Purpose) (*journal.Journal, Location, error) {
	o := journal.Options{Dir: con.WorkDir, ReadOnly: why == ToRead, UseReserve: why == ToRemove, Hurry: con.Stopping, Now: con.Now, Logger: con.Log, Workspaces: g.Workspaces}
	var err error
	if o.Key, err = JournalKey(con, g.KeyFile); err != nil {
		return nil, Location{}, err
	}
	if why != ToRead && why != ToRemove {
		if o.EncryptFrom, err = g.encryptFrom(con, o.Key); err != nil {
			return nil, Location{}, err
		}
	}
	if o.AuditKey, err = AuditKey(con, "audit-key", g.AuditKey); err != nil {
		return nil, Location{}, err
	}
	if g.Workspaces != "" && why != ToRead {
		if err := journal.CheckWorkspaces(con.WorkDir, g.Workspaces); err != nil {
			return nil, Location{}, exit.Errorf(exit.KindIO, "--workspaces %s: %w", g.Workspaces, err)
		}
	}
	at, err := find(con, g, why)
	if err != nil {
		return nil, Location{}, err
	}
	j, err := at.Open(con, o)
	if err != nil {
		return nil, Location{}, at.OpenError(err, why)
	}
	return j, at, nil
}

// Results returns a function that reads the result of a task of an earlier run from the journal.
func (g *Flags) Results(con *console.Console) func(ctx context.Context, run, task string) (*envelope.Envelope, error) {
	return func(ctx context.Context, run, task string) (*envelope.Envelope, error) {
		j, _, err := Open(con, g, ToRead)
		if err != nil {
			return nil, err
		}
		defer j.Close() //nolint:errcheck // nothing was written
		result, err := j.Result(ctx, run, task)
		return result, addKeyHint(err)
	}
}

// Conversation returns a function that reads from the journal what a run that is a turn of a session
// needs of the other turns.
func (g *Flags) Conversation(con *console.Console) func(ctx context.Context, t *record.SessionTurn) (plan.OfSession, error) {
	return func(ctx context.Context, t *record.SessionTurn) (plan.OfSession, error) {
		j, _, err := Open(con, g, ToRead)
		if err != nil {
			return plan.OfSession{}, err
		}
		defer j.Close() //nolint:errcheck // nothing was written
		of, err := engine.LoadConversation(ctx, j, t)
		return of, ReadError(ctx, err)
	}
}

// OpenError adds to the error about an unusable journal what to do.
func (l Location) OpenError(err error, why Purpose) error {
	_, classified := errors.AsType[*exit.Error](err)
	switch {
	case classified:
		return err
	case errors.Is(err, journal.ErrLeased): // another journal would not help
		return exit.Errorf(exit.KindRuntime, "%w", err)
	case l.address != "" && why == ToStore:
		return exit.Errorf(exit.KindRuntime, "%w; nothing was run", addKeyHint(err))
	case l.address != "" || l.isArgument():
		return exit.Errorf(exit.KindRuntime, "%w", addKeyHint(err))
	}
	advice := "use --journal FILE for another one"
	switch why {
	case ToStore:
		advice = "nothing was run; use --journal FILE for another file, or --no-journal to store nothing"
	case ToServe:
		advice = "use --journal FILE for another file"
	}
	return exit.Errorf(exit.KindRuntime, "%w; %s", err, advice)
}

// find returns where the journal is, after checking that a file can be opened there.
func find(con *console.Console, g *Flags, why Purpose) (Location, error) {
	at, named, err := g.location(con)
	if err != nil {
		return at, err
	}
	if named {
		return at, at.check(con.WorkDir, why)
	}
	folder, found, err := findFolder(con)
	if err != nil {
		return at, at.OpenError(err, why)
	}
	at.file = filepath.Join(folder, FileName)
	if why != ToStore && why != ToServe {
		if _, err := con.WorkDir.Stat(at.file); errors.Is(err, fs.ErrNotExist) {
			return at, exit.Errorf(exit.KindIO, "%s", NoJournal)
		}
		return at, nil
	}
	if !found {
		if err := MakeFolder(con.WorkDir.Path(folder)); err != nil {
			return at, at.OpenError(fmt.Errorf("create the folder of the journal %s: %w", folder, exit.WithoutPath(err)), why)
		}
		if !g.Quiet {
			con.Say("runteam: created %s to store runs; use --no-journal to store nothing", terminal.CleanLine(folder))
		}
	}
	return at, nil
}

// CheckOutputs returns an error if an output is a file of a journal: of the journal that the flags or
// the environment name, of the one found without these, or of one in another journal folder.
func CheckOutputs(con *console.Console, g *Flags, outputs ...*files.Output) error {
	at, _, err := g.location(con)
	if err != nil {
		return err
	}
	known := at.Files()
	if folder, _, err := findFolder(con); err == nil {
		known = append(known, journal.Files(filepath.Join(folder, FileName))...)
	}
	for _, out := range outputs {
		all := known
		if folder := filepath.Dir(out.Path); filepath.Base(folder) == FolderName {
			all = append(known[:len(known):len(known)], journal.Files(filepath.Join(folder, FileName))...)
		}
		for _, file := range all {
			if out.Path != "" && files.SamePath(con.WorkDir, out.Path, file) {
				return exit.Usagef("--%s %s: this is a file of the journal; name another file", out.Flag, out.Path)
			}
		}
	}
	return nil
}

// check refuses a path that cannot hold a journal.
func (l Location) check(dir workdir.Dir, why Purpose) error {
	if l.address != "" {
		return nil // the server says it
	}
	path := l.file
	bad := func(text string) error {
		return exit.Errorf(exit.KindIO, "%s %s: %s", l.by, path, text)
	}
	if err := journal.CheckFolder(dir, filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.OpenError(err, why)
	}
	at, err := dir.Lstat(path)
	switch {
	case err == nil && at.IsDir():
		return bad("it is a folder: name a file in it")
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return nil // the journal reports what is wrong with it
	case why != ToStore && why != ToServe:
		if l.isArgument() {
			return bad("there is no such file")
		}
		return bad(`there is no such file; "runteam run --journal FILE" creates a journal`)
	}
	if !dir.IsDir(filepath.Dir(path)) {
		return bad(fmt.Sprintf("the folder %s does not exist; create it first", filepath.Dir(path)))
	}
	return nil
}

// findFolder returns the folder of the journal: the nearest one from the working directory up to
// the root of the repository, or the one to create here. Outside a repository it does not look in
// the folders above, which may belong to others.
func findFolder(con *console.Console) (folder string, found bool, err error) {
	here, err := con.WorkDir.Getwd()
	if err != nil {
		return "", false, err
	}
	root := repository(here)
	for dir := here; ; dir = filepath.Dir(dir) {
		folder = filepath.Join(dir, FolderName)
		if at, err := os.Lstat(folder); err == nil && (at.IsDir() || at.Mode()&fs.ModeSymlink != 0) {
			return shorter(here, folder), true, journal.CheckFolder("", folder)
		}
		if dir == root {
			return shorter(here, filepath.Join(here, FolderName)), false, nil
		}
	}
}

// repository returns the nearest folder from dir up that has .git, else dir.
func repository(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// shorter returns a path relative to the working directory.
func shorter(here, path string) string {
	if short, err := filepath.Rel(here, path); err == nil {
		return short
	}
	return path
}

// MakeFolder creates the folder of a journal, which only its owner may read and git ignores.
func MakeFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if at, err := os.Lstat(folder); err != nil || !at.IsDir() {
		return errors.Join(err, errors.New("a file has this name"))
	}
	f, err := os.OpenFile(filepath.Join(folder, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("*\n")
	return errors.Join(err, f.Close())
}

// Missing reports whether the journal does not exist yet, unless a flag or the environment names it.
func Missing(con *console.Console, g *Flags) bool {
	if _, named, _ := g.location(con); named {
		return false
	}
	folder, _, err := findFolder(con)
	if err != nil {
		return false // opening reports the error
	}
	_, err = con.WorkDir.Stat(filepath.Join(folder, FileName))
	return errors.Is(err, fs.ErrNotExist)
}
