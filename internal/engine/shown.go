package engine

import (
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// shown returns a prompt as the caller may see it.
func (r *run) shown(p prompt.Prompt) prompt.Shown {
	return p.Show(r.options.RecordClearance(), r.hides())
}

// receiptOf returns the receipt of a prompt as the caller may see it, and how many
// bytes the prompt has in that form.
func (r *run) receiptOf(p prompt.Prompt) (*prompt.Receipt, int) {
	return p.ShownReceipt(r.options.RecordClearance(), r.hides())
}

// hides returns the sources of prompts that the policy hides from the caller,
// whatever their label; nil without a policy.
func (r *run) hides() func(*prompt.Source) bool {
	if r.team.Rules == nil {
		return nil
	}
	return func(s *prompt.Source) bool { return s.Decision != nil && !r.sees(s.Decision) }
}

// sees reports whether the caller may see the whole value that a decision is
// about: its label is within the caller's clearance, and the policy lets the
// caller have all that its producer makes.
func (r *run) sees(d *gate.Decision) bool {
	accepts := r.options.RecordClearance()
	if d.Before > accepts {
		return false
	}
	return r.team.Rules == nil || d.From == handoff.User || crossesWhole(r.team.Terms(d.From, handoff.User), d, accepts)
}

// decided returns a decision as the caller may see it.
func (r *run) decided(d *gate.Decision) gate.Decision {
	switch {
	case r.sees(d):
		return *d
	case d.To == handoff.User:
		return d.Delivered()
	}
	return d.Outline()
}

// sizeOf returns the size of an envelope as the caller may see it: its class
// unless the caller may see the whole value.
func (r *run) sizeOf(e *envelope.Envelope) int {
	if r.sees(&gate.Decision{From: e.Producer(), Before: e.Classification(), Source: handoff.Source{Kind: handoff.Dependency}}) {
		return e.Size()
	}
	return label.SizeClass(max(e.Size(), 1))
}

// usageOf returns the usage of a model call with the exchange's prompt as the
// caller may see it. If the caller may not see the whole prompt, its
// tokens are estimated from the prompt as shown; those of a reply that the
// caller may not see are a class.
func (x *exchange) usageOf(u llm.Usage, turns int) llm.Usage {
	if x.hidden {
		u.CachedTokens = 0
		if u.InputTokens > 0 {
			u.InputTokens = gate.Tokens(x.shownSize) * max(turns, 1)
		}
	}
	if x.hidesReply() {
		u.OutputTokens, u.ReasoningTokens = gate.TokenClass(u.OutputTokens), 0
	}
	return u
}

// coarse reports whether the caller sees the usage of the exchange's own calls only
// rounded.
func (x *exchange) coarse() bool { return x.hidden || x.hidesReply() }

// ownCost returns the cost of the exchange's own model calls as the caller may see it: the
// cost of the rounded usage if the caller sees only that.
func (x *exchange) ownCost() llm.Money {
	if !x.coarse() {
		return x.paid
	}
	price, _ := x.run.budgets.price(x.caps.Agent, "")
	return price.Cost(x.usageOf(x.reply.Usage, x.reply.Turns))
}

// showCost adds the cost of the exchange, and of the calls that served it, to what errors
// show to the caller.
func (x *exchange) showCost() {
	cost := x.ownCost()
	for _, s := range x.spent {
		cost = cost.Add(s.cost)
	}
	x.run.budgets.show(x.caps.Agent, max(cost-x.costShown, 0))
	x.costShown = max(x.costShown, cost)
}

// rounds reports whether usageOf is not exact.
func (x *exchange) rounds() bool {
	return x.usage() != (llm.Usage{}) && (x.coarse() || slices.ContainsFunc(x.spent, func(s retelling) bool { return s.rounded }))
}

// hidesReply reports whether the caller may not see all that the agent replied.
func (x *exchange) hidesReply() bool {
	reply := gate.Decision{From: x.caps.Agent, Before: x.contract.MaxInput, Source: handoff.Source{Kind: handoff.Dependency}}
	if x.envelope != nil {
		reply.Before = x.envelope.Classification()
	}
	return x.partly || !x.run.sees(&reply)
}

// crossesWhole reports whether what a decision is about crosses as a whole, and
// with its own label, under the terms of its producer and the caller.
func crossesWhole(t *gate.Terms, d *gate.Decision, accepts label.Classification) bool {
	x := t.Crossing(d.Before, accepts, handoff.User)
	if x.Held() || x.Lowers != nil || t.AddsRedaction() {
		return false
	}
	return gate.Instructs(d.Source, d.From) || plan.PassesAsText(t)
}
