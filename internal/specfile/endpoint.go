package specfile

import (
	"cmp"
	"maps"
	"net/url"
	"strings"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/endpoint"
)

// connection reads how the model of an agent is reached, and its fallback.
func (r *reader) connection(f *fields) Connection {
	c, to := r.connect(f, &link{})
	c.Fallback = r.fallback(f, &c, to)
	return c
}

// connect reads one connection and returns it with its destination. It records in l where
// the settings are written.
func (r *reader) connect(f *fields, l *link) (Connection, destination) {
	c := Connection{ExtraBody: jsonOf(f.get("extraBody")), StructuredOutput: text(r.places.setting("structuredOutput"))}
	members{
		{"maxTurns", &c.MaxTurns}, {"maxTokens", &c.MaxTokens}, {"temperature", &c.Temperature}, {"topP", &c.TopP},
		{"frequencyPenalty", &c.FrequencyPenalty}, {"presencePenalty", &c.PresencePenalty}, {"seed", &c.Seed}, {"reasoningEffort", &c.ReasoningEffort},
		{"timeoutMs", &c.Timeout}, {"callTimeoutMs", &c.CallTimeout}, {"maxTokensKey", &c.MaxTokensKey}, {"systemRole", &c.SystemRole},
		{"structuredOutput", &c.StructuredOutput}, {"textToolCalls", &c.TextToolCalls},
	}.read(f.get)
	c.ownTextCalls = f.get("textToolCalls") != nil
	c.Stop, c.ReasoningEffort = stopList(f.get("stop")), strings.TrimSpace(c.ReasoningEffort)
	f.link = l
	base := cmp.Or(r.pick(f, "baseURL"), r.places.setting("baseURL"))
	where := r.destination(f, base, &c)
	l.baseURL = base
	l.model = cmp.Or(r.pick(f, "model"), r.places.setting("model"))
	if x, ok := r.expand("model", l.model); ok {
		c.Model = strings.TrimSpace(r.send("model", f, l.model, x, where.to, where.origin))
		c.conceal(x)
		if len(x.values) > 0 {
			c.shownModel = strings.TrimSpace(x.written)
		}
	}
	c.APIKey = r.apiKey(f, l, where, &c)
	c.Headers = r.headers(f, l, where, &c)
	return c, where
}

// A destination is the endpoint that a connection leads to.
type destination struct {
	origin string // "" if there is none, which is reported
	to     string // the same with variables as they are written
}

// destination reads the base URL of a connection and says where it leads.
func (r *reader) destination(f *fields, base *node, c *Connection) (d destination) {
	x, ok := r.expand("baseURL", base)
	if base != nil {
		c.written = strings.TrimSpace(base.text)
	}
	if !ok {
		return d
	}
	value := r.baseURL(base, x)
	if value == "" {
		value = openAIOrigin
		if env, _ := r.lookup(openAIBase); strings.TrimSpace(env) != "" {
			value = env
		}
		d.origin, _ = originOf(value) // what is wrong with the variable is reported when it is used
		d.to = cmp.Or(d.origin, opening+openAIBase+"}")
		return d
	}
	d.origin, _ = originOf(value)
	if part := originPart(strings.TrimSpace(x.written)); strings.Contains(part, opening) && !(part == opening+openAIBase+"}" && r.isKnown(openAIBase, d.origin)) {
		d.to = part
	} else {
		d.to = d.origin
	}
	c.BaseURL = strings.TrimSpace(r.send("baseURL", f, base, x, d.to, d.origin))
	c.conceal(x)
	if shown := strings.TrimSpace(x.written); len(x.values) > 0 && shown != opening+openAIBase+"}" {
		c.shownURL = shown
	}
	return d
}

// A link is where the settings of a connection are written.
type link struct {
	model, baseURL, apiKey *node  // nil if not set
	headers                *node  // the headers that are sent, each once
	option                 string // the model that the options set; empty if they set none

	owner *fields     // of the agent, for an entry of a fallback; else nil
	first destination // of the agent's own connection, for an entry of a fallback
}

// baseURL checks a base URL and returns it. Messages do not show values of the environment.
// A URL with a variable that is not set is not checked.
func (r *reader) baseURL(n *node, x expansion) string {
	value := strings.TrimSpace(x.value)
	if value == "" || r.o.Offline && strings.Contains(value, opening) {
		return value
	}
	u, err := url.Parse(value)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		r.bad(n, "write scheme, host and path, such as http://localhost:11434/v1", "baseURL: it is not the URL of an endpoint")
	case u.User != nil:
		r.bad(n, "give the key apart, as apiKey", "baseURL: it holds a user or a password")
	case strings.Contains(value, "#") || u.ForceQuery || u.RawQuery != "" && !connection.APIVersion().MatchString(u.RawQuery):
		r.bad(n, "leave out what follows the path; only ?api-version=… of Azure is accepted", "baseURL: it has a query or a fragment")
	default:
		if _, err := originOf(value); err != nil {
			r.bad(n, "write the host in ASCII: letters, digits, dots and hyphens; xn--… for other scripts", "baseURL: the host is not valid")
		}
	}
	return value
}

// checkBases checks the base URLs that agents may inherit, even if no agent does. URLs with
// variables are checked when they are used.
func (r *reader) checkBases() {
	for _, y := range r.places.layers {
		for _, n := range [...]*node{y.spec.own("baseURL"), y.orch.own("defaultBaseURL")} {
			if n != nil && !strings.Contains(n.text, opening) {
				r.baseURL(n, expansion{value: n.text})
			}
		}
	}
}

// apiKey returns the key for an agent's endpoint: of the agent, its defaults or the spec.
func (r *reader) apiKey(f *fields, l *link, to destination, c *Connection) Key {
	n := cmp.Or(r.pick(f, "apiKey"), r.places.setting("apiKey"))
	if n == nil {
		return Key{}
	}
	x, ok := r.expand("apiKey", n)
	if !ok {
		return Key{}
	}
	if !strings.Contains(n.text, opening) && strings.TrimSpace(n.text) != "" {
		r.warn(n, "write ${NAME}, and set that variable", "apiKey: the file contains the key itself")
	}
	if r.elsewhere(f, n, l, to, "apiKey") {
		return Key{}
	}
	l.apiKey = n
	c.conceal(x)
	return NewKey(strings.TrimSpace(r.send("apiKey", f, n, x, to.to, to.origin)))
}

// headers adds an agent's headers to those of its defaults and of the spec.
func (r *reader) headers(f *fields, l *link, to destination, c *Connection) map[string]string {
	var from []*node // the last one wins
	for i := len(r.places.layers) - 1; i >= 0; i-- {
		from = append(from, r.places.layers[i].spec.own("headers"))
	}
	var own []*node
	for d := f; d != nil; d = d.defaults {
		own = append([]*node{d.own("headers")}, own...)
	}
	var all map[string]string
	for _, n := range append(from, own...) {
		if n == nil || r.elsewhere(f, n, l, to, "headers") {
			continue
		}
		if r.subject = nil; n == f.own("headers") {
			r.subject = r.mine
		}
		if all == nil {
			all, l.headers = make(map[string]string), objectNode()
		}
		for _, header := range n.parts() {
			x, _ := r.expand("headers", header)
			maps.DeleteFunc(all, func(k, _ string) bool { return strings.EqualFold(k, header.key) })
			l.headers.replace(header.key, header)
			if !n.src.taken[header] { // a value that is missing in a stored copy is not sent, nor one that it overrode
				all[header.key] = r.send("headers", f, header, x, to.to, to.origin)
				c.conceal(x)
			}
		}
	}
	return all
}

// elsewhere reports whether a key or headers are for another host than the agent's
// endpoint, and warns if so. Credentials written next to a base URL are for its host only.
// If an entry of a fallback inherits credentials without a base URL next to them, they
// are for the host of the agent's own connection.
func (r *reader) elsewhere(f *fields, n *node, l *link, to destination, what string) bool {
	base, beside := l.baseURL, r.beside(f, n)
	switch {
	case base == nil, beside == base:
		return false
	case beside == nil && (l.owner == nil || f.own(what) == n || l.first.origin == to.origin):
		return false
	case beside != nil:
		other, ok := r.expand("baseURL", beside)
		if !ok || strings.Contains(other.value, opening) {
			return l.owner != nil && base == f.own("baseURL") // a URL that cannot be compared counts as another
		}
		if origin, err := originOf(other.value); err == nil && origin == to.origin {
			return false
		}
	}
	r.subject = r.mine
	line, _ := n.src.place(n.at)
	r.warn(base, "if it needs one, write "+what+" beside this baseURL", "%s of line %d: for another host, so not sent to this one", what, line)
	return true
}

// beside returns the base URL next to a key or headers in the same object, or nil.
func (r *reader) beside(f *fields, n *node) *node {
	for ; f != nil; f = f.defaults {
		if f.own("apiKey") == n || f.own("headers") == n {
			return f.own("baseURL")
		}
	}
	for _, y := range r.places.layers {
		if y.spec.own("apiKey") == n || y.spec.own("headers") == n || y.orch.own("defaultApiKey") == n {
			return cmp.Or(y.spec.own("baseURL"), y.orch.own("defaultBaseURL"))
		}
	}
	return nil
}

// applyTextCalls gives an agent that does not say how it takes calls written as text what all of its endpoints say.
func (r *reader) applyTextCalls(c *Connection) {
	if c.ownTextCalls {
		return
	}
	c.TextToolCalls = r.takesTextCalls(c)
	for i := range c.Fallback {
		c.TextToolCalls = c.TextToolCalls && r.takesTextCalls(&c.Fallback[i])
	}
}

// takesTextCalls reports what the endpoint of one connection says.
func (r *reader) takesTextCalls(c *Connection) bool {
	base := c.BaseURL
	if base == "" {
		env, _ := r.lookup(openAIBase)
		base = cmp.Or(strings.TrimSpace(env), openAIOrigin)
	}
	return r.textCalls[endpoint.Normalize(base)]
}
