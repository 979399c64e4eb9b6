package journal

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
)

// A Submission is a run that is stored without a process. A worker takes it; see [Journal.Claim].
type Submission struct {
	Team     string    // the name under which workers take it
	Version  string    // of the team and its tasks: workers with another one leave it alone
	By       string    // who submits it, and is its caller
	Request  string    // names it among what By submits for Team, so that it is stored once; empty if it has no name
	Due      time.Time // when it may begin; zero means at once
	Priority int       // of the runs of one caller, those with the highest begin first
	Most     int       // how many runs of By may wait; 0 means any number
	Inputs   []Input
}

// An Input is a text that a submission gives a run.
type Input struct {
	Name  string
	Text  string
	Label label.Classification // above confidential, it is stored encrypted
}

// Submit stores a run for a worker, and returns its ID. If By submitted the same Request for Team before, added is false, and
// the ID is that of the first run. The error wraps [ErrQueueFull] if Most runs of By wait.
func (j *Journal) Submit(ctx context.Context, s Submission) (run string, added bool, err error) {
	info := journal.Info{Run: uuid.NewString(), Name: s.Team}
	for _, in := range s.Inputs {
		info.Files = append(info.Files, journal.File{Path: journal.GivenInput + in.Name, Text: in.Text, Label: in.Label})
		info.Label = info.Label.Join(in.Label)
	}
	return j.stored.Submit(ctx, journal.Submission{Info: info, Spec: s.Team, Version: s.Version, By: s.By, Request: s.Request, Due: s.Due, Priority: s.Priority, Most: s.Most})
}

// A Worker says which submitted runs a process takes.
type Worker struct {
	Teams      []WorkerTeam
	MaxRunning int // how many runs of one caller all workers work on at once; 0 means any number

	// MaxCostPerDay is what the runs of one caller may cost on a day in UTC, until no further run of theirs is taken; 0 means
	// any amount. It counts what all claimed runs have cost, also before they end, by the prices of their teams.
	MaxCostPerDay llm.Money
}

// A WorkerTeam is a team whose runs a worker takes, in one version; see [Submission].
type WorkerTeam struct{ Name, Version string }

// A Claim is a submitted run that this process has taken. Resume the run with the Claim in place of the journal:
//
//	res, err := tm.Resume(ctx, c.Run, &team.RunOptions{Tasks: tasks, Inputs: …, Journal: c})
//
// It is given back to the workers if that ends without an end of the run, as when ctx ends or the process dies.
type Claim struct {
	Run    string // its ID
	Team   string
	By     string // who submitted it
	Inputs []Input

	of      *Journal
	claimed *journal.Claim
}

// Claim takes a submitted run, and waits for one until ctx ends. Workers of several hosts may share a journal in PostgreSQL,
// and processes one in a file. It takes runs of different callers in turn, and runs whose process was lost first. A run that
// lost its process three times without a reply of an agent is set aside: its status is "set aside", and nobody takes it
// until [Journal.Requeue].
func (j *Journal) Claim(ctx context.Context, w Worker) (*Claim, error) {
	takes := journal.Worker{MaxRunning: w.MaxRunning, MaxCostPerDay: w.MaxCostPerDay}
	for _, t := range w.Teams {
		takes.Serves = append(takes.Serves, journal.Served{Spec: t.Name, Version: t.Version})
	}
	for {
		c, err := j.stored.Claim(ctx, takes)
		if errors.Is(err, journal.ErrNoneQueued) {
			if err := j.stored.Await(ctx, time.Second); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		return newClaim(ctx, j, c)
	}
}

// newClaim returns a claim with its inputs. If one cannot be read, the run is set aside.
func newClaim(ctx context.Context, j *Journal, claimed *journal.Claim) (*Claim, error) {
	c := &Claim{Run: claimed.Stored.Info.Run, Team: claimed.Queue.Spec, By: claimed.Queue.By, of: j, claimed: claimed}
	for _, f := range claimed.Stored.Info.Files {
		name, is := strings.CutPrefix(f.Path, journal.GivenInput)
		if is && f.Missing != "" {
			why := "input " + name + " cannot be read: it is " + f.Missing
			return nil, errors.Join(errors.New("run "+c.Run+": "+why), c.Refuse(ctx, why))
		}
		if is {
			c.Inputs = append(c.Inputs, Input{name, f.Text, f.Label})
		}
	}
	return c, nil
}

// Refuse sets the run aside, with the reason why this process cannot work on it. The reason is stored in the clear, and
// everyone sees it who may see the run.
func (c *Claim) Refuse(ctx context.Context, why string) error {
	return c.of.stored.Refuse(ctx, c.claimed, why)
}

// OpenRun is for [team.Team] and returns the run. Its types are opaque.
//
// [team.Team]: https://pkg.go.dev/github.com/runteam/runteam/team#Team
func (c *Claim) OpenRun(context.Context, record.Opening) (record.Log, error) {
	return c.claimed.Run, nil
}

// LoadRun is for [team.Team] and reads a run. Its type is opaque.
//
// [team.Team]: https://pkg.go.dev/github.com/runteam/runteam/team#Team
func (c *Claim) LoadRun(ctx context.Context, run string) (*record.History, error) {
	return c.of.LoadRun(ctx, run)
}

// Requeue gives a submitted run back to the workers that was set aside, was paused, or ended, and reports whether it needed
// that.
func (j *Journal) Requeue(ctx context.Context, run string) (bool, error) {
	return j.stored.Requeue(ctx, run)
}

// ErrQueueFull reports a submission of a caller of whom enough runs wait.
var ErrQueueFull = journal.ErrQueueFull
