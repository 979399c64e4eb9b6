package team

import (
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// forUser takes a value through the gate to the caller, who reads results,
// events and errors. Above the caller's clearance there is a line instead.
func (r *run) forUser(e *envelope.Envelope, id task.ID, now time.Time) (text, structured string, err error) {
	if e.Empty() {
		return "", "", nil
	}
	source := handoff.Source{Kind: handoff.Dependency, Name: string(id)}
	accepts := *r.options.UserAccepts
	contract, err := handoff.Negotiate(handoff.Request{
		Session: r.id + "/" + handoff.User, Caller: handoff.User, Run: r.id, Task: id,
		Classification: accepts, Grants: []handoff.Grant{handoff.WholeOf(source, "")},
	}, &handoff.Capabilities{Agent: handoff.User, Accepts: accepts, Produces: accepts}, now)
	if err != nil {
		return "", "", err
	}
	gate := handoff.Compartment{Contract: contract}
	s, err := gate.GateOutbound(&handoff.Offer{Source: source, Status: task.Completed, Envelope: e, Optional: true, As: form(e)}, now)
	if err != nil {
		return "", "", err
	}
	if s.Withheld() {
		return withheld(s.Decision().Before), "", nil
	}
	structured, _ = s.Payload().JSON()
	return s.Payload().Text(), structured, nil
}

// form asks for everything that there is.
func form(e *envelope.Envelope) task.Payload {
	if e.Structured() {
		return task.Both
	}
	return task.Output
}

// withheld is what the caller reads in place of a value above the caller's clearance.
func withheld(level label.Classification) string { return "[withheld: " + level.String() + "]" }

// explain returns the text of an error in the form that the caller is cleared
// for, and as the envelope that other readers get it from. What an agent or an
// endpoint said may quote the prompt, so the text is as sensitive as the prompt
// was and takes the same road as a result does. If that road fails, only the
// code is told, and there is no envelope.
func (r *run) explain(x *exchange, code, said string) (string, *envelope.Envelope) {
	h := envelope.Header{
		ID: envelope.ID(x.contract.Session + "/error"), Producer: x.contract.Callee, Task: x.task.ID, Run: r.id,
		Classification: x.contract.MaxInput, CreatedAt: time.Now(),
	}
	ours := x.contract.Session == "" // nothing was sent yet: the words are ours
	if ours {
		h.ID, h.Producer, h.Classification = envelope.ID("end/"+x.task.ID), handoff.Runtime, x.task.Classification
	}
	e, err := envelope.New(h, envelope.Text(strings.ToValidUTF8(said, "\uFFFD")))
	if err != nil {
		return code, nil
	}
	if ours {
		return said, e
	}
	text, _, err := r.forUser(e, x.task.ID, h.CreatedAt)
	if err != nil || text == "" {
		return code, nil
	}
	return text, e
}
