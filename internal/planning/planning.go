// Package planning decides what a coordinator is told and what its replies mean:
// how a goal becomes a plan, and results an answer.
//
// [System], [PlanText] and [SynthesisText] are the words that it gets, and
// [Manifest] is the roster as it reads it. [ParsePlan] takes its plan, which a
// model wrote and which therefore grants nothing but what [Rules] allow, or
// says everything that is wrong with it; [Faults] and [RepairText] hand that back.
// [Parts] splits results that are too large for one synthesis. Everything here
// only computes; who calls the model, and what passes the gate, is decided
// elsewhere.
package planning

import (
	"errors"
	"time"
)

// Limits of a plan. What is above them is refused.
const (
	MaxPlanBytes    = 4 << 20        // of the reply that holds a plan
	MaxTasks        = 1_000          // of one plan
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
	maxProblems     = 1_000 // found before the rest of a plan is left unread
	maxKeys         = 64    // of one task before they are not looked at one by one
	maxWord         = 60    // characters of a word that a message quotes
	maxFaultLine    = 400   // characters of a line of Faults
)

// The conditions of a plan that is none. A task.Problem carries one of them,
// or one of package task's.
var (
	ErrPlan         = errors.New("not a plan")
	ErrGrant        = errors.New("a grant that this plan may not make")
	ErrNotBuilt     = errors.New("not built yet")
	ErrUnknownAgent = errors.New("unknown agent")
	ErrUnknownInput = errors.New("unknown input")
	ErrUnknownKey   = errors.New("unknown key")
)

// Grants are what a plan that a model wrote may grant beside dependencies. The
// zero value means nothing.
type Grants struct {
	Memory bool // memoryScope: all
	Inputs bool // uses: named inputs
}
