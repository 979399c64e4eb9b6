package gate

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
)

// checkEntries reads the declassifiers, endorsers and renewals.
func (c *policyChecker) checkEntries() {
	b := c.book
	named, firsts := map[string]bool{}, map[[3]string]string{} // the first entry of each kind for a pair
	common := func(list string, i int, e *handoff.Entry) (place, [2]string) {
		at := c.at(fmt.Sprintf("%q", e.Name), list, i)
		if e.Name == "" {
			at.subject = ruleSubject(e.From, e.To)
		}
		switch err := naming.CheckName(e.Name); {
		case err != nil:
			c.at("", list, i).add("name: "+err.Error(), "give it a name, which decisions and events show", "name")
		case isReserved(handoff.Rule(e.Name)):
			at.add(takenName, takenHint, "name")
		case named[e.Name]:
			at.add("another entry has this name", "give each a name of its own", "name")
		}
		named[e.Name] = true
		if strings.TrimSpace(e.Reason) == "" {
			at.add("reason is missing", "say why it is safe", "reason")
		}
		at.checkPair(e.From, e.To, false)
		kind := [3]string{list, e.From, e.To}
		if first, twice := firsts[kind]; twice && e.From != "" && e.To != "" {
			at.add(fmt.Sprintf("%q is for this pair too", first), "make one of the two")
		}
		firsts[kind] = e.Name
		return at, [2]string{e.From, e.To}
	}
	for i := range b.policy.Declassify {
		d := &b.policy.Declassify[i]
		at, pair := common("declassify", i, &d.Entry)
		b.lower[pair] = d
		at.checkDeclassifier(d)
	}
	for i := range b.policy.Endorse {
		e := &b.policy.Endorse[i]
		_, pair := common("endorse", i, &e.Entry)
		b.endorse[pair] = e
	}
	for i := range b.policy.Renew {
		n := &b.policy.Renew[i]
		at, pair := common("renew", i, &n.Entry)
		b.renew[pair] = n
		if n.TTL <= 0 {
			at.add("ttlMs must be at least 1", "write how long after its making the context may be read", "ttlMs")
		}
	}
}

// checkDeclassifier checks what a declassifier lets through, as far as that can be said
// without a schema.
func (p place) checkDeclassifier(d *handoff.Declassifier) {
	if len(d.Paths) == 0 {
		p.add("it names no path", "write the paths that are safe: [/path]", "paths")
	}
	if named := p.below("paths").only(pick.Everything(), d.Paths); !d.UnsafeText && named.Whole() {
		p.add("it would lower a whole value, which may be free text", "name paths that the schema makes a number, a boolean, an enum or a bounded pattern, or set unsafeText: true", "paths")
	}
	if !d.LowerTo.Valid() || d.LowerTo == label.Secret {
		p.add("lowerTo is no label below secret", "write public, internal or confidential", "lowerTo")
	}
}
