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
	common := func(list string, i int, e *handoff.Entry) [2]string {
		subject := fmt.Sprintf("%q", e.Name)
		switch err := naming.CheckName(e.Name); {
		case err != nil:
			c.add("", "name: "+err.Error(), "give it a name, which decisions and events show", list, i, "name")
		case isReserved(handoff.Rule(e.Name)):
			c.add(subject, takenName, takenHint, list, i, "name")
		case named[e.Name]:
			c.add(subject, "another entry has this name", "give each a name of its own", list, i, "name")
		}
		named[e.Name] = true
		if strings.TrimSpace(e.Reason) == "" {
			c.add(subject, "reason is missing", "say why it is safe", list, i, "reason")
		}
		c.checkPair(e.Name, e.From, e.To, false, list, i)
		kind := [3]string{list, e.From, e.To}
		if first, twice := firsts[kind]; twice && e.From != "" && e.To != "" {
			c.add(subject, fmt.Sprintf("%q is for this pair too", first), "make one of the two", list, i)
		}
		firsts[kind] = e.Name
		return [2]string{e.From, e.To}
	}
	for i := range b.policy.Declassify {
		d := &b.policy.Declassify[i]
		b.lower[common("declassify", i, &d.Entry)] = d
		c.checkDeclassifier(d, i)
	}
	for i := range b.policy.Endorse {
		e := &b.policy.Endorse[i]
		b.endorse[common("endorse", i, &e.Entry)] = e
	}
	for i := range b.policy.Renew {
		n := &b.policy.Renew[i]
		b.renew[common("renew", i, &n.Entry)] = n
		if n.TTL <= 0 {
			c.add(fmt.Sprintf("%q", n.Name), "ttlMs must be at least 1", "write how long after its making the context may be read", "renew", i, "ttlMs")
		}
	}
}

// checkDeclassifier checks what a declassifier lets through, as far as that can be said
// without a schema.
func (c *policyChecker) checkDeclassifier(d *handoff.Declassifier, i int) {
	subject := fmt.Sprintf("%q", d.Name)
	if len(d.Paths) == 0 {
		c.add(subject, "it names no path", "write the paths that are safe: [/path]", "declassify", i, "paths")
	}
	if named := c.only(pick.Everything(), d.Paths, subject, "declassify", i, "paths"); !d.UnsafeText && named.Whole() {
		c.add(subject, "it would lower a whole value, which may be free text", "name paths that the schema makes a number, a boolean, an enum or a bounded pattern, or set unsafeText: true", "declassify", i, "paths")
	}
	if !d.LowerTo.Valid() || d.LowerTo == label.Secret {
		c.add(subject, "lowerTo is no label below secret", "write public, internal or confidential", "declassify", i, "lowerTo")
	}
}
