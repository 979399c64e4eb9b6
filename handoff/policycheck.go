package handoff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/pick"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A policyChecker reads a policy into a book, and collects everything wrong with it.
type policyChecker struct {
	book    *Rulebook
	parties []Party
	names   []string // that rules may have
	found   task.Problems
	all     Redaction // of every rule together
	unclear bool      // a kind or a pattern is wrong
}

func (c *policyChecker) add(subject, message, hint string, tokens ...any) {
	c.found = append(c.found, task.Problem{
		Pointer: task.Pointer(append([]any{"policy"}, tokens...)...), Subject: subject, Message: message, Hint: hint, Err: ErrPolicy,
	})
}

func (c *policyChecker) check() {
	b := c.book
	for _, p := range c.parties {
		b.defaults[p.Name] = p.Default
		c.names = append(c.names, p.Name)
		if p.Default != "" && !p.Default.valid() {
			c.add(fmt.Sprintf("agent %q", p.Name), fmt.Sprintf("no mode is called %q", p.Default), suggestMode(p.Default), "default")
		}
	}
	if !b.standard.valid() {
		c.add("", fmt.Sprintf("no mode is called %q", b.standard), suggestMode(b.standard), "default")
	}
	c.redaction("", b.redact, "redact")
	b.rules = make([]law, len(b.policy.Rules))
	for i := range b.policy.Rules {
		c.rule(i)
	}
	c.entries()
	c.together()
	for _, w := range b.by {
		slices.SortFunc(w.cites, byRule)
	}
}

// together makes the redactors of the policy as a whole, whose patterns may
// not go together though each of them can be one.
func (c *policyChecker) together() {
	b := c.book
	if c.unclear {
		return
	}
	var err error
	if b.redactor, err = b.redact.redactor(); err == nil {
		_, err = c.all.and(b.redact).redactor() // what any pair can come to is part of this
	}
	if err == nil && len(c.all.Patterns) > 0 {
		b.words, err = redact.New(redact.Options{Personal: redact.PersonalKinds(), Patterns: c.all.Patterns})
	}
	if err != nil {
		says, hint := patternAdvice(err)
		c.add("", says, hint, "redact")
	}
}

func (m Mode) valid() bool { return slices.Contains(modes, m) }

func suggestMode(m Mode) string {
	return task.Suggest(string(m), []string{string(Full), string(Scoped), string(Minimal)})
}

// rule reads one rule.
func (c *policyChecker) rule(i int) {
	b := c.book
	r := &b.policy.Rules[i]
	known := len(c.found)
	subject := c.pair("", r.From, r.To, true, "rules", i)
	if r.ID == "" {
		r.ID = Rule(r.From + "→" + r.To)
	}
	if err := task.CheckLine(string(r.ID)); err != nil {
		c.add(subject, "its name: "+err.Error(), "write one clean line", "rules", i, "name")
	}
	add := func(message, hint string, tokens ...any) {
		c.add(subject, message, hint, append([]any{"rules", i}, tokens...)...)
	}
	if r.ID.own() {
		add(takenName, takenHint, "name")
	}
	everybody := r.From == Anyone && r.To == Anyone
	exact := r.From != Anyone && r.To != Anyone
	if r.Allow != nil && r.Mode == "" {
		r.Mode = Scoped
	}
	switch {
	case r.Mode == "":
	case !r.Mode.valid():
		add(fmt.Sprintf("no mode is called %q", r.Mode), suggestMode(r.Mode), "mode")
	case everybody:
		add("a rule of everybody for everybody may not state a mode", "leave mode and allow out; policy.default says what grants deliver", "mode")
	case r.Mode != Scoped && r.Allow != nil:
		add(fmt.Sprintf("allow has no effect with mode: %s", r.Mode), "write mode: scoped, or leave allow out", "allow")
	case r.Allow != nil && len(r.Allow) == 0:
		add("an empty allow list grants nothing", "write paths, or mode: minimal", "allow")
	}
	sound := len(c.found)
	law := law{PairRule: *r, picked: pick.Everything(), blocks: pick.Everything()}
	law.blocks = c.except(law.blocks, r.Block, subject, "rules", i, "block")
	law.picked = law.blocks
	if r.Mode == Scoped && r.Allow != nil {
		law.picked = c.only(law.picked, r.Allow, subject, "rules", i, "allow")
		if len(c.found) == sound && law.picked.Empty() {
			add("everything that it allows it also blocks", "let allow and block leave something, or write mode: minimal", "block")
		}
	}
	if words := wordsOf(r.From, r.To); words != "" && (r.Mode != "" || len(r.Block) > 0) {
		add(words+" has no parts", "leave mode, allow and block out; maxClassification and redact count for it", "mode")
	}
	if r.Ceiling != nil && !r.Ceiling.Valid() {
		add("unknown label", "write one of "+strings.Join(label.Classifications(), ", "), "maxClassification")
	}
	if r.Mode == "" && len(r.Block) == 0 && r.Ceiling == nil && r.Redact.empty() && len(r.Reveal) == 0 && r.Translate == nil {
		add("it says nothing", "give it a mode, allow, block, maxClassification, redact, reveal or translate")
	}
	c.redaction(subject, r.Redact, "rules", i, "redact")
	c.reveal(r, subject, exact, i)
	c.translation(r, subject, everybody, exact, i)
	if exact {
		c.pin(i, r)
	}
	if len(c.found) > known {
		return
	}
	b.rules[i] = law
	if !exact {
		c.place(&b.rules[i])
	}
}

// wordsOf names what a pair only ever tells each other, if that has no parts.
func wordsOf(from, to string) string {
	switch {
	case from == Coordinator:
		return "what the coordinator writes for agents"
	case from == User && to == Coordinator:
		return "the goal"
	}
	return ""
}

// pin files a rule under the one pair that it is for, also one in which
// something else is wrong.
func (c *policyChecker) pin(i int, r *PairRule) {
	pair := [2]string{r.From, r.To}
	first, twice := c.book.exact[pair]
	switch {
	case r.From == "" || r.To == "":
	case twice:
		c.add(c.subject(r.From, r.To), "there already is a rule for this pair, "+where(c.book.policy.Rules[first].Origin, r.Origin, first), "make one rule of the two", "rules", i)
	default:
		c.book.exact[pair] = i
	}
}

// where says where entry i of a list stands, for a message about another one.
func where(other, own task.Position, i int) string {
	switch {
	case other.Line == 0:
		return fmt.Sprintf("number %d", i+1)
	case other.Line == own.Line:
		return fmt.Sprintf("in column %d of this line", other.Column)
	}
	return fmt.Sprintf("in line %d", other.Line)
}

// place files a rule under the side that it is for.
func (c *policyChecker) place(r *law) {
	b := c.book
	at := side{r.From, r.To}
	w := b.by[at]
	if w == nil {
		w = &bundle{selection: pick.Everything(), blocks: pick.Everything(), mode: Full}
		b.by[at] = w
	}
	w.cites = append(w.cites, Citation{r.ID, r.Origin.String()})
	w.redact, w.blocks = w.redact.and(r.Redact), w.blocks.And(r.blocks)
	if r.Translate != nil {
		w.retells = append(w.retells, r.Translate)
	}
	if r.lowerCeiling(w.ceiling) {
		w.ceiling = r
	}
	if r.narrows() && (w.narrowing == nil || r.before(w.narrowing)) {
		w.narrowing = r
	}
	if r.Mode == "" {
		return
	}
	if !w.states || r.Mode != w.mode && narrower(w.mode, r.Mode) == r.Mode || r.Mode == w.mode && r.before(w.deciding) {
		w.deciding = r
	}
	w.states, w.mode = true, narrower(w.mode, r.Mode)
	w.needs = w.needs || r.Mode == Scoped && r.Allow == nil
	w.selection = w.selection.And(r.picked)
}

// before orders rules that say the same, so that their order in a file does not matter.
func (r *law) before(other *law) bool {
	return cmp.Or(cmp.Compare(r.ID, other.ID), cmp.Compare(r.Origin.String(), other.Origin.String())) < 0
}

// lowerCeiling reports whether r has a ceiling that is lower than that of
// another rule, or as low and r comes first.
func (r *law) lowerCeiling(than *law) bool {
	switch {
	case r.Ceiling == nil:
		return false
	case than == nil:
		return true
	}
	return *r.Ceiling < *than.Ceiling || *r.Ceiling == *than.Ceiling && r.before(than)
}

// pair checks the two names of a rule or an entry, and returns its subject.
func (c *policyChecker) pair(name, from, to string, anyone bool, tokens ...any) string {
	subject := c.subject(from, to)
	if name != "" {
		subject = fmt.Sprintf("%q", name)
	}
	for _, side := range [...]struct{ key, name, reserved string }{{"from", from, User}, {"to", to, User}} {
		at := append(slices.Clone(tokens), side.key)
		switch {
		case side.name == "":
			c.add(subject, side.key+" is missing", "name an agent", at...)
		case side.name == Anyone && !anyone:
			c.add(subject, "it is for everybody", "name one agent: each pair needs an entry of its own", at...)
		case side.name == Anyone, side.name == side.reserved, side.name == Coordinator, slices.Contains(c.names, side.name):
		default:
			c.add(subject, fmt.Sprintf("no agent is called %q", side.name), task.Suggest(side.name, append([]string{User, Coordinator}, c.names...)), at...)
		}
	}
	if from == to && from == User {
		c.add(subject, "what the caller brings does not cross to the caller", "name an agent on one side", append(slices.Clone(tokens), "to")...)
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

func (r Redaction) empty() bool { return len(r.Kinds) == 0 && len(r.Patterns) == 0 }

// redaction checks kinds and patterns, and remembers them.
func (c *policyChecker) redaction(subject string, r Redaction, tokens ...any) {
	if r.empty() {
		return
	}
	known := len(c.found)
	for k, kind := range r.Kinds {
		switch {
		case kind.Secret():
			c.add(subject, fmt.Sprintf("%s is always redacted", kind), "leave it out", append(slices.Clone(tokens), "kinds", k)...)
		case !slices.Contains(redact.PersonalKinds(), kind):
			c.add(subject, fmt.Sprintf("no kind is called %q", kind), task.Suggest(string(kind), kindNamesOf(redact.PersonalKinds())), append(slices.Clone(tokens), "kinds", k)...)
		}
	}
	for k, p := range r.Patterns {
		if _, err := redact.New(redact.Options{Patterns: []redact.Pattern{p}}); err != nil {
			says, hint := patternAdvice(err)
			c.add(subject, says, hint, append(slices.Clone(tokens), "patterns", k)...)
		}
	}
	c.all, c.unclear = c.all.and(r), c.unclear || len(c.found) > known
}

// patternAdvice splits what package redact says of a pattern into what is
// wrong and what to write instead.
func patternAdvice(err error) (says, hint string) {
	says = strings.TrimPrefix(err.Error(), redact.ErrOptions.Error()+": ")
	for _, verb := range [...]string{"ask", "choose", "write", "join"} {
		if i := strings.LastIndex(says, ": "+verb+" "); i >= 0 {
			says, hint = says[:i], says[i+2:]
			break
		}
	}
	switch {
	case strings.HasPrefix(hint, "write a name"):
		says += ": not a name of a pattern"
	case strings.Contains(says, "error parsing regexp"):
		hint = "write it in RE2 syntax, and in quotes"
	}
	return says, hint
}

func kindNamesOf(kinds []redact.Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// reveal checks which kinds a rule lets cross in clear.
func (c *policyChecker) reveal(r *PairRule, subject string, exact bool, i int) {
	if len(r.Reveal) == 0 {
		return
	}
	if !exact || r.To == User {
		c.add(subject, "reveal is for one pair of agents", "write it in a rule with a name on both sides; to the user nothing personal is redacted", "rules", i, "reveal")
	}
	for _, problem := range CheckReveal(r.Reveal) {
		c.add(subject, problem.Message, problem.Hint, append([]any{"rules", i, "reveal"}, problem.tokens...)...)
	}
}

// A RevealProblem is something wrong with a reveal, and where below it.
type RevealProblem struct {
	Message, Hint string
	tokens        []any
}

// Pointer returns where the problem is, below the reveal.
func (p RevealProblem) Pointer() string { return task.Pointer(p.tokens...) }

// CheckReveal finds what is wrong with what is to cross in clear: kinds that
// are no personal ones, secrets, and what is no path.
func CheckReveal(reveal map[redact.Kind][]task.Path) (found []RevealProblem) {
	for _, kind := range slices.Sorted(maps.Keys(reveal)) {
		paths := reveal[kind]
		switch {
		case kind.Secret():
			found = append(found, RevealProblem{fmt.Sprintf("%s is a secret: no edge reveals it", kind), "leave it out", []any{string(kind)}})
		case !slices.Contains(redact.PersonalKinds(), kind):
			found = append(found, RevealProblem{fmt.Sprintf("no personal kind is called %q", kind), task.Suggest(string(kind), kindNamesOf(redact.PersonalKinds())), []any{string(kind)}})
		case len(paths) == 0:
			found = append(found, RevealProblem{"it names no path", `write where it may stand: [/path], or [""] for the whole value`, []any{string(kind)}})
		}
		for k, p := range paths {
			if err := pick.CheckAllow(p); err != nil {
				says, hint := revealAdvice(p, err)
				found = append(found, RevealProblem{says, hint, []any{string(kind), k}})
			}
		}
	}
	return found
}

// revealAdvice splits what package pick says of a path in a reveal into what is
// wrong and what to write instead, which never reveals more than one member.
func revealAdvice(p task.Path, err error) (says, hint string) {
	says = strings.TrimPrefix(err.Error(), pick.ErrPath.Error()+": ")
	if i := strings.LastIndex(says, ": write "); i >= 0 {
		says, hint = says[:i], says[i+2:]
	}
	if strings.HasPrefix(string(p), "*") {
		hint = `name the member: [/iban]; [""] is the whole value`
	}
	return says, hint
}

// translation checks how a rule wants its context retold.
func (c *policyChecker) translation(r *PairRule, subject string, everybody, exact bool, i int) {
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
		add("a rule of everybody for everybody may not retell", "write it in a rule with a name")
	case r.To == User, r.From == Coordinator:
		add("results are told to the user, and tasks to agents, as they are", "name an agent on both sides")
	case r.Mode == Minimal:
		add("with mode: minimal there is nothing to retell", "leave translate out")
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
		add(fmt.Sprintf("no role is called %q", t.Recast), "write user or system", "recast")
	}
}

// entries reads the declassifiers, endorsers and renewals.
func (c *policyChecker) entries() {
	b, names := c.book, map[string]bool{}
	named := func(list, name, reason string, i int) {
		switch err := task.CheckName(name); {
		case err != nil:
			c.add("", "name: "+err.Error(), "give it a name, which decisions and events show", list, i, "name")
		case Rule(name).own():
			c.add(fmt.Sprintf("%q", name), takenName, takenHint, list, i, "name")
		case names[name]:
			c.add(fmt.Sprintf("%q", name), "another entry has this name", "give each a name of its own", list, i, "name")
		}
		names[name] = true
		if strings.TrimSpace(reason) == "" {
			c.add(fmt.Sprintf("%q", name), "reason is missing", "say why it is safe", list, i, "reason")
		}
	}
	twice := func(list, name, from, to string, first string, i int) {
		if from != "" && to != "" {
			c.add(fmt.Sprintf("%q", name), fmt.Sprintf("%q is for this pair too", first), "make one of the two", list, i)
		}
	}
	for i := range b.policy.Declassify {
		d := &b.policy.Declassify[i]
		named("declassify", d.Name, d.Reason, i)
		c.pair(d.Name, d.From, d.To, false, "declassify", i)
		c.lowers(d, i)
		if first := b.lower[[2]string{d.From, d.To}]; first != nil {
			twice("declassify", d.Name, d.From, d.To, first.Name, i)
		}
		b.lower[[2]string{d.From, d.To}] = d
	}
	for i := range b.policy.Endorse {
		e := &b.policy.Endorse[i]
		named("endorse", e.Name, e.Reason, i)
		c.pair(e.Name, e.From, e.To, false, "endorse", i)
		if first := b.endorse[[2]string{e.From, e.To}]; first != nil {
			twice("endorse", e.Name, e.From, e.To, first.Name, i)
		}
		b.endorse[[2]string{e.From, e.To}] = e
	}
	for i := range b.policy.Renew {
		n := &b.policy.Renew[i]
		named("renew", n.Name, n.Reason, i)
		c.pair(n.Name, n.From, n.To, false, "renew", i)
		if n.TTL <= 0 {
			c.add(fmt.Sprintf("%q", n.Name), "ttlMs must be at least 1", "write how long after its making the context may be read", "renew", i, "ttlMs")
		}
		if first := b.renew[[2]string{n.From, n.To}]; first != nil {
			twice("renew", n.Name, n.From, n.To, first.Name, i)
		}
		b.renew[[2]string{n.From, n.To}] = n
	}
}

// lowers checks what a declassifier lets through, as far as that can be said
// without a schema.
func (c *policyChecker) lowers(d *Declassifier, i int) {
	subject := fmt.Sprintf("%q", d.Name)
	if len(d.Paths) == 0 {
		c.add(subject, "it names no path", "write the paths that are safe: [/path]", "declassify", i, "paths")
	}
	if named := c.only(pick.Everything(), d.Paths, subject, "declassify", i, "paths"); !d.UnsafeText && named.Whole() {
		c.add(subject, "it would lower a whole value, which may be free text", "name paths that the schema makes a number, a boolean, an enum or a bounded pattern, or say unsafeText: true", "declassify", i, "paths")
	}
	if !d.LowerTo.Valid() || d.LowerTo == label.Secret {
		c.add(subject, "lowerTo is no label below secret", "write public, internal or confidential", "declassify", i, "lowerTo")
	}
}
