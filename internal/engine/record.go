package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
)

// A Recorder keeps the record of a run. Record is called before each prompt is
// sent, with all that the gate ruled about it and the prompt as the caller may
// see it; without the prompt if something was held, and it is not sent. An
// error keeps the prompt from being sent, and fails its task. Record may be
// called from several goroutines at once.
type Recorder interface {
	Record(ctx context.Context, r record.Prompt) error
}

// RecorderFunc lets a function be a [Recorder].
type RecorderFunc func(ctx context.Context, r record.Prompt) error

// Record calls f.
func (f RecorderFunc) Record(ctx context.Context, r record.Prompt) error {
	if f == nil {
		return errors.New("record: the function is nil")
	}
	return f(ctx, r)
}

// keep records the rulings of an exchange and its prompt, if there is one, and
// tells subscribers. The error is the one that keeps the prompt from being sent.
func (x *exchange) keep(ctx context.Context, p prompt.Prompt, failed error) error {
	rec, bus, l := x.run.options.Recorder, x.run.bus, x.run.ledger
	if rec == nil && !bus.live() {
		return failed
	}
	handed := x.handoffs(time.Now())
	r := record.Prompt{Handoffs: handed}
	if failed == nil && (rec != nil || l != nil) {
		shown := x.run.shown(p)
		r.Prompt = &shown
	}
	if rec != nil && (len(handed) > 0 || failed == nil) {
		if err := callRecorder(ctx, rec, r); err != nil && failed == nil {
			failed = fmt.Errorf("%w: %w", ErrRecord, err)
		}
	}
	if l != nil && (len(handed) > 0 || failed == nil) {
		if err := x.enter(ctx, r, failed == nil); failed == nil {
			failed = err
		}
	}
	if failed == nil && (rec != nil || l != nil) {
		failed = x.timely(time.Now())
	}
	if bus.live() {
		x.tell(handed)
	}
	return failed
}

// enter brings a record to the journal. If the prompt is to be sent it says so,
// and returns when that is durable.
func (x *exchange) enter(ctx context.Context, r record.Prompt, sent bool) error {
	entries := []record.Entry{{Record: &r}}
	if sent {
		entries = append(entries, record.Entry{Asked: &record.CallStart{
			Session: x.contract.Session, Task: x.task.ID, Agent: x.caps.Agent, Model: x.run.team.Find(x.caps.Agent).FirstModel(),
			Attempt: x.number, Time: x.start, Bytes: x.shownSize, Ahead: x.permit != nil, Messages: x.messageIDs(),
		}})
	}
	b := x.run.ledger.add(x.batch, entries...)
	x.letGo()
	if !sent {
		return nil
	}
	return x.run.ledger.wait(ctx, b)
}

// delivered records what the gate ruled for the caller.
func (r *run) delivered(d *gate.Decision, session string, now time.Time) error {
	rec := r.options.Recorder
	if rec == nil && !r.bus.live() {
		return nil
	}
	h := r.handed(d, session, now)
	if rec != nil {
		if err := callRecorder(context.Background(), rec, record.Prompt{Handoffs: []event.Handoff{h}}); err != nil {
			return fmt.Errorf("%w: %w", ErrRecord, err)
		}
	}
	r.ledger.note(record.Entry{Record: &record.Prompt{Handoffs: []event.Handoff{h}}})
	if r.bus.live() {
		r.bus.emit(event.Event{Type: event.Handed, Task: d.Task, Agent: handoff.User, Handoff: &h})
		for _, e := range d.Entries {
			r.bus.emit(event.Event{Type: uses[e.Use], Task: d.Task, Agent: handoff.User, Code: e.Name, From: d.From})
		}
	}
	return nil
}

// record asks the recorder. It is code of the caller's: that it panics, or ends
// its goroutine, is an error of its own.
func callRecorder(ctx context.Context, rec Recorder, r record.Prompt) (err error) {
	err = errRecorderGone
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the recorder panicked: %v", p)
			}
		}()
		err = rec.Record(ctx, r)
	}()
	<-done
	return err
}

var errRecorderGone = errors.New("the recorder ended its goroutine")

// timely reports what was sealed in time and has expired since: keeping the
// record may take a while.
func (x *exchange) timely(now time.Time) error {
	for i := range x.sealed {
		if err := x.sealed[i].Fresh(now); err != nil {
			return err
		}
	}
	return nil
}

// handoffs returns the rulings as records have them.
func (x *exchange) handoffs(now time.Time) []event.Handoff {
	if len(x.rulings) == 0 {
		return nil
	}
	list := make([]event.Handoff, len(x.rulings))
	for i := range x.rulings {
		list[i] = x.run.handed(&x.rulings[i], x.contract.Session, now)
	}
	return list
}

// handed returns a decision as records have it, in the form for the caller.
func (r *run) handed(d *gate.Decision, session string, now time.Time) event.Handoff {
	told := r.decided(d)
	return event.NewHandoff(&told, session, r.team.Rules.Digest(), now)
}

// uses are the events that tell of entries of the policy.
var uses = map[gate.EntryUse]event.Type{
	gate.EntryLowered: event.Lowered, gate.EntryEndorsed: event.Endorsed, gate.EntryRenewed: event.Renewed,
}

// tell tells subscribers what the gate ruled, and which entries of the policy it used.
func (x *exchange) tell(list []event.Handoff) {
	about := event.Event{Task: x.task.ID, Title: x.task.Title, Agent: x.caps.Agent, Attempt: x.number}
	for i := range list {
		ev := about
		ev.Type, ev.Handoff = event.Handed, &list[i]
		x.run.bus.emit(ev)
		for _, e := range x.rulings[i].Entries {
			ev := about
			ev.Type, ev.Code, ev.From = uses[e.Use], e.Name, x.rulings[i].From
			x.run.bus.emit(ev)
		}
	}
}
