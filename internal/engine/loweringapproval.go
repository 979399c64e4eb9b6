package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A declassifier of the policy can need the approval of a person, for each value and each task that
// it would deliver the value to. The attempt asks before the gate decides on its context. Without
// the approval the declassifier does not apply, and the value has the label that it has.

// loweringForm is the form of an approval of a declassifier. A script without a reply for it takes
// the first choice, which is therefore "no".
var loweringForm = parseForm(`{"type":"object","properties":{` +
	`"decision":{"enum":["no","yes"],"description":"may exactly this be delivered below its label"},` +
	`"reason":{"type":"string","maxLength":2000,"description":"why, for the record of the run"}},` +
	`"required":["decision"],"additionalProperties":false}`)

// IsLoweringApproval reports whether a prompt asks a person whether a declassifier may lower a value.
func IsLoweringApproval(p prompt.Prompt) bool { return p.Schema() == loweringForm().String() }

// approveLowered asks about each piece of context that only a declassifier with an approval can
// lower for the reader. If there is no answer yet, the error is errLater.
// declined says which of them were not approved, as far as the caller may know.
func approveLowered(ctx context.Context, x *modelCall) (declined string, err error) {
	if x.waits == nil {
		return "", nil
	}
	asked := false
	for i := range x.offers {
		x.addGrant(i)
		o, g := &x.offers[i], &x.grants[i]
		if o.Envelope == nil || o.As == gate.AsFiles || o.Source.Kind != handoff.Dependency && o.Source.Kind != handoff.Input {
			continue
		}
		d := g.Terms.Admit(o.Envelope.Classification(), x.caps.Clearance(), x.caps.Agent).Lowers
		if d == nil || d.Approve == "" || g.Approved {
			continue
		}
		q := &loweringApproval{of: x, offer: *o, grant: *g, entry: d}
		approved, err := q.ask(ctx, i)
		if err != nil {
			return "", err
		}
		if g.Approved, asked = approved, true; q.declined != "" {
			declined = q.declined
		}
	}
	if asked {
		x.start = time.Now() // what has expired by now is not delivered
	}
	return declined, nil
}

// A loweringApproval asks a person whether a declassifier may lower one value for one task.
type loweringApproval struct {
	*approval
	of    *modelCall
	offer gate.Offer
	grant gate.Grant
	entry *handoff.Declassifier

	declined string // who said no, and to what, for the error of a task that cannot do without
}

// ask reports whether the person approves. What the person may not see in full is not approved.
func (q *loweringApproval) ask(ctx context.Context, i int) (approved bool, err error) {
	x := q.of
	payload, level, err := q.lowered(ctx)
	if err != nil || payload.Size() == 0 {
		return false, err
	}
	if err := q.prepare(i, payload, level); err != nil {
		return false, err
	}
	x.releaseBatch() // a person takes time
	err = q.call.seal(ctx)
	switch {
	case ctx.Err() != nil:
		return false, withCause(ctx, err)
	case err != nil || q.call.sealed[0].Withheld() || !isSame(q.call.sealed[0].Payload(), payload):
		if e := q.offer.Envelope; !x.run.seesResult(e.Producer(), e.Classification()) {
			return false, nil // what it depends on is not for the caller
		}
		x.run.mu.Lock()
		defer x.run.mu.Unlock()
		x.run.warn(fmt.Sprintf("%s may not see all of what %q would deliver to %s, and so cannot approve it", q.entry.Approve, q.entry.Name, x.caps.Agent))
		return false, nil
	}
	b := brief.Context{Inputs: q.call.sealed}
	if q.offer.Source.Kind == handoff.Dependency {
		b = brief.Context{Dependencies: q.call.sealed}
	}
	text, err := q.show(b)
	if err != nil {
		return false, err
	}
	v, err := q.decideFor(ctx, x.waits, text)
	if errors.Is(err, errReplayAsks) {
		return false, nil
	}
	if err == nil && v.Decision == decidedNo {
		q.declined = q.saidNo()
	}
	return err == nil && v.Decision != decidedNo, err
}

// saidNo words a no. The reason stays in the record: it may quote what the person was shown, and the
// error is read by others too.
func (q *loweringApproval) saidNo() string {
	x, e := q.of, q.offer.Envelope
	if !x.run.seesResult(e.Producer(), e.Classification()) || !x.run.seesResult(q.entry.Approve, e.Classification()) {
		return ""
	}
	text := fmt.Sprintf("%s did not approve %q", q.entry.Approve, q.entry.Name)
	if at := q.entry.Origin.String(); at != "" {
		text += " (" + at + ")"
	}
	return text
}

// lowered returns what the reader would get, and the label that it would get it with. It is empty if
// the gate withholds the value all the same.
func (q *loweringApproval) lowered(ctx context.Context) (payload envelope.Payload, level label.Classification, err error) {
	x, g := q.of, q.grant
	g.Approved, q.offer.Optional = true, true
	level = g.Admit(q.offer.Envelope.Classification(), x.caps.Clearance(), x.caps.Agent).After
	contract, err := gate.Negotiate(gate.Request{
		Session: x.session() + "/approve", Caller: handoff.User, Run: x.run.id, Task: x.task.ID, Classification: level, Grants: []gate.Grant{g}, Declassified: true,
	}, x.caps)
	if err != nil {
		return payload, level, nil // the task is refused for the same reason
	}
	compartment := gate.Compartment{Contract: contract}
	d, err := compartment.Decide(x.checking(ctx, x.start), &q.offer, x.start)
	if err != nil || !d.IsDelivered() {
		return payload, level, err
	}
	payload, _, err = compartment.Payload(&q.offer, &d)
	return payload, level, err
}

// prepare makes the question about what the reader would get.
func (q *loweringApproval) prepare(i int, payload envelope.Payload, level label.Classification) error {
	x, e := q.of, q.offer.Envelope
	h := e.Header()
	about := "a task"
	if !x.waits.planned { // what a coordinator wrote is delivered as context only
		about = fmt.Sprintf("the task %q", x.title())
	}
	q.approval = newApproval(x.run, &task.Task{ID: x.task.ID, Spec: task.Spec{
		Title: plan.ApprovalTitle(q.entry.Name), Assignee: q.entry.Approve, Classification: x.task.Classification,
		Description: fmt.Sprintf("May exactly this be delivered to agent %s for %s? It is %v, and the entry %s of the policy would deliver it as %v.", x.by.Rules.ShownName(x.caps.Agent), about, h.Classification, q.entry.Name, level),
	}}, loweringForm(), approvedThing{title: x.task.Title, what: q.entry.Name})
	q.call.by, q.call.number, q.call.part = x.by, x.number, x.part+"/approve/"+strconv.Itoa(i)
	shown, err := envelope.New(envelope.Header{
		ID: h.ID + "/lowered", Producer: h.Producer, Task: h.Task, Run: x.run.id, Classification: h.Classification, Trust: h.Trust,
		CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt, DerivedFrom: []envelope.ID{h.ID},
	}, payload)
	if err != nil {
		return err
	}
	canonical, structured := payload.JSON()
	o := gate.Offer{Source: q.offer.Source, Title: "value", Assignee: h.Producer, Status: q.offer.Status, Envelope: shown, Optional: true}
	if structured {
		o.As = form(shown)
	}
	q.call.offers = []gate.Offer{o}
	parts := []string{q.entry.Name, q.entry.From, q.entry.To, q.entry.LowerTo.String(), h.Classification.String(), string(o.Source.Kind), o.Source.Name, payload.Text(), canonical}
	for _, path := range q.entry.Paths {
		parts = append(parts, "path", string(path))
	}
	may := permittedTo(x.run.team.Find(x.caps.Agent), x.caps)
	parts = append(parts, "task", x.task.Title, x.task.Description, string(may[:]))
	for _, f := range x.tools {
		parts = append(parts, "tool", f.Name)
	}
	q.happens = digestOf(parts...)
	return nil
}

// isSame reports whether two payloads are equal.
func isSame(a, b envelope.Payload) bool {
	x, _ := a.JSON()
	y, _ := b.JSON()
	return x == y && a.Text() == b.Text()
}
