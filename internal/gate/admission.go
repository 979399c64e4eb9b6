package gate

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
)

// An Admission is what would become of a value of some label on an edge,
// whatever the value is: what a static check asks beforehand, and the gate
// about each value.
type Admission struct {
	After  label.Classification  // the label that it would be delivered with
	Lowers *handoff.Declassifier // the entry that lowers it to After; nil if none does

	// Why it would be withheld; empty if it would not.
	Rule   handoff.Rule
	Reason string
	Detail string
	Line   string
}

// Withheld reports whether a value of this label is certain to be withheld.
func (c *Admission) Withheld() bool { return c.Rule != "" }

// NotTranslated says that a value is withheld since a model would have to translate it, and none may.
const NotTranslated = "only a summary by a model may be delivered, and the policy has translateByModel: false"

// Admission rules on the label of a value for a reader with this clearance.
//
// A value that would be withheld is lowered by the declassifier of the pair, if there
// is one: above the clearance, above the ceiling of a rule, and if it is secret and
// no rule is for the exact pair. So if a label is delivered, every lower one is.
func (t *Terms) Admit(level, clearance label.Classification, to string) Admission {
	c := Admission{After: level}
	named := to == handoff.User || t != nil && t.exact // a rule for the exact pair, or the caller, who is no model
	if t != nil && t.lower != nil && t.lower.LowerTo < level && (level > min(clearance, t.ceiling) || level == label.Secret && !named) {
		c.After, c.Lowers = t.lower.LowerTo, t.lower
	}
	switch {
	case c.After > clearance:
		c.Rule, c.Reason, c.Detail = RuleClearance, ReasonClearance, fmt.Sprintf("it is %v, and %q may see %v", c.After, to, clearance)
	case c.After == label.Secret && !named:
		c.Rule, c.Reason = RuleSecret, ReasonRule
		c.Detail = "it is secret, and secret flows only by a rule for the exact pair of agents that states a mode"
	case t != nil && c.After > t.ceiling:
		c.Rule, c.Reason, c.Line = t.ceilingBy.Rule, ReasonRule, t.ceilingBy.Line
		c.Detail = fmt.Sprintf("it is %v, and the rule lets %v through at most", c.After, t.ceiling)
	case t != nil && t.translation.off:
		c.Rule, c.Reason, c.Line = t.translation.by.Rule, ReasonRule, t.translation.by.Line
		c.Detail = NotTranslated
	}
	return c
}
