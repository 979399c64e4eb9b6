package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A reading is a value as the caller may read it.
type reading struct {
	text       string
	structured string // canonical JSON; empty without a schema
	partly     bool   // the caller may not see all of the value
	isTree     bool   // the text is that of a folder
}

// shortTime is how long the gate may check a short text for the caller: a goal,
// a description, an error.
const shortTime = 5 * time.Second

// shortForUser is toUser for a short text. It does not end with the run, so that
// the caller can read why the run ended.
func (r *runScope) shortForUser(e *envelope.Envelope, source gate.Source, now time.Time) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shortTime)
	defer cancel()
	seen, err := r.toUser(ctx, e, source, now)
	return seen.text, err
}

// toUser takes a value through the gate to the caller, who reads results,
// events and errors. Above the caller's clearance there is a line instead.
func (r *runScope) toUser(ctx context.Context, e *envelope.Envelope, source gate.Source, now time.Time) (reading, error) {
	return r.toClearance(ctx, e, source, r.accepts, now)
}

// filesToUser takes output files through the gate to the caller, and what they were before.
// Paths of the policy are paths of files.
func (r *runScope) filesToUser(ctx context.Context, outputs *envelope.Envelope, source gate.Source, now time.Time) (text, before string, err error) {
	seen, err := r.read(ctx, outputs, source, r.accepts, gate.AsFiles, now)
	if err != nil || !seen.isTree {
		return seen.text, "", err
	}
	empty := filetree.Tree{}.JSON()
	old, err := gate.FilesBefore(outputs)
	if err != nil || old == nil {
		return seen.text, empty, err
	}
	was, err := r.read(ctx, old, source, r.accepts, gate.AsFiles, now)
	if err != nil || !was.isTree { // no file that passes was there before
		return seen.text, empty, err
	}
	v, err := jsonvalue.Parse(was.text)
	return seen.text, v.Canonical(), err
}

// toClearance does so for a caller who accepts this label.
func (r *runScope) toClearance(ctx context.Context, e *envelope.Envelope, source gate.Source, accepts label.Classification, now time.Time) (reading, error) {
	return r.read(ctx, e, source, accepts, form(e), now)
}

// read takes a value in some form through the gate to a caller who accepts this label.
func (r *runScope) read(ctx context.Context, e *envelope.Envelope, source gate.Source, accepts label.Classification, as task.Payload, now time.Time) (reading, error) {
	if e.Size() == 0 {
		return reading{}, nil
	}
	by := r.governed()
	grants := userGrants.Get().(*[1]gate.Grant)
	defer userGrants.Put(grants)
	grants[0] = gate.Grant{Source: source, Paths: whole, Terms: by.Terms(e.Producer(), handoff.User)}
	contract, err := gate.Negotiate(gate.Request{
		Session: r.session, Caller: handoff.User, Run: r.id, Task: task.ID(source.Name),
		Classification: accepts, Grants: grants[:], Owned: true,
	}, &gate.Capabilities{Agent: handoff.User, Accepts: accepts, Produces: accepts})
	if err != nil {
		return reading{}, err
	}
	compartment := gate.Compartment{Contract: contract}
	offer := gate.Offer{Source: source, Status: task.Completed, Envelope: e, Optional: true, As: as}
	d, err := compartment.Decide(ctx, &offer, now)
	if err != nil {
		return reading{}, err
	}
	if err := r.delivered(&d.Decision, by, contract.Session, now); err != nil {
		return reading{}, err
	}
	payload, files, err := compartment.Payload(&offer, &d)
	if err != nil {
		return reading{}, err
	}
	if !d.IsDelivered() && d.Reason == gate.ReasonClearance {
		return reading{text: withheld(d.Before), partly: true}, nil
	} else if !d.IsDelivered() {
		return reading{text: "[withheld: " + d.Reason + "]", partly: true}, nil
	}
	if files != nil {
		return reading{text: files.JSON(), isTree: true}, nil
	}
	structured, _ := payload.JSON()
	partly := d.Parts().Narrowed || d.Parts().TextDropped || len(d.Redacted) > 0
	return reading{text: cmp.Or(payload.Text(), structured), structured: structured, partly: partly}, nil // if a rule lets only parts pass, there is no text
}

// form asks for every part of a payload.
func form(e *envelope.Envelope) task.Payload {
	if e.Structured() {
		return task.Both
	}
	return task.Output
}

// userGrants has the grants of contracts that end with one call of [runScope.read]. Every result is read
// by the caller, and nothing keeps such a contract.
var userGrants = sync.Pool{New: func() any { return new([1]gate.Grant) }}

// whole are the paths of a grant of a whole value.
var whole = []task.Path{task.Whole}

// withheld is what the caller reads in place of a value above the caller's clearance.
func withheld(level label.Classification) string { return "[withheld: " + level.String() + "]" }

// explain returns the text of an error as the caller may see it, and the envelope that
// other readers get it from. What an agent or an endpoint said may quote the prompt, so
// the text is as sensitive as the prompt, expires with it, and passes the gate as a
// result does. If the gate cannot decide, explain returns the code and no envelope.
func (r *runScope) explain(x *modelCall, code, said string) (string, *envelope.Envelope) {
	now := time.Now()
	k := x.contract
	said = r.errorText(said)
	if k.Session == "" { // nothing was sent yet: the runtime wrote the text
		return r.ownError(x, code, said, now)
	}
	compartment := gate.Compartment{Contract: k}
	e, err := compartment.GateFault(envelope.ID(k.Session+"/error"), said, x.sealed, now)
	if err != nil {
		return code, nil
	}
	text, err := r.shortForUser(e, gate.Source{Kind: handoff.Fault, Name: string(x.task.ID)}, now)
	if err != nil || text == "" {
		return code, nil
	}
	if unnamed := withoutNames(r, x, said); unnamed != said {
		if e, err = compartment.GateFault(e.ID(), unnamed, x.sealed, now); err != nil {
			return text, nil
		}
	}
	return text, e
}

// withoutNames returns a text of the runtime as prompts of other agents have it.
func withoutNames(r *runScope, x *modelCall, text string) string {
	by := x.by
	if by == nil {
		by = r.governed()
	}
	return by.Rules.WithoutNames(text)
}

// whyWithheld returns, for readers other than the caller, why a task failed whose context
// was withheld. The text depends on nothing in the value, such as its size or the rule
// that read its parts. If the value was withheld because of its content, the failure
// itself depends on the value: then the text has the label of the value and the rules for
// the agent apply.
func (r *runScope) whyWithheld(x *modelCall, d *gate.Decision, now time.Time) *envelope.Envelope {
	said := fmt.Sprintf("%v from %q was withheld: %s", d.Source.Kind, d.From, d.Reason)
	if !d.ByValue() {
		_, e := r.ownError(x, x.code, said, now)
		return e
	}
	e, err := envelope.New(envelope.Header{
		ID: envelope.ID(x.contract.Session + "/error"), Producer: x.caps.Agent, Task: x.task.ID, Run: r.id, Classification: x.task.Classification.Join(d.Before), CreatedAt: now,
	}, envelope.Text(withoutNames(r, x, said)))
	if err != nil {
		return nil
	}
	return e
}

// ownError returns an error in the words of the runtime, which quote no agent.
func (r *runScope) ownError(x *modelCall, code, said string, now time.Time) (string, *envelope.Envelope) {
	said = r.errorText(said)
	e, err := envelope.New(envelope.Header{
		ID: envelope.ID("end/" + x.task.ID), Producer: gate.Runtime, Task: x.task.ID, Run: r.id, Classification: x.task.Classification, CreatedAt: now,
	}, envelope.Text(withoutNames(r, x, said)))
	if err != nil {
		return code, nil
	}
	return said, e
}
