package submit

import (
	"context"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
)

// progress is how far a run is: what is needed of its document.
type progress struct {
	Status string              `json:"status"`
	Ended  time.Time           `json:"endedAt"` // zero while it works
	Output string              `json:"output"`  // its answer, once it has ended
	Queue  *journal.QueuePlace `json:"queue"`   // nil unless it needs a worker
}

// isOver reports whether no worker goes on with the run, until a person does something.
func (p *progress) isOver() bool { return !p.Ended.IsZero() || p.Status == journal.SetAside }

// await waits until a run has ended or needs a person, and prints its answer.
func await(ctx context.Context, con *console.Console, at place, run string) error {
	every := time.NewTicker(at.lookEvery())
	defer every.Stop()
	for {
		p, err := at.look(ctx, con, run)
		if err == nil && p.isOver() {
			return p.print(con, at, run)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			con.Say("runteam: run %s stays submitted; %s shows it", journals.ShortRun(run), at.shows(run))
			return context.Cause(ctx)
		}
	}
}

// print prints the answer of a run, or why there is none.
func (p *progress) print(con *console.Console, at place, run string) error {
	short := journals.ShortRun(run)
	if p.Status == journal.SetAside {
		return exit.Errorf(exit.KindRuntime, "run %s was set aside: %s; %s gives it to the workers again", short, p.Queue.Aside, at.resumes(run))
	}
	if p.Output != "" {
		if err := con.PrintText(p.Output); err != nil {
			return err
		}
	}
	switch p.Status {
	case string(engine.StatusOK):
		return nil
	case string(engine.StatusSuspended):
		con.Say("runteam: run %s waits for a person; %s shows what it asks", short, at.shows(run))
		return exit.Status(exit.StatusWaiting)
	}
	con.Say("runteam: run %s ended with status %s; %s says why", short, p.Status, at.shows(run))
	return exit.Status(exit.StatusFailed)
}
