package gate

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
)

// checkTranslation checks how a rule wants its context translated.
func (p place) checkTranslation(r *handoff.PairRule, everybody, exact bool) {
	t := r.Translate
	if t == nil {
		return
	}
	p.below("fields").only(pick.Everything(), t.Fields)
	p.below("filter").except(pick.Everything(), t.Filter)
	switch {
	case everybody:
		p.add("a rule from * to * may not translate", "write it in a rule with a name")
	case r.To == handoff.User, r.From == handoff.Coordinator:
		p.add("results are delivered to the user, and tasks to agents, as they are", "name an agent on both sides")
	case r.Mode == handoff.Minimal:
		p.add("with mode: minimal there is nothing to translate", "leave translate out")
	case t.Fields == nil && len(t.Filter) == 0 && t.MaxTokens == 0 && t.Recast == "":
		p.add("it says nothing", "give it fields, filter, summarize or recast")
	}
	if t.Fields != nil && len(t.Fields) == 0 {
		p.add("an empty list of fields keeps nothing", "write paths, or mode: minimal", "fields")
	}
	if t.MaxTokens < 0 || t.ByModel && t.MaxTokens == 0 {
		p.add("maxTokens must be at least 1", "write the bound in tokens", "summarize", "maxTokens")
	}
	switch t.Recast {
	case "", RecastUser:
	case RecastSystem:
		if !exact {
			p.add("only a rule for one pair puts context into a system prompt", "name both sides", "recast")
		}
	default:
		p.add(fmt.Sprintf("unknown role %q", t.Recast), "write user or system", "recast")
	}
}
