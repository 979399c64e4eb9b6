package journals

import (
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/spf13/cobra"
)

// Flags name the journal in which a command stores runs or looks for them.
type Flags struct {
	Named    string // of --journal: a path, or an address that may have a password; empty means the one of the environment or the working directory
	None     bool
	KeyFile  string
	AuditKey string // the file of --audit-key; empty means the key of the environment
	Program  string // as [console.Console.Program]
	Quiet    bool   // do not report a new folder
}

// AddTo adds the flags of a command that works with runs in a journal.
func (g *Flags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.Named, "journal", "", "the journal is in `FILE`, or in the database postgres://… (default: $"+EnvJournal+", or "+FolderName+"/"+FileName+" here, or in a folder above up to that of .git)")
	f.StringVar(&g.KeyFile, "journal-key", "", "the `FILE` with the key for what is above confidential in the journal (default: $"+EnvJournalKey+")")
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
		return exit.Usagef("--journal and --no-journal contradict each other: leave one of them out")
	case g.None && changed("journal-key"):
		return exit.Usagef("--journal-key has no effect with --no-journal: leave one of them out")
	}
	return nil
}
