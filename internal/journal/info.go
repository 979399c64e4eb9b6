package journal

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
)

// Info is what the caller stores about a run in addition to its entries: enough to resume
// it when its files no longer exist.
type Info struct {
	Run         string                `json:"run"` // its ID
	Name        string                `json:"name,omitempty"`
	Command     string                `json:"command,omitempty"`
	Starter     string                `json:"starter,omitempty"` // who started it, as a server authenticated the person; empty without that
	Spec        string                `json:"spec,omitempty"`    // the name of its spec; empty if it is not of a spec file
	Accepts     *label.Classification `json:"accepts,omitempty"` // what who submitted it may see; nil if the worker decides
	Time        time.Time             `json:"time,omitzero"`     // when it began; zero means now
	Inputs      []trace.Input         `json:"inputs,omitempty"`
	Fingerprint string                `json:"fingerprint,omitempty"` // of the spec; stored and returned in the form of [Journal.Masked]
	Files       []File                `json:"files,omitempty"`       // the spec and the files that it read
	Label       label.Classification  `json:"label"`                 // the highest label of Files
	Invocation  json.RawMessage       `json:"invocation,omitempty"`  // the flags of the command, for a later process
	Prices      json.RawMessage       `json:"prices,omitempty"`

	// Unreadable says why the stored Invocation cannot be read, such as that it is encrypted; empty if it can.
	Unreadable string `json:"-"`

	// Turn says which turn of a session the run is; nil if it is none. Its Text is among the Files.
	Turn *record.SessionTurn `json:"turn,omitempty"`
}

// The names under which a journal stores texts that flags, requests and submissions gave. No file has such a name.
const (
	GivenGoal  = "--goal"
	GivenInput = "--input " // before the name of the input
	GivenParam = "--param " // before the name of the parameter
)

// isGiven reports whether a text was given, and does not come from a file.
func (f *File) isGiven() bool {
	return f.Path == GivenGoal || strings.HasPrefix(f.Path, GivenInput) || strings.HasPrefix(f.Path, GivenParam)
}

// A File is a text that a run was loaded from.
type File struct {
	Path  string               `json:"path"`
	Text  string               `json:"text,omitempty"`
	Label label.Classification `json:"label"`

	// Missing says why the stored text cannot be read, such as that it is encrypted under a
	// key that was not given; empty if it can.
	Missing string `json:"-"`
}
