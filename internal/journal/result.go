package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
)

// Result returns the last result of a task, for another run that takes it as an input. The
// run is named as for [Journal.Find], the task as for [naming.TaskList.Find]. The result lacks
// what the policy of that run withheld from the caller, since no rule of the other run would
// know of it. A result above the caller's clearance is whole, since its label goes with it.
// It is an error if the task is unknown or did not complete, if its result is not stored or
// is encrypted under another key, or if the policy delivers nothing of it to the caller.
func (a *archive) Result(ctx context.Context, run, name string) (*envelope.Envelope, error) {
	t, stored, err := a.LoadTask(ctx, run, name)
	if err != nil {
		return nil, err
	}
	found, err := t.Find(name)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", t.Run, err)
	}
	no := func(why string) error {
		return fmt.Errorf("no stored result of task %q in run %s: %s", name, t.Run, why)
	}
	state := runstate.Of(&stored.History)
	x := state.Accepted(state.Task(found.ID, found.Title, ""))
	switch {
	case x == nil:
		return nil, no("it has not completed")
	case x.Missing != "":
		return nil, no("it is " + x.Missing)
	case x.Result == nil:
		return nil, no("it was not stored")
	}
	e, err := x.Result.Envelope()
	if err == nil {
		err = e.Genuine()
	}
	if err == nil {
		e, err = asShown(e, x.Shown)
	}
	if err != nil {
		return nil, no(err.Error())
	}
	return e, nil
}

// asShown returns a result as the policy of its run delivered it to the caller.
func asShown(e *envelope.Envelope, shown *record.ShownResult) (*envelope.Envelope, error) {
	switch {
	case shown == nil:
		return e, nil
	case shown.Text == "[withheld: "+e.Classification().String()+"]" && shown.KeptBack:
		return nil, errors.New("it is above the clearance of the caller of that run, and the policy of that run would not deliver all of it")
	case shown.Text == "[withheld: "+e.Classification().String()+"]":
		return e, nil
	case strings.HasPrefix(shown.Text, "[withheld: ") && shown.Structured == "":
		return nil, errors.New("the policy of that run delivers nothing of it to the caller")
	}
	p := envelope.Text(shown.Text)
	if shown.Structured != "" {
		v, err := jsonvalue.Parse(shown.Structured)
		if err != nil {
			return nil, err
		}
		p = p.WithStructured(v)
	}
	h := e.Header()
	h.DerivedFrom, h.ID = []envelope.ID{h.ID}, h.ID+"/shown"
	return envelope.New(h, p)
}
