package journal

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
)

// Info is what the caller keeps of a run beside what the run tells: enough to
// take it up again when the files that it came from are gone.
type Info struct {
	Run         string               `json:"run"` // its id
	Name        string               `json:"name,omitempty"`
	Command     string               `json:"command,omitempty"`
	Time        time.Time            `json:"time,omitzero"` // when it began; zero means now
	Tasks       []trace.Task         `json:"tasks,omitempty"`
	Inputs      []trace.Input        `json:"inputs,omitempty"`
	Fingerprint string               `json:"fingerprint,omitempty"` // of the spec; kept, and given back, in the form of [Journal.Masked]
	Files       []File               `json:"files,omitempty"`       // the spec and what it read
	Label       label.Classification `json:"label"`                 // the highest of what stands in Files
	Invocation  json.RawMessage      `json:"invocation,omitempty"`  // how the command was asked, to be asked so again
	Prices      json.RawMessage      `json:"prices,omitempty"`
}

// A File is a text that a run was made from.
type File struct {
	Path  string               `json:"path"`
	Text  string               `json:"text,omitempty"`
	Label label.Classification `json:"label"`

	// Missing says why a stored text cannot be had any more, such as that it is
	// encrypted under a key that was not given; empty if it can.
	Missing string `json:"-"`
}
