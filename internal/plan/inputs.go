package plan

import (
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/schema"
)

// takeTexts returns a copy of inputs in which a folder, or a result of an earlier run, has
// become the input's text, and the label of the result part of the input's. A result that
// cannot be taken is reported with the other problems of the options.
func takeTexts(inputs []Input) []Input {
	inputs = slices.Clone(inputs)
	for i := range inputs {
		in := &inputs[i]
		if in.Folder != nil && in.Text == "" {
			in.Text = filetree.TextOf(in.Folder)
		}
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

// schema returns what is known of the members of an input: nil if it is a text. Those of a
// folder are its files.
func (i *Input) schema() *schema.Schema {
	if i.Folder != nil {
		return schema.Of(filetree.TreeOf(i.Folder).Value())
	}
	if i.isParsed() {
		if v, err := listformat.Parse(i.ListFormat, i.Text); err == nil {
			return schema.Of(v.Value())
		}
	}
	return known(i.Text)
}

// isParsed reports whether the value of an input is not that of its text as JSON.
func (i *Input) isParsed() bool {
	return i.Folder == nil && (i.ListFormat == listformat.NDJSON || i.ListFormat == listformat.CSV)
}

// PayloadOf returns what an input is: its text, with the value of one in a format of its own.
func PayloadOf(i *Input) (envelope.Payload, error) {
	if !i.isParsed() {
		return envelope.Text(i.Text), nil
	}
	v, err := listformat.Parse(i.ListFormat, i.Text)
	return envelope.Text(i.Text).WithStructured(v), err
}

// Source names the result that an input is, across runs; it is empty for a text.
func (i *Input) Source() envelope.ID {
	if i.Envelope == nil {
		return ""
	}
	return envelope.ID(i.Envelope.Header().Run) + "/" + i.Envelope.ID()
}
