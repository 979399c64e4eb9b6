// Package steer names what may be asked of a run while it works:
//
//	err := monitor.Steer(ctx, steer.Command{Kind: steer.Pause, By: "ann"})
//
// A command goes to the process that works on the run: directly with team.Monitor, or from
// another process through the journal with journal.Journal.Steer. That process checks the
// command, makes it durable with who sent it, when and why, emits an event, and then lets it
// take effect.
package steer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/label"
)

// A Kind says what a [Command] asks for.
type Kind string

// The kinds of commands.
const (
	// Pause lets no further task, turn or call of the coordinator begin. What runs goes on to its
	// end, and the time limit of the run keeps counting. A run that is paused does not end while it
	// has tasks left, even if all of them wait for people.
	Pause Kind = "pause"

	// Resume ends a pause.
	Resume Kind = "resume"

	// Cancel ends the run with the status "cancelled". With a Task, it ends that task alone, as
	// skipped, and with it what cannot do without its result.
	Cancel Kind = "cancel"

	// Interrupt stops what a Task does at this moment, a call of its model or of a tool. The task
	// goes on with its next turn, in which Text, if there is one, is the first message. No retry is
	// used up. A call of a tool with an external effect may have happened, and its agent is told so.
	Interrupt Kind = "interrupt"

	// Message sends Text to an Agent, as a message of the user. The next turn of a task of the
	// agent has it, if the gate lets it.
	Message Kind = "message"

	// Rerun performs a Task again that runs, has failed or was skipped, and with it the tasks that
	// ended because of it. A completed task is performed again only while no other task has begun
	// with its result.
	Rerun Kind = "rerun"

	// ReplacePolicy puts Policy in the place of the policy of the run, whose digest is in Replaces. It
	// is checked as before a run, against everything that has not completed. What the gate decides
	// from then on obeys it, and a task that works with what it denies begins again. A policy that
	// could deliver more than the one before is refused unless the run allows that.
	ReplacePolicy Kind = "policy"
)

// A Command asks something of a run.
type Command struct {
	Kind   Kind
	Task   string // its title, key, ID, or the name of an item, such as Mail[3]
	Agent  string
	Text   string
	By     string // who sends it; required
	Reason string // why; it is stored, and may be empty

	Classification label.Classification // of Text; zero means internal

	Policy   *handoff.Policy `json:"-"`
	Replaces string          `json:",omitempty"` // the digest of the policy that Policy replaces
}

// The errors of commands.
var (
	ErrInvalid    = errors.New("invalid command")             // a field is missing, or does not belong to the kind
	ErrRefused    = errors.New("the run refuses the command") // the rest of the error says why
	ErrNotRunning = errors.New("the run is not running")      // so nothing can be asked of it

	// Of a policy that the run refuses. What else is wrong with it is in task.Problems.
	ErrStale  = errors.New("the policy that it replaces is not the one of the run any more") // read the policy again
	ErrWidens = errors.New("the policy could deliver more than the one before")              // start the run with AllowWidening
)

// MaxText is how many bytes a Text may have.
const MaxText = 64 << 10

// Check returns an error, which wraps [ErrInvalid], if the fields do not fit the kind.
func (c *Command) Check() error {
	var takes, needs string // the fields
	switch c.Kind {
	case Pause, Resume:
	case Cancel:
		takes = "Task"
	case Interrupt:
		takes, needs = "Task Text", "Task"
	case Message:
		takes, needs = "Agent Text", "Agent Text"
	case Rerun:
		takes, needs = "Task", "Task"
	case ReplacePolicy:
		takes, needs = "Replaces", "Replaces"
	default:
		return fmt.Errorf("%w: unknown kind %q; use pause, resume, cancel, interrupt, message, rerun or policy", ErrInvalid, c.Kind)
	}
	if strings.TrimSpace(c.By) == "" {
		return fmt.Errorf("%w: By is empty; set who sends it", ErrInvalid)
	}
	for _, f := range [...]struct{ name, value string }{{"Task", c.Task}, {"Agent", c.Agent}, {"Text", c.Text}, {"Replaces", c.Replaces}} {
		switch given := strings.TrimSpace(f.value) != ""; {
		case given && !strings.Contains(takes, f.name):
			return fmt.Errorf("%w: %s takes no %s", ErrInvalid, c.Kind, f.name)
		case !given && strings.Contains(needs, f.name):
			return fmt.Errorf("%w: %s needs %s", ErrInvalid, c.Kind, f.name)
		}
	}
	if err := c.checkPolicy(); err != nil {
		return err
	}
	switch {
	case len(c.Text) > MaxText:
		return fmt.Errorf("%w: Text has %d bytes, at most %d", ErrInvalid, len(c.Text), MaxText)
	case !utf8.ValidString(c.Text):
		return fmt.Errorf("%w: Text is not UTF-8", ErrInvalid)
	case !c.Classification.Valid():
		return fmt.Errorf("%w: unknown classification %d", ErrInvalid, c.Classification)
	}
	return nil
}

// checkPolicy checks that there is a policy for a command that needs one. Whom it may name, only the
// run knows.
func (c *Command) checkPolicy() error {
	switch {
	case c.Policy == nil && c.Kind == ReplacePolicy:
		return fmt.Errorf("%w: %s needs Policy", ErrInvalid, c.Kind)
	case c.Policy == nil:
		return nil
	case c.Kind != ReplacePolicy:
		return fmt.Errorf("%w: %s takes no Policy", ErrInvalid, c.Kind)
	}
	if _, err := policytext.Write(c.Policy); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}
