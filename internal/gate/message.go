package gate

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
)

// RuleHops refuses a message that was handed on too often.
const RuleHops handoff.Rule = "hops"

// GateMessage rules on what an agent sends to another one while it works under
// the contract, and returns the header of its message, without id and producer.
//
// The agent chooses neither the label nor the expiry: a message is as sensitive
// as what the contract let in, and expires with the part that expires first. It
// is not trusted. It has one hop more than the messages that the agent was given, now and in
// earlier turns, whose most hops the caller passes;
// more than [envelope.MaxHops] are refused with a [*WithheldError]. The gate
// decides at delivery what the reader may see of it.
func (c *Compartment) GateMessage(parts []Sealed, before int, now time.Time) (envelope.Header, error) {
	if c == nil {
		return envelope.Header{}, errNothing
	}
	k := &c.Contract
	d := Decision{Rule: RuleMessage, Mode: handoff.Full, From: k.Callee, Task: k.Task, Source: Source{Kind: handoff.Message, Name: string(k.Task)}, Before: k.MaxInput, After: k.MaxInput}
	refuse := func(rule handoff.Rule, why string) (envelope.Header, error) {
		d.withhold(rule, ReasonRule, why)
		return envelope.Header{}, d.Err()
	}
	if k.Session == "" || k.replied == nil {
		return refuse(RuleContract, "there is no contract that a handshake made")
	}
	if !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) {
		return refuse(RuleContract, "the message came after the contract had ended")
	}
	h := envelope.Header{Run: k.Run, Classification: k.MaxInput}
	hops, err := k.derive(&h, parts)
	if err != nil {
		return envelope.Header{}, fmt.Errorf("gate a message of %q: %w", k.Callee, err)
	}
	h.Hops = max(hops, before) + 1
	switch {
	case h.Hops > envelope.MaxHops:
		return refuse(RuleHops, fmt.Sprintf("it was handed on %d times, at most %d are allowed", h.Hops, envelope.MaxHops))
	case !h.ExpiresAt.IsZero() && !now.Before(h.ExpiresAt):
		return refuse(RuleExpiry, "what it was made from expired meanwhile")
	}
	return h, nil
}

// HopsOf returns how often the messages among some pieces have been handed on, at most.
func HopsOf(parts []Sealed) (hops int) {
	for i := range parts {
		if parts[i].passed {
			hops = max(hops, parts[i].hops)
		}
	}
	return hops
}
