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
	b, names := c.book, map[string]bool{}
	named := func(list, name, reason string, i int) {
		switch err := naming.CheckName(name); {
		case err != nil:
			c.add("", "name: "+err.Error(), "give it a name, which decisions and events show", list, i, "name")
		case isReserved(handoff.Rule(name)):
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
		c.checkPair(d.Name, d.From, d.To, false, "declassify", i)
		c.checkDeclassifier(d, i)
		if first := b.lower[[2]string{d.From, d.To}]; first != nil {
			twice("declassify", d.Name, d.From, d.To, first.Name, i)
		}
		b.lower[[2]string{d.From, d.To}] = d
	}
	for i := range b.policy.Endorse {
		e := &b.policy.Endorse[i]
		named("endorse", e.Name, e.Reason, i)
		c.checkPair(e.Name, e.From, e.To, false, "endorse", i)
		if first := b.endorse[[2]string{e.From, e.To}]; first != nil {
			twice("endorse", e.Name, e.From, e.To, first.Name, i)
		}
		b.endorse[[2]string{e.From, e.To}] = e
	}
	for i := range b.policy.Renew {
		n := &b.policy.Renew[i]
		named("renew", n.Name, n.Reason, i)
		c.checkPair(n.Name, n.From, n.To, false, "renew", i)
		if n.TTL <= 0 {
			c.add(fmt.Sprintf("%q", n.Name), "ttlMs must be at least 1", "write how long after its making the context may be read", "renew", i, "ttlMs")
		}
		if first := b.renew[[2]string{n.From, n.To}]; first != nil {
			twice("renew", n.Name, n.From, n.To, first.Name, i)
		}
		b.renew[[2]string{n.From, n.To}] = n
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
		c.add(subject, "it would lower a whole value, which may be free text", "name paths that the schema makes a number, a boolean, an enum or a bounded pattern, or say unsafeText: true", "declassify", i, "paths")
	}
	if !d.LowerTo.Valid() || d.LowerTo == label.Secret {
		c.add(subject, "lowerTo is no label below secret", "write public, internal or confidential", "declassify", i, "lowerTo")
	}
}
