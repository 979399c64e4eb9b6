package gate

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
)

// checkTranslation checks how a rule wants its context translated.
func (c *policyChecker) checkTranslation(r *handoff.PairRule, subject string, everybody, exact bool, i int) {
	t := r.Translate
	if t == nil {
		return
	}
	add := func(message, hint string, tokens ...any) {
		c.add(subject, message, hint, append([]any{"rules", i, "translate"}, tokens...)...)
	}
	c.only(pick.Everything(), t.Fields, subject, "rules", i, "translate", "fields")
	c.except(pick.Everything(), t.Filter, subject, "rules", i, "translate", "filter")
	switch {
	case everybody:
		add("a rule from * to * may not translate", "write it in a rule with a name")
	case r.To == handoff.User, r.From == handoff.Coordinator:
		add("results are delivered to the user, and tasks to agents, as they are", "name an agent on both sides")
	case r.Mode == handoff.Minimal:
		add("with mode: minimal there is nothing to translate", "leave translate out")
	case t.Fields == nil && len(t.Filter) == 0 && t.MaxTokens == 0 && t.Recast == "":
		add("it says nothing", "give it fields, filter, summarize or recast")
	}
	if t.Fields != nil && len(t.Fields) == 0 {
		add("an empty list of fields keeps nothing", "write paths, or mode: minimal", "fields")
	}
	if t.MaxTokens < 0 || t.ByModel && t.MaxTokens == 0 {
		add("maxTokens must be at least 1", "write the bound in tokens", "summarize", "maxTokens")
	}
	switch t.Recast {
	case "", RecastUser:
	case RecastSystem:
		if !exact {
			add("only a rule for one pair puts context into a system prompt", "name both sides", "recast")
		}
	default:
		add(fmt.Sprintf("unknown role %q", t.Recast), "write user or system", "recast")
	}
}
