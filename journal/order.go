package journal

import (
	"encoding/json"

	"github.com/runteam/runteam/event"
)

// An order is what is to become durable at once.
type order struct {
	run     *Run
	parts   []part
	answers [][32]byte
	turns   []turn
	close   bool // the run ends with it
	err     error
	done    func(error) // called once, unless it is nil
}

// add encodes an entry.
func (o *order) add(e *event.Entry) error {
	parts, err := o.run.encoder.entry(e)
	if err != nil {
		return err
	}
	o.parts = append(o.parts, parts...)
	if x := e.Exchange; x != nil && x.Reusable && x.Completed() && x.Result != nil && x.Reuse != (event.Key{}) {
		o.answers = append(o.answers, o.run.j.vault.mask(x.Reuse))
	}
	switch {
	case e.Begin != nil:
		o.turns = append(o.turns, turn{at: e.Begin.Time})
	case e.End != nil:
		o.turns = append(o.turns, turn{at: e.End.Time, status: e.End.Status, tasks: tally(e.End)})
	}
	return nil
}

// tally says how many tasks came to which status.
func tally(e *event.End) string {
	n := Counts{}
	for i := range e.Tasks {
		n[e.Tasks[i].Status]++
	}
	text, _ := json.Marshal(n) // of a map of numbers
	return string(text)
}
