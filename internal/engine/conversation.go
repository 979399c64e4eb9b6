package engine

import (
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
)

// offerConversation offers an attempt what was said in the earlier turns of the session, if its task
// answers the person.
func offerConversation(a *attempt, r *results) {
	o := r.plan.Options()
	if o.Answer != nil {
		return // the coordinator answers
	}
	for k := range o.Conversation {
		offer := o.Conversation[k].Offer()
		g := gate.WholeOf(offer.Source, "")
		g.MaxBytes = a.limits.On(offer.Source, 0)
		g.Terms = plan.ReadBy(r.plan, a.index).Terms(o.Conversation[k].From, a.caps.Agent)
		a.offers, a.grants = append(a.offers, offer), append(a.grants, g)
	}
	a.said = len(o.Conversation)
}

// conversation offers a step of the coordinator what was said in earlier turns. Digests of results do
// without: the answer is made from them with the conversation.
func (c *coordinator) conversation(kind StepKind) []gate.Offer {
	if kind == StepDigest {
		return nil
	}
	offers := make([]gate.Offer, len(c.options.Conversation))
	for k := range offers {
		offers[k] = c.options.Conversation[k].Offer()
	}
	return offers
}
