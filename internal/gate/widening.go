package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Widening is a pair between which one policy may deliver more than another.
type Widening struct {
	From, To string
	What     []string // of the terms, for people
	Line     string   // of a rule of the wider policy that applies to the pair; empty if none has a line
}

// String names the pair and what widens.
func (w Widening) String() string { return w.From + "→" + w.To + ": " + strings.Join(w.What, ", ") }

// stranger is a producer that no rule names, such as an agent of an earlier run whose results are in
// the memory.
const stranger = "\x00"

// Widens returns the pairs to which b may deliver more than another rulebook for the same parties.
// It compares the terms of each pair, and counts what it cannot compare as more: if it returns
// nothing, b delivers nothing that the other one does not. secret says which readers are cleared for
// what is secret; nil means all.
func (b *Rulebook) Widens(than *Rulebook, parties []string, secret func(reader string) bool) (list []Widening) {
	own := []string{handoff.User, handoff.Coordinator, handoff.Computed}
	readers := append(own, b.distinct(than, parties)...)
	for _, from := range append(slices.Clip(readers), stranger) {
		for _, to := range readers {
			if from == handoff.User && to == handoff.User || isTool(from) && isTool(to) {
				continue
			}
			t := b.betweenOnce(from, to)
			what := t.Widens(than.betweenOnce(from, to), secret == nil || secret(to))
			if len(what) == 0 {
				continue
			}
			w := Widening{From: from, To: to, What: what}
			if from == stranger {
				w.From = handoff.Anyone
			}
			if i := slices.IndexFunc(t.cited, func(c Citation) bool { return c.Line != "" }); i >= 0 {
				w.Line = t.cited[i].Line
			}
			list = append(list, w)
		}
	}
	if !within(than.patterns(), b.patterns()) {
		list = append(list, Widening{From: handoff.Anyone, To: handoff.User, What: []string{"fewer patterns are redacted in events and logs"}})
	}
	return list
}

// maxCompared is how many parties are compared one by one.
const maxCompared = 64

// distinct returns the parties to compare: all of them, or of many those that one of the policies
// names, and of the others one of each kind, since equal terms hold for them.
func (b *Rulebook) distinct(than *Rulebook, parties []string) []string {
	if len(parties) <= maxCompared {
		return parties
	}
	type kind struct {
		tool     bool
		def, was handoff.Mode
	}
	named, met := map[string]bool{}, map[kind]bool{}
	b.names(named)
	than.names(named)
	return slices.DeleteFunc(slices.Clone(parties), func(name string) bool {
		k := kind{tool: isTool(name)}
		if b != nil {
			k.def = b.defaults[name].mode
		}
		if than != nil {
			k.was = than.defaults[name].mode
		}
		if b.lists(name) || than.lists(name) {
			return false
		}
		known := met[k]
		met[k] = known || !named[name]
		return known && !named[name]
	})
}

// lists reports whether a party says more of itself than a mode.
func (b *Rulebook) lists(name string) bool {
	if b == nil {
		return false
	}
	own := b.defaults[name]
	own.mode = ""
	return own.states()
}

// names adds the names that rules and entries of the policy have.
func (b *Rulebook) names(to map[string]bool) {
	if b == nil || b.policy == nil {
		return
	}
	p := b.policy
	for i := range p.Rules {
		to[p.Rules[i].From], to[p.Rules[i].To] = true, true
	}
	for i := range p.Declassify {
		to[p.Declassify[i].From], to[p.Declassify[i].To] = true, true
	}
	for i := range p.Endorse {
		to[p.Endorse[i].From], to[p.Endorse[i].To] = true, true
	}
	for i := range p.Renew {
		to[p.Renew[i].From], to[p.Renew[i].To] = true, true
	}
}

func isTool(name string) bool { return strings.HasPrefix(name, ToolReader("")) }

// patterns returns all patterns of the policy.
func (b *Rulebook) patterns() (all []redact.Pattern) {
	if b == nil || b.policy == nil {
		return nil
	}
	all = slices.Clone(b.policy.Redact.Patterns)
	for i := range b.policy.Rules {
		all = append(all, b.policy.Rules[i].Redact.Patterns...)
	}
	return all
}

// betweenOnce is [Rulebook.Between] without its cache.
func (b *Rulebook) betweenOnce(from, to string) *Terms {
	if b == nil {
		return b.Between(from, to)
	}
	return b.between(from, to)
}

// Widens says what t may deliver beyond other terms of the same pair, in words for people; nil if it
// is certain that it delivers nothing more, and nothing with a lower label or more trust. secret says
// whether the reader is cleared for what is secret.
func (t *Terms) Widens(than *Terms, secret bool) (what []string) {
	t, than = t.orDefault(), than.orDefault()
	add := func(wider bool, format string, args ...any) {
		if wider {
			what = append(what, fmt.Sprintf(format, args...))
		}
	}
	add(t.ceiling > than.ceiling, "maxClassification %v in place of %v", t.ceiling, than.ceiling)
	add(secret && t.exact && !than.exact && t.ceiling == label.Secret, "a rule for the exact pair states a mode, so secret values may pass")
	add(!within(than.added.Kinds, t.added.Kinds), "fewer kinds are redacted")
	add(!within(than.added.Patterns, t.added.Patterns), "fewer patterns are redacted")
	add(than.identity != nil && t.identity == nil && than.identity.shown(than.from) != than.from, "its name is shown")
	what = append(what, t.widensEntries(than)...)
	if t.mode == handoff.Minimal || t.translation.off { // and nothing of the rest matters
		return what
	}
	add(than.translation.off, "a model may summarize it")
	add(narrower(t.mode, than.mode) != t.mode, "mode %s in place of %s", t.mode, than.mode)
	add(than.needs && !t.needs && than.mode == handoff.Scoped, "more than what tasks need")
	add(!t.selection.Within(than.selection), "%s in place of %s", t.selection, than.selection)
	what = append(what, t.widensReveal(than)...)
	x, y := t.translation, than.translation
	add(y.maxTokens > 0 && (x.maxTokens == 0 || x.maxTokens > y.maxTokens || x.byModel != y.byModel), "it is summarized less")
	add(x.recast == RecastSystem && y.recast != RecastSystem, "recast to the system prompt")
	add(than.Unendorsed() != nil && t.Unendorsed() == nil && y.recast != x.recast, "it is not withheld from the system prompt, which no entry endorses")
	return what
}

// orDefault returns the terms that nil terms stand for.
func (t *Terms) orDefault() *Terms {
	if t == nil {
		return (*Rulebook)(nil).Between("", "")
	}
	return t
}

// within reports whether a list has all elements of another one.
func within[E comparable](less, more []E) bool {
	return !slices.ContainsFunc(less, func(e E) bool { return !slices.Contains(more, e) })
}

// widensReveal compares what is revealed.
func (t *Terms) widensReveal(than *Terms) (what []string) {
	for _, kind := range t.Reveals() {
		if !(slices.Contains(than.Reveals(), kind) && pathsWithin(t.reveal[kind], than.reveal[kind])) {
			what = append(what, fmt.Sprintf("reveal of %s", kind))
		}
	}
	return what
}

// pathsWithin reports that it is certain that paths select no more than others.
func pathsWithin(paths, than []task.Path) bool {
	return narrowed(pick.Everything().Only(paths...)).Within(narrowed(pick.Everything().Only(than...)))
}

// widensEntries compares the exceptions of the policy. A declassifier applies only to what is
// withheld without it, so it applies to more values where less passes otherwise.
func (t *Terms) widensEntries(than *Terms) (what []string) {
	if d, old := t.lower, than.lower; d != nil {
		same := old != nil && pathsWithin(d.Paths, old.Paths) && d.LowerTo >= old.LowerTo && (old.UnsafeText || !d.UnsafeText) && (old.Approve == "" || old.Approve == d.Approve)
		if !same || t.ceiling != than.ceiling || t.exact != than.exact {
			what = append(what, fmt.Sprintf("declassify %q", d.Name))
		}
	}
	if t.endorse != nil && than.endorse == nil {
		what = append(what, fmt.Sprintf("endorse %q", t.endorse.Name))
	}
	if t.renew != nil && (than.renew == nil || t.renew.TTL > than.renew.TTL) {
		what = append(what, fmt.Sprintf("renew %q", t.renew.Name))
	}
	return what
}

// A PairTerms is what a policy says of one pair, for people and programs.
type PairTerms struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Mode handoff.Mode `json:"mode"`

	// Allow are the paths that may be delivered; none means all. With several rules that list paths,
	// each list in AndAllow narrows further.
	Allow    []task.Path   `json:"allow,omitempty"`
	AndAllow [][]task.Path `json:"andAllow,omitempty"`
	Block    []task.Path   `json:"block,omitempty"`
	ByNeed   bool          `json:"byNeed,omitempty"` // only what the task needs is delivered

	MaxClassification string                      `json:"maxClassification"`
	Redact            []redact.Kind               `json:"redact,omitempty"` // kinds and names of patterns, beyond the default
	Reveal            map[redact.Kind][]task.Path `json:"reveal,omitempty"`
	Translate         string                      `json:"translate,omitempty"`
	Declassify        *PairEntry                  `json:"declassify,omitempty"`
	Endorse           *PairEntry                  `json:"endorse,omitempty"`
	Renew             *PairEntry                  `json:"renew,omitempty"`
	Rules             []PairRule                  `json:"rules"` // the rules that apply, the one for the exact pair first
}

// A PairEntry is an exception of the policy for a pair.
type PairEntry struct {
	Name    string      `json:"name"`
	Reason  string      `json:"reason"`
	Line    string      `json:"line,omitempty"`
	Paths   []task.Path `json:"paths,omitempty"`
	LowerTo string      `json:"lowerTo,omitempty"`
	Approve string      `json:"approve,omitempty"`
	TTLMs   int64       `json:"ttlMs,omitempty"`
}

// A PairRule is a rule that applies to a pair, and its place.
type PairRule struct {
	ID   handoff.Rule `json:"id"`
	Line string       `json:"line,omitempty"`
	Note string       `json:"note,omitempty"`
}

// Pair returns what applies to a pair, and by which rules.
func (b *Rulebook) Pair(from, to string) PairTerms {
	t := b.betweenOnce(from, to)
	lists, blocks := t.selection.Paths()
	out := PairTerms{
		From: from, To: to, Mode: t.mode, Block: blocks, ByNeed: t.needs, MaxClassification: t.ceiling.String(),
		Redact: slices.Clone(t.added.Kinds), Reveal: cloneReveal(t.reveal), Translate: t.Translates(), Rules: []PairRule{},
	}
	if len(lists) > 0 {
		out.Allow, out.AndAllow = lists[0], lists[1:]
	}
	for _, p := range t.added.Patterns {
		out.Redact = append(out.Redact, redact.Kind(p.Name))
	}
	if d := t.lower; d != nil {
		out.Declassify = &PairEntry{Name: d.Name, Reason: d.Reason, Line: d.Origin.String(), Paths: d.Paths, LowerTo: d.LowerTo.String(), Approve: d.Approve}
	}
	if e := t.endorse; e != nil {
		out.Endorse = &PairEntry{Name: e.Name, Reason: e.Reason, Line: e.Origin.String()}
	}
	if e := t.renew; e != nil {
		out.Renew = &PairEntry{Name: e.Name, Reason: e.Reason, Line: e.Origin.String(), TTLMs: e.TTL.Milliseconds()}
	}
	for _, c := range append(slices.Clip(t.cited), t.stated) {
		if r := (PairRule{c.Rule, c.Line, c.Note}); c.Rule != "" && !slices.Contains(out.Rules, r) {
			out.Rules = append(out.Rules, r)
		}
	}
	return out
}

// Pairs returns what applies to each pair of the parties for which the policy has a rule or an entry, sorted
// by name. The list is not nil.
func (b *Rulebook) Pairs(parties []string) []PairTerms {
	list := []PairTerms{}
	readers := append([]string{handoff.User, handoff.Coordinator, handoff.Computed}, parties...)
	for _, from := range readers {
		for _, to := range readers {
			p := b.Pair(from, to)
			if len(p.Rules) > 0 || p.Declassify != nil || p.Endorse != nil || p.Renew != nil {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b PairTerms) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return list
}
