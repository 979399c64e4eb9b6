package journals

import (
	"github.com/runteam/runteam/internal/cli/console"
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
	cmd.Flags().StringVar(&g.EncryptFrom, "encrypt-from", "", "encrypt what has this `LABEL` or a higher one in the journal: "+format.List(label.Classifications(), 4)+" (default: $"+EnvEncryptFrom+", or secret, if there is a key)")
	flags.Complete(cmd, "encrypt-from", label.Classifications())
}

// limit returns the lowest label of what is encrypted in the journal, and the flag or variable that says so; empty if none
// does.
func (g *Flags) limit(con *console.Console) (level label.Classification, by string, err error) {
	by, word := "--encrypt-from", g.EncryptFrom
	if word == "" {
		by = EnvEncryptFrom
		word, _ = con.LookupEnv(EnvEncryptFrom)
	}
	if word == "" {
		return label.Secret, "", nil
	}
	if level, err = label.ParseClassification(word); err != nil {
		err = exit.Usagef("%s: %w", by, err)
	}
	return level, by, err
}

// encryptFrom returns the limit if a flag or the environment sets it: then there must be a key.
func (g *Flags) encryptFrom(con *console.Console, key []byte) (*label.Classification, error) {
	level, by, err := g.limit(con)
	switch {
	case err != nil || by == "":
		return nil, err
	case key == nil:
		return nil, exit.Usagef("%s %v: there is no key to encrypt with; give --journal-key FILE or %s (`openssl rand -hex 32` makes a key)", by, level, EnvJournalKey)
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
