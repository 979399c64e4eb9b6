// Package steer has the commands that steer a run while it works:
//
//	err := monitor.Steer(ctx, steer.Command{Kind: steer.Pause, By: "ann"})
//
// A command goes to the process that works on the run: directly with team.Monitor, or from
// another process through the journal with journal.Journal.Steer. That process checks the
// command, stores it with its sender, time and reason, emits an event, and then performs it.
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

// A Kind is the kind of a [Command].
type Kind string

// The kinds of commands.
const (
	// Pause lets no further task, turn or call of the coordinator begin. Calls that have begun finish,
	// and the time limit of the run keeps counting. A paused run does not end while it has tasks left,
	// even if all of them wait for people.
	Pause Kind = "pause"

	// Resume ends a pause.
	Resume Kind = "resume"

	// Cancel ends the run with the status "cancelled". With a Task, it skips that task and the tasks that
	// need its result.
	Cancel Kind = "cancel"

	// Interrupt stops the call of a model or a tool that a Task is making. The task continues with its
	// next turn, which begins with Text, if there is one. No retry is used up. A call of a tool with an
	// external effect may have happened; the next prompt of its agent says so.
	Interrupt Kind = "interrupt"

	// Message sends Text to an Agent, as a message of the user. If the gate delivers it, the next turn
	// of a task of the agent has it.
	Message Kind = "message"

	// Rerun runs a Task again that has failed or was skipped, and the tasks that ended because of it. It
	// is refused if another task, for which the result was optional, has begun without it.
	Rerun Kind = "rerun"

	// ReplacePolicy replaces the policy of the run, if its digest is Replaces, by Policy. The new policy
	// is checked as before a run, for all tasks that have not completed. It applies from the next
	// decision of the gate on, and a running task that may have read what it denies begins again. A
	// policy that could deliver more than the previous one is refused, unless the run has
	// AllowWidening. The assertions of the run must hold, and those of Assert too; these are checked once
	// and are not added to the run.
	ReplacePolicy Kind = "policy"
)

// A Command steers a run. [Command.Check] says which fields each kind takes.
type Command struct {
	Kind   Kind
	Task   string // its title, key, ID, or the name of an item, such as Mail[3]
	Agent  string
	Text   string
	By     string // the sender; required
	Reason string // stored with the command, and shown at the clearance of the run's caller; may be empty, and has at most MaxText bytes

	Classification label.Classification // of Text; zero means internal

	Policy   *handoff.Policy `json:"-"`
	Replaces string          `json:",omitempty"` // the digest of the current policy, which Policy replaces
	Assert   []string        `json:",omitempty"` // assertions that must hold under Policy, such as "input notes never reaches letters"
}

// The errors of commands.
var (
	ErrInvalid    = errors.New("invalid command")             // a field is missing, or does not belong to the kind
	ErrRefused    = errors.New("the run refuses the command") // the rest of the error says why
	ErrNotRunning = errors.New("the run is not running")      // no process works on it

	// A ReplacePolicy returns one of these together with ErrRefused. Other problems of the policy are
	// task.Problems.
	ErrStale     = errors.New("the policy of the run has changed since it was read") // read the policy again
	ErrWidens    = errors.New("the policy could deliver more than the previous one") // needs AllowWidening
	ErrUnchanged = errors.New("the run has this policy already")                     // nothing was changed or stored
)

// MaxText is the largest size of each text of a command, and of all of Assert together, in bytes.
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
	if !c.Classification.Valid() {
		return fmt.Errorf("%w: unknown classification %d", ErrInvalid, c.Classification)
	}
	return c.checkTexts()
}

// checkTexts checks the texts that are stored with a command. The journal could not return others as they were
// sent.
func (c *Command) checkTexts() error {
	for _, f := range [...]struct{ name, value string }{
		{"Text", c.Text}, {"Reason", c.Reason}, {"By", c.By}, {"Task", c.Task}, {"Agent", c.Agent}, {"Replaces", c.Replaces},
	} {
		switch {
		case len(f.value) > MaxText:
			return fmt.Errorf("%w: %s has %d bytes, at most %d", ErrInvalid, f.name, len(f.value), MaxText)
		case !utf8.ValidString(f.value):
			return fmt.Errorf("%w: %s is not UTF-8", ErrInvalid, f.name)
		}
	}
	return nil
}

// checkPolicy checks that a command has a policy if and only if its kind needs one. The names in the
// policy are checked by the run.
func (c *Command) checkPolicy() error {
	switch {
	case c.Policy == nil && c.Kind == ReplacePolicy:
		return fmt.Errorf("%w: %s needs Policy", ErrInvalid, c.Kind)
	case c.Policy == nil && len(c.Assert) > 0:
		return fmt.Errorf("%w: %s takes no Assert", ErrInvalid, c.Kind)
	case c.Policy == nil:
		return nil
	case c.Kind != ReplacePolicy:
		return fmt.Errorf("%w: %s takes no Policy", ErrInvalid, c.Kind)
	}
	if _, err := policytext.Write(c.Policy); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	size := 0
	for _, text := range c.Assert {
		if size += len(text); !utf8.ValidString(text) {
			return fmt.Errorf("%w: Assert is not UTF-8", ErrInvalid)
		}
	}
	if size > MaxText {
		return fmt.Errorf("%w: Assert has %d bytes, at most %d", ErrInvalid, size, MaxText)
	}
	return nil
}
