package specfile

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
)

// readChat reads the key chat, checks it, and finds out who answers if the spec is read for a session.
func (r *reader) readChat() {
	defer func() { r.subject = nil }()
	n := r.places.main.spec.own("chat")
	if n != nil {
		r.subject = func() string { return "chat: " }
		r.places.chat = r.fields(n, "chat", nil)
	}
	at := r.places.chat.own("agent")
	if r.places.chat != nil {
		r.file.Chat = &Chat{text(at), textList(r.places.chat.own("inputs"))}
	}
	if at != nil {
		r.checkAnswerer(at.text, func(hint, why string) { r.bad(at, hint, "agent: %s", why) })
	}
	r.checkChatInputs()
	if r.subject = nil; r.o.Chat {
		r.chooseAnswerer(at)
	}
}

// checkChatInputs reports inputs of the chat that the spec does not have.
func (r *reader) checkChatInputs() {
	for _, item := range r.places.chat.own("inputs").parts() {
		known := make([]string, len(r.file.Run.Inputs))
		for i := range known {
			known[i] = r.file.Run.Inputs[i].Name
		}
		if !slices.Contains(known, item.text) {
			r.bad(item, nearHint(item.text, "name an input of the spec", known...), "inputs: unknown input %s", quote(item.text))
		}
	}
}

// chooseAnswerer sets who answers: the agent of the options, of the key chat.agent at a node, or the
// coordinator.
func (r *reader) chooseAnswerer(at *node) {
	switch {
	case r.o.Agent != "":
		r.file.Answerer = r.o.Agent
		r.checkAnswerer(r.o.Agent, func(hint, why string) { r.badOption("Agent", ErrInvalid, hint, ": %s", why) })
	case at != nil:
		r.file.Answerer = at.text
	case r.coordinatorNode() != nil || r.places.main.spec.own("goal") != nil:
		r.file.Answerer = handoff.Coordinator
	default:
		hint := "write chat: {agent: NAME}, or coordinator: {}, or give " + r.o.called("Agent") + " NAME"
		if names := r.answerers(); len(names) > 0 {
			hint += "; its agents are " + strings.Join(names, ", ")
		}
		r.bad(r.places.main.node, hint, "nobody answers in a chat: the spec names no agent for it and has no coordinator")
	}
}

// checkAnswerer reports a name that is not that of an agent which can answer. The coordinator is one.
func (r *reader) checkAnswerer(name string, report func(hint, why string)) {
	i := slices.IndexFunc(r.file.Agents, func(a Agent) bool { return a.Member.Name == name })
	switch {
	case name == handoff.Coordinator:
	case i < 0:
		report(nearHint(name, "name an agent of the spec: "+strings.Join(r.answerers(), ", "), r.answerers()...), "unknown agent "+quote(name))
	case r.file.Agents[i].Person:
		report("name another agent; it may ask the person", quote(name)+" is a person, and a chat is with a model")
	}
}

// answerers returns the names of the agents that can answer.
func (r *reader) answerers() (names []string) {
	for i := range r.file.Agents {
		if a := &r.file.Agents[i]; !a.Person && a.Member.Name != "" {
			names = append(names, a.Member.Name)
		}
	}
	return names
}

// dropTasks removes the tasks: a session has its turns in their place.
func (r *reader) dropTasks() { r.file.Tasks, r.places.tasks, r.places.taskList = nil, nil, nil }

// narrowToAnswerer removes the inputs that the agent does not get, and the assertions about these and about
// tasks, which do not run. A coordinator gets no inputs itself, and may grant them.
func (r *reader) narrowToAnswerer() {
	o, p := &r.file.Run, r.places
	o.Output, o.Auto = "", false
	granted := textList(p.chat.own("inputs"))
	used := func(name string) bool {
		return r.file.Answerer == handoff.Coordinator || slices.Contains(granted, name)
	}
	var inputs []engine.Input
	var asserts []flow.Assertion
	var ofInputs []inputPlaceOf
	var ofAsserts []*node
	for i, in := range o.Inputs {
		if used(in.Name) {
			inputs, ofInputs = append(inputs, in), append(ofInputs, p.inputs[i])
		}
	}
	for i, a := range o.Assert {
		if about := a.Subject; about.Kind == flow.Property || about.Kind == flow.OfInput && used(about.Name) {
			asserts, ofAsserts = append(asserts, a), append(ofAsserts, p.asserts[i])
		}
	}
	o.Inputs, p.inputs, o.Assert, p.asserts = inputs, ofInputs, asserts, ofAsserts
}
