package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/journal"
)

// envJournalKey names the environment variable that --journal-key goes before.
const envJournalKey = "RUNTEAM_JOURNAL_KEY"

const (
	journalFolder = ".runteam"
	journalFile   = "runs.db"
)

// journaling says in which journal a command keeps runs, or looks for them.
type journaling struct {
	path     string // empty means the one of the working directory
	none     bool
	keyFile  string
	auditKey string // the file of --audit-key; empty means the key of the environment
	quiet    bool   // a folder that is made is not said
}

// flags adds the flags of a command that works with runs in a journal.
func (g *journaling) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.path, "journal", "", "the journal is in `FILE` (default: "+journalFolder+"/"+journalFile+" here, or in a folder above up to that of .git)")
	f.StringVar(&g.keyFile, "journal-key", "", "the `FILE` with the key of what is above confidential in the journal (default: $"+envJournalKey+")")
}

// mayKeep adds the flag of a command that keeps a run unless told otherwise.
func (g *journaling) mayKeep(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&g.none, "no-journal", false, "keep no journal of the run: it can then not be resumed")
}

// check refuses flags that contradict each other.
func (g *journaling) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case g.none && changed("journal"):
		return usageError("--journal and --no-journal contradict each other: take one of them back")
	case g.none && changed("journal-key"):
		return usageError("--journal-key has no effect with --no-journal: take one of them back")
	case changed("journal") && g.path == "":
		return usageError("--journal is empty: name a file")
	case changed("journal-key") && g.keyFile == "":
		return usageError("--journal-key is empty: name a file")
	}
	return nil
}

// A purpose is what a journal is opened for.
type purpose int

const (
	toRead   purpose = iota // changes nothing, and makes nothing
	toChange                // a journal that there is
	toRemove                // the same, and on a full disk too
	toKeep                  // makes one if there is none
)

// openJournal opens the journal of the flags, and returns its path as people
// know it. The caller closes it. To keep a run, the folder and the file are
// made if they are not there; for anything else it is an error, which says how a
// journal comes about.
func (a *app) openJournal(g *journaling, why purpose) (*journal.Journal, string, error) {
	o := journal.Options{ReadOnly: why == toRead, UseReserve: why == toRemove, Hurry: a.stopping, Now: a.now, Logger: a.log}
	var err error
	if o.Key, err = a.journalKey(g.keyFile); err != nil {
		return nil, "", err
	}
	if o.AuditKey, err = a.auditKey("audit-key", g.auditKey); err != nil {
		return nil, "", err
	}
	path, err := a.findJournal(g, why)
	if err != nil {
		return nil, "", err
	}
	j, err := journal.Open(path, o)
	if err != nil {
		return nil, "", unopened(err, why)
	}
	return j, path, nil
}

// results returns what gives the result of a task of an earlier run, from the
// journal of the flags.
func (g *journaling) results(a *app) func(ctx context.Context, run, task string) (*envelope.Envelope, error) {
	return func(ctx context.Context, run, task string) (*envelope.Envelope, error) {
		j, _, err := a.openJournal(g, toRead)
		if err != nil {
			return nil, err
		}
		defer j.Close() //nolint:errcheck // nothing was written
		return j.Result(ctx, run, task)
	}
}

// A missingRunError says that the run whose result is an input is not in the journal.
type missingRunError struct {
	run, task string
	err       error
}

func (e *missingRunError) Error() string {
	return fmt.Sprintf("it is the result of task %q in run %s, which is not in the journal: it may have been removed by gc", cleanLine(e.task), cleanLine(e.run))
}

func (e *missingRunError) Unwrap() error { return e.err }

// unopened words that a journal cannot be used, and how to go on.
func unopened(err error, why purpose) error {
	advice := "--journal FILE names another one"
	if why == toKeep {
		advice = "nothing was run: --journal FILE keeps the run elsewhere, and --no-journal keeps none"
	}
	return &fault{kind: kindRuntime, err: fmt.Errorf("%w; %s", err, advice)}
}

// journalKey returns the key of what is above confidential, from a file, or
// without one from the environment. No key is nil.
func (a *app) journalKey(file string) ([]byte, error) {
	from := envJournalKey
	text, _ := a.lookup(envJournalKey)
	if file != "" {
		read, err := readKeyFile("journal-key", file)
		if err != nil {
			return nil, err
		}
		from, text = "--journal-key "+file, read
	} else if text == "" {
		return nil, nil
	}
	key, err := journal.ParseKey([]byte(text))
	if err != nil {
		return nil, usageError("%s: %w", from, err)
	}
	return key, nil
}

// findJournal returns the path of the journal, and sees to it that one can be
// opened there.
func (a *app) findJournal(g *journaling, why purpose) (string, error) {
	if g.path != "" {
		return g.path, namedJournal(g.path, why)
	}
	folder, found, err := a.journalFolder()
	if err != nil {
		return "", unopened(err, why)
	}
	path := filepath.Join(folder, journalFile)
	if why != toKeep {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return "", &fault{kind: kindIO, err: fmt.Errorf(`there is no journal, neither here nor in a folder above: "runteam run" makes one, and --journal FILE names one`)}
		}
		return path, nil
	}
	if !found {
		if err := makeFolder(folder); err != nil {
			return "", unopened(fmt.Errorf("make the folder of the journal %s: %w", folder, plainly(err)), why)
		}
		if !g.quiet {
			a.say("runteam: made %s, where runs are kept so that they can be resumed; --no-journal keeps none", cleanLine(folder))
		}
	}
	return path, nil
}

// checkOutputs returns an error if an output is a file of a journal: the journal that
// flags name, the one that is found without them, or one in another journal folder.
func (a *app) checkOutputs(g *journaling, outputs ...*newFile) error {
	var known []string
	if g.path != "" {
		known = journal.Files(g.path)
	}
	if folder, _, err := a.journalFolder(); err == nil {
		known = append(known, journal.Files(filepath.Join(folder, journalFile))...)
	}
	for _, out := range outputs {
		all := known
		if folder := filepath.Dir(out.path); filepath.Base(folder) == journalFolder {
			all = append(known[:len(known):len(known)], journal.Files(filepath.Join(folder, journalFile))...)
		}
		for _, file := range all {
			if out.path != "" && samePlace(out.path, file) {
				return usageError("--%s %s: this is a file of the journal; name another file", out.flag, out.path)
			}
		}
	}
	return nil
}

// samePlace reports whether two paths name the same file, which need not exist.
func samePlace(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	one, err := os.Stat(filepath.Dir(a))
	if err != nil {
		return false
	}
	other, err := os.Stat(filepath.Dir(b))
	return err == nil && os.SameFile(one, other)
}

// namedJournal refuses a path at which no journal can be.
func namedJournal(path string, why purpose) error {
	bad := func(text string) error {
		return &fault{kind: kindIO, err: fmt.Errorf("--journal %s: %s", path, text)}
	}
	if folder := filepath.Dir(path); filepath.Base(folder) == journalFolder {
		if err := journal.CheckFolder(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unopened(err, why)
		}
	}
	at, err := os.Lstat(path)
	switch {
	case err == nil && at.IsDir():
		return bad("it is a folder: name a file in it")
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return nil // what is wrong with it, the journal says
	case why != toKeep:
		return bad(`there is no such file; "runteam run --journal FILE" makes a journal`)
	}
	if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
		return bad(fmt.Sprintf("there is no folder %s: make it first", filepath.Dir(path)))
	}
	return nil
}

// journalFolder returns the folder of the journal: the nearest one from the
// working directory up to that of .git, or the one to make here. Outside a
// repository nothing above is looked at: it may be anybody's.
func (a *app) journalFolder() (folder string, found bool, err error) {
	here := a.folder
	if here == "" {
		if here, err = os.Getwd(); err != nil {
			return "", false, err
		}
	}
	root := repository(here)
	for dir := here; ; dir = filepath.Dir(dir) {
		folder = filepath.Join(dir, journalFolder)
		if at, err := os.Lstat(folder); err == nil && (at.IsDir() || at.Mode()&fs.ModeSymlink != 0) {
			return a.shorter(here, folder), true, journal.CheckFolder(folder)
		}
		if dir == root {
			return a.shorter(here, filepath.Join(here, journalFolder)), false, nil
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

// shorter writes a path as it is from the working directory.
func (a *app) shorter(here, path string) string {
	if a.folder != "" {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil {
		return short
	}
	return path
}

// makeFolder makes the folder of a journal, which nobody else may look into and
// which git leaves out.
func makeFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if at, err := os.Lstat(folder); err != nil || !at.IsDir() {
		return errors.Join(err, errors.New("there is a file of this name"))
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
