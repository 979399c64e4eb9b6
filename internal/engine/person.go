package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A person is given a prompt as any agent is. A person may answer much later, so the attempt
// holds no slot while a person is asked. If there is no answer, the attempt ends without
// one, the task waits, and the run performs everything else.

// errLater ends an attempt whose person does not answer now.
var errLater = fmt.Errorf("the task waits: %w", person.ErrLater)

// isPerson reports whether the agent is a person.
func (r *request) isPerson() bool {
	_, ok := r.does.(*person.Agent)
	return ok
}

// A personTask is what an attempt at a task of a person has in addition.
type personTask struct {
	freeSlot func(context.Context, *attempt) // nil unless the agent is a person
	slotless bool                            // it holds no slot any more; guarded by the lock of the run
}

// freeSlot lets another attempt start in place of a, which continues without a slot.
func (s *scheduler) freeSlot(ctx context.Context, a *attempt) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	a.slotless = true
	s.running--
	s.advance(ctx, nil)
}

// askPerson asks the person and takes the answer. The time limit of the attempt bounds how
// long the run waits: after it, as with [person.ErrLater], the error is errLater.
func (a *attempt) askPerson(ctx context.Context, text prompt.Prompt) (err error) {
	announce(&a.modelCall)
	a.outbox = a.started()
	defer a.outbox.end() // also if the function that asks panics
	a.freeSlot(ctx, a)
	asked := time.Now()
	a.contract.Start(asked)
	limited := context.WithValue(ctx, outboxKey{}, a.outbox)
	if !a.contract.ExpiresAt.IsZero() {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadlineCause(limited, a.contract.ExpiresAt, a.late())
		defer cancel()
	}
	a.inAgent = true
	a.reply, err = a.ask(limited, text)
	a.inAgent = false
	now := time.Now()
	a.worked = now.Sub(asked)
	switch {
	case err == nil && len(a.reply.ToolCalls) > 0:
		return fmt.Errorf("%w: a person has no tools", codes.Condition(codes.ToolCall))
	case err == nil:
		return a.close(limited, a, now)
	case ctx.Err() != nil:
		return withCause(ctx, err)
	case errors.Is(err, person.ErrLater), limited.Err() != nil:
		return errLater
	}
	return err
}

// awaitPerson leaves the task of an attempt to a person who has not answered.
func awaitPerson(r *results, a *attempt) {
	t := &r.tasks[a.index]
	t.WaitingFor = a.caps.Agent
	t.addReceipts(a)
	must(r.queue.Retry(a.index, a.end))
	if r.bus.live() {
		r.bus.emit(a.eventOf(event.TaskWaiting))
	}
}

// isSuspended reports whether one of the tasks waits for a person.
func isSuspended(tasks []TaskResult) bool {
	for i := range tasks {
		if t := &tasks[i]; t.WaitingFor != "" && t.Status == task.InProgress {
			return true
		}
	}
	return false
}

// keepOpen sets the status of the tasks that did not begin because others wait for people.
func keepOpen(r *results) {
	for i := range r.tasks {
		if t := &r.tasks[i]; t.Status == "" {
			t.Status = r.queue.Status(i)
		}
	}
}
