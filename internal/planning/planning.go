// Package planning writes the prompts of a coordinator and reads its plans.
//
// [System], [PlanText] and [SynthesisText] are the texts of its prompts, and [Manifest] is
// the roster in them. [ParsePlan] reads a plan, which grants nothing but what [Rules]
// allow, since a model wrote it, and returns everything that is wrong with it; [Faults] and
// [RepairText] are the request to correct it. [Parts] splits results that are too large for
// one synthesis. Everything here only computes.
package planning

import (
	"errors"
	"time"
)

// Limits of a plan. What is above them is refused.
const (
	MaxPlanBytes    = 4 << 20        // of the reply that holds a plan
	MaxTasks        = 1_000          // of one plan, with all rounds of its loops and all items of its lists
	MaxDependencies = 20_000         // of all tasks of a plan together
	MaxDescription  = 16 << 10       // bytes of a task's description
	MaxTaskRetries  = 10             // attempts after the first that a plan may ask for
	MaxRetryDelay   = 24 * time.Hour // before the first retry; no wait is longer than 30 seconds
	MaxRetryBackoff = 1_000          // factor between two waits
)

const (
	maxCapabilities = 20    // of one agent in the manifest, and of one requirement
	maxTools        = 24    // likewise
	maxSummary      = 140   // characters of a line about an agent
	maxProblems     = 1_000 // found before the rest of a plan is not read
	maxKeys         = 64    // of one task; more are one problem
	maxCompared     = 64    // values that one condition compares with
	maxJudges       = 20    // of one task
	maxWord         = 60    // characters of a word that a message quotes
	maxFaultLine    = 400   // characters of a line of Faults
)

// The conditions of an invalid plan. A task.Problem carries one of them, or one of package
// task.
var (
	ErrPlan         = errors.New("not a plan")
	ErrGrant        = errors.New("a grant that this plan may not make")
	ErrUnknownAgent = errors.New("unknown agent")
	ErrUnknownInput = errors.New("unknown input")
	ErrUnknownTool  = errors.New("unknown tool")
	ErrUnknownKey   = errors.New("unknown key")
)

// Constructs are the parts of a task graph with which a plan that a model wrote may decide during
// the run what runs. The zero value means none.
type Constructs struct {
	When    bool // tasks that run if a condition holds
	Repeat  bool // loops, which hold no loops themselves
	ForEach bool // tasks for each item of a list
	Verify  bool // judges of results
}

// Grants are what a plan that a model wrote may grant in addition to dependencies.
// The zero value means nothing.
type Grants struct {
	Memory bool // memoryScope: all
	Inputs bool // uses: named inputs
	Tools  bool // tools: tools of the agent of the task, and those of the runtime that it has; without it, planned tasks have none
}
