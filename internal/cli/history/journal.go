package history

import (
	"fmt"
	"io"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/spf13/cobra"
)

// JournalCommand returns the command journal, whose subcommands work on a whole journal.
func JournalCommand(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Copy a journal",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exit.Usagef("%s has no such command: write %s copy FROM TO", cmd.CommandPath(), cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(copyCommand(con))
	return cmd
}

// copyFlags are the arguments and flags of journal copy.
type copyFlags struct {
	from, to journals.Location
	keyFile  string
}

func copyCommand(con *console.Console) *cobra.Command {
	c := &copyFlags{}
	cmd := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a journal to another file, or into or out of a database",
		Long: `copy copies all runs of a journal, as they are: they are shown, verified, replayed and
resumed from the copy as before. FROM and TO are files, or databases: postgres://…
TO must not be a journal yet. The copy appears as a whole: if copy is interrupted, TO has
no runs.

No process may work on a run of FROM meanwhile. FROM stays as it is: move it away, so
that no run is continued in both. Workspaces of interrupted tasks are not copied.

A database requires a journal key. What is encrypted in FROM stays encrypted under the
key that it has, so give that key.`,
		Example: `  runteam journal copy .runteam/runs.db postgres://ann@db.example/runs --journal-key journal-key
  runteam journal copy postgres://ann@db.example/runs runs.db`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) != 2 { // not quoted, since an address may have a password
				return exit.Usagef("%s takes FROM and TO, not %s", cmd.CommandPath(), format.Plural(len(args), "argument"))
			}
			for i, into := range []*journals.Location{&c.from, &c.to} {
				name := [...]string{"FROM", "TO"}[i]
				if args[i] == "" {
					return exit.Usagef("%s is empty: write a file or postgres://…", name)
				}
				if *into, err = journals.ParseLocation(name, args[i]); err != nil {
					return err
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return copyJournal(con, cmd, c) },
	}
	cmd.Flags().StringVar(&c.keyFile, "journal-key", "", "the `FILE` with the key for what is encrypted in the journal (default: $"+journals.EnvJournalKey+")")
	return cmd
}

// copyDocument says what was copied, in JSON.
type copyDocument struct {
	From string `json:"from"`
	To   string `json:"to"`
	Runs int64  `json:"runs"`
	Rows int64  `json:"rows"` // of all tables
}

func copyJournal(con *console.Console, cmd *cobra.Command, c *copyFlags) error {
	o := journal.Options{Dir: con.WorkDir, Hurry: con.Stopping, Now: con.Now, Logger: con.Log}
	var err error
	if o.Key, err = journals.JournalKey(con, c.keyFile); err != nil {
		return err
	}
	from, err := c.from.OpenToCopy(con, o)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written
	to, err := c.to.Target(con, o)
	if err != nil {
		return journals.CopyError(cmd.Context(), err)
	}
	said := con.Now()
	done, err := from.CopyTo(cmd.Context(), to, func(rows, all int64) {
		if now := con.Now(); now.Sub(said) >= sayEvery {
			said = now
			con.Say("runteam: copied %s of %s", format.Number(int(rows)), format.Plural(int(all), "row"))
		}
	})
	if err != nil {
		return journals.CopyError(cmd.Context(), err)
	}
	d := copyDocument{From: c.from.String(), To: c.to.String(), Runs: done.Runs, Rows: done.Rows}
	return con.PrintResult(d, func(w io.Writer) {
		fmt.Fprintf(w, "%s in %s copied to %s\n", format.Plural(int(d.Runs), "run"), d.From, d.To)
	})
}

// sayEvery is how often a long copy says how far it is.
const sayEvery = 5 * time.Second
