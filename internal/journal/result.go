package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// Result returns the last result of a task, for another run that takes it as an input. The
// run is named as for [Journal.Find], the task by its title, key or ID. The result lacks
// what the policy of that run withheld from the caller, since no rule of the other run would
// know of it. A result above the caller's clearance is whole, since its label goes with it.
// It is an error if the task is unknown or did not complete, if its result is not stored or
// is encrypted under another key, or if the policy delivers nothing of it to the caller.
func (a *archive) Result(ctx context.Context, run, name string) (*envelope.Envelope, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	ids := []task.ID{task.ID(name), task.NewID(name)}
	s, err := a.loadTasks(ctx, r, ids...)
	if err != nil {
		return nil, err
	}
	if keyed := s.keyed(name); len(keyed) > 0 {
		ids = append(ids, keyed...)
		if s, err = a.loadTasks(ctx, r, ids...); err != nil {
			return nil, err
		}
	}
	no := func(why string) error {
		return fmt.Errorf("no stored result of task %q in run %s: %s", name, r.id, why)
	}
	x := s.last(ids)
	switch {
	case x == nil:
		return nil, no("no task of this name completed")
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

// keyed returns the IDs of the tasks with this key.
func (s *Stored) keyed(name string) (ids []task.ID) {
	folded := naming.Normalize(name)
	for _, b := range s.History.Begins {
		for i := range b.Tasks {
			if t := &b.Tasks[i]; t.Key != "" && t.Key == folded && !slices.Contains(ids, t.Task) {
				ids = append(ids, t.Task)
			}
		}
	}
	return ids
}

// last returns the last agent call that completed one of these tasks; nil if there is none.
func (s *Stored) last(ids []task.ID) (last *record.AgentCall) {
	st := runstate.Of(&s.History)
	for _, id := range ids {
		if t := st.Find(id); t != nil && t.Accepted() != nil && (last == nil || !t.Accepted().End.Before(last.End)) {
			last = t.Accepted()
		}
	}
	return last
}
