package source

import (
	"context"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// GatedGoal returns the goal of a plan in the form for the caller, and "" without a goal. Like all
// that is printed, it passes the gate: secrets in it are redacted, and a goal above the caller's
// clearance is withheld.
func GatedGoal(ctx context.Context, file *specfile.File, accepts label.Classification, now time.Time) string {
	goal := file.Goal
	if goal == nil {
		goal = file.Run.Answer
	}
	if goal == nil {
		return ""
	}
	if text, err := gated(ctx, goal, accepts, now); err == nil {
		return text
	}
	return "[withheld: " + goal.Classification.String() + "]"
}

// gated passes a goal through the gate to the caller.
func gated(ctx context.Context, goal *engine.Goal, accepts label.Classification, now time.Time) (string, error) {
	const session = "plan/" + handoff.User
	source := gate.Source{Kind: handoff.Goal, Name: "goal"}
	e, err := envelope.New(envelope.Header{ID: "goal", Producer: handoff.User, Classification: goal.Classification, CreatedAt: now}, envelope.Text(goal.Text))
	if err != nil {
		return "", err
	}
	contract, err := gate.Negotiate(gate.Request{
		Session: session, Caller: handoff.User, Task: "goal", Classification: accepts, Grants: []gate.Grant{gate.WholeOf(source, "")},
	}, &gate.Capabilities{Agent: handoff.User, Accepts: accepts, Produces: accepts})
	if err != nil {
		return "", err
	}
	compartment := gate.Compartment{Contract: contract}
	s, err := compartment.GateOutbound(ctx, &gate.Offer{Source: source, Status: task.Completed, Envelope: e, Optional: true}, now)
	if err != nil {
		return "", err
	}
	if s.Withheld() {
		return "[withheld: " + s.Decision().Before.String() + "]", nil
	}
	return s.Payload().Text(), nil
}

// maxGoalLine is the width at which a goal in one line is cut, in cells.
const maxGoalLine = 200

// GoalLine returns a goal in one line.
func GoalLine(text string) string {
	return terminal.Clip(terminal.CleanLine(strings.Join(strings.Fields(text), " ")), maxGoalLine)
}
