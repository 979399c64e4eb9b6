package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/runteam/runteam/team"
)

// readAgents reads the roster.
func (r *reader) readAgents() {
	n := r.roster.spec.own("agents")
	if r.roster.team != nil {
		n = r.roster.team.own("agents")
	}
	r.places.agentList = n
	defaults := r.agentDefaults()
	if n == nil {
		return
	}
	defer func() { r.subject = nil }()
	for i := range n.kids.nodes {
		if len(r.found) >= tooMany {
			return
		}
		item := &n.kids.nodes[i]
		r.mine = func() string { return agentName(i, text(item.get("name"))) + ": " }
		r.subject = r.mine
		f := r.fields(item, agentPlace, defaults)
		r.places.agents = append(r.places.agents, f)
		if f == nil {
			r.file.Agents = append(r.file.Agents, Agent{}) // keeps the numbers in step
			continue
		}
		if item.get("name") == nil {
			r.bad(item, ErrInvalid, "write name: …", "name: it is missing")
		}
		r.file.Agents = append(r.file.Agents, r.agent(f))
	}
}

// agentName names agent i in a message.
func agentName(i int, name string) string {
	if strings.TrimSpace(name) == "" {
		return fmt.Sprintf("agent %d", i+1)
	}
	return "agent " + quote(name)
}

// agentDefaults are those of the roster's file, then those of the others.
func (r *reader) agentDefaults() *fields {
	var first, last *fields
	for _, y := range append([]*layer{r.roster}, r.layers...) {
		n := y.spec.own("agentDefaults")
		if n == nil || last != nil && n == last.node || first != nil && n == first.node {
			continue
		}
		r.subject = func() string { return "agentDefaults: " }
		f := r.fields(n, agentDefaultsPlace, nil)
		r.subject = nil
		if f == nil {
			continue
		}
		if first == nil {
			first = f
		} else {
			last.defaults = f
		}
		last = f
	}
	return first
}

// agent reads one agent.
func (r *reader) agent(f *fields) Agent {
	prompt, params := r.fill("systemPrompt", r.pick(f, "systemPrompt"))
	_, description := r.textOf(r.pick(f, "description"))
	m := team.Member{
		Name:         text(f.own("name")),
		SystemPrompt: prompt,
		SystemParams: params,
		OutputSchema: r.schema(r.pick(f, "outputSchema")),
		Accepts:      level(f.get("accepts")),
		OutputTags:   textList(f.get("outputTags")),
		MaxSession:   duration(f.get("maxSessionMs")),
		MaxParallel:  integer(f.get("maxParallel")),
		Description:  description,
		Capabilities: textList(f.get("capabilities")),
		Origin:       origin(f.node.src, f.node.at),
	}
	if n := f.get("produces"); n != nil {
		m.Produces = new(level(n))
	}
	a := Agent{Member: m, Connection: r.connection(f)}
	a.Member.Model = a.Model
	return a
}

// pick returns a value that may be a default, and sets the subject of
// messages: what is wrong with a default is not said of each agent.
func (r *reader) pick(f *fields, name string) *node {
	n := f.own(name)
	if r.subject = r.mine; n == nil {
		r.subject = nil
		n = f.defaults.get(name)
	}
	return n
}

// connection reads how the model of an agent is reached.
func (r *reader) connection(f *fields) Connection {
	c := Connection{
		MaxTurns:    integer(f.get("maxTurns")),
		MaxTokens:   integer(f.get("maxTokens")),
		Temperature: decimal(f.get("temperature")),
		TopP:        decimal(f.get("topP")),
		Timeout:     duration(f.get("timeoutMs")),
		CallTimeout: duration(f.get("callTimeoutMs")),
		Headers:     r.headers(f),
	}
	c.Model, _ = r.expand("model", cmp.Or(r.pick(f, "model"), r.setting("model")))
	c.Model = strings.TrimSpace(c.Model)
	base := cmp.Or(r.pick(f, "baseURL"), r.setting("baseURL"))
	if value, ok := r.expand("baseURL", base); ok {
		c.BaseURL = r.baseURL(base, value)
	}
	c.APIKey = r.apiKey(f, base, c.BaseURL)
	return c
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

// apiKey returns the key that goes to an agent's endpoint: its own, else its
// defaults', else the spec's. A key that stands beside a base URL is for that
// host: it is not sent to another one that somebody names elsewhere.
func (r *reader) apiKey(f *fields, base *node, baseURL string) Key {
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
	if beside := r.beside(f, n); beside != nil && base != nil && beside != base {
		if other, ok := r.expand("baseURL", beside); ok && host(other) != host(baseURL) {
			r.subject = r.mine
			r.warnAt(base.src, base.at, "write apiKey beside this baseURL if it needs one", "the apiKey of line %d is for another host and is not sent to this one", lineOf(n))
			return Key{}
		}
	}
	return NewKey(strings.TrimSpace(value))
}

// beside returns the base URL that stands in the same object as a key, or nil.
func (r *reader) beside(f *fields, key *node) *node {
	for ; f != nil; f = f.defaults {
		if f.own("apiKey") == key {
			return f.own("baseURL")
		}
	}
	for _, y := range r.layers {
		if y.spec.own("apiKey") == key || y.orch.own("defaultApiKey") == key {
			return cmp.Or(y.spec.own("baseURL"), y.orch.own("defaultBaseURL"))
		}
	}
	return nil
}

func lineOf(n *node) int {
	line, _ := n.src.place(n.at)
	return line
}

// host returns scheme, host and port of a base URL.
func host(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return baseURL
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// headers adds an agent's headers to those of its defaults and the spec.
func (r *reader) headers(f *fields) map[string]string {
	var from []*node
	for i := len(r.layers) - 1; i >= 0; i-- {
		from = append(from, r.layers[i].spec.own("headers"))
	}
	var own []*node
	for ; f != nil; f = f.defaults {
		own = append([]*node{f.own("headers")}, own...)
	}
	var all map[string]string
	for i, n := range append(from, own...) {
		if n == nil {
			continue
		}
		if r.subject = nil; i == len(from)+len(own)-1 {
			r.subject = r.mine
		}
		if all == nil {
			all = make(map[string]string)
		}
		for i, name := range n.kids.keys {
			value, _ := r.expand("headers", &n.kids.nodes[i])
			maps.DeleteFunc(all, func(k, _ string) bool { return strings.EqualFold(k, name) })
			all[name] = value
		}
	}
	return all
}
