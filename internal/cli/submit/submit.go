// Package submit is the command submit: it stores a run that a worker, runteam serve --work, takes.
package submit

import (
	"context"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	launch "github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
)

// submission are the argument and flags of the command.
type submission struct {
	spec     source.SpecFlags
	journal  journals.Flags
	server   serverFlags
	request  string
	at       string
	due      time.Time // of at; zero means at once
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
same spec is the first run, so that a scheduler may try again.

With --server, runteam serve at URL stores the run in its journal, so you need neither
the journal nor the spec: SPEC is the name of one that it serves. You need the token of
its programs. The sender of the token is the caller.`,
		Example: `  runteam submit claims.yaml --input claim=new.md
  runteam submit report.yaml --id 2026-12-01 --at 2026-12-01T06:00:00Z
  runteam submit claims.yaml --input claim=new.md --wait    print the answer
  runteam submit claims --server http://127.0.0.1:7337 --token-file token.txt --input claim=new.md`,
		Args: s.spec.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return submit(con, cmd, s) },
	}
	s.spec.AddTo(cmd)
	s.spec.AddGoalFlagsTo(cmd)
	s.journal.AddStoringTo(cmd)
	s.server.addTo(cmd)
	journals.NewCompleter(con, &s.journal).InputFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&s.request, "id", "", "submit at most one run with this `ID` for the spec")
	f.StringVar(&s.at, "at", "", "begin at this `TIME`, such as 2026-12-01T06:00:00Z, or after a time, such as 2h")
	f.IntVar(&s.priority, "priority", 0, "of your runs, begin those with the highest `N` first")
	f.BoolVar(&s.wait, "wait", false, "wait until the run ends, and print its answer")
	return cmd
}

// A place is where runs are stored.
type place interface {
	// submit stores a run, or returns that of an earlier submission with the same ID.
	submit(ctx context.Context, con *console.Console, s *submission) (run string, added bool, err error)
	// look returns how far a run is.
	look(ctx context.Context, con *console.Console, run string) (*progress, error)
	// lookEvery is how often look is called.
	lookEvery() time.Duration
	// shows says what shows a run, and resumes what resumes it.
	shows(run string) string
	resumes(run string) string
	close()
}

// submit stores the run.
func submit(con *console.Console, cmd *cobra.Command, s *submission) error {
	if err := s.check(con, cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	at, err := s.place(con)
	if err != nil {
		return err
	}
	defer at.close()
	id, added, err := at.submit(ctx, con, s)
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
	return await(ctx, con, at, id)
}

// check refuses flags that cannot be used.
func (s *submission) check(con *console.Console, cmd *cobra.Command) (err error) {
	if err := s.journal.Check(cmd); err != nil {
		return err
	}
	if err := s.server.check(cmd); err != nil {
		return err
	}
	if err := naming.CheckLine(s.request); err != nil {
		return exit.Usagef("--id %s: %w", terminal.CleanLine(s.request), err)
	}
	s.due, err = dueAt(s.at, con.Now())
	return err
}

// dueAt returns when a run may begin; zero means at once.
func dueAt(given string, now time.Time) (time.Time, error) {
	if given == "" {
		return time.Time{}, nil
	}
	if after, err := time.ParseDuration(given); err == nil && after >= 0 {
		return now.Add(after), nil
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || !time.Unix(0, at.UnixNano()).Equal(at) {
		return at, exit.Usagef("--at %s: write a time with its zone, such as 2026-12-01T06:00:00Z, or how long from now, such as 90m", terminal.CleanLine(given))
	}
	return at, nil
}

// place returns the server, or the journal.
func (s *submission) place(con *console.Console) (place, error) {
	if s.server.url != "" {
		return s.server.connect(con)
	}
	s.journal.Quiet = true // the ID says that it is stored
	j, _, err := journals.Open(con, &s.journal, journals.ToServe)
	return &inJournal{stored: j}, err
}

// inJournal stores runs in an open journal.
type inJournal struct{ stored *journal.Journal }

func (j *inJournal) close() { _ = j.stored.Close() } // what was submitted is durable already

func (j *inJournal) submit(ctx context.Context, con *console.Console, s *submission) (run string, added bool, err error) {
	l := launch.Launch{Spec: s.spec, Journal: s.journal}
	return l.Submit(ctx, con, j.stored, journal.Submission{By: con.UserName(), Request: s.request, Due: s.due, Priority: s.priority})
}

func (j *inJournal) lookEvery() time.Duration { return 200 * time.Millisecond }

func (j *inJournal) look(ctx context.Context, con *console.Console, run string) (*progress, error) {
	s, err := j.stored.Find(ctx, run)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	p := &progress{Status: s.Status, Ended: s.Ended, Queue: s.Queue}
	if p.isOver() {
		k, err := journals.Load(ctx, con, j.stored, s, "")
		if err != nil {
			return nil, err
		}
		p.Output = view.Of(k).Output
	}
	return p, nil
}

func (j *inJournal) shows(run string) string   { return "runteam show " + journals.ShortRun(run) }
func (j *inJournal) resumes(run string) string { return "runteam resume " + journals.ShortRun(run) }
