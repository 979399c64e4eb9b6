package journals

import (
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/label"
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

	EncryptFrom string // the lowest label of what is encrypted; empty means the default
	Workspaces  string // the folder for workspaces; empty means the default
}

// AddTo adds the flags of a command that works with runs in a journal.
func (g *Flags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.Named, "journal", "", "the journal is in `FILE`, or in the database postgres://… (default: $"+EnvJournal+", or "+FolderName+"/"+FileName+" here, or in a folder above up to that of .git)")
	f.StringVar(&g.KeyFile, "journal-key", "", "the `FILE` with the key for what is encrypted in the journal (default: $"+EnvJournalKey+")")
}

// AddStoringTo adds the flags of a command that also stores something in a journal.
func (g *Flags) AddStoringTo(cmd *cobra.Command) {
	g.AddTo(cmd)
	cmd.Flags().StringVar(&g.EncryptFrom, "encrypt-from", "", "encrypt what has this `LABEL` or a higher one in the journal: "+format.List(label.Classifications(), 4)+" (default: secret, if there is a key)")
	flags.Complete(cmd, "encrypt-from", label.Classifications())
}

// encryptFrom returns the lowest label of what a journal encrypts under a key; nil means the default.
func (g *Flags) encryptFrom(key []byte) (*label.Classification, error) {
	if g.EncryptFrom == "" {
		return nil, nil
	}
	level, err := label.ParseClassification(g.EncryptFrom)
	switch {
	case err != nil:
		return nil, exit.Usagef("--encrypt-from: %w", err)
	case key == nil:
		return nil, exit.Usagef("--encrypt-from %v: there is no key to encrypt with; give --journal-key FILE or %s (`openssl rand -hex 32` makes a key)", level, EnvJournalKey)
	}
	return &level, nil
}

// AddWorkspacesTo adds --workspaces to a command that runs tasks or removes runs.
func (g *Flags) AddWorkspacesTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.Workspaces, "workspaces", "", "the workspaces of tasks are in the folder `DIR`, which hosts may share (default: beside the file of the journal, or in your cache)")
	flags.CompleteBy(cmd, "workspaces", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
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
	case g.None && changed("encrypt-from"):
		return exit.Usagef("--encrypt-from has no effect with --no-journal: leave one of them out")
	case g.None && changed("workspaces"):
		return exit.Usagef("--workspaces has no effect with --no-journal: leave one of them out")
	}
	return nil
}
