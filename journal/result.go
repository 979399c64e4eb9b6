package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/task"
)

// ErrNoResult reports a task of which a run has no result that can be read.
var ErrNoResult = errors.New("no stored result")

// Result returns the last result of a task, for another run that takes it as an
// input. The run is named as for [Journal.Find], the task by its title, key or
// ID. The error wraps [ErrNoResult] if the task is unknown or did not complete,
// or if its result is not stored or encrypted under another key.
func (j *Journal) Result(ctx context.Context, run, name string) (*envelope.Envelope, error) {
	found, err := j.Find(ctx, run)
	if err != nil {
		return nil, err
	}
	s, err := j.Load(ctx, found.Run)
	if err != nil {
		return nil, err
	}
	no := func(why string) error {
		return fmt.Errorf("%w of task %q in run %s: %s", ErrNoResult, name, found.Run, why)
	}
	x := s.last(name)
	switch {
	case x == nil:
		return nil, no("no task of this name completed")
	case x.Missing != "":
		return nil, no("it is " + x.Missing)
	case x.Result == nil:
		return nil, no("it was not kept")
	}
	e, err := x.Result.Envelope()
	if err == nil {
		err = e.Genuine()
	}
	if err != nil {
		return nil, no(err.Error())
	}
	return e, nil
}

// last returns the last exchange that completed the task with this title, key or
// ID; nil if there is none.
func (s *Stored) last(name string) (last *event.Exchange) {
	folded := task.Normalize(name)
	ids := map[task.ID]bool{task.ID(name): true}
	for i := range s.Info.Tasks {
		if t := &s.Info.Tasks[i]; t.Key != "" && t.Key == folded {
			ids[t.ID] = true
		}
	}
	for i := range s.History.Log {
		x := s.History.Log[i].Exchange
		if x != nil && x.Part == "" && x.Completed() && (ids[x.Task] || task.Normalize(x.Title) == folded) {
			last = x
		}
	}
	return last
}
