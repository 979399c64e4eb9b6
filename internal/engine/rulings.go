package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
)

// seal makes the contract and takes everything that is offered through the gate.
//
// What was not known when the flow was checked (a message that was sent since,
// an entry of a memory that the caller brought) cannot raise a label above
// what the check had: such a piece does not count, and the gate holds it.
func (x *exchange) seal(ctx context.Context) error {
	r, t := x.run, x.task
	for i := range x.offers {
		x.addGrant(i)
	}
	contract, err := gate.Negotiate(gate.Request{
		Session: x.session(),
		Caller:  handoff.User, Run: r.id, Task: t.ID,
		Classification: gate.Label(t.Classification, x.parts),
		RequiredTags:   t.RequiredTags, Grants: x.grants, Duration: t.Timeout, Declassified: x.declassified,
	}, x.caps)
	if err != nil {
		return err
	}
	x.contract = contract
	checking, done := x.checking(ctx)
	wanted, err := x.rule(checking, x.start, nil)
	done()
	if err != nil || len(wanted) == 0 {
		return err
	}
	x.releaseBatch() // retelling takes its time, and calls
	if err := x.permitted(ctx); err != nil {
		return err
	}
	failed := x.retellAll(ctx, wanted)
	checking, done = x.checking(ctx)
	defer done()
	_, err = x.rule(checking, time.Now(), failed) // all of it anew: retelling takes time, and what has expired by now is not delivered
	return err
}

// gateTime is how long the gate may check the context of an attempt that has no
// time limit. Only patterns of the policy take as long.
const gateTime = 30 * time.Second

// checking returns the context in which the gate checks what is offered. It may
// take as long as the attempt itself.
func (x *exchange) checking(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cmp.Or(x.contract.Duration, gateTime)
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: more than %v to check its context", ErrAttemptTimeout, limit))
}

// finishTime is how long a result that came in time may still be checked once
// its run was canceled or its attempt is over.
const finishTime = time.Second

// finishing returns the context in which a result is checked for the caller. It
// outlives ctx by finishTime.
func (x *exchange) finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := x.checking(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })
	return longer, func() { stop(); cancel() }
}

// addGrant grants an offer whole, unless it has a grant, and counts the offer
// for the label of the exchange.
func (x *exchange) addGrant(i int) {
	o := &x.offers[i]
	if i == len(x.grants) {
		g := gate.WholeOf(o.Source, "")
		g.MaxBytes = x.limits.On(o.Source, 0)
		if o.Envelope != nil {
			g.Terms = x.run.team.Terms(o.Envelope.Producer(), x.caps.Agent)
		}
		x.grants = append(x.grants, g)
	}
	if o.Envelope == nil {
		return
	}
	terms := x.grants[i].Terms
	c := terms.Admit(o.Envelope.Classification(), x.caps.Clearance(), x.caps.Agent)
	held := c.Held() || c.After > x.bound || terms.Mode() == handoff.Minimal && !gate.Instructs(o.Source, o.Envelope.Producer())
	if !held || !o.Optional && terms.Mode() != handoff.Minimal {
		x.parts = append(x.parts, gate.Part{Classification: c.After, Held: held, Optional: o.Optional})
	}
}

// rule takes everything that is offered through the gate at one moment. It
// returns what must be retold first; failed says what could not be.
func (x *exchange) rule(ctx context.Context, now time.Time, failed map[int]*translator) (wanted []wish, first error) {
	compartment := gate.Compartment{Contract: x.contract}
	x.rulings, x.sealed = x.rulings[:0], x.sealed[:0]
	for i := range x.offers { // also after an error, for the record
		o := &x.offers[i]
		d, err := compartment.Decide(ctx, o, now)
		if err == nil && d.Verdict == handoff.NeedsTranslation {
			if s := failed[i]; s == nil {
				wanted = append(wanted, wish{i, d})
				x.rulings, x.sealed = append(x.rulings, d.Decision), append(x.sealed, gate.Sealed{})
				continue
			} else if d.Verdict, d.Reason, d.Detail = handoff.Held, handoff.ReasonRule, "it could not be retold"; s.vital(o) {
				x.untranslated, err = s, s.err
			}
		}
		x.rulings = append(x.rulings, d.Decision)
		var sealed gate.Sealed
		if err == nil {
			sealed, err = compartment.Seal(o, &d)
		}
		if x.sealed = append(x.sealed, sealed); err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		x.sealed = slices.DeleteFunc(x.sealed, func(s gate.Sealed) bool { return s.For(&x.contract) != nil })
	}
	return wanted, first
}
