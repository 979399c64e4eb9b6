package gate

import (
	"cmp"
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
)

// An intake is what a [Party] says of all that it gets, ready to rule. It only narrows.
type intake struct {
	mode      handoff.Mode   // empty if it states none
	lists     bool           // it lists what it is allowed
	allowed   pick.Selection // by that list
	blocks    pick.Selection
	narrows   bool // it takes parts away whatever the mode
	translate *handoff.Translation
	line      string // for people
}

// states reports whether the intake says anything.
func (in *intake) states() bool {
	return in.mode != "" || in.lists || in.narrows || in.translate != nil
}

// intake reads what a party says of itself, and reports what is wrong with it.
func (c *policyChecker) intake(p *Party) intake {
	at := c.at(fmt.Sprintf("agent %q", p.Name))
	in := intake{mode: p.Default, lists: p.Allow != nil, translate: cloneTranslation(p.Translate), line: fmt.Sprintf("agent %q", p.Name)}
	if in.mode == "" && in.lists {
		in.mode = handoff.Scoped
	}
	switch {
	case in.mode != "" && !validMode(in.mode):
		at.add(fmt.Sprintf("unknown mode %q", in.mode), suggestMode(in.mode), "default")
	case in.lists && in.mode != handoff.Scoped:
		at.add(fmt.Sprintf("a list of allowed fields has no effect with handoff: %s", in.mode), "write handoff: scoped, or leave the list out", "allow")
	case in.lists && len(p.Allow) == 0:
		at.add("an empty list of allowed fields grants nothing", "write paths, or handoff: minimal", "allow")
	}
	sound := len(c.found)
	in.blocks = at.below("block").except(pick.Everything(), p.Block)
	in.allowed = in.blocks
	if in.lists {
		in.allowed = at.below("allow").only(in.blocks, p.Allow)
	}
	if in.lists && len(p.Allow) > 0 && len(c.found) == sound && in.allowed.Empty() {
		at.add("all fields that it allows it also blocks", "let the two lists leave something, or write handoff: minimal", "block")
	}
	t := in.translate
	if t != nil {
		rule := handoff.PairRule{From: handoff.Anyone, To: p.Name, Mode: in.mode, Translate: t}
		at.below("translate").checkTranslation(&rule, false, false)
	}
	in.narrows = len(p.Block) > 0 || t != nil && (t.Fields != nil || len(t.Filter) > 0)
	return in
}

// applyIntake applies what the reader blocks and translates. As a rule from everyone to the reader,
// it applies together with all others.
func applyIntake(t *Terms, own *intake) {
	if !own.narrows && own.translate == nil {
		return
	}
	c := Citation{Rule: RuleAgentDefault, Line: own.line}
	t.cited = append(t.cited, c)
	t.selection = t.selection.And(own.blocks)
	with := own.translate
	if with != nil && with.ByModel && t.translation.maxTokens > 0 && !t.translation.byModel {
		with = cloneTranslation(with)
		with.ByModel = false // the model would read more than the excerpt that a rule delivers
	}
	t.addTranslation(with, c)
	if own.narrows && t.narrows.Rule == "" {
		t.narrows = c
	}
}

// applyDefaults takes the mode from the default of the policy and of the reader, which are for what
// agents make for agents.
func (t *Terms) applyDefaults(standard handoff.Mode, own *intake) {
	if t.from == handoff.User || t.from == handoff.Coordinator || t.from == Runtime || t.to == handoff.User || t.to == handoff.Coordinator {
		return
	}
	t.mode = cmp.Or(standard, handoff.Minimal) // of a book that was not compiled
	t.needs = t.mode == handoff.Scoped
	if t.mode != handoff.Full {
		t.stated = Citation{Rule: RuleDefault, Line: "policy.default"}
	}
	if mode := cmp.Or(own.mode, handoff.Full); narrower(mode, t.mode) != t.mode {
		t.mode, t.stated, t.needs = mode, Citation{Rule: RuleAgentDefault, Line: "handoff of " + own.line}, mode == handoff.Scoped && !own.lists
	}
	if own.lists {
		t.selection = t.selection.And(own.allowed)
	}
}
