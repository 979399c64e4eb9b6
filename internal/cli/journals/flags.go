package journals

import (
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/spf13/cobra"
)

// EnvJournalKey names the environment variable that --journal-key goes before.
const EnvJournalKey = "RUNTEAM_JOURNAL_KEY"

// Flags says in which journal a command keeps runs, or looks for them.
type Flags struct {
	Path     string // empty means the one of the working directory
	None     bool
	KeyFile  string
	AuditKey string // the file of --audit-key; empty means the key of the environment
	Program  string // as [console.Console.Program]
	Quiet    bool   // a folder that is made is not said
}

// AddTo adds the flags of a command that works with runs in a journal.
func (g *Flags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.Path, "journal", "", "the journal is in `FILE` (default: "+FolderName+"/"+FileName+" here, or in a folder above up to that of .git)")
	f.StringVar(&g.KeyFile, "journal-key", "", "the `FILE` with the key of what is above confidential in the journal (default: $"+EnvJournalKey+")")
}

// AddNoJournalTo adds --no-journal to a command.
func (g *Flags) AddNoJournalTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&g.None, "no-journal", false, "keep no journal of the run: it can then not be resumed")
}

// Check refuses flags that contradict each other.
func (g *Flags) Check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case g.None && changed("journal"):
		return exit.Usagef("--journal and --no-journal contradict each other: take one of them back")
	case g.None && changed("journal-key"):
		return exit.Usagef("--journal-key has no effect with --no-journal: take one of them back")
	case changed("journal") && g.Path == "":
		return exit.Usagef("--journal is empty: name a file")
	case changed("journal-key") && g.KeyFile == "":
		return exit.Usagef("--journal-key is empty: name a file")
	}
	return nil
}

// ReadFlags is what a command that reads stored runs is asked for.
type ReadFlags struct {
	Flags
	Run string // an id or how one begins; empty means the newest run
}

// ParseRun takes RUN from the arguments of a command, which may have more.
func (l *ReadFlags) ParseRun(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if l.Run = args[0]; l.Run == "" {
		return exit.Usagef("RUN is empty: write an id, or leave it out for the newest run")
	}
	return nil
}

// Open opens the journal to read it. The caller closes it.
func (l *ReadFlags) Open(cmd *cobra.Command, con *console.Console) (*journal.Journal, error) {
	if err := l.Check(cmd); err != nil {
		return nil, err
	}
	j, _, err := Open(con, &l.Flags, ToRead)
	return j, err
}
