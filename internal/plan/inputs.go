package plan

import (
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/gate"
)

// takeResults returns a copy of inputs in which a result of an earlier run has
// become the input's text, and its label part of the input's. A result that
// cannot be taken is reported with the other problems of the options.
func takeResults(inputs []Input) []Input {
	inputs = slices.Clone(inputs)
	for i := range inputs {
		in := &inputs[i]
		if in.Envelope == nil {
			continue
		}
		text, h, err := gate.InputText(in.Envelope, time.Time{})
		if err == nil && in.Text == "" {
			in.Text = text
		}
		in.Classification = in.Classification.Join(h.Classification)
	}
	return inputs
}

// Source names the result that an input is, across runs; it is empty for a text.
func (i *Input) Source() envelope.ID {
	if i.Envelope == nil {
		return ""
	}
	return envelope.ID(i.Envelope.Header().Run) + "/" + i.Envelope.ID()
}
