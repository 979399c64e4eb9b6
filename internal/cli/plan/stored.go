package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// storedFlags have plan show the flow of a stored run.
type storedFlags struct {
	journals.Flags
	run string // its ID or the beginning of it
}

func (s *storedFlags) addTo(cmd *cobra.Command, con *console.Console) {
	s.Flags.AddStoringTo(cmd)
	cmd.Flags().StringVar(&s.run, "run", "", "show the flow of the stored `RUN`, by the policy that it has now, in place of a spec's")
	offers := journals.NewCompleter(con, &s.Flags)
	flags.CompleteBy(cmd, "run", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offers.Runs(cmd, word), cobra.ShellCompDirectiveNoFileComp
	})
}

// check refuses flags that do not fit together.
func (s *storedFlags) check(con *console.Console, cmd *cobra.Command, spec string) (err error) {
	changed := cmd.Flags().Changed
	if !changed("run") {
		at, err := s.Database(con)
		switch {
		case err != nil:
			return err
		case changed("journal") && at == nil:
			return exit.Usagef("--journal FILE is for a stored run: add --run RUN; of a run to come, only a database is a reader")
		case changed("journal-key"):
			return exit.Usagef("--journal-key is for a stored run: add --run RUN")
		case changed("encrypt-from") && at == nil:
			return exit.Usagef("--encrypt-from is for a journal in a database: add --journal postgres://…")
		}
		return nil
	}
	if s.run == "" {
		return exit.Usagef("--run is empty: write the ID of a run, or the beginning of it")
	}
	if spec != "" {
		return exit.Usagef("--run shows a stored run, which has its spec: leave out %s", spec)
	}
	fits := []string{"run", "journal", "journal-key", "encrypt-from", "from", "to"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(fits, f.Name) && cmd.InheritedFlags().Lookup(f.Name) == nil {
			err = exit.Usagef("--%s is for a spec, and --run shows a stored run: leave one of them out", f.Name)
		}
	})
	return errors.Join(err, s.Check(cmd))
}

// planStored shows the flow of a stored run.
func planStored(ctx context.Context, con *console.Console, s *storedFlags, selected *flowFlags) error {
	j, _, err := journals.Open(con, &s.Flags, journals.ToRead)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // nothing was written
	found, err := journals.Find(ctx, j, s.run)
	if err != nil {
		return err
	}
	stored, err := j.Load(ctx, found.Run)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	p, err := restored.PlanFor(ctx, con, &s.Flags, &stored.Info, &stored.History)
	if err != nil {
		return fmt.Errorf("run %s: %w", journals.ShortRun(found.Run), err)
	}
	if p.Options().Database, err = s.Database(con); err != nil {
		return err
	}
	if Drawings[con.Settings.Output] != nil {
		return printDrawing(con, con.Settings.Output, p)
	}
	view, err := selected.view(p)
	if err != nil {
		return err
	}
	d := newRunFlow(p, view)
	if con.Settings.JSON() {
		return con.PrintJSON(storedFlow{found.Run, found.Name, d})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, by policy %.12s\n", journals.Heading(found.Name, found.Run), d.Policy)
	view.write(&b)
	writeFindings(&b, p.Findings)
	return con.PrintText(b.String())
}

// storedFlow is the flow of a stored run in JSON.
type storedFlow struct {
	Run  string `json:"runId"`
	Name string `json:"name,omitempty"`
	*RunFlow
}
