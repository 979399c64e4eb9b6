package spec

import (
	"cmp"
	"maps"
	"net/url"
	"strings"
)

// Which endpoint an agent is asked at, and what may be sent there.

// connection reads how the model of an agent is reached.
func (r *reader) connection(f *fields) Connection {
	c := Connection{
		MaxTurns:    integer(f.get("maxTurns")),
		MaxTokens:   integer(f.get("maxTokens")),
		Temperature: decimal(f.get("temperature")),
		TopP:        decimal(f.get("topP")),
		Timeout:     duration(f.get("timeoutMs")),
		CallTimeout: duration(f.get("callTimeoutMs")),
	}
	l := &link{}
	r.places.links[f] = l
	l.model = cmp.Or(r.pick(f, "model"), r.setting("model"))
	c.Model, _ = r.expand("model", l.model)
	c.Model = strings.TrimSpace(c.Model)
	base := cmp.Or(r.pick(f, "baseURL"), r.setting("baseURL"))
	if value, ok := r.expand("baseURL", base); ok {
		c.BaseURL = r.baseURL(base, value)
	}
	if base != nil {
		c.written = strings.TrimSpace(base.text)
	}
	l.baseURL = base
	c.APIKey = r.apiKey(f, l, c.BaseURL)
	c.Headers = r.headers(f, l, c.BaseURL)
	return c
}

// A link is where the settings of a connection are written.
type link struct {
	model, baseURL, apiKey *node // nil for what nothing says
	headers                *kids // those that are sent, each once
}

// baseURL checks a base URL as far as a file can be wrong about it. What the
// environment put into it is not shown.
func (r *reader) baseURL(n *node, value string) string {
	value = strings.TrimSpace(value)
	u, err := url.Parse(value)
	switch {
	case value == "":
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		r.bad(n, ErrInvalid, "write scheme, host and path, such as http://localhost:11434/v1", "baseURL: it is no address of an endpoint")
	case u.User != nil:
		r.bad(n, ErrInvalid, "give the key apart, as apiKey", "baseURL: it holds a user or a password")
	}
	return value
}

// checkBases checks the base URLs that agents may take over, whether one does
// or not. What the environment says of one is known when it is used.
func (r *reader) checkBases() {
	for _, y := range r.layers {
		for _, n := range [...]*node{y.spec.own("baseURL"), y.orch.own("defaultBaseURL")} {
			if n != nil && !strings.Contains(n.text, opening) {
				r.baseURL(n, n.text)
			}
		}
	}
}

// apiKey returns the key that goes to an agent's endpoint: its own, else its
// defaults', else the spec's.
func (r *reader) apiKey(f *fields, l *link, baseURL string) Key {
	n := cmp.Or(r.pick(f, "apiKey"), r.setting("apiKey"))
	if n == nil {
		return Key{}
	}
	value, ok := r.expand("apiKey", n)
	if !ok {
		return Key{}
	}
	if !strings.Contains(n.text, "${") && strings.TrimSpace(n.text) != "" {
		r.warnAt(n.src, n.at, "write ${NAME}, and set that variable", "apiKey: the key itself stands in the file")
	}
	if r.elsewhere(f, n, l.baseURL, baseURL, "apiKey") {
		return Key{}
	}
	l.apiKey = n
	return NewKey(strings.TrimSpace(value))
}

// headers adds an agent's headers to those of its defaults and of the spec.
func (r *reader) headers(f *fields, l *link, baseURL string) map[string]string {
	var from []*node // the last one wins
	for i := len(r.layers) - 1; i >= 0; i-- {
		from = append(from, r.layers[i].spec.own("headers"))
	}
	var own []*node
	for d := f; d != nil; d = d.defaults {
		own = append([]*node{d.own("headers")}, own...)
	}
	var all map[string]string
	for _, n := range append(from, own...) {
		if n == nil || r.elsewhere(f, n, l.baseURL, baseURL, "headers") {
			continue
		}
		if r.subject = nil; n == f.own("headers") {
			r.subject = r.mine
		}
		if all == nil {
			all, l.headers = make(map[string]string), &kids{}
		}
		for i, name := range n.kids.keys {
			value, _ := r.expand("headers", &n.kids.nodes[i])
			maps.DeleteFunc(all, func(k, _ string) bool { return strings.EqualFold(k, name) })
			l.headers.replace(name, &n.kids.nodes[i])
			if !n.src.taken[&n.kids.nodes[i]] { // what was taken out of a stored copy is not sent, and not replaced by another's
				all[name] = value
			}
		}
	}
	return all
}

// elsewhere reports, and warns, that a key or headers are not for an agent's
// endpoint: what stands beside a base URL is for that host, and is not sent to
// another one that somebody names elsewhere.
func (r *reader) elsewhere(f *fields, n, base *node, baseURL, what string) bool {
	beside := r.beside(f, n)
	if beside == nil || base == nil || beside == base {
		return false
	}
	other, ok := r.expand("baseURL", beside)
	if !ok || host(other) == host(baseURL) {
		return false
	}
	r.subject = r.mine
	line, _ := n.src.place(n.at)
	r.warnAt(base.src, base.at, "if it needs one, write "+what+" beside this baseURL", "%s of line %d: for another host, so not sent to this one", what, line)
	return true
}

// beside returns the base URL that stands in the same object as a key or headers, or nil.
func (r *reader) beside(f *fields, n *node) *node {
	for ; f != nil; f = f.defaults {
		if f.own("apiKey") == n || f.own("headers") == n {
			return f.own("baseURL")
		}
	}
	for _, y := range r.layers {
		if y.spec.own("apiKey") == n || y.spec.own("headers") == n || y.orch.own("defaultApiKey") == n {
			return cmp.Or(y.spec.own("baseURL"), y.orch.own("defaultBaseURL"))
		}
	}
	return nil
}

// host returns scheme, host and port of a base URL.
func host(baseURL string) string {
	u, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil {
		return baseURL
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}
