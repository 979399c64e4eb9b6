package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A person is given a prompt as any agent is. A person may answer much later, so the attempt
// holds no slot while a person is asked. If there is no answer, the attempt ends without
// one, the task waits, and the run performs everything else.

// errLater ends an attempt whose person does not answer now.
var errLater = fmt.Errorf("the task waits: %w", person.ErrLater)

// ErrPersonTimeout ends an attempt whose person had to answer within the time limit. To ask again would
// be to extend it.
var ErrPersonTimeout = fmt.Errorf("%w: there was no answer", ErrAttemptTimeout)

// isPerson reports whether the agent is a person.
func (r *request) isPerson() bool {
	_, ok := r.does.(*person.Agent)
	return ok
}

// nextReady returns the best ready task. A question that was asked before with results from
// the shared memory comes after the tasks of these results, which the resumed run takes from
// the journal first: then the question is the same.
func (s *scheduler) nextReady() (i int, ok bool) {
	for {
		i, ok = s.run.queue.Next()
		switch {
		case ok && s.waitsForMemory(i):
			s.held = append(s.held, i)
			continue
		case !ok && s.busy == s.waiting() && s.timers.empty() && len(s.held) > 0: // they do not complete any more
			i, ok = s.held[0], true
			s.held = s.held[1:]
		}
		return i, ok
	}
}

// waitsForMemory reports whether a result that the prompt of a task had in its digest of the
// shared memory may still come.
func (s *scheduler) waitsForMemory(i int) bool {
	r := s.run
	b := r.memo.Counted(r.tasks[i].ID)
	return b.Question != nil && slices.ContainsFunc(b.Memory, func(id task.ID) bool {
		k, known := r.queue.Index(id)
		return known && !r.queue.Status(k).Terminal()
	})
}

// releaseHeld has the tasks that were held back considered again.
func (s *scheduler) releaseHeld() {
	for _, i := range s.held {
		if !s.run.queue.Status(i).Terminal() {
			must(s.run.queue.Requeue(i, time.Now()))
		}
	}
	s.held = s.held[:0]
}

// askPerson asks the person and takes the answer, of the person or of another process. The time
// limit of the attempt bounds how long the run waits: after it, as with [person.ErrLater], the
// error is errLater, unless the task is to fail then.
func (a *attempt) askPerson(ctx context.Context, text prompt.Prompt) error {
	announce(&a.modelCall)
	a.outbox = a.started()
	defer a.outbox.end() // also if the function that asks panics
	a.scheduler.freeSlot(a)
	asked := time.Now()
	a.contract.Start(asked)
	limited := context.WithValue(ctx, outboxKey{}, a.outbox)
	if !a.contract.ExpiresAt.IsZero() {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadlineCause(limited, a.answerBy(), a.late())
		defer cancel()
	}
	ask := func(ctx context.Context) (err error) {
		if err = ctx.Err(); err == nil {
			a.inAgent = true
			a.reply, err = a.ask(ctx, text)
			a.inAgent, err = false, asRecorded(&a.modelCall, a, err)
		}
		return err
	}
	for {
		given, err := awaitAnswer(limited, a, questionKey(&a.modelCall), ask)
		now := time.Now()
		a.worked = now.Sub(asked)
		switch {
		case given != nil:
			why, err := acceptGiven(limited, a, given)
			if err == nil && why != "" {
				if err = a.run.questions.refuse(limited, given, why); err == nil {
					continue // the question is still open
				}
			}
			return err
		case err == nil && len(a.reply.ToolCalls) > 0:
			return fmt.Errorf("%w: a person has no tools", codes.Condition(codes.ToolCall))
		case err == nil:
			return a.close(limited, a, now)
		case ctx.Err() != nil:
			return withCause(ctx, err)
		case limited.Err() != nil && a.task.OnTimeout == "fail", errors.Is(err, ErrAttemptTimeout) && a.task.OnTimeout == "fail":
			return fmt.Errorf("%w within %v", ErrPersonTimeout, a.contract.Duration)
		case errors.Is(err, person.ErrLater), limited.Err() != nil, errors.Is(err, ErrAttemptTimeout):
			return errLater
		}
		return err
	}
}

// acceptGiven makes an answer from the journal that of the attempt, and says why not if it does not
// fit the task.
func acceptGiven(ctx context.Context, a *attempt, given *record.Answer) (why string, err error) {
	a.reply = agent.Reply{Text: given.Text}
	if a.schema != nil {
		a.reply.JSON, err = jsonvalue.Parse(given.Text)
	}
	if err == nil {
		err = a.close(ctx, a, time.Now())
	}
	if err != nil && ctx.Err() == nil {
		a.reply, a.envelope = agent.Reply{}, nil
		return "it does not fit the task", nil
	}
	if err != nil {
		return "", err
	}
	a.run.questions.take(&a.modelCall, given)
	return "", nil
}

// answerBy returns when the run stops to wait. If the task is to fail then, the time has passed
// since the question was first asked, perhaps by another process.
func (a *attempt) answerBy() time.Time {
	m := a.run.memo
	if b := m.Task(a.task.ID); b != nil && a.task.OnTimeout == "fail" && b.Question != nil && b.Question.Key == m.Mask(questionKey(&a.modelCall)) {
		return b.Question.Since.Add(a.contract.Duration)
	}
	return a.contract.ExpiresAt
}

// questionOf returns what a journal stores of a question to a person. The caller does not see
// the schema of a task that is above its clearance.
func questionOf(x *modelCall) *record.Question {
	q := &record.Question{
		Session: x.contract.Session, Task: x.task.ID, Title: x.task.Title, Agent: x.caps.Agent, Attempt: x.number, Time: x.start,
		Label: x.whole.Classification, Messages: messageIDs(x.offers), Memory: memoryTasks(x.offers), Key: questionKey(x),
	}
	q.Users = x.run.team.Find(q.Agent).Users()
	if x.about != nil {
		q.Title, q.Call, q.Tool, q.Approval, q.List = x.about.title, x.about.call, x.about.tool, x.about.what, x.about.list
	}
	switch {
	case x.about != nil && x.hidden:
		q.Schema = record.RefusalForm
	case x.schema != nil && x.task.Classification <= x.run.accepts:
		q.Schema = x.schema.String()
	}
	return q
}

// questionKey returns the key of a question. A task that the caller wants to be performed again asks
// another question each time, which no earlier answer serves.
func questionKey(x *modelCall) record.Key {
	answers := x.run.memo.Counted(x.task.ID).Completions()
	if x.about != nil || !x.run.fresh.has(x.task.ID) || answers == 0 {
		return x.key
	}
	return digestOf(string(x.key[:]), "again", strconv.Itoa(answers))
}

// takeGiven takes the answer that a person gave to the same prompt while no process worked
// on this run. It reports whether it did. An answer that the gate refuses leaves the
// question open.
func takeGiven(ctx context.Context, a *attempt, text prompt.Prompt) (done bool, err error) {
	m := a.run.memo
	if !m.Is(memo.Own) {
		return false, nil
	}
	given, err := a.run.questions.given(ctx, a.task.ID, questionKey(&a.modelCall))
	if err != nil {
		return true, err
	}
	if given == nil {
		if b := m.Task(a.task.ID); b != nil && b.Question != nil {
			if old, _ := a.run.questions.of(ctx, a.task.ID, b.Question.Key); old != nil {
				warnUnused(a, "the question has changed since %s answered it", old)
			}
		}
		return false, nil
	}
	why, err := acceptGiven(ctx, a, given)
	if err != nil {
		return true, err
	}
	if why != "" {
		warnUnused(a, "the answer of %s does not fit the task", given)
		return false, a.run.questions.refuse(ctx, given, why)
	}
	a.answered = true
	return true, a.run.credit(ctx, &a.modelCall, text)
}

// warnUnused warns that the answer of a person is not used, and why.
func warnUnused(a *attempt, why string, given *record.Answer) {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.run.warn(fmt.Sprintf("task %q: "+why+", so it is asked again", a.task.Title, given.By))
}

// awaitPerson leaves the task of an attempt to a person who has not answered.
func awaitPerson(r *results, a *attempt) {
	t := &r.tasks[a.index]
	t.addReceipts(a)
	if t.WaitingFor == "" { // else a wait for the person has said so already
		leaveTo(r, a)
	}
}

// leaveTo leaves the task of an attempt to the person whom it waits for.
func leaveTo(r *results, a *attempt) {
	who := cmp.Or(a.approver, a.caps.Agent)
	r.tasks[a.index].WaitingFor = who
	must(r.queue.Retry(a.index, time.Now()))
	if r.bus.live() {
		ev := a.eventOf(event.TaskWaiting)
		ev.Agent, ev.From = who, a.approves
		r.bus.emit(ev)
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

// keepOpen sets the status of the tasks that did not begin because others wait for people. A
// replay asks no questions: in it, those tasks wait that waited in the run.
func keepOpen(r *results) {
	waited := func(id task.ID) bool {
		if r.memo.End() == nil {
			return false
		}
		t := r.memo.State.Find(id)
		return t != nil && r.memo.State.Status(t) == task.InProgress
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.Status != "" {
			continue
		}
		if t.Status = r.queue.Status(i); waited(t.ID) {
			t.Status, t.WaitingFor = task.InProgress, t.Assignee
		}
	}
}
