package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Origins returns where the prompts of a member go, on a machine that the run is on. The names of its endpoints do
// not count: one with a variable has the same name for any origin. What answers without an endpoint, such as
// a process, is on the machine itself.
func (m *Member) Origins(machine string) (list []string) {
	for _, e := range m.endpoints() {
		list = append(list, originOf(e.base, machine))
	}
	if len(list) == 0 {
		list = append(list, machine)
	}
	return list
}

// originOf returns the scheme, host and port of a base URL. The port of an endpoint
// on this machine does not count, since it changes from start to start.
func originOf(base, machine string) string {
	u, err := url.Parse(endpoint.Normalize(base))
	if err != nil || u.Host == "" {
		return base + " on " + machine
	}
	if DefaultAccepts(base) == label.Secret { // on this machine
		return u.Scheme + "://localhost on " + machine
	}
	return u.Scheme + "://" + u.Host
}

// AnswerVersion returns the version of the member's agent; empty if none is known.
func (m *Member) AnswerVersion() string {
	if versioned, ok := m.Agent.(interface{ Version() string }); ok && m.Version == "" {
		return versioned.Version()
	}
	return m.Version
}

// HasFallback reports whether the member's agent has several models.
func (m *Member) HasFallback() bool { return len(modelsOf(m.Agent)) > 1 }

// TakesTextCalls reports whether the member's agent takes calls of tools that its models write as text.
func (m *Member) TakesTextCalls() bool {
	a, ok := m.Agent.(interface{ TakesTextCalls() bool })
	return ok && a.TakesTextCalls()
}

// FirstModel returns the model of the member, as its settings name it.
func (m *Member) FirstModel() string {
	if names := modelsOf(m.Agent); len(names) > 0 {
		return cmp.Or(m.Model, names[0])
	}
	return m.Model
}

// baseURLs returns the base URLs that the prompts of a member are sent to. It is empty
// for an agent without an endpoint.
func (m *Member) baseURLs() []string {
	var all []string
	switch a := m.Agent.(type) {
	case interface{ Endpoints() []string }:
		if all = slices.Clone(a.Endpoints()); len(all) == 0 {
			all = []string{""}
		}
	case interface{ Endpoint() string }:
		all = []string{a.Endpoint()}
	}
	if m.Endpoint != "" {
		all = append([]string{m.Endpoint}, all[min(1, len(all)):]...)
	}
	for i := range all {
		all[i] = cmp.Or(all[i], unknownEndpoint)
	}
	return all
}

// A memberEndpoint is one endpoint of a member.
type memberEndpoint struct{ base, name string } // name is what messages call it

// endpoints returns the endpoints of a member, in order and each once.
func (m *Member) endpoints() (list []memberEndpoint) {
	known := map[string]bool{}
	for i, where := range m.baseURLs() {
		if known[endpoint.Normalize(where)] {
			continue
		}
		known[endpoint.Normalize(where)] = true
		name := ""
		if i < len(m.EndpointNames) {
			name = m.EndpointNames[i]
		}
		list = append(list, memberEndpoint{where, cmp.Or(name, where)})
	}
	return list
}

// endpoints returns the endpoints of a member with their clearances.
func (t *Roster) endpoints(m *Member) (list []gate.Endpoint) {
	for _, e := range m.endpoints() {
		list = append(list, gate.Endpoint{URL: e.name, Accepts: acceptedBy(t.Config.Endpoints, e.base)})
	}
	return list
}

// acceptedBy returns the clearance of an endpoint.
func acceptedBy(clearances map[string]label.Classification, where string) label.Classification {
	accepts, named := label.Secret, false
	for base, level := range clearances {
		if endpoint.Normalize(base) == endpoint.Normalize(where) { // if an address is spelled in two ways, the stricter clearance counts
			accepts, named = min(accepts, level), true
		}
	}
	if !named {
		return DefaultAccepts(where)
	}
	return accepts
}

// EndpointNames returns the names of all endpoints of the team.
func (t *Roster) EndpointNames() (names []string) {
	for i := range t.Capabilities {
		for _, e := range t.Capabilities[i].Endpoints {
			names = append(names, e.URL)
		}
	}
	if c := t.Config.Coordinator; c != nil && c.Agent != nil {
		for _, e := range t.endpoints(c.member()) {
			names = append(names, e.URL)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unknownEndpoint is the URL of a model that does not say where it is.
const unknownEndpoint = "(a model that does not name its endpoint)"

// DefaultAccepts returns the clearance of an endpoint that no setting names:
// secret for one on this machine, confidential for any other.
func DefaultAccepts(baseURL string) label.Classification {
	if endpoint.IsLocal(baseURL) {
		return label.Secret
	}
	return label.Confidential
}

// checkEndpoints checks the clearances of endpoints, and warns of those that no prompt
// goes to.
func (t *Roster) checkEndpoints(found *task.Problems) {
	used := map[string]bool{}
	use := func(m *Member) {
		for _, where := range m.baseURLs() {
			used[endpoint.Normalize(where)] = true
		}
	}
	for i := range t.Config.Agents {
		use(&t.Config.Agents[i])
	}
	if c := t.Config.Coordinator; c != nil && c.Agent != nil {
		use(c.member())
	}
	for _, base := range slices.Sorted(maps.Keys(t.Config.Endpoints)) {
		about := subject{found, naming.Pointer("endpoints", base), fmt.Sprintf("endpoint %q", base)}
		about.at("accepts").checkLabel(t.Config.Endpoints[base])
		if u, err := url.Parse(strings.TrimSpace(base)); err != nil || u.Host == "" {
			about.report("it is not a base URL", "use one such as https://api.openai.com/v1", task.ErrInvalid)
		} else if !used[endpoint.Normalize(base)] {
			about.found = &t.Warnings
			about.report("no agent's prompts go there", "write the base URL as the agent's model has it", nil)
		}
	}
}
