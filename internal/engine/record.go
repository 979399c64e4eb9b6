package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
)

// A recorder decides what is recorded of a run: it hands entries to the journal,
// records to the caller's [record.Recorder] and events to subscribers, in the form that the
// caller may see.
type recorder struct {
	viewer
	sink    record.Recorder // nil if the caller has none
	bus     *bus            // nil until the run is open
	ledger  *ledger         // nil without a journal
	log     record.Log      // the run in the journal; nil without one
	pending sync.WaitGroup  // notifications of messages, which wait until the messages are durable
	removes sync.WaitGroup  // removals of workspaces, which wait until the ends of the attempts are durable

	limits      limitLog
	warnings    []string
	warned      map[string]bool // the warnings of model calls among them
	truncations int             // pieces of context that a limit cut
}

// recordPrompt records the gate decisions of a model call and its prompt, if there is
// one, and emits events. The error keeps the prompt from being sent.
func (r *recorder) recordPrompt(ctx context.Context, x *modelCall, p prompt.Prompt, failed error) error {
	if r.sink == nil && !r.bus.live() {
		return failed
	}
	handed := r.handoffs(x, time.Now())
	recorded := func() record.Prompt { // anew for each reader: the recorder may change what it gets
		rec := record.Prompt{Handoffs: handed}
		if failed == nil {
			rec.Prompt = new(r.shown(p, x.whole))
		}
		return rec
	}
	if r.sink != nil && (len(handed) > 0 || failed == nil) {
		failed = cmp.Or(failed, r.callSink(ctx, &x.request, recorded()))
	}
	if r.ledger != nil && (len(handed) > 0 || failed == nil) {
		failed = cmp.Or(failed, r.enterPrompt(ctx, x, recorded(), failed == nil))
	}
	if failed == nil && (r.sink != nil || r.ledger != nil) {
		failed = checkFresh(x.sealed, time.Now())
	}
	r.emitUses(x)
	return failed
}

// enterPrompt writes a record to the journal. If the prompt is going to be sent, it
// records that too, and returns when both are durable.
func (r *recorder) enterPrompt(ctx context.Context, x *modelCall, rec record.Prompt, sent bool) error {
	entries := []record.Entry{{Record: &rec}}
	switch {
	case sent && x.isPerson():
		entries = append(entries, record.Entry{Question: questionOf(x)})
	case sent:
		m := r.team.Find(x.caps.Agent)
		x.stage = announced
		entries = append(entries, record.Entry{Asked: &record.CallStart{
			Session: x.contract.Session, Task: x.task.ID, Agent: x.caps.Agent, Model: m.FirstModel(),
			Attempt: x.number, Time: x.start, Bytes: x.sentSize, Partial: x.hidden, Ahead: x.permit != nil, Messages: messageIDs(x.offers),
			Policy: r.named(x.by), Effect: effectOf(m), Repeatable: m.Process() != nil && m.Process().Repeatable,
		}})
	}
	b := r.ledger.add(x.batch, entries...)
	x.releaseBatch()
	if !sent {
		return nil
	}
	return r.ledger.wait(ctx, b)
}

// delivered records what the gate ruled for the caller.
func (r *recorder) delivered(d *gate.Decision, by *plan.Roster, session string, now time.Time) error {
	if r.sink == nil && !r.bus.live() {
		return nil
	}
	h := r.handed(d, by, session, now)
	rec := record.Prompt{Handoffs: []event.Handoff{h}}
	if err := r.callSink(context.Background(), nil, rec); err != nil {
		return err
	}
	r.ledger.note(record.Entry{Record: &rec})
	if r.bus.live() && record.IsKnown(&h) {
		for _, e := range d.Entries {
			r.bus.emit(event.Event{Type: uses[e.Use], Task: d.Task, Agent: d.To, From: d.From, Problem: event.Problem{Code: e.Name}})
		}
	}
	return nil
}

// callSink gives a record to the recorder of the caller, if there is one, without what the caller may not know of:
// model calls that are hidden, and decisions about hidden messages. What no agent reads is about no model call. The
// recorder may change all of it, so it gets copies of the decisions, and nobody else has the prompt.
func (r *recorder) callSink(ctx context.Context, about *request, rec record.Prompt) error {
	if r.sink == nil || about != nil && about.isInner() && r.bus.hides(about.task.ID) {
		return nil
	}
	if rec.Handoffs = record.Known(rec.Handoffs); len(rec.Handoffs) == 0 && rec.Prompt == nil {
		return nil
	}
	own := make([]event.Handoff, len(rec.Handoffs))
	for i := range own {
		own[i] = rec.Handoffs[i].Clone()
	}
	rec.Handoffs = own
	if err := callOutside("the recorder", func() error { return r.sink(ctx, rec) }); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}

// checkFresh returns an error if context has expired since it was sealed: recording
// it may take a while.
func checkFresh(sealed []gate.Sealed, now time.Time) error {
	for i := range sealed {
		if err := sealed[i].Fresh(now); err != nil {
			return err
		}
	}
	return nil
}

// handoffs returns the gate decisions of a model call as records have them.
func (r *recorder) handoffs(x *modelCall, now time.Time) []event.Handoff {
	if len(x.rulings) == 0 {
		return nil
	}
	list := make([]event.Handoff, len(x.rulings))
	for i := range x.rulings {
		list[i] = r.handed(x.rulings[i], x.by, x.contract.Session, now)
	}
	record.CountResults(list)
	return list
}

// handed returns a decision by the policy of a roster as records have it, in the form for the caller.
func (r *recorder) handed(d *gate.Decision, by *plan.Roster, session string, now time.Time) event.Handoff {
	return record.NewHandoff(r.decided(d), session, by.Rules.Digest(), now)
}

// uses are the events of used entries of the policy.
var uses = map[gate.EntryUse]event.Type{
	gate.EntryLowered: event.Lowered, gate.EntryEndorsed: event.Endorsed, gate.EntryRenewed: event.Renewed,
}

// emitUses emits an event for each entry of the policy that decisions of a model call used.
func (r *recorder) emitUses(x *modelCall) {
	if !r.bus.live() {
		return
	}
	for _, d := range x.rulings {
		if h := r.handed(d, x.by, x.contract.Session, time.Time{}); len(d.Entries) == 0 || !record.IsKnown(&h) {
			continue
		}
		for _, e := range d.Entries {
			ev := x.eventOf(uses[e.Use])
			ev.Code, ev.From = e.Name, d.From
			r.bus.emit(ev)
		}
	}
}
