package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
)

// seal makes the contract and takes everything that is offered through the gate.
//
// What was not known when the flow was checked (a message that was sent since,
// an entry of a memory that the caller brought) cannot raise a label above
// what the check had: such a piece does not count, and the gate holds it.
func (x *modelCall) seal(ctx context.Context) error {
	r, t := x.run, x.task
	declined, err := approveLowered(ctx, x)
	if err != nil {
		return err
	}
	var few [8]gate.Part // most model calls need no more, and these stay on the stack
	parts := few[:0]
	for i := range x.offers {
		if part, counts := x.addGrant(i); counts {
			parts = append(parts, part)
		}
	}
	contract, err := gate.Negotiate(gate.Request{
		Session: x.session(),
		Caller:  handoff.User, Run: r.id, Task: t.ID,
		Classification: gate.Label(t.Classification.Join(x.least), parts),
		Summary:        summaryOf(x), RequiredTags: t.RequiredTags, Holders: x.heldBefore(), Tools: plan.ToolNames(x.tools), Grants: x.grants, Owned: true, Duration: t.Timeout, Declassified: x.declassified,
	}, x.caps)
	if err != nil && declined != "" {
		return fmt.Errorf("%s: %w", declined, err)
	}
	if err != nil {
		return err
	}
	x.contract = contract
	if len(x.offers) == 0 {
		return nil
	}
	wanted, err := x.rule(x.checking(ctx, x.start), x.start, nil)
	if err != nil || len(wanted) == 0 {
		return err
	}
	x.releaseBatch() // a translation takes time and model calls
	if err := x.permitted(ctx); err != nil {
		return err
	}
	failed := x.translateAll(ctx, wanted)
	now := time.Now()
	_, err = x.rule(x.checking(ctx, now), now, failed) // all of it again: a translation takes time, and what has expired by now is not delivered
	return err
}

// summaryOf returns what the task of a model call is about. A tool reads its arguments, and nothing about the task.
func summaryOf(x *modelCall) gate.Summary {
	if x.does == nil {
		return gate.Summary{}
	}
	return gate.Summary{Text: x.title(), Classification: x.task.Classification}
}

// gateTime is how long the gate may check the context of an attempt that has no
// time limit. Only patterns of the policy take as long.
const gateTime = 30 * time.Second

// checking returns the context in which the gate checks what is offered. It may
// take as long as the attempt itself.
func (x *gatedContext) checking(ctx context.Context, now time.Time) *gateContext {
	limit := cmp.Or(x.contract.Duration, gateTime)
	x.check = gateContext{Context: ctx, limit: limit, deadline: now.Add(limit)}
	return &x.check
}

// finishTime is how long a result that came in time may still be checked once
// its run was canceled or its attempt is over.
const finishTime = time.Second

// finishing returns the context in which a result is checked for the caller. It
// outlives ctx by finishTime.
func (x *gatedContext) finishing(ctx context.Context, now time.Time) *gateContext {
	c := x.checking(ctx, now)
	c.grace = finishTime
	return c
}

// A gateContext bounds a check of the gate. The gate polls Err from the goroutine that
// works on the model call, so the bound needs no timer.
type gateContext struct {
	context.Context
	limit    time.Duration
	deadline time.Time
	polls    int
	grace    time.Duration // for this long the end of the parent context does not count
	ended    time.Time     // when the parent context was first seen to have ended; zero if it was not
}

// Deadline returns the time at which the check ends.
func (c *gateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// untimedPolls is how many polls of a check do not look at the clock. A short text is
// polled once, and its check is over long before the limit.
const untimedPolls = 4

// Err returns an error once the time for the check is over.
func (c *gateContext) Err() error {
	err := c.Context.Err()
	if c.polls++; c.polls <= untimedPolls && err == nil {
		return nil
	}
	now := time.Now()
	if err != nil {
		if c.grace == 0 {
			return err
		}
		if c.ended.IsZero() {
			c.ended = now
		}
		if now.After(c.ended.Add(c.grace)) {
			return err
		}
	}
	if now.After(c.deadline) {
		return &slowCheckError{c.limit}
	}
	return nil
}

// A slowCheckError is the error of a check that took too long.
type slowCheckError struct{ limit time.Duration }

func (e *slowCheckError) Error() string {
	return fmt.Sprintf("%v: more than %v to check its context", ErrAttemptTimeout, e.limit)
}

// Unwrap returns [ErrAttemptTimeout] and the error of a context whose deadline has passed.
func (e *slowCheckError) Unwrap() []error {
	return []error{ErrAttemptTimeout, context.DeadlineExceeded}
}

// addGrant grants an offer whole, unless it has a grant. It returns the offer as the
// label of the model call counts it, and whether it counts.
func (x *modelCall) addGrant(i int) (part gate.Part, counts bool) {
	o := &x.offers[i]
	if i == len(x.grants) {
		g := gate.WholeOf(o.Source, "")
		g.MaxBytes = x.limits.On(o.Source, 0)
		if o.Envelope != nil {
			g.Terms = x.by.Terms(o.Envelope.Producer(), x.caps.Agent)
		}
		x.grants = append(x.grants, g)
	}
	if o.Envelope == nil {
		return part, false
	}
	if from := o.Envelope.Producer(); naming.IsChain(from) && gate.ProducerOf(x.grants[i].Terms) != from { // the grant is of the assignee alone
		x.grants[i].Terms = x.by.Terms(from, x.caps.Agent)
	}
	terms := x.grants[i].Terms
	c := x.grants[i].Admit(o.Envelope.Classification(), x.caps.Clearance(), x.caps.Agent)
	held := c.Withheld() || c.After > x.bound || terms.Mode() == handoff.Minimal && !gate.Instructs(o.Source, o.Envelope.Producer())
	held = held || x.grants[i].IsEmptyLayer(o)
	counts = !held || !o.Optional && terms.Mode() != handoff.Minimal
	return gate.Part{Classification: c.After, Withheld: held, Optional: o.Optional}, counts
}

// rule takes everything that is offered through the gate at one moment. It
// returns what must be translated first; failed has the translations that failed.
func (x *modelCall) rule(ctx context.Context, now time.Time, failed map[int]*translator) (wanted []neededTranslation, first error) {
	compartment := gate.Compartment{Contract: x.contract}
	x.rulings, x.sealed = slices.Grow(x.rulings[:0], len(x.offers)), slices.Grow(x.sealed[:0], len(x.offers))
	kept := make([]gate.Decision, len(x.offers)) // for the record
	for i := range x.offers {                    // also after an error, for the record
		o := &x.offers[i]
		d, err := compartment.Decide(ctx, o, now)
		if err == nil && d.Verdict == gate.NeedsTranslation {
			if s := failed[i]; s == nil {
				wanted = append(wanted, neededTranslation{i, d})
				kept[i] = d.Decision
				x.rulings, x.sealed = append(x.rulings, &kept[i]), append(x.sealed, gate.Sealed{})
				continue
			} else if d.Verdict, d.Reason, d.Detail = gate.Withheld, gate.ReasonRule, "it could not be translated"; s.isRequired(o) {
				x.untranslated, err = s, s.call.err
			}
		}
		var sealed gate.Sealed
		if err == nil {
			sealed, err = compartment.SealInto(o, &d, &kept[i])
		}
		if sealed.Decision() == nil { // nothing was sealed
			kept[i] = d.Decision
		}
		x.rulings = append(x.rulings, &kept[i])
		if x.sealed = append(x.sealed, sealed); err != nil && first == nil {
			first = err
		}
	}
	if read := readsOf(x.run.options.Turn, x.caps.Agent, x.rulings); len(read) > 0 {
		x.run.mu.Lock()
		x.run.turnReads = addReads(x.run.turnReads, read)
		x.run.mu.Unlock()
	}
	if first != nil {
		x.sealed = slices.DeleteFunc(x.sealed, func(s gate.Sealed) bool { return s.For(&x.contract) != nil })
	}
	return wanted, first
}
