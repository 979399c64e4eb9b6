package specfile

import (
	"fmt"
	"strings"
)

// maxFallback is how many entries a fallback may have.
const maxFallback = 8

// checkFallback checks the length of a fallback.
func checkFallback(r *report, key string, n *node) {
	if n.len() == 0 {
		r.bad(n, "write at least one entry, or leave the key out", "%s: it is empty", key)
	} else if n.len() > maxFallback {
		r.bad(n, fmt.Sprintf("write at most %d entries", maxFallback), "%s: it has %d entries", key, n.len())
	}
}

// fallback reads the fallback of an agent whose own connection is c and leads to first.
func (r *reader) fallback(f *fields, c *Connection, first destination) (all []Connection) {
	shared := f.own("fallback") == nil
	n := f.get("fallback")
	if n == nil {
		n = r.places.setting("fallback")
	}
	mine := r.mine
	defer func() { r.mine, r.subject = mine, mine }()
	seen := map[target]int{c.target(): 0}
	for i, entry := range r.chainEntries(n) {
		if entry == nil {
			continue
		}
		r.mine = func() string { return fmt.Sprintf("%sfallback %d: ", mine(), i+1) }
		if shared { // an error in a default is reported once, not for each agent
			r.mine = func() string { return fmt.Sprintf("fallback %d: ", i+1) }
		}
		e := &fields{place: entry.place, node: entry.node, vals: entry.vals, defaults: f}
		next, to := r.connect(e, &link{owner: f, first: first})
		if to.origin != first.origin { // settings of an endpoint are not inherited at another one
			next.MaxTokensKey, next.SystemRole, next.ExtraBody = text(e.own("maxTokensKey")), text(e.own("systemRole")), jsonOf(e.own("extraBody"))
		}
		r.subject = r.mine
		switch twice, known := seen[next.target()]; {
		case hasCredentials(e):
		case known && twice == 0 && shared: // the agent's own model may be a fallback for the other agents
			continue
		case known && twice == 0:
			r.bad(entry.node, "write another model or baseURL, or remove it", "it is the same as the connection that it follows")
			continue
		case known:
			r.bad(entry.node, "write another model or baseURL, or remove it", "it is the same as entry %d", twice)
			continue
		default:
			seen[next.target()] = i + 1
		}
		f.fallback = append(f.fallback, e)
		all = append(all, next)
	}
	return all
}

// chainEntries reads the entries of a fallback, once for all agents. An entry that
// cannot be used is nil.
func (r *reader) chainEntries(n *node) []*fields {
	if n == nil {
		return nil
	}
	if known, ok := r.fallbacks[n]; ok {
		return known
	}
	all := make([]*fields, n.len())
	for i, item := range n.parts() {
		r.subject = func() string { return fmt.Sprintf("fallback %d: ", i+1) }
		before := len(r.found)
		entry := r.fields(item, "fallback", nil)
		isEmpty := true // also with keys whose values are empty objects, which a saved plan leaves out
		for _, value := range item.parts() {
			isEmpty = isEmpty && value.is == isObject && value.len() == 0
		}
		if entry != nil && isEmpty {
			r.bad(item, "write "+sample(entry.place), "it says nothing")
		}
		if len(r.found) == before {
			all[i] = entry
		}
	}
	r.subject = nil
	r.fallbacks[n] = all
	return all
}

// checkFallbacks checks the entries that agents may inherit, even if no agent does.
func (r *reader) checkFallbacks() {
	for _, y := range r.places.layers {
		lists := []*node{y.spec.own("fallback")}
		if defaults := y.spec.own("agentDefaults"); defaults != nil && defaults.is == isObject {
			lists = append(lists, defaults.get("fallback"))
		}
		for _, n := range lists {
			if n == nil || n.is != isList {
				continue
			}
			for i, e := range r.chainEntries(n) {
				if base := e.own("baseURL"); base != nil && !strings.Contains(base.text, opening) {
					r.subject = func() string { return fmt.Sprintf("fallback %d: ", i+1) }
					r.baseURL(base, expansion{value: base.text})
				}
			}
			r.subject = nil
		}
	}
}

// A target identifies a connection, so that duplicates in a fallback are found. An entry
// with its own credentials may repeat a target, since it may be another account.
type target struct{ baseURL, model string }

func (c *Connection) target() target { return target{strings.TrimRight(c.BaseURL, "/"), c.Model} }

// hasCredentials reports whether an entry has its own key or headers.
func hasCredentials(e *fields) bool { return e.own("apiKey") != nil || e.own("headers") != nil }

// repeated reports the entries that an option made equal to an earlier connection.
func repeated(c *Connection, entries []*fields) map[*fields]bool {
	seen, out := map[target]bool{c.target(): true}, map[*fields]bool{}
	for i, e := range entries {
		if t := c.Fallback[i].target(); !hasCredentials(e) {
			out[e], seen[t] = seen[t], true
		}
	}
	return out
}

// setModel sets the model of an option, also in the entries of the fallback that name none.
func (f *fields) setModel(c *Connection, model string) {
	c.Model, c.shownModel = model, ""
	if f == nil {
		return // reported already
	}
	f.link.option = model
	for i, e := range f.fallback {
		if e.own("model") == nil {
			c.Fallback[i].Model, c.Fallback[i].shownModel, e.link.option = model, "", model
		}
	}
}
