package history

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/spf13/cobra"
)

// gcFlags are the flags of gc.
type gcFlags struct {
	journals.Flags
	age    string
	dryRun bool
}

// GCCommand returns the command gc.
func GCCommand(con *console.Console) *cobra.Command {
	c := &gcFlags{}
	cmd := &cobra.Command{
		Use:   "gc --older-than TIME",
		Short: "Remove old runs from the journal",
		Long: `gc removes all runs that began longer ago than TIME from the journal, and shrinks
the file. It removes their workspaces too. A run that a process is working on is kept,
and so is one that waits for a worker. A session of runteam chat is removed as a whole,
once its last turn is old enough. Other processes can write meanwhile, and gc works on a
full disk too.`,
		Example: `  runteam gc --older-than 30d --dry-run        only list them
  runteam gc --older-than 720h`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return gc(con, cmd, c) },
	}
	c.AddTo(cmd)
	c.AddWorkspacesTo(cmd)
	cmd.Flags().StringVar(&c.age, "older-than", "", "remove runs that began longer ago than `TIME`: 30d, 720h (required)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "list the runs without removing them")
	flags.Complete(cmd, "older-than", nil)
	return cmd
}

// gcDocument is what gc did, in JSON.
type gcDocument struct {
	Runs   []string  `json:"runs"` // IDs, the newest first
	Kept   []string  `json:"kept"` // old enough, but a process works on them, or they wait for a worker
	Before time.Time `json:"before"`
	Bytes  int64     `json:"bytes"` // by which the journal became smaller
	DryRun bool      `json:"dryRun,omitempty"`
}

func gc(con *console.Console, cmd *cobra.Command, c *gcFlags) error {
	if err := c.Check(cmd); err != nil {
		return err
	}
	age, err := parseAge(c.age)
	if err != nil {
		return err
	}
	why := journals.ToRemove
	if c.dryRun {
		why = journals.ToRead
	}
	j, _, err := journals.Open(con, &c.Flags, why)
	if err != nil {
		return err
	}
	defer j.Close()
	list, err := j.Runs(cmd.Context())
	if err != nil {
		return journals.ReadError(cmd.Context(), err)
	}
	out := gcDocument{Runs: []string{}, Kept: []string{}, Before: con.Now().Add(-age), DryRun: c.dryRun}
	var old []journal.Summary
	kept := journal.KeptSessions(list, out.Before)
	for _, s := range list {
		switch {
		case !s.Started.Before(out.Before) || kept[s.Session] && s.Holder == nil:
		case s.Holder != nil:
			out.Kept = append(out.Kept, s.Run)
			con.Say("runteam: run %s is kept: %s works on it", terminal.CleanLine(s.Run), terminal.CleanLine(s.Holder.String()))
		case s.Queue.NeedsWorker():
			out.Kept = append(out.Kept, s.Run)
			con.Say("runteam: run %s is kept: it waits for a worker; cancel it first to remove it", terminal.CleanLine(s.Run))
		default:
			out.Runs, old = append(out.Runs, s.Run), append(old, s)
		}
	}
	if !c.dryRun {
		if err := remove(con, cmd, j, &out); err != nil {
			return err
		}
	}
	return con.PrintResult(out, func(w io.Writer) { out.write(w, old, journals.ShortIDs(list)) })
}

// remove removes the listed runs, and reports on stderr if other runs were removed instead.
func remove(con *console.Console, cmd *cobra.Command, j *journal.Journal, out *gcDocument) (err error) {
	listed := len(out.Runs)
	gone, bytes, err := j.Remove(cmd.Context(), out.Before)
	if err != nil {
		if len(gone) > 0 {
			con.Say("runteam: %s removed before this error: %s", format.Plural(len(gone), "run"), terminal.CleanLine(strings.Join(gone, ", ")))
		}
		return journals.ReadError(cmd.Context(), err)
	}
	if len(gone) != listed {
		con.Say("runteam: %s removed, where %s were listed: another process changed the journal meanwhile", format.Plural(len(gone), "run"), format.Number(listed))
	}
	out.Runs, out.Bytes = append([]string{}, gone...), bytes
	return nil
}

func (d *gcDocument) write(w io.Writer, old []journal.Summary, short map[string]string) {
	runs := format.Plural(len(d.Runs), "run")
	if !d.DryRun {
		fmt.Fprintf(w, "%s removed; the journal is %s smaller\n", runs, bytesize.Text(int(d.Bytes)))
		return
	}
	table := format.NewTable(w, "")
	for i := range old {
		s := &old[i]
		table.Row(short[s.Run], s.Name, s.Status, format.Time(s.Started), tasksOf(s))
	}
	table.Flush()
	fmt.Fprintf(w, "%s would be removed\n", runs)
}
