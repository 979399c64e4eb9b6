// Package submit is the command submit: it stores a run that a worker, runteam serve --work, takes.
package submit

import (
	"context"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
)

// submission are the argument and flags of the command.
type submission struct {
	spec     source.SpecFlags
	journal  journals.Flags
	request  string
	at       string
	priority int
	wait     bool
}

// Command returns the command submit.
func Command(con *console.Console) *cobra.Command {
	s := &submission{}
	cmd := &cobra.Command{
		Use:   "submit [SPEC]",
		Short: "Store a run for a worker, and print its ID",
		Long: `submit stores a run with its inputs, parameters and goal, and prints its ID. A
worker takes it: runteam serve SPEC --work N, on any host with the same journal. The
spec is checked here, with the inputs. The worker uses its own copy, and leaves the run
alone if that is another version, or calls other models.

You are the caller of the run. With --id, a second submission of the same ID for the
same spec is the first run, so that a scheduler may try again.`,
		Example: `  runteam submit claims.yaml --input claim=new.md
  runteam submit report.yaml --id 2026-12-01 --at 2026-12-01T06:00:00Z
  runteam submit claims.yaml --input claim=new.md --wait    print the answer`,
		Args: s.spec.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return submit(con, cmd, s) },
	}
	s.spec.AddTo(cmd)
	s.spec.AddGoalFlagsTo(cmd)
	s.journal.AddStoringTo(cmd)
	journals.NewCompleter(con, &s.journal).InputFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&s.request, "id", "", "submit at most one run with this `ID` for the spec")
	f.StringVar(&s.at, "at", "", "begin at this `TIME`, such as 2026-12-01T06:00:00Z, or after a time, such as 2h")
	f.IntVar(&s.priority, "priority", 0, "of your runs, begin those with the highest `N` first")
	f.BoolVar(&s.wait, "wait", false, "wait until the run ends, and print its answer")
	return cmd
}

// submit stores the run.
func submit(con *console.Console, cmd *cobra.Command, s *submission) error {
	if err := s.journal.Check(cmd); err != nil {
		return err
	}
	due, err := s.due(con)
	if err != nil {
		return err
	}
	if err := naming.CheckLine(s.request); err != nil {
		return exit.Usagef("--id %s: %w", terminal.CleanLine(s.request), err)
	}
	ctx := cmd.Context()
	s.journal.Quiet = true // the ID says that it is stored
	j, _, err := journals.Open(con, &s.journal, journals.ToServe)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // what was submitted is durable already
	l := run.Launch{Spec: s.spec, Journal: s.journal}
	id, added, err := l.Submit(ctx, con, j, journal.Submission{By: con.UserName(), Request: s.request, Due: due, Priority: s.priority})
	if err != nil {
		return err
	}
	if !added {
		con.Say("runteam: --id %s was submitted before: it is this run", terminal.CleanLine(s.request))
	}
	if !s.wait {
		return con.PrintText(id)
	}
	con.Say("runteam: submitted run %s; waiting until it ends", journals.ShortRun(id))
	return await(ctx, con, j, id)
}

// due returns when the run may begin; zero means at once.
func (s *submission) due(con *console.Console) (time.Time, error) {
	if s.at == "" {
		return time.Time{}, nil
	}
	if after, err := time.ParseDuration(s.at); err == nil && after >= 0 {
		return con.Now().Add(after), nil
	}
	at, err := time.Parse(time.RFC3339, s.at)
	if err != nil || !time.Unix(0, at.UnixNano()).Equal(at) {
		return at, exit.Usagef("--at %s: write a time with its zone, such as 2026-12-01T06:00:00Z, or how long from now, such as 90m", terminal.CleanLine(s.at))
	}
	return at, nil
}

// lookEvery is how often await looks at a run.
const lookEvery = 200 * time.Millisecond

// await waits until a run has ended or needs a person, and prints its answer.
func await(ctx context.Context, con *console.Console, j *journal.Journal, id string) error {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		s, err := j.Find(ctx, id)
		if err != nil {
			return journals.ReadError(ctx, err)
		}
		if !s.Ended.IsZero() || s.Status == journal.SetAside {
			return printEnd(ctx, con, j, s)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			con.Say("runteam: run %s stays submitted; runteam show %s shows it", journals.ShortRun(id), journals.ShortRun(id))
			return context.Cause(ctx)
		}
	}
}

// printEnd prints the answer of a run, or why there is none.
func printEnd(ctx context.Context, con *console.Console, j *journal.Journal, s journal.Summary) error {
	k, err := journals.Load(ctx, con, j, s, "")
	if err != nil {
		return err
	}
	if s.Status == journal.SetAside {
		return exit.Errorf(exit.KindRuntime, "run %s was set aside: %s; runteam resume %s gives it to the workers again", k.ShortID, s.Queue.Aside, k.ShortID)
	}
	if answer := view.Of(k).Output; answer != "" {
		if err := con.PrintText(answer); err != nil {
			return err
		}
	}
	switch s.Status {
	case string(engine.StatusOK):
		return nil
	case string(engine.StatusSuspended):
		con.Say("runteam: run %s waits for a person; runteam questions lists what it asks", k.ShortID)
		return exit.Status(exit.StatusWaiting)
	}
	con.Say("runteam: run %s ended with status %s; runteam show %s says why", k.ShortID, s.Status, k.ShortID)
	return exit.Status(exit.StatusFailed)
}
