// Package provenance says where the texts of a team come from: the place in a file, the
// parameters, or the run that made them.
//
// Public types have fields of these types that package spec and plans fill in. Programs
// pass them on and need not set them.
package provenance

import (
	"strconv"
	"time"
)

// A Source says where a task or a goal comes from. The zero value is that of one that a
// program wrote for this run.
type Source struct {
	Origin Position // where a file has it, for receipts and messages
	Params []Param  // which bytes of its text came from parameters

	// Record marks a description that the caller did not write for this run. It reaches
	// the agent as context, through the gate. Nil means that it is the caller's own
	// instruction.
	Record *Record
}

// A Position is a place in a file; lines and columns count from 1.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line, or "" for the zero Position.
func (p Position) String() string {
	if p.File == "" {
		return ""
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// A Param says that the bytes [Start, End) of a text came from the parameter Name.
type Param struct {
	Name       string
	Start, End int
}

// A Record says who wrote the description of a task that the caller did not write for
// this run. Such a description reaches its agent through the gate, with the label of the
// task and under the rules for its producer. So a record only narrows what a description
// can do: a false one gains nothing, and removing it makes the text the caller's own.
type Record struct {
	From      string    `json:"from"`               // the producer: coordinator, or user for a goal that became a task
	Envelope  string    `json:"envelope,omitempty"` // what the text was taken from, such as coordinator/plan/1
	Run       string    `json:"run,omitempty"`      // in which run
	CreatedAt time.Time `json:"createdAt,omitzero"` // zero means the start of the run that reads it
	ExpiresAt time.Time `json:"expiresAt,omitzero"` // zero means never
}
