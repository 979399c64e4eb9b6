package gate

import (
	"cmp"
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/provenance"
)

// addExact files a rule under the one pair that it is for, also one in which
// something else is wrong.
func (p place) addExact(i int, r *handoff.PairRule) {
	pair, b := [2]string{r.From, r.To}, p.checker.book
	first, twice := b.exact[pair]
	switch {
	case r.From == "" || r.To == "":
	case twice:
		p.add("there is already a rule for this pair, "+where(b.policy.Rules[first].Origin, r.Origin, first), "make one rule of the two")
	default:
		b.exact[pair] = i
	}
}

// where says where entry i of a list is, for a message about another one.
func where(other, own provenance.Position, i int) string {
	switch {
	case other.Line == 0:
		return fmt.Sprintf("number %d", i+1)
	case other.Line == own.Line:
		return fmt.Sprintf("in column %d of this line", other.Column)
	}
	return fmt.Sprintf("in line %d", other.Line)
}

// addWildcard files a rule under the side that it is for.
func (c *policyChecker) addWildcard(r *compiledRule) {
	b := c.book
	at := side{r.From, r.To}
	w := b.by[at]
	if w == nil {
		w = &sideRules{selection: pick.Everything(), blocks: pick.Everything(), mode: handoff.Full}
		b.by[at] = w
	}
	w.cites = append(w.cites, r.citation())
	w.redact, w.blocks = w.redact.and(redaction(r.Redact)), w.blocks.And(r.blocks)
	if r.Translate != nil {
		w.translations = append(w.translations, r.Translate)
		if w.translating == nil || r.before(w.translating) {
			w.translating = r
		}
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
	w.needs = w.needs || r.Mode == handoff.Scoped && r.Allow == nil
	w.selection = w.selection.And(r.picked)
}

// citation names r, with where it is written and its note.
func (r *compiledRule) citation() Citation { return Citation{r.ID, r.Origin.String(), r.Note} }

// before orders rules that say the same, so that their order in a file does not matter.
func (r *compiledRule) before(other *compiledRule) bool {
	return cmp.Or(cmp.Compare(r.ID, other.ID), cmp.Compare(r.Origin.String(), other.Origin.String())) < 0
}

// lowerCeiling reports whether r has a ceiling that is lower than that of
// another rule, or as low and r comes first.
func (r *compiledRule) lowerCeiling(than *compiledRule) bool {
	switch {
	case r.Ceiling == nil:
		return false
	case than == nil:
		return true
	}
	return *r.Ceiling < *than.Ceiling || *r.Ceiling == *than.Ceiling && r.before(than)
}
