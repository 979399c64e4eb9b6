package gate

import (
	"cmp"
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

// Terms are what a policy says of one producer and one reader. They are
// immutable; [Rulebook.Between] makes them. Nil terms say what no policy says:
// grants are delivered whole, nothing secret is, and redaction is that of all edges.
type Terms struct {
	from, to  string
	mode      handoff.Mode
	stated    Citation // the rule that states the mode; empty if none does
	exact     bool     // a rule for exactly this pair states the mode
	needs     bool     // scoped without a list: only what the task needs
	selection pick.Selection

	narrows Citation // the first rule that takes parts away without stating a mode

	ceiling   label.Classification
	ceilingBy Citation

	translation translation

	reveal   map[redact.Kind][]task.Path
	added    redaction // beyond what every reader of the kind of to is spared
	redactor *redact.Redactor

	lower   *handoff.Declassifier
	endorse *handoff.Endorser
	renew   *handoff.Renewal
	cited   []Citation

	identity *identity // what prompts have in place of names; nil if they have the names
}

// A translation is what the rules of a pair say together about translating what passes.
type translation struct {
	active    bool // the delivered value differs from the one that was left, or is elsewhere
	maxTokens int
	byModel   bool
	recast    string
	by        Citation // the first rule that translates
	off       bool     // a model would translate, and the policy lets none do so
}

// A Citation names a rule that has a say on an edge, and where it is written.
type Citation struct {
	Rule handoff.Rule `json:"rule"`
	Line string       `json:"line,omitempty"`
	Note string       `json:"note,omitempty"` // of the rule, for people
}

// Rules that do not come from a policy.
const (
	RuleDefault      handoff.Rule = "policy default"
	RuleAgentDefault handoff.Rule = "agent default"
)

// modes lists the modes, narrowest first.
var modes = []handoff.Mode{handoff.Minimal, handoff.Scoped, handoff.Full}

// narrower returns the narrower of two modes.
func narrower(a, b handoff.Mode) handoff.Mode {
	return modes[min(slices.Index(modes, a), slices.Index(modes, b))]
}

// Between returns the terms of what from makes for to: of a chain of agents, what those of each let
// through. The first time it takes time in the number of rules that match the pair, and then no longer;
// for a chain it does each time.
func (b *Rulebook) Between(from, to string) *Terms {
	if b == nil {
		return &Terms{from: from, to: to, mode: handoff.Full, selection: pick.Everything(), ceiling: label.Secret, redactor: standardRedactor(to)}
	}
	if naming.IsChain(from) {
		return b.ofChain(from, to)
	}
	pair := [2]string{from, to}
	b.mu.RLock()
	t := b.terms[pair]
	b.mu.RUnlock()
	if t != nil {
		return t
	}
	t = b.between(from, to)
	if b.terms != nil && b.knows(from) && b.knows(to) { // the number of pairs is bounded
		b.mu.Lock()
		b.terms[pair] = t
		b.mu.Unlock()
	}
	return t
}

func (b *Rulebook) knows(name string) bool {
	_, party := b.defaults[name]
	return party || name == handoff.User || name == handoff.Coordinator || name == handoff.Computed
}

// between composes the terms of a pair from the rules that match it.
func (b *Rulebook) between(from, to string) *Terms {
	t := &Terms{from: from, to: to, mode: handoff.Full, selection: pick.Everything(), ceiling: label.Secret, identity: b.identity}
	pair := [2]string{from, to}
	t.lower, t.endorse, t.renew = b.lower[pair], b.endorse[pair], b.renew[pair]
	added := b.redact
	if to == handoff.User {
		added = redaction{}
	}
	states := false
	if i, ok := b.exact[pair]; ok {
		r := &b.rules[i]
		t.cited = append(t.cited, r.citation())
		states = t.applyExact(r)
		added = added.and(redaction(r.Redact))
	}
	for _, s := range [...]side{{from, handoff.Anyone}, {handoff.Anyone, to}, {handoff.Anyone, handoff.Anyone}} {
		w := b.by[s]
		if w == nil || to == handoff.User && s.to == handoff.Anyone {
			continue
		}
		t.cited = append(t.cited, w.cites...)
		if !states && w.states {
			t.applyWildcard(w)
		}
		t.selection = t.selection.And(w.blocks)
		t.noteNarrowing(w.narrowing)
		t.limitTo(w.ceiling)
		for _, with := range w.translations {
			t.addTranslation(with, w.translating.citation())
		}
		added = added.and(w.redact)
	}
	own := b.defaults[to] // who is not known gets what the policy says
	applyIntake(t, &own)
	if !states && t.stated.Rule == "" {
		t.applyDefaults(b.standard, &own)
	}
	t.added, t.redactor = added, b.redactorFor(to, added)
	t.translation.off = t.translation.byModel && b.policy.NoTranslationByModel
	return t
}

// applyExact applies the rule for the pair, and reports whether it states a mode.
func (t *Terms) applyExact(r *compiledRule) bool {
	t.reveal = r.Reveal
	t.limitTo(r)
	t.addTranslation(r.Translate, r.citation())
	t.noteNarrowing(r)
	if r.Mode == "" {
		t.selection = t.selection.And(r.blocks)
		return false
	}
	t.mode, t.stated, t.exact = r.Mode, r.citation(), true
	t.needs = r.Mode == handoff.Scoped && r.Allow == nil
	t.selection = t.selection.And(r.picked)
	return true
}

// applyWildcard narrows the mode to that of the rules with one Anyone.
func (t *Terms) applyWildcard(w *sideRules) {
	if t.stated.Rule == "" || narrower(t.mode, w.mode) != t.mode {
		t.stated = w.deciding.citation()
	}
	t.mode, t.needs = narrower(t.mode, w.mode), t.needs || w.needs
	t.selection = t.selection.And(w.selection)
}

// noteNarrowing notes a rule that takes parts away, unless one is noted already.
func (t *Terms) noteNarrowing(r *compiledRule) {
	if r != nil && r.narrows() && t.narrows.Rule == "" {
		t.narrows = r.citation()
	}
}

// narrows reports whether r takes parts away, whatever its mode.
func (r *compiledRule) narrows() bool {
	return len(r.Block) > 0 || r.Translate != nil && (r.Translate.Fields != nil || len(r.Translate.Filter) > 0)
}

// limitTo lowers the ceiling to that of a rule.
func (t *Terms) limitTo(r *compiledRule) {
	if r != nil && r.Ceiling != nil && *r.Ceiling < t.ceiling {
		t.ceiling, t.ceilingBy = *r.Ceiling, r.citation()
	}
}

func byRule(a, b Citation) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Line, b.Line))
}

// addTranslation adds the translation of a rule to those that were stated before.
func (t *Terms) addTranslation(with *handoff.Translation, by Citation) {
	if with == nil {
		return
	}
	if !t.translation.active {
		t.translation.active, t.translation.by = true, by
	}
	if with.Fields != nil {
		t.selection = narrowed(t.selection.Only(with.Fields...))
	}
	if len(with.Filter) > 0 {
		t.selection = narrowed(t.selection.Except(with.Filter...))
	}
	if with.MaxTokens > 0 && (t.translation.maxTokens == 0 || with.MaxTokens < t.translation.maxTokens) {
		t.translation.maxTokens = with.MaxTokens
	}
	t.translation.byModel = t.translation.byModel || with.ByModel
	if with.Recast == RecastSystem {
		t.translation.recast = RecastSystem
	}
}

// narrowed returns a selection that was checked before; if it was not, nothing is selected.
func narrowed(s pick.Selection, err error) pick.Selection {
	if err != nil {
		return pick.Selection{}
	}
	return s
}

// CorrectionTerms returns the terms under which a reader gets its own answer back to
// correct it, with what the runtime says is wrong with it. The policy does not
// apply, since nothing passes from one party to another: the reader and its
// endpoint wrote the answer under the same contract. Secrets are
// redacted as everywhere; personal data is not, or a corrected answer would lack
// what the first one had.
func CorrectionTerms(from, to string) *Terms {
	return &Terms{from: from, to: to, mode: handoff.Full, exact: true, selection: pick.Everything(), ceiling: label.Secret, redactor: redact.Secrets()}
}

// redactorFor returns the redactor of an edge. Compile has seen that every one can
// be made; nil means one that cannot, and refuses every text.
func (b *Rulebook) redactorFor(to string, r redaction) *redact.Redactor {
	if to == handoff.User && r.empty() {
		return redact.Secrets()
	}
	if to != handoff.User && len(r.Kinds) == len(b.redact.Kinds) && len(r.Patterns) == len(b.redact.Patterns) {
		return b.redactor
	}
	key := r.key()
	if to == handoff.User {
		key = handoff.User + "\x01" + key // without the default kinds
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if made, ok := b.redactors[key]; ok {
		return made
	}
	var made *redact.Redactor
	if to == handoff.User {
		made, _ = redact.New(r.Kinds, r.Patterns)
	} else {
		made, _ = r.redactor()
	}
	b.redactors[key] = made
	return made
}

// standardRedactor is what redacts for a reader where no policy adds anything:
// secrets for all, and the default personal kinds for every agent.
func standardRedactor(to string) *redact.Redactor {
	if to == handoff.User {
		return redact.Secrets()
	}
	return redact.Default()
}

// The rest is for people and for the static check.

// Mode returns how much an edge under these terms delivers.
func (t *Terms) Mode() handoff.Mode {
	if t == nil {
		return handoff.Full
	}
	return t.mode
}

// Stated returns the rule that states the mode, and where it is written; both
// are empty if no rule does.
func (t *Terms) Stated() (handoff.Rule, string) {
	if t == nil {
		return "", ""
	}
	return t.stated.Rule, t.stated.Line
}

// Cited returns every rule that has a say, the one for the exact pair first.
func (t *Terms) Cited() []Citation {
	if t == nil {
		return nil
	}
	return slices.Clone(t.cited)
}

// Declassifier returns the entry that may lower labels here, or nil.
func (t *Terms) Declassifier() *handoff.Declassifier {
	if t == nil || t.lower == nil {
		return nil
	}
	d := *t.lower
	d.Paths = slices.Clone(d.Paths)
	return &d
}

// Reveals returns the personal kinds that may be delivered in clear, sorted.
func (t *Terms) Reveals() []redact.Kind {
	if t == nil {
		return nil
	}
	var kinds []redact.Kind
	for kind := range t.reveal {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// RevealsAll reports whether a rule reveals a personal kind wherever a path names.
func (t *Terms) RevealsAll(kind redact.Kind, p task.Path) bool {
	return t != nil && (slices.Contains(t.reveal[kind], p) || slices.Contains(t.reveal[kind], task.Whole))
}

// Redacts reports whether a personal kind that is not revealed is redacted on the way to an agent.
func (t *Terms) Redacts(kind redact.Kind) bool {
	return slices.Contains(redact.DefaultKinds(), kind) || t != nil && slices.Contains(t.added.Kinds, kind)
}

// AddsRedaction reports whether more is redacted under these terms than for any
// reader like theirs.
func (t *Terms) AddsRedaction() bool { return t != nil && t.redactor != standardRedactor(t.to) }

// Unendorsed says why context would be withheld from the system prompt: no entry
// endorses it. It is nil if one does, and for context of the user message.
func (t *Terms) Unendorsed() *Refusal {
	switch {
	case t == nil || t.translation.recast != RecastSystem:
		return nil
	case t.endorse == nil:
		return &Refusal{Rule: RuleGrant, Reason: "it is to stand in the system prompt, and no entry endorses it", Hint: "endorse it in the policy, or leave recast out"}
	case t.translation.byModel: // an endorser speaks for what it has seen
		return &Refusal{Rule: RuleGrant, Reason: "it is to stand in the system prompt in the translation of a model, which no entry endorses", Hint: "summarize it by: excerpt, or leave recast out"}
	}
	return nil
}

// Summarizes reports whether a value is delivered as a shorter text only.
func (t *Terms) Summarizes() bool { return t != nil && t.translation.maxTokens > 0 }

// Translates describes how a value is translated, such as "excerpt of 500
// tokens"; empty if it is not.
func (t *Terms) Translates() string {
	switch {
	case t == nil || !t.translation.active:
		return ""
	case t.translation.off:
		return "by no model, since translateByModel is false"
	case t.translation.byModel:
		return fmt.Sprintf("summary of at most %d tokens, by the reader's agent", t.translation.maxTokens)
	case t.translation.maxTokens > 0:
		return fmt.Sprintf("excerpt of at most %d tokens", t.translation.maxTokens)
	case t.translation.recast == RecastSystem:
		return "into the system prompt"
	}
	return "parts only"
}

// ByReader reports whether a value is summarized by the reader's own agent.
func (t *Terms) ByReader() bool {
	return t != nil && t.translation.active && t.translation.byModel && !t.translation.off
}

// Delivers returns what of a structured value may be delivered to a task that needs
// these parts; nil needs the whole.
func (t *Terms) Delivers(need []task.Path) (pick.Selection, error) {
	s := pick.Everything()
	if t != nil {
		s = t.selection
		switch {
		case t.mode == handoff.Minimal, t.needs && need == nil:
			return pick.Selection{}, nil
		}
	}
	if need == nil || len(need) == 1 && need[0] == task.Whole {
		return s, nil
	}
	return s.Only(need...)
}

// Contradiction says what cannot be meant by these terms and a need together:
// a need of what the rule withholds in any case, or a scope of nothing.
func (t *Terms) Contradiction(need []task.Path) *Refusal {
	if t == nil {
		return nil
	}
	rule := t.stated.Rule
	s, err := t.Delivers(need)
	switch {
	case err != nil:
		return &Refusal{Rule: RuleGrant, Reason: err.Error()}
	case t.mode == handoff.Minimal && need != nil:
		return &Refusal{Rule: rule, Reason: fmt.Sprintf("it needs parts of what %s lets through by heading and status only", t.ruleText()), Hint: "leave need out, or change the rule"}
	case t.needs && need == nil:
		return &Refusal{Rule: rule, Reason: fmt.Sprintf("%s is scoped without a list, so it grants nothing here", t.ruleText()), Hint: "write allow: [/path] in a rule for the pair, need: [/path] on the dependency, or mode: minimal"}
	case t.mode != handoff.Minimal && s.Empty():
		return &Refusal{Rule: rule, Reason: fmt.Sprintf("nothing that it needs may be delivered by %s", t.ruleText()), Hint: "let need, allow and block leave something in common"}
	}
	return nil
}

// ruleText names the rule that states the mode, or else the first that takes parts away.
func (t *Terms) ruleText() string {
	c := t.stated
	if c.Rule == "" {
		c = t.narrows
	}
	switch {
	case c.Rule == "":
		return "the rules of the policy"
	case c.Line == "":
		return string(c.Rule)
	}
	return fmt.Sprintf("%s (%s)", c.Rule, c.Line)
}

// PathsString writes paths for people, the whole as "everything".
func PathsString(paths []task.Path) string {
	words := make([]string, len(paths))
	for i, p := range paths {
		if words[i] = string(p); p == task.Whole {
			words[i] = "everything"
		}
	}
	return strings.Join(words, ", ")
}
