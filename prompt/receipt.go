package prompt

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Receipt says, for each byte of a prompt, where it came from. Its ranges cover both
// texts without a gap or an overlap. It contains no part of the texts.
type Receipt struct {
	Session        string               `json:"session"`
	Run            string               `json:"run,omitempty"`
	Task           task.ID              `json:"task"`
	Agent          string               `json:"agent"`
	Classification label.Classification `json:"classification"` // of the prompt as a whole
	System         []Range              `json:"system,omitempty"`
	Text           []Range              `json:"text,omitempty"`
	Sources        []Source             `json:"sources"`
}

// A Range is a run of bytes, [Start, End), of one of the two texts.
type Range struct {
	Start  int32 `json:"start"`
	End    int32 `json:"end"`
	Source int32 `json:"source"` // index into Sources; -1 for the builder's own words
	Part   Part  `json:"part"`
}

// A Source is where ranges come from: a place in the spec, or a piece of
// context with the gate's decision about it. A source without a range was
// withheld without a line.
type Source struct {
	Spec           string               `json:"spec,omitempty"` // where the text is written; empty for context
	Param          string               `json:"param,omitempty"`
	Producer       string               `json:"producer"`
	Classification label.Classification `json:"classification"`
	Decision       *gate.Decision       `json:"decision,omitempty"` // nil for text of the spec
}

// clone returns a receipt that shares nothing with r that could be changed.
func (r *Receipt) clone() *Receipt {
	c := *r
	c.System, c.Text, c.Sources = slices.Clone(r.System), slices.Clone(r.Text), slices.Clone(r.Sources)
	for i := range c.Sources {
		if d := c.Sources[i].Decision; d != nil {
			c.Sources[i].Decision = d.Clone()
		}
	}
	return &c
}

// A Part says what a range is for. Its text is frame (the builder's headings, blank lines
// and fences), system, schema, title, description, heading (a name in a heading), payload
// (granted context), withheld (a line in place of context) or goal.
type Part uint8 // a byte, since a run keeps the receipts of all its prompts

var partNames = [...]string{"frame", "system", "schema", "title", "description", "heading", "payload", "withheld", "goal"}

// String returns the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return partNames[brief.PartFrame]
}

// MarshalText writes the part's name.
func (p Part) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a part's name, strictly.
func (p *Part) UnmarshalText(text []byte) error {
	at := slices.Index(partNames[:], string(text))
	*p = Part(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown part %q", text)
	}
	return nil
}
