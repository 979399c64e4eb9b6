package specfile

import (
	"fmt"
	"slices"
	"strings"
)

// maxFallback is how many entries a fallback may have.
const maxFallback = 8

// fallbackList is the kind of a fallback.
var fallbackList = kind{
	name: list.name, want: "a list of connections", hint: "write lines such as - {model: …, baseURL: …}", many: list.many,
	json: append(filledListOf(ref("fallback")), member{"maxItems", maxFallback}), fits: is(isList), parts: checkFallback,
}

// checkFallback checks the length of a fallback.
func checkFallback(r *report, key string, n *node) bool {
	switch {
	case n.len() == 0:
		r.bad(n, "write at least one entry, or leave the key out", "%s: it is empty", key)
	case n.len() > maxFallback:
		r.bad(n, fmt.Sprintf("write at most %d entries", maxFallback), "%s: it has %d entries", key, n.len())
	default:
		return true
	}
	return false
}

// fallbackPlace has the keys of one connection of a fallback.
var fallbackPlace = newPlace("fallback", "an entry of fallback", slices.Concat([]row{
	{"model", envText, "else the agent's"},
	{"provider", provider, "`openai`, the default"},
	{"baseURL", envText, "else the agent's"},
	{"apiKey", secret, "else the agent's if it is for the same host"},
	{"headers", headers, "headers of its model calls; the agent's are added if they are for the same host"},
}, endpointKeys)).like("model", "baseURL")

// endpointKeys are the requestKeys that depend on the endpoint.
var endpointKeys = []row{
	requestKey("maxTokensKey"), requestKey("systemRole"), requestKey("extraBody"),
	{"structuredOutput", structuredOutput, "form in which its requests ask for JSON; else the agent's; see Structured output"},
}

// requestKey returns the row of requestKeys with a name.
func requestKey(name string) row {
	return requestKeys[slices.IndexFunc(requestKeys, func(k row) bool { return k.name == name })]
}

// fallback reads the fallback of an agent whose own connection is c and leads to first.
func (r *resolver) fallback(f *fields, c *Connection, first destination) (all []Connection) {
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
		r.places.fallback[f] = append(r.places.fallback[f], e)
		all = append(all, next)
	}
	return all
}

// chainEntries reads the entries of a fallback, once for all agents. An entry that
// cannot be used is nil.
func (r *resolver) chainEntries(n *node) []*fields {
	if n == nil {
		return nil
	}
	if known, ok := r.places.entries[n]; ok {
		return known
	}
	all := make([]*fields, n.len())
	for i, item := range n.parts() {
		r.subject = func() string { return fmt.Sprintf("fallback %d: ", i+1) }
		before := len(r.found)
		entry := r.fields(item, fallbackPlace, nil)
		if entry != nil && item.len() == 0 {
			r.bad(item, "write "+sample(fallbackPlace), "it says nothing")
		}
		if len(r.found) == before {
			all[i] = entry
		}
	}
	r.subject = nil
	r.places.entries[n] = all
	return all
}

// checkFallbacks checks the entries that agents may inherit, even if no agent does.
func (r *resolver) checkFallbacks() {
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

// setFallbackModel sets the model of an option in the entries that name none.
func (r *resolver) setFallbackModel(f *fields, chain []Connection, model string) {
	for i, e := range r.places.fallback[f] {
		if e.own("model") == nil {
			chain[i].Model, chain[i].shownModel = model, ""
			r.places.models[e] = model
		}
	}
}
