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

// commandFlags are the arguments and flags of a command to a run.
type commandFlags struct {
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

	Unchanged bool `json:"unchanged,omitempty"` // the run had this policy already
	Waits     bool `json:"waits,omitempty"`     // for the worker that takes the run
}

// send sends the command of a kind, and prints that the run has taken it.
func (o *commandFlags) send(con *console.Console, cmd *cobra.Command, kind steer.Kind) error {
	ctx := cmd.Context()
	c := steer.Command{Kind: kind, Task: o.task, Agent: o.agent}
	if err := o.read(ctx, con, cmd, &c); err != nil {
		return err
	}
	j, found, err := openRunning(ctx, con, &o.Flags, o.run)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // what was sent is durable already
	return o.Sender.send(ctx, con, j, &o.Flags, found, c)
}

// read reads the text of the command and its label.
func (o *commandFlags) read(ctx context.Context, con *console.Console, cmd *cobra.Command, c *steer.Command) (err error) {
	c.Text = o.text
	if o.file != "" {
		if c.Text, err = files.ReadText(ctx, con.Stdin, con.WorkDir, "--file", o.file, steer.MaxText); err != nil {
			return err
		}
		if strings.TrimSpace(c.Text) == "" {
			return exit.Usagef("--file %s: it has no text: write what the agent is to know", o.file)
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

// openRunning opens the journal and finds a run that a process or the queue has. The caller closes the journal.
func openRunning(ctx context.Context, con *console.Console, g *journals.Flags, run string) (*journal.Journal, *journal.Summary, error) {
	j, _, err := journals.Open(con, g, journals.ToChange)
	if err != nil {
		return nil, nil, err
	}
	found, err := journals.Find(ctx, j, run)
	if _, unknown := errors.AsType[*journal.UnknownRunError](err); unknown {
		err = runComesFirst(ctx, con, j, run, err)
	}
	if err == nil && found.Holder == nil && found.Queue == nil {
		err = notRunning(ctx, j, g, &found)
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return j, &found, nil
}

// runComesFirst extends the error about an unknown run if the argument is a task of the newest run or a file.
func runComesFirst(ctx context.Context, con *console.Console, j *journal.Journal, run string, unknown error) error {
	if at, err := con.WorkDir.Stat(run); err == nil && at.Mode().IsRegular() {
		return exit.Usagef("%s is a file, and the RUN comes first; `runteam runs` lists all runs", run)
	}
	newest, err := journals.Find(ctx, j, "")
	if err != nil {
		return unknown
	}
	if _, err := journal.FindTask(ctx, j, newest.Run, run); err != nil {
		return unknown
	}
	return exit.Usagef("no run %q: it is a task of the newest run, and the RUN comes first: write %s", run, journals.ShortRun(newest.Run))
}

// notRunning returns the error of a command to a run that no process works on.
func notRunning(ctx context.Context, j *journal.Journal, g *journals.Flags, s *journal.Summary) error {
	message, next, err := g.NotRunning(ctx, j, s)
	switch {
	case err != nil:
		return err
	case next == "":
		return exit.Errorf(exit.KindRuntime, "%s", message)
	}
	return exit.Errorf(exit.KindRuntime, "%s; %s", message, next)
}

// name returns who sends the command.
func (s *Sender) name(con *console.Console) string {
	return cmp.Or(strings.TrimSpace(s.by), con.UserName())
}

// send sends a command to a run, and prints that the run has taken it.
func (s *Sender) send(ctx context.Context, con *console.Console, j *journal.Journal, from *journals.Flags, found *journal.Summary, c steer.Command) error {
	run := found.Run
	c.By, c.Reason = s.name(con), s.reason
	out := document{Run: run, Command: c.Kind, Task: c.Task, Agent: c.Agent, By: c.By, Reason: c.Reason, Time: con.Now(), Waits: c.Kind == steer.Message && found.Holder == nil}
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
		if out.Waits {
			fmt.Fprintln(w, "it waits for the worker that takes the run")
		}
		if c.Kind == steer.Pause {
			fmt.Fprintln(w, "to continue: "+from.Command("resume", journals.ShortRun(run)))
		}
	})
}

// Resume ends the pause of a run that a process works on, and prints that.
func (s *Sender) Resume(ctx context.Context, con *console.Console, j *journal.Journal, from *journals.Flags, found *journal.Summary) error {
	err := s.send(ctx, con, j, from, found, steer.Command{Kind: steer.Resume})
	if err == nil || exit.StatusOf(err, exit.KindOf(err)) != exit.StatusNoRun || errors.Is(err, steer.ErrNotRunning) {
		return err
	}
	if found.Status == journal.Running {
		return exit.Errorf(exit.KindRuntime, "run %s is running (%v) and not paused: there is nothing to resume", journals.ShortRun(found.Run), *found.Holder)
	}
	return err
}
