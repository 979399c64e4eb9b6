package team

import (
	"context"

	"github.com/runteam/runteam/internal/engine"
)

// What a run takes and returns.
type (
	Result          = engine.Result
	TaskResult      = engine.TaskResult
	RejectedAnswer  = engine.RejectedAnswer
	Step            = engine.Step
	StepKind        = engine.StepKind
	Metrics         = engine.Metrics
	Context         = engine.Context
	Status          = engine.Status
	TaskError       = engine.TaskError
	BudgetError     = engine.BudgetError
	CostBudgetError = engine.CostBudgetError

	Journal      = engine.Journal
	Recorder     = engine.Recorder
	RecorderFunc = engine.RecorderFunc
	Outbox       = engine.Outbox
	Monitor      = engine.Monitor
	Snapshot     = engine.Snapshot
	Phase        = engine.Phase
)

// OutboxFrom returns the outbox of the attempt that ctx belongs to: ctx is the
// one that [Agent].Run was given, or derives from it. It is nil outside of an
// attempt and in a run without [RunOptions].Bus.
func OutboxFrom(ctx context.Context) *Outbox { return engine.OutboxFrom(ctx) }

// The statuses of a run.
const (
	StatusOK       = engine.StatusOK       // every task completed
	StatusError    = engine.StatusError    // a task failed
	StatusCanceled = engine.StatusCanceled // the caller's context ended; spelt as the original does
	StatusTimeout  = engine.StatusTimeout  // RunOptions.Timeout passed
	StatusBudget   = engine.StatusBudget   // MaxTokenBudget or MaxCostBudget of RunOptions had not enough left for a call
)

// The kinds of steps.
const (
	StepPlan      = engine.StepPlan      // a plan
	StepRepair    = engine.StepRepair    // the plan again, with everything that is wrong with the first
	StepDigest    = engine.StepDigest    // a digest of part of the results
	StepSynthesis = engine.StepSynthesis // the answer
)

// The phases of a run, and the version of a [Snapshot].
const (
	PhasePlanning   = engine.PhasePlanning  // the coordinator plans the tasks
	PhaseRunning    = engine.PhaseRunning   // tasks run
	PhaseSynthesis  = engine.PhaseSynthesis // the coordinator answers
	PhaseEnded      = engine.PhaseEnded
	SnapshotVersion = engine.SnapshotVersion
)

// Conditions of a team, a run and an attempt.
var (
	ErrAssertion      = engine.ErrAssertion
	ErrAttemptTimeout = engine.ErrAttemptTimeout
	ErrBudget         = engine.ErrBudget
	ErrCanceled       = engine.ErrCanceled
	ErrCostBudget     = engine.ErrCostBudget
	ErrDependency     = engine.ErrDependency
	ErrJournal        = engine.ErrJournal
	ErrMemory         = engine.ErrMemory
	ErrNoAnswer       = engine.ErrNoAnswer
	ErrNoRun          = engine.ErrNoRun
	ErrOutbox         = engine.ErrOutbox
	ErrPanic          = engine.ErrPanic
	ErrPlan           = engine.ErrPlan
	ErrRecord         = engine.ErrRecord
	ErrReplay         = engine.ErrReplay
	ErrTimeout        = engine.ErrTimeout
)
