// Package brief says what a prompt is built from.
//
// The engine fills a [Brief] with the words of the spec and with what the gate
// sealed, and package prompt writes it.
package brief

import (
	"errors"
	"slices"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// Limits on the user message, in bytes. Above its limit all texts in it are cut
// to one common length.
const (
	DefaultBytes = 512 << 10 // if the brief sets no limit
	MaxBytes     = 4 << 20   // the largest limit that a brief can set
)

// ErrTooLarge reports a prompt whose instructions and structured values alone
// exceed one of its limits, one that was to stay whole and does not fit, or an
// instruction that the gate had to cut.
var ErrTooLarge = errors.New("prompt too large")

// ErrInvalid reports a brief that no prompt may be built from: context of
// another contract or in the wrong place, or words that would make structure.
var ErrInvalid = errors.New("invalid brief")

// A Brief is what a prompt is built from. Context that the layout has no place
// for is refused.
type Brief struct {
	Contract gate.Contract // what was agreed for this attempt; everything sealed must belong to it
	Layout   Layout        // zero means Work
	Task     *task.Task    // its title, description, classification and origin are used
	Passed   bool          // the files in the context were passed with a goal
	Untitled bool          // leave the title out: the description alone opens the message; prompts for the coordinator never have it

	System       string             // the agent's system prompt
	SystemParams []provenance.Param // which bytes of System came from parameters
	SystemOrigin string             // where System and Guidance are written, for the receipt
	Schema       string             // JSON Schema of the reply; empty means free text
	FormatSchema string             // JSON Schema for the endpoint only: the texts do not hold it, and no agent validates the reply; empty means Schema

	Tools []Tool // that the agent may call

	MaxBytes   int  // of the user message; zero means [DefaultBytes], and more than [MaxBytes] means [MaxBytes]
	MaxContext int  // bytes of the payloads in it together; zero means no limit
	Whole      bool // refuse to cut: a message above the limit is an error

	// What the coordinator gets. Its Task is a step of the runtime, which the
	// Description words: it opens a Planning and ends a Synthesis.
	GoalParams []provenance.Param // which bytes of the goal came from parameters, as long as the gate changed none of it
	Guidance   string             // follows the roster in the system prompt
	Part       int                // Synthesis: which part of the results this is, from 1
	Parts      int                // Synthesis: of how many parts; zero means that all results are here

	Context
}

// A Context is what the gate sealed for a prompt, by section.
type Context struct {
	// Conversation has the texts of earlier turns of a session, the oldest first: what the person said,
	// and then the answer. They become messages before the user message.
	Conversation []gate.Sealed

	Inputs       []gate.Sealed // in the order of the task's uses
	Dependencies []gate.Sealed // in the order of its dependencies; in Synthesis the results, or digests of parts of them
	Files        []gate.Sealed // output files of its dependencies, or those that were passed with a goal
	Memory       []gate.Sealed // entries of shared memory; those of one agent are adjacent
	Messages     []gate.Sealed // in the order of arrival
	Transferred  []gate.Sealed // the conversation before it was transferred to the reader: what was said, and what tools returned
	Drafts       []gate.Sealed // Planning, to correct a plan: first that, then what is wrong with it
	Failed       []gate.Sealed // Synthesis: for each failed task its title, and its error as a text
	Skipped      []gate.Sealed // Synthesis: for each skipped task its title, and the reason as a text

	// Instruction is the description of a task that the coordinator planned. It
	// replaces Task.Description, and never in part.
	Instruction *gate.Sealed
	Goal        *gate.Sealed // what the caller asks, unfenced and never in part; Planning needs it
	Roster      *gate.Sealed // structured; follows System under a heading of its own
}

// Limit returns how many bytes a user message may have under a setting of
// [Brief].MaxBytes.
func Limit(setting int) int {
	if setting == 0 {
		return DefaultBytes
	}
	return min(setting, MaxBytes)
}

// CommonLength returns the largest length that texts of these sizes can be cut to
// so that all of them fit into room, which is not negative. It sorts sizes.
func CommonLength(sizes []int, room int) int {
	slices.Sort(sizes)
	for i, n := range sizes {
		left := len(sizes) - i
		if n*left > room {
			return room / left
		}
		room -= n
	}
	return MaxBytes
}
