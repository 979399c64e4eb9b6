package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// marshal returns a value as JSON.
func marshal(v any) (string, error) {
	raw, err := json.Marshal(v)
	return string(raw), err
}

// A wire is the JSON form of a condition that is no list and no word.
type wire struct {
	Task   string            `json:"task,omitempty"`
	Path   string            `json:"path,omitempty"`
	Equals json.RawMessage   `json:"equals,omitempty"`
	In     []json.RawMessage `json:"in,omitempty"`
	GTE    json.RawMessage   `json:"gte,omitempty"`
	LTE    json.RawMessage   `json:"lte,omitempty"`
	Exists *bool             `json:"exists,omitempty"`
	Any    []Condition       `json:"any,omitempty"`
	Not    *Condition        `json:"not,omitempty"`
}

// MarshalJSON writes a condition as spec files have it: a list for all, the word else, or an
// object.
func (c Condition) MarshalJSON() ([]byte, error) {
	w := wire{Task: c.Task, Path: c.Path}
	switch c.Op {
	case All:
		return json.Marshal(c.Of)
	case Else:
		return json.Marshal(Else)
	case Any:
		w.Any = c.Of
	case Not:
		if len(c.Of) == 1 {
			w.Not = &c.Of[0]
		}
	case Exists:
		w.Exists = new(true)
	case In:
		for _, v := range c.Values {
			w.In = append(w.In, json.RawMessage(v))
		}
	default:
		if len(c.Values) != 1 {
			return nil, fmt.Errorf("condition: %s has %d values", c.Op, len(c.Values))
		}
		*map[Op]*json.RawMessage{Equals: &w.Equals, AtLeast: &w.GTE, AtMost: &w.LTE}[c.Op] = json.RawMessage(c.Values[0])
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes, and what spec files say: several comparisons in
// one object hold together.
func (c *Condition) UnmarshalJSON(data []byte) error {
	*c = Condition{}
	switch data[0] {
	case '[':
		c.Op = All
		return json.Unmarshal(data, &c.Of)
	case '"':
		if err := json.Unmarshal(data, &c.Op); err != nil || c.Op != Else {
			return fmt.Errorf("condition: %s is no condition", data)
		}
		return nil
	}
	var w wire
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return fmt.Errorf("condition: %w", err)
	}
	all, err := w.conditions()
	switch {
	case err != nil:
		return err
	case len(all) == 1:
		*c = all[0]
	case len(all) > 1:
		*c = Condition{Op: All, Of: all}
	default:
		return errors.New("condition: it compares nothing; write equals, in, gte, lte or exists")
	}
	return nil
}

// conditions returns what an object says.
func (w *wire) conditions() (all []Condition, err error) {
	leaf := func(op Op, values ...json.RawMessage) {
		c := Condition{Op: op, Task: w.Task, Path: w.Path}
		for _, v := range values {
			text, e := canonical(v)
			if e != nil {
				err = errors.Join(err, e)
			}
			c.Values = append(c.Values, text)
		}
		all = append(all, c)
	}
	if w.Equals != nil {
		leaf(Equals, w.Equals)
	}
	if w.In != nil {
		leaf(In, w.In...)
	}
	if w.GTE != nil {
		leaf(AtLeast, w.GTE)
	}
	if w.LTE != nil {
		leaf(AtMost, w.LTE)
	}
	if w.Exists != nil {
		leaf(Exists)
		if !*w.Exists {
			last := &all[len(all)-1]
			*last = Condition{Op: Not, Of: []Condition{*last}}
		}
	}
	if w.Any != nil {
		all = append(all, Condition{Op: Any, Of: w.Any})
	}
	if w.Not != nil {
		all = append(all, Condition{Op: Not, Of: []Condition{*w.Not}})
	}
	return all, err
}
