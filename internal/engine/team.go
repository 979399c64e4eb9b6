// Package engine runs a checked team: it decides what runs next, takes each attempt
// through the gate, and records what happened.
//
// [Team] is what the packages of this module use; package team is its public form.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// Agent performs tasks; see [agent.Agent].
type Agent = agent.Agent

// AgentFunc makes a function an [Agent]; see [agent.Func].
type AgentFunc = agent.Func

// What a team and its runs are made of.
type (
	Config      = plan.Config
	Member      = plan.Member
	Coordinator = plan.Coordinator
	Goal        = plan.Goal
	Input       = plan.Input
	Message     = plan.Message
	Replay      = plan.Replay

	Plan              = plan.Plan
	PlannedAgent      = plan.PlannedAgent
	PlannedInput      = plan.PlannedInput
	PlannedTask       = plan.PlannedTask
	PlannedUser       = plan.PlannedUser
	PlannedUsage      = plan.PlannedUsage
	PlannedLowering   = plan.PlannedLowering
	PlannedDisclosure = plan.PlannedDisclosure
	Reading           = plan.Reading
	Finding           = plan.Finding
)

// A Team is a checked roster. It is immutable and safe for concurrent runs. Packages team
// and spec convert it into a team.Team and back.
type Team struct{ roster *plan.Roster }

// New returns a team, or [task.Problems] that list everything wrong with cfg.
func New(cfg Config) (*Team, error) {
	roster, err := plan.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Team{roster}, nil
}

// Unconfined names a member that runs commands which are not confined, empty if none does. Answers and
// texts that other processes leave for a run of such a team are refused.
func (t *Team) Unconfined() string {
	if t == nil || t.roster == nil {
		return ""
	}
	return t.roster.Config.Unconfined()
}

// made returns an error for a team that [New] did not make, and for a nil context.
func (t *Team) made(ctx context.Context) error {
	if t == nil || t.roster == nil {
		return task.Problems{{Pointer: "", Message: "the team is nil or zero", Hint: "make it with New", Err: task.ErrInvalid}}
	}
	if ctx == nil {
		return task.Problems{{Pointer: "", Message: "the context is nil", Hint: "give context.Background() if there is no other", Err: task.ErrInvalid}}
	}
	return nil
}

// NewBus returns a message bus for the agents of the team, for [RunOptions].Bus. It
// panics for a team that [New] did not make.
func (t *Team) NewBus() *mailbox.Bus {
	if err := t.made(context.Background()); err != nil {
		panic(fmt.Sprintf("runteam: %v", err))
	}
	return newMessageBus(t.roster, false)
}

// BusConfig returns what a message bus for the team is made from.
func (t *Team) BusConfig() (agents []string, edges []handoff.Edge, log *slog.Logger, err error) {
	if err := t.made(context.Background()); err != nil {
		return nil, nil, nil, err
	}
	return t.roster.Names(), t.roster.Config.Edges, t.roster.Log, nil
}

// Plan checks tasks against the team and says what a run of them would do. The
// error is [task.Problems]: everything wrong, with pointers into the tasks as
// written. It makes no model call and changes nothing.
//
// With patterns of the policy that are slow, the check of large inputs may take a
// second and that of a large [RunOptions] Answer 30 seconds. Nothing ends it
// before; [Team.PlanTeam] and runs end with their context.
func (t *Team) Plan(specs []task.Spec, o *RunOptions) (*Plan, error) {
	if err := t.made(context.Background()); err != nil {
		return nil, err
	}
	options := settings(o)
	p, err := t.roster.Check(specs, options, time.Now())
	if err != nil {
		return nil, err
	}
	p.Describe()
	if options.Answer != nil {
		if p.Coordinator, err = checkAnswer(context.Background(), t.roster, options); err != nil {
			return nil, err
		}
	}
	return p, nil
}
