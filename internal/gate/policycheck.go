package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A policyChecker reads a policy into a book, and collects everything wrong with it.
type policyChecker struct {
	book    *Rulebook
	parties []Party
	names   []string // that rules may have
	found   task.Problems
	all     redaction // of every rule together
	unclear bool      // a kind or a pattern is wrong
}

// A place is where a part of the policy is written, for the problems that are found there.
type place struct {
	checker *policyChecker
	subject string
	tokens  []any // of the pointer
}

// at returns a place of the policy.
func (c *policyChecker) at(subject string, tokens ...any) place {
	return place{c, subject, append([]any{"policy"}, tokens...)}
}

// below returns a place within p.
func (p place) below(tokens ...any) place {
	p.tokens = slices.Concat(p.tokens, tokens)
	return p
}

// add reports a problem at p, or below it.
func (p place) add(message, hint string, tokens ...any) {
	p.checker.found = append(p.checker.found, task.Problem{
		Pointer: naming.Pointer(p.below(tokens...).tokens...), Subject: p.subject, Message: message, Hint: hint, Err: handoff.ErrPolicy,
	})
}

func (c *policyChecker) check() {
	b := c.book
	for _, p := range c.parties {
		c.names = append(c.names, p.Name)
		b.defaults[p.Name] = c.intake(&p)
	}
	if !validMode(b.standard) {
		c.at("").add(fmt.Sprintf("unknown mode %q", b.standard), suggestMode(b.standard), "default")
	}
	c.at("", "redact").checkRedaction(b.redact)
	b.rules = make([]compiledRule, len(b.policy.Rules))
	for i := range b.policy.Rules {
		c.checkRule(i)
	}
	c.checkEntries()
	c.checkIdentity()
	c.makeRedactors()
	for _, w := range b.by {
		slices.SortFunc(w.cites, byRule)
	}
}

// makeRedactors makes the redactors of the policy as a whole, whose patterns may
// not go together though each of them can be one.
func (c *policyChecker) makeRedactors() {
	b := c.book
	if c.unclear {
		return
	}
	var err error
	if b.redactor, err = b.redact.redactor(); err == nil {
		_, err = c.all.and(b.redact).redactor() // what any pair can come to is part of this
	}
	if err == nil && len(c.all.Patterns) > 0 {
		b.words, err = redact.New(redact.PersonalKinds(), c.all.Patterns)
	}
	if err != nil {
		says, hint := patternAdvice(err)
		c.at("", "redact").add(says, hint)
	}
}

func validMode(m handoff.Mode) bool { return slices.Contains(modes, m) }

func suggestMode(m handoff.Mode) string {
	return naming.Suggest(string(m), []string{string(handoff.Full), string(handoff.Scoped), string(handoff.Minimal)})
}

// maxNote is how long the note of a rule may be, in bytes.
const maxNote = 500

// checkNote checks the note of a rule.
func (p place) checkNote(note string) {
	if note == "" {
		return
	}
	if err := naming.CheckLine(note); err != nil {
		p.add("note: "+err.Error(), "write one clean line", "note")
	} else if len(note) > maxNote {
		p.add(fmt.Sprintf("note has %d bytes, at most %d", len(note), maxNote), "say it in fewer words", "note")
	}
}

// checkRule reads one rule.
func (c *policyChecker) checkRule(i int) {
	b := c.book
	r := &b.policy.Rules[i]
	known := len(c.found)
	at := c.at(ruleSubject(r.From, r.To), "rules", i)
	at.checkPair(r.From, r.To, true)
	if r.ID == "" {
		r.ID = handoff.Rule(r.From + "→" + r.To)
	}
	if err := naming.CheckLine(string(r.ID)); err != nil {
		at.add("its name: "+err.Error(), "write one clean line", "name")
	}
	if isReserved(r.ID) {
		at.add(takenName, takenHint, "name")
	}
	at.checkNote(r.Note)
	everybody := r.From == handoff.Anyone && r.To == handoff.Anyone
	exact := r.From != handoff.Anyone && r.To != handoff.Anyone
	at.checkMode(r, everybody)
	sound := len(c.found)
	rule := compiledRule{PairRule: *r, picked: pick.Everything(), blocks: pick.Everything()}
	rule.blocks = at.below("block").except(rule.blocks, r.Block)
	rule.picked = rule.blocks
	if r.Mode == handoff.Scoped && r.Allow != nil {
		rule.picked = at.below("allow").only(rule.picked, r.Allow)
		if len(c.found) == sound && rule.picked.Empty() {
			at.add("everything that it allows it also blocks", "let allow and block leave something, or write mode: minimal", "block")
		}
	}
	if words := wordsOf(r.From, r.To); words != "" && (r.Mode != "" || len(r.Block) > 0) {
		at.add(words+" has no parts", "leave mode, allow and block out; maxClassification and redact count for it", "mode")
	}
	if r.Ceiling != nil && !r.Ceiling.Valid() {
		at.add("unknown label", "write one of "+strings.Join(label.Classifications(), ", "), "maxClassification")
	}
	if r.Mode == "" && len(r.Block) == 0 && r.Ceiling == nil && redaction(r.Redact).empty() && len(r.Reveal) == 0 && r.Translate == nil {
		at.add("it says nothing", "give it a mode, allow, block, maxClassification, redact, reveal or translate")
	}
	at.below("redact").checkRedaction(redaction(r.Redact))
	at.below("reveal").checkReveal(r, exact)
	at.below("translate").checkTranslation(r, everybody, exact)
	if exact {
		at.addExact(i, r)
	}
	if len(c.found) > known {
		return
	}
	b.rules[i] = rule
	if !exact {
		c.addWildcard(&b.rules[i])
	}
}

// checkMode checks the mode of a rule and its allow list, which implies a mode.
func (p place) checkMode(r *handoff.PairRule, everybody bool) {
	if r.Allow != nil && r.Mode == "" {
		r.Mode = handoff.Scoped
	}
	switch {
	case r.Mode == "":
	case !validMode(r.Mode):
		p.add(fmt.Sprintf("unknown mode %q", r.Mode), suggestMode(r.Mode), "mode")
	case everybody:
		p.add("a rule from * to * may not state a mode", "leave mode and allow out; policy.default says what grants deliver", "mode")
	case r.Mode != handoff.Scoped && r.Allow != nil:
		p.add(fmt.Sprintf("allow has no effect with mode: %s", r.Mode), "write mode: scoped, or leave allow out", "allow")
	case r.Allow != nil && len(r.Allow) == 0:
		p.add("an empty allow list grants nothing", "write paths, or mode: minimal", "allow")
	}
}

// wordsOf names what a pair only ever tells each other, if that has no parts.
func wordsOf(from, to string) string {
	switch {
	case from == handoff.Coordinator:
		return "what the coordinator writes for agents"
	case from == handoff.User && to == handoff.Coordinator:
		return "the goal"
	}
	return ""
}

func ruleSubject(from, to string) string { return fmt.Sprintf("rule %s→%s", from, to) }

// checkPair checks the two names of a rule or an entry.
func (p place) checkPair(from, to string, anyone bool) {
	names := p.checker.names
	for _, side := range [...]struct{ key, name string }{{"from", from}, {"to", to}} {
		switch {
		case side.name == "":
			p.add(side.key+" is missing", "name an agent", side.key)
		case side.name == handoff.Anyone && !anyone:
			p.add("it is for everybody", "name one agent: each pair needs an entry of its own", side.key)
		case side.name == handoff.Anyone, side.name == handoff.User, side.name == handoff.Coordinator, side.name == handoff.Computed, slices.Contains(names, side.name):
		default:
			kind, alike := naming.Alike("agent", side.name, append([]string{handoff.User, handoff.Coordinator}, names...))
			p.add(fmt.Sprintf("unknown %s %q", kind, side.name), naming.Suggest(side.name, alike), side.key)
		}
	}
	if from == to && from == handoff.User {
		p.add("the inputs of the caller are not delivered to the caller", "name an agent on one side", "to")
	}
}

// only narrows a selection, and reports the paths that are none.
func (p place) only(s pick.Selection, paths []task.Path) pick.Selection {
	for k, path := range paths {
		if err := pick.CheckAllow(path); err != nil {
			p.add(err.Error(), "", k)
		}
	}
	return narrowed(s.Only(paths...))
}

// except removes paths from a selection, and reports those that are none.
func (p place) except(s pick.Selection, paths []task.Path) pick.Selection {
	for k, path := range paths {
		if err := pick.CheckBlock(path); err != nil {
			p.add(err.Error(), "", k)
		}
	}
	return narrowed(s.Except(paths...))
}
