package specfile

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// WithPlan returns f as a spec in YAML with the tasks and the goal of a plan. [Load] reads
// it as the same agents, inputs and coordinator with these tasks. A run of it does not plan
// again, and the coordinator answers the goal from the results. An empty goal means tasks
// without one.
//
// The spec contains the models and the values of parameters that options set. dir is its
// folder: paths are relative to it, and a path that leaves it is a problem. Variables of the
// environment stay variables.
//
// left lists what the spec does not contain, which its first lines say too: literal keys,
// and inputs from outside of dir, which the options must bring again. The error is an
// [*Error].
func (f *File) WithPlan(goal engine.Goal, tasks []task.Spec, dir string) (text []byte, left []Problem, err error) {
	s := &saver{f: f, p: f.places, dir: dir, flat: len(f.places.layers) > 1, repeated: make(map[*fields]bool)}
	for i := range f.Agents {
		if !f.Agents[i].HasModel() {
			continue
		}
		maps.Copy(s.repeated, repeated(&f.Agents[i].Connection, f.places.agents[i].fallback))
	}
	if c := f.Coordinator; c != nil {
		maps.Copy(s.repeated, repeated(&c.Connection, f.places.coordinator.fallback))
	}
	n := s.spec(goal, tasks)
	if text, err = emit(n); err != nil {
		s.wrong("%v", err)
	} else if len(text) > maxYAML {
		s.wrong("larger than %d KiB, the most for YAML", maxYAML>>10)
	}
	if len(s.found) > 0 {
		return nil, nil, &Error{Problems: locate(s.found)}
	}
	left = locate(s.left)
	if text[0] == '{' {
		return text, left, nil // JSON has no comments
	}
	var head bytes.Buffer
	for _, p := range left {
		fmt.Fprintf(&head, "# %s:%d: %s; %s\n", filepath.Base(p.File), p.Line, p.Message, p.Hint)
	}
	return append(head.Bytes(), text...), left, nil
}

// A saver makes a spec from a file and a plan.
type saver struct {
	f     *File
	p     *places
	dir   string
	flat  bool      // the settings of connections come from several files
	found []finding // why it cannot be saved
	left  []finding // what is left out

	repeated map[*fields]bool // entries of a fallback
}

// wrong reports something in the plan that a spec cannot express.
func (s *saver) wrong(format string, args ...any) {
	s.found = append(s.found, finding{Problem: Problem{Message: "the plan: " + fmt.Sprintf(format, args...), Err: ErrInvalid}})
}

// spec makes the whole spec. If connections come from several files, each agent gets its own
// settings.
func (s *saver) spec(goal engine.Goal, tasks []task.Spec) *node {
	f, n := s.f, objectNode()
	if strings.TrimSpace(f.Name) != "" {
		n.set("name", textNode(f.Name))
	}
	if !s.flat {
		s.connection(n, "", s.p.setting("model"), s.p.setting("baseURL"), s.p.setting("apiKey"), s.p.main.spec.own("headers"))
		n.set("structuredOutput", s.p.setting("structuredOutput"))
	}
	if list := s.p.main.spec.own("fallback"); list != nil && !s.flat {
		n.set("fallback", s.fallback("", fallbackFields(list)))
	}
	s.limits(n)
	if offline := s.p.main.spec.own("offline"); offline != nil {
		n.set("offline", s.path("offline", offline))
	}
	if strings.TrimSpace(goal.Text) != "" {
		n.set("goal", s.goal(goal))
		n.set("coordinator", s.coordinator())
	}
	n.set("chat", s.p.main.spec.own("chat"))
	n.set("params", s.params(goal, tasks))
	n.set("inputs", s.inputs())
	n.set("schemas", s.merged("schemas"))
	n.set("endpoints", s.merged("endpoints"))
	if defaults := s.p.main.spec.own("agentDefaults"); defaults != nil && !s.flat {
		n.set("agentDefaults", s.agent("agentDefaults: ", written("agentDefaults", defaults)))
	}
	n.set("tools", s.tools())
	n.set("policy", s.p.policy)
	n.set("assert", s.p.main.spec.own("assert"))
	agents := listNode()
	for i, a := range s.p.agents {
		agents.add(s.agent(agentName(i, f.Agents[i].Member.Name)+": ", a))
	}
	n.set("agents", agents)
	n.set("messages", copied(s, s.p.messages))
	n.set("edges", copied(s, s.p.edges))
	n.set("tasks", s.tasks(tasks))
	return n
}

// limits writes the limits of the run.
func (s *saver) limits(n *node) {
	settings, own := runMembers(s.f)
	settings.write(n)
	own.write(n)
	n.set("prices", s.merged("prices"))
	if off := s.p.sharedMemory(); off != nil {
		n.set("sharedMemory", off)
	}
}

// goal writes a goal: a text, or a mapping with its label.
func (s *saver) goal(g engine.Goal) *node {
	words := s.words(g.Text, g.Source.Params)
	if g.Classification == label.Internal {
		return words
	}
	n := objectNode()
	n.set("text", words)
	n.set("classification", textNode(g.Classification.String()))
	return n
}

// coordinator writes the coordinator; nil if it has no settings of its own.
func (s *saver) coordinator() *node {
	f := s.p.coordinator
	if f == nil && s.flat {
		s.wrong("it has a goal, and the files were loaded without one: load them with Options.Goal")
	}
	if f == nil {
		return nil
	}
	return s.agent("coordinator: ", f).orNil()
}

// agent writes an agent, agentDefaults, the coordinator or an entry of a fallback.
func (s *saver) agent(who string, f *fields) *node {
	n := objectNode()
	l := &link{model: f.own("model"), baseURL: f.own("baseURL"), apiKey: f.own("apiKey"), headers: f.own("headers")}
	if s.flat && f.link != nil {
		l = f.link
	}
	for i := range f.place.keys {
		k := &f.place.keys[i]
		value := f.own(k.name)
		if s.flat && f.place.name != "fallback" { // an entry inherits the rest from its agent
			value = f.get(k.name)
			if value == nil && k.name == "structuredOutput" {
				value = s.p.setting(k.name)
			}
		}
		switch {
		case k.name == "model":
			s.connection(n, who, s.model(f, l.model), l.baseURL, l.apiKey, l.headers)
		case k.name == "fallback" && (s.flat || value != nil && f.fallback != nil):
			n.set(k.name, s.fallback(who, f.fallback))
		case k.name == "fallback":
			n.set(k.name, s.fallback(who, fallbackFields(value)))
		case k.name == "backend" && value != nil:
			n.set(k.name, s.program(who+"backend.", value))
		case k.name == "baseURL", k.name == "apiKey", k.name == "headers":
		case value != nil && k.status == Works:
			n.set(k.name, s.copy(k.name, value))
		case k.name == "toolPreset" && f.place.name == "agent" && f.get(k.name) == nil:
			n.set(k.name, s.p.defaultPreset())
		}
	}
	return n
}

// fallback returns the entries of a fallback, or nil if there are none. It leaves out
// entries with a literal key, and those that an option made equal to another.
func (s *saver) fallback(who string, entries []*fields) *node {
	n := listNode()
	for i, e := range entries {
		left := len(s.left)
		entry := s.agent(fmt.Sprintf("%sfallback %d: ", who, i+1), e)
		if len(s.left) == left && !s.repeated[e] { // it would not work without its key
			n.add(entry)
		}
	}
	return n.orNil()
}

// fallbackFields returns the entries of a fallback as written, without defaults. It leaves
// out those that repeat an earlier one, which are an error once an agent uses the fallback.
func fallbackFields(list *node) (entries []*fields) {
	seen := map[string]bool{}
	for _, item := range list.parts() {
		e := written("fallback", item)
		t := fmt.Sprintf("%q %q %t", strings.TrimRight(text(e.own("baseURL")), "/"), text(e.own("model")), e.own("model") != nil) // an empty model is not that of the agent
		if hasCredentials(e) || !seen[t] {
			entries = append(entries, e)
		}
		seen[t] = seen[t] || !hasCredentials(e)
	}
	return entries
}

// model returns the model of the options, or else the one in the file.
func (s *saver) model(f *fields, written *node) *node {
	if f.model() == "" {
		return written
	}
	if strings.Contains(f.model(), opening) {
		s.wrong("%s: %s would be read as a variable of the environment", s.p.options.called("Models"), quote(f.model()))
	}
	return textNode(f.model())
}

// connection writes the settings of a connection without literal keys.
func (s *saver) connection(n *node, who string, model, baseURL, apiKey, headers *node) {
	n.set("model", model)
	n.set("baseURL", baseURL)
	if apiKey != nil && s.named(who+"apiKey", apiKey) {
		n.set("apiKey", apiKey)
	}
	if headers == nil {
		return
	}
	kept := objectNode()
	for _, value := range headers.parts() {
		if name := value.key; !soundsSecret(name) || s.named(who+"headers: "+name, value) {
			kept.set(name, value)
		}
	}
	n.set("headers", kept)
}

// namesKey matches a credential that is only a variable, alone or after a scheme such as
// Bearer.
var namesKey = regexp.MustCompile(`^\s*([A-Za-z-]+ +)?\$\{[A-Za-z_][A-Za-z0-9_]*\}\s*$`)

// named reports whether a credential is only a variable and may be written. It records one that is not.
func (s *saver) named(what string, n *node) bool {
	if strings.TrimSpace(n.text) == "" || namesKey.MatchString(n.text) {
		return true
	}
	s.left = append(s.left, finding{n.src, n.at, Problem{Message: what + ": not saved: the file contains the key itself", Hint: "write ${NAME}, and set that variable"}})
	return false
}

// copy writes a value of the file; paths are rewritten for the folder of the plan.
func (s *saver) copy(key string, n *node) *node {
	switch key {
	case "systemPrompt", "description", "instructions", "outputSchema", "text":
		if isFileRef(n) {
			ref := objectNode()
			ref.set("file", s.path(key+": file", n.get("file")))
			return ref
		}
	}
	return n
}

// params writes the parameters that the spec uses.
func (s *saver) params(goal engine.Goal, tasks []task.Spec) *node {
	var used []string
	add := func(params []provenance.Param) {
		for _, p := range params {
			if s.p.params[p.Name] != nil && !slices.Contains(used, p.Name) {
				used = append(used, p.Name)
			}
		}
	}
	add(goal.Source.Params)
	for t := range AllTasks(tasks) {
		add(t.Source.Params)
	}
	for i := range s.f.Agents {
		add(s.f.Agents[i].Member.SystemParams)
	}
	if c := s.f.Coordinator; c != nil && strings.TrimSpace(goal.Text) != "" {
		add(c.SystemParams)
	}
	n := objectNode()
	for _, name := range slices.Sorted(slices.Values(used)) {
		n.set(name, textNode(s.p.params[name].value))
	}
	return n.orNil()
}

// merged writes the members of a key of all files. Of two with the same name, the first one
// counts, and an endpoint has the keys of both.
func (s *saver) merged(key string) *node {
	all := objectNode()
	for _, y := range s.p.layers {
		n := y.spec.own(key)
		for _, value := range n.parts() {
			known := all.get(value.key)
			if known == nil {
				all.set(value.key, s.copy("outputSchema", value))
				continue
			}
			known.kids = slices.Clip(known.kids)
			for _, member := range value.parts() {
				if key == "endpoints" && known.get(member.key) == nil {
					known.set(member.key, member)
				}
			}
		}
	}
	return all.orNil()
}

// copied writes a list of objects as the file has them.
func copied(s *saver, list []*fields) *node {
	all := listNode()
	for _, f := range list {
		n := objectNode()
		for i := range f.place.keys {
			if key := f.place.keys[i].name; f.own(key) != nil {
				n.set(key, s.copy(key, f.own(key)))
			}
		}
		all.add(n)
	}
	return all.orNil()
}

// written returns an object that the loader has checked as its fields, without defaults.
func written(place string, n *node) *fields {
	f := &fields{place: placesByName[place], node: n, vals: make(map[string]*node)}
	for _, value := range n.parts() {
		f.vals[value.key] = value
	}
	return f
}
