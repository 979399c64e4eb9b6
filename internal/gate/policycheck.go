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

func (c *policyChecker) add(subject, message, hint string, tokens ...any) {
	c.found = append(c.found, task.Problem{
		Pointer: naming.Pointer(append([]any{"policy"}, tokens...)...), Subject: subject, Message: message, Hint: hint, Err: handoff.ErrPolicy,
	})
}

func (c *policyChecker) check() {
	b := c.book
	for _, p := range c.parties {
		b.defaults[p.Name] = p.Default
		c.names = append(c.names, p.Name)
		if p.Default != "" && !validMode(p.Default) {
			c.add(fmt.Sprintf("agent %q", p.Name), fmt.Sprintf("unknown mode %q", p.Default), suggestMode(p.Default), "default")
		}
	}
	if !validMode(b.standard) {
		c.add("", fmt.Sprintf("unknown mode %q", b.standard), suggestMode(b.standard), "default")
	}
	c.checkRedaction("", handoff.Redaction(b.redact), "redact")
	b.rules = make([]compiledRule, len(b.policy.Rules))
	for i := range b.policy.Rules {
		c.checkRule(i)
	}
	c.checkEntries()
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
		c.add("", says, hint, "redact")
	}
}

func validMode(m handoff.Mode) bool { return slices.Contains(modes, m) }

func suggestMode(m handoff.Mode) string {
	return naming.Suggest(string(m), []string{string(handoff.Full), string(handoff.Scoped), string(handoff.Minimal)})
}

// checkRule reads one rule.
func (c *policyChecker) checkRule(i int) {
	b := c.book
	r := &b.policy.Rules[i]
	known := len(c.found)
	subject := c.checkPair("", r.From, r.To, true, "rules", i)
	if r.ID == "" {
		r.ID = handoff.Rule(r.From + "→" + r.To)
	}
	if err := naming.CheckLine(string(r.ID)); err != nil {
		c.add(subject, "its name: "+err.Error(), "write one clean line", "rules", i, "name")
	}
	add := func(message, hint string, tokens ...any) {
		c.add(subject, message, hint, append([]any{"rules", i}, tokens...)...)
	}
	if isReserved(r.ID) {
		add(takenName, takenHint, "name")
	}
	everybody := r.From == handoff.Anyone && r.To == handoff.Anyone
	exact := r.From != handoff.Anyone && r.To != handoff.Anyone
	checkMode(r, everybody, add)
	sound := len(c.found)
	rule := compiledRule{PairRule: *r, picked: pick.Everything(), blocks: pick.Everything()}
	rule.blocks = c.except(rule.blocks, r.Block, subject, "rules", i, "block")
	rule.picked = rule.blocks
	if r.Mode == handoff.Scoped && r.Allow != nil {
		rule.picked = c.only(rule.picked, r.Allow, subject, "rules", i, "allow")
		if len(c.found) == sound && rule.picked.Empty() {
			add("everything that it allows it also blocks", "let allow and block leave something, or write mode: minimal", "block")
		}
	}
	if words := wordsOf(r.From, r.To); words != "" && (r.Mode != "" || len(r.Block) > 0) {
		add(words+" has no parts", "leave mode, allow and block out; maxClassification and redact count for it", "mode")
	}
	if r.Ceiling != nil && !r.Ceiling.Valid() {
		add("unknown label", "write one of "+strings.Join(label.Classifications(), ", "), "maxClassification")
	}
	if r.Mode == "" && len(r.Block) == 0 && r.Ceiling == nil && redaction(r.Redact).empty() && len(r.Reveal) == 0 && r.Translate == nil {
		add("it says nothing", "give it a mode, allow, block, maxClassification, redact, reveal or translate")
	}
	c.checkRedaction(subject, r.Redact, "rules", i, "redact")
	c.checkReveal(r, subject, exact, i)
	c.checkTranslation(r, subject, everybody, exact, i)
	if exact {
		c.addExact(i, r)
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
func checkMode(r *handoff.PairRule, everybody bool, add func(message, hint string, tokens ...any)) {
	if r.Allow != nil && r.Mode == "" {
		r.Mode = handoff.Scoped
	}
	switch {
	case r.Mode == "":
	case !validMode(r.Mode):
		add(fmt.Sprintf("unknown mode %q", r.Mode), suggestMode(r.Mode), "mode")
	case everybody:
		add("a rule from * to * may not state a mode", "leave mode and allow out; policy.default says what grants deliver", "mode")
	case r.Mode != handoff.Scoped && r.Allow != nil:
		add(fmt.Sprintf("allow has no effect with mode: %s", r.Mode), "write mode: scoped, or leave allow out", "allow")
	case r.Allow != nil && len(r.Allow) == 0:
		add("an empty allow list grants nothing", "write paths, or mode: minimal", "allow")
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

// checkPair checks the two names of a rule or an entry, and returns its subject.
func (c *policyChecker) checkPair(name, from, to string, anyone bool, tokens ...any) string {
	subject := c.subject(from, to)
	if name != "" {
		subject = fmt.Sprintf("%q", name)
	}
	for _, side := range [...]struct{ key, name string }{{"from", from}, {"to", to}} {
		at := append(slices.Clone(tokens), side.key)
		switch {
		case side.name == "":
			c.add(subject, side.key+" is missing", "name an agent", at...)
		case side.name == handoff.Anyone && !anyone:
			c.add(subject, "it is for everybody", "name one agent: each pair needs an entry of its own", at...)
		case side.name == handoff.Anyone, side.name == handoff.User, side.name == handoff.Coordinator, slices.Contains(c.names, side.name):
		default:
			c.add(subject, fmt.Sprintf("unknown agent %q", side.name), naming.Suggest(side.name, append([]string{handoff.User, handoff.Coordinator}, c.names...)), at...)
		}
	}
	if from == to && from == handoff.User {
		c.add(subject, "the inputs of the caller are not delivered to the caller", "name an agent on one side", append(slices.Clone(tokens), "to")...)
	}
	return subject
}

func (c *policyChecker) subject(from, to string) string {
	return fmt.Sprintf("rule %s→%s", from, to)
}

// only narrows a selection, and reports the paths that are none.
func (c *policyChecker) only(s pick.Selection, paths []task.Path, subject string, tokens ...any) pick.Selection {
	for k, p := range paths {
		if err := pick.CheckAllow(p); err != nil {
			c.add(subject, err.Error(), "", append(slices.Clone(tokens), k)...)
		}
	}
	return narrowed(s.Only(paths...))
}

func (c *policyChecker) except(s pick.Selection, paths []task.Path, subject string, tokens ...any) pick.Selection {
	if len(paths) == 0 {
		return s
	}
	for k, p := range paths {
		if err := pick.CheckBlock(p); err != nil {
			c.add(subject, err.Error(), "", append(slices.Clone(tokens), k)...)
		}
	}
	return narrowed(s.Except(paths...))
}
