// Package steering is the commands that steer a run while a process works on it: pause, cancel,
// interrupt, message, rerun and policy, and the part of resume that ends a pause.
package steering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/spf13/cobra"
)

// An order is a command to a run, with its arguments and flags.
type order struct {
	journals.Flags
	Sender
	run, task, agent string
	text, file       string
	classification   string
}

// A Sender is who sends a command to a run, and why.
type Sender struct{ by, reason string }

// AddTo adds the flags of a sender.
func (s *Sender) AddTo(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.StringVar(&s.by, "by", "", "`NAME` of who sends "+what+" (default: the user of this computer)")
	f.StringVar(&s.reason, "reason", "", "`TEXT` that is stored and shown with "+what)
}

// A document is a command that a run has taken, in JSON.
type document struct {
	Run     string     `json:"runId"`
	Command steer.Kind `json:"command"`
	Task    string     `json:"task,omitempty"` // as it was named
	Agent   string     `json:"agent,omitempty"`
	By      string     `json:"by"`
	Reason  string     `json:"reason,omitempty"`
	Time    time.Time  `json:"sentAt"`
}

// send sends the command of a kind, and prints that the run has taken it.
func (o *order) send(con *console.Console, cmd *cobra.Command, kind steer.Kind) error {
	ctx := cmd.Context()
	c := steer.Command{Kind: kind, Task: o.task, Agent: o.agent}
	if err := o.read(ctx, con, cmd, &c); err != nil {
		return err
	}
	j, _, err := journals.Open(con, &o.Flags, journals.ToChange)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // what was sent is durable already
	found, err := journals.Find(ctx, j, o.run)
	if err != nil {
		return err
	}
	if found.Holder == nil {
		return o.notRunning(ctx, j, &found)
	}
	return o.Sender.send(ctx, con, j, &o.Flags, found.Run, c)
}

// read reads the text of the command and its label.
func (o *order) read(ctx context.Context, con *console.Console, cmd *cobra.Command, c *steer.Command) (err error) {
	c.Text = o.text
	if o.file != "" {
		if c.Text, err = files.ReadText(ctx, con.Stdin, o.file, steer.MaxText); err != nil {
			return err
		}
	}
	if !cmd.Flags().Changed("classification") {
		return nil
	}
	if c.Text == "" {
		return exit.Usagef("--classification is the label of a text: write a TEXT, or leave it out")
	}
	if c.Classification, err = label.ParseClassification(o.classification); err != nil {
		return exit.Usagef("--classification: %w", err)
	}
	return nil
}

// notRunning says how a run ended, and how it goes on.
func (o *order) notRunning(ctx context.Context, j *journal.Journal, s *journal.Summary) error {
	run := journals.ShortRun(s.Run)
	refused, err := journals.IsRefused(ctx, j, s.Run)
	if err != nil {
		return err
	}
	next := o.NextStep(s, run, refused)
	switch {
	case next == "":
		return exit.Errorf(exit.KindRuntime, "run %s is not running: it has ended (%s)", run, s.Status)
	case next != journals.StartedByProgram && next != journals.RefusedByPerson:
		next = "to go on: " + next
	}
	return exit.Errorf(exit.KindRuntime, "run %s is not running (%s); %s", run, s.Status, next)
}

// send sends a command to a run, and prints that the run has taken it.
func (s *Sender) send(ctx context.Context, con *console.Console, j *journal.Journal, from *journals.Flags, run string, c steer.Command) error {
	c.By, c.Reason = cmp.Or(strings.TrimSpace(s.by), con.UserName()), s.reason
	out := document{Run: run, Command: c.Kind, Task: c.Task, Agent: c.Agent, By: c.By, Reason: c.Reason, Time: con.Now()}
	switch err := j.Steer(ctx, run, c); {
	case errors.Is(err, steer.ErrInvalid):
		return exit.Errorf(exit.KindUsage, "%w", err)
	case err != nil && ctx.Err() == nil:
		return journals.ReadError(ctx, err)
	case err != nil: // it says whether the command was withdrawn
		if stop, ok := errors.AsType[*exit.Interrupted](context.Cause(ctx)); ok {
			return &exit.Error{Kind: exit.KindRuntime, Err: err, Status: stop.Status()}
		}
		return err
	}
	return con.PrintResult(out, func(w io.Writer) {
		fmt.Fprintf(w, "run %s: %s\n", journals.ShortRun(run), format.Steered(c.Kind, cmp.Or(c.Task, c.Agent), c.By, c.Reason))
		if c.Kind == steer.Pause {
			fmt.Fprintln(w, "to continue: "+from.Command("resume", journals.ShortRun(run)))
		}
	})
}

// Resume ends the pause of a run that a process works on, and prints that.
func (s *Sender) Resume(ctx context.Context, con *console.Console, j *journal.Journal, from *journals.Flags, found *journal.Summary) error {
	err := s.send(ctx, con, j, from, found.Run, steer.Command{Kind: steer.Resume})
	if err == nil || exit.StatusOf(err, exit.KindOf(err)) != exit.StatusNoRun || errors.Is(err, steer.ErrNotRunning) {
		return err
	}
	held := &journal.LeaseError{Run: found.Run, Holder: *found.Holder, Me: journal.ThisHolder()}
	why := strings.TrimPrefix(err.Error(), "run "+found.Run+": ")
	return exit.Errorf(exit.KindRuntime, "%w; %s", held, strings.TrimPrefix(why, steer.ErrRefused.Error()+": "))
}
