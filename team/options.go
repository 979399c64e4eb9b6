package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An Input is a text of the caller that tasks may be granted by name.
type Input struct {
	Name           string
	Text           string
	Classification label.Classification
	TTL            time.Duration // life from the start of the run; zero means unlimited
	Origin         task.Position
}

// Format writes the name and the size, so that no verb prints the text.
func (i Input) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "input %q, %v, %d bytes", i.Name, i.Classification, len(i.Text))
}

// MarshalJSON writes the name, the label and the size, without the text.
func (i Input) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name           string               `json:"name"`
		Classification label.Classification `json:"classification"`
		Bytes          int                  `json:"bytes"`
	}{i.Name, i.Classification, len(i.Text)})
}

// RunOptions tune one run. A nil *RunOptions and the zero value both mean the defaults.
type RunOptions struct {
	RunID  string // empty means a new UUID
	Inputs []Input
	Output string // title, key or id of the task whose result is the answer; empty means the sinks

	MaxConcurrency int           // attempts at the same time; zero means 5
	Timeout        time.Duration // bound on the run; zero means none

	// UserAccepts is the clearance of the caller, who reads results, events and
	// errors. Nil means confidential. Reveal says that it was raised on request
	// and leaves an event.
	UserAccepts *label.Classification
	Reveal      bool

	// Subscribers receive every event of the run in order, each in a goroutine
	// of its own. A slow or panicking one changes nothing for the run; when the
	// run ends they have 5 seconds to catch up.
	Subscribers []func(event.Event)

	// Random gives the jitter of delays between attempts, in [0, 1). Nil means
	// math/rand/v2.
	Random func() float64
}

// DefaultConcurrency is how many attempts run at the same time unless told otherwise.
const DefaultConcurrency = 5

// withDefaults returns a copy with every default filled in.
func (o *RunOptions) withDefaults() RunOptions {
	var out RunOptions
	if o != nil {
		out = *o
	}
	if out.MaxConcurrency == 0 {
		out.MaxConcurrency = DefaultConcurrency
	}
	accepts := label.Confidential
	if out.UserAccepts != nil {
		accepts = *out.UserAccepts
	}
	out.UserAccepts = &accepts // what the caller changes later changes nothing here
	out.Inputs, out.Subscribers = slices.Clone(out.Inputs), slices.Clone(out.Subscribers)
	return out
}
