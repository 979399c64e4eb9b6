package specfile

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// places records where everything in a File is written.
type places struct {
	main      *layer
	layers    []*layer // the files with settings, by precedence
	roster    *layer   // the file with the agents
	compat    bool
	agentList *node
	taskList  *node
	agents    []*fields // of each agent
	tasks     []*fields // of each task
	traffic
	inputs []inputPlaceOf
	answering
	readings
	params  map[string]*param
	options *Options
	tools   *Toolbox
	files   map[*node]*source          // the source that a {file: PATH} names
	whens   map[*fields]conditionPlace // of the conditions of tasks
	loops   map[*fields]loopPlace      // of the tasks that are loops
	asserts []*node                    // of the run's assertions
	policy  *node                      // as it is written, in the spec or in a file of its own; nil without one

	policyFile *source // nil if the policy has no file of its own
}

// answering are the parts of a spec about what answers goals and turns; each is nil without one.
type answering struct {
	goal        *node // nil also if an option brought it
	coordinator *fields
	chat        *fields
}

// readings are the texts that a spec was made from, behind pointers that printing does not follow.
type readings struct {
	loaded []*loadedFile // every file that was read
	flags  []string      // the values of options, for the fingerprint
}

// An inputPlaceOf says where an input is written.
type inputPlaceOf struct {
	name   string
	fields *fields
	src    *source
	key    int

	isFolder bool
	file     string // that has the text, as it was named; empty for another input
	run      string // the whole ID of the run whose result it is
}

// Locate turns a [task.Problem] or [task.Problems], whose pointers refer to f, into an
// [*Error] with places. It returns every other error, and nil, unchanged.
func (f *File) Locate(err error) error {
	problems, ok := errors.AsType[task.Problems](err)
	if !ok {
		one, ok := errors.AsType[task.Problem](err)
		if !ok {
			return err
		}
		problems = task.Problems{one}
	}
	if len(problems) == 0 {
		return err
	}
	if f.places.main.spec != nil {
		problems = f.joined(withoutFollowUps(problems, f.Tasks, f.Run.Inputs))
	}
	found := make([]finding, len(problems))
	for i, p := range problems {
		found[i] = f.places.find(p)
	}
	return &Error{Problems: locate(found)}
}

// Place returns the position of the value that an RFC 6901 pointer names, of its default, or
// of the object that does not have it.
func (f *File) Place(pointer string) provenance.Position {
	at := f.places.find(task.Problem{Pointer: pointer})
	if at.src == nil {
		return provenance.Position{}
	}
	return origin(at.src, at.at)
}

// find turns a problem with a pointer into a finding.
func (p *places) find(t task.Problem) finding {
	message := t.Message
	if t.Subject != "" {
		message = t.Subject + ": " + message
	}
	if errors.Is(t.Err, plan.ErrNoAgents) && p.lacksTeam() {
		t.Hint = "write agents, with one that has a name"
		if option := p.options.Names["Team"]; option != "" {
			t.Hint += ", or bring a team with " + option + " FILE"
		}
	}
	if how := p.options.Names["UserAccepts"]; how != "" && errors.Is(t.Err, plan.ErrAnswerWithheld) {
		t.Hint = "let another task make an answer that you may see, or " + how
	}
	if errors.Is(t.Err, listformat.ErrInvalid) {
		message = p.withFile(message)
	}
	parts := tokens(t.Pointer)
	if p.options.Goal != "" && len(parts) > 0 && parts[0] == "goal" {
		return finding{Problem: Problem{Message: p.options.called("Goal") + ": " + message, Hint: t.Hint, Err: t}}
	}
	out := finding{Problem: Problem{Message: message, Hint: strings.ReplaceAll(t.Hint, "leave dependencyPayload out", "leave "+p.payloadKey(parts)+" out"), Err: t}}
	if f, rest := p.taskAt(parts); f != nil && len(rest) > 1 && rest[0] == "dependsOn" && inWorkspace(f, rest)[0] == "workspace" {
		if out.Message = strings.Replace(message, "dependsOn["+rest[1]+"]: ", "workspace: ", 1); errors.Is(t.Err, task.ErrDuplicate) {
			out.Hint = "name the task as dependsOn does, which then gets its files too"
		}
	}
	n, src, at := p.resolve(parts)
	out.Hint = p.tools.respell(inFileWords.Replace(out.Hint))
	out.Message = p.tools.respell(out.Message)
	if call, ok := errors.AsType[*plan.UntrustedCallError](t); ok && call.Agent < len(p.agents) && p.agents[call.Agent] != nil {
		n, src, at = p.toolsOf(p.agents[call.Agent])
	}
	if need := p.unmet(t, parts); need != nil {
		n, src, at = need, need.src, need.at
		if f, _ := p.taskAt(parts); need == f.get("needToKnow") {
			out.Hint = strings.ReplaceAll(out.Hint, "leave need out", "leave needToKnow out")
		}
	}
	out.src, out.at = src, at
	if n == nil {
		return out
	}
	if from, ok := p.files[n]; ok {
		if t.Line > 0 {
			out.src, out.at = from, skipSpaces(from.text, lineOffset(from.text, t.Line))
		}
		return out
	}
	if t.Line > 0 && n.is == isText {
		out.src, out.at = placeInText(n, skipSpaces(n.text, lineOffset(n.text, t.Line)))
	}
	return out
}

// inFileWords replaces fields of Go in hints about tools by keys of a file.
var inFileWords = strings.NewReplacer("AllowUntrusted of agent", "allowUntrusted of agent", "raise Accepts of the tool", "raise accepts of the tool",
	"set its Effect to none", "write effect: none for it")

// toolsOf returns the value that gives an agent its tools, or the one that trusts them.
func (p *places) toolsOf(f *fields) (*node, *source, int) {
	for _, key := range [...]string{"allowUntrusted", "tools", "toolPreset"} {
		if n := f.get(key); n != nil {
			return n, n.src, n.at
		}
	}
	return nil, f.node.src, f.node.at
}

// unmet returns the value of need that a problem of a dependency or an input is about.
func (p *places) unmet(t task.Problem, parts []string) *node {
	refusal, ok := errors.AsType[*gate.Refusal](t)
	if !ok || !strings.Contains(refusal.Hint, "need") {
		return nil
	}
	if f, rest := p.taskAt(parts); f != nil && len(rest) == 2 && (rest[0] == "dependsOn" || rest[0] == "uses") {
		return needed(f, rest)
	}
	return nil
}

// lacksTeam reports whether a spec has tasks or a goal but no agents.
func (p *places) lacksTeam() bool {
	asks := p.main.spec.own("tasks") != nil || p.main.spec.own("goal") != nil
	return asks && p.agentList == nil && p.roster == p.main && p.main.team == nil
}

// payloadKey returns the key that sets the form of a dependency: the dependency's own, if
// it has one, or else that of the task.
func (p *places) payloadKey(parts []string) string {
	if f, rest := p.taskAt(parts); f != nil && len(rest) > 1 && rest[0] == "dependsOn" {
		if n, _, _ := walk(f.own("dependsOn"), rest[1:2]); n.get("as") != nil {
			return "`as`"
		}
	}
	return "dependencyPayload"
}

// tokens splits an RFC 6901 pointer.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = naming.Unescape(part)
	}
	return parts
}

// resolve follows a pointer as far as possible. The node is the value itself, or nil if
// only an object around it exists; the source is nil only without a spec.
func (p *places) resolve(parts []string) (n *node, src *source, at int) {
	root := p.main.node
	if root == nil {
		return nil, nil, 0
	}
	if len(parts) == 0 {
		return root, root.src, root.at
	}
	switch parts[0] {
	case "agents":
		if n := cmp.Or(p.toolKeyOf(parts), p.toolOf(parts)); n != nil {
			return n, n.src, n.at
		}
		if f := pick(p.agents, parts); f != nil {
			return inFields(f, parts[2:])
		}
		if p.agentList != nil {
			return p.agentList, p.agentList.src, p.agentList.at
		}
	case "tasks":
		if f, rest := p.taskAt(parts); f != nil {
			return p.inTask(f, rest)
		}
		if p.taskList != nil {
			return p.taskList, p.taskList.src, p.taskList.at
		}
	case "coordinator":
		if p.coordinator != nil {
			return inFields(p.coordinator, parts[1:])
		}
	case "goal":
		if n := p.goal; n != nil {
			if text := n.get("text"); text != nil && len(parts) == 1 {
				n = text
			}
			return walk(n, parts[1:])
		}
	case "inputs":
		if in := p.input(parts); in != nil {
			if len(parts) > 2 {
				if n := in.fields.own(parts[2]); n != nil {
					return walk(n, parts[3:])
				}
			}
			return nil, in.src, in.key
		}
	}
	if i, err := strconv.Atoi(strings.Join(parts[1:], "/")); parts[0] == "assert" && err == nil && i >= 0 && i < len(p.asserts) {
		return p.asserts[i], p.asserts[i].src, p.asserts[i].at
	}
	if n := p.policy; n != nil && parts[0] == "policy" {
		return inPolicy(n, parts[1:])
	}
	if n := cmp.Or(p.setting(parts[0]), p.main.team.own(parts[0])); n != nil {
		return walk(n, parts[1:])
	}
	return nil, root.src, root.at
}

// toolKeyOf returns a key of the entry of a tool of an agent, to which a pointer leads: who has to approve its
// calls, or its server; nil for any other pointer.
func (p *places) toolKeyOf(parts []string) *node {
	if len(parts) != 5 || parts[2] != "tools" || parts[4] != "approve" && parts[4] != "mcp" {
		return nil
	}
	f, _ := p.agentTool(parts)
	if f == nil {
		return nil
	}
	for _, e := range p.tools.list {
		if slices.Contains(e.tools, f) {
			return e.fields.own(parts[4])
		}
	}
	return nil
}

// toolOf returns the name in the list of an agent, or its preset, that gives the agent the tool to which a
// pointer leads; nil for any other pointer.
func (p *places) toolOf(parts []string) *node {
	if len(parts) != 4 || parts[2] != "tools" {
		return nil
	}
	f, agent := p.agentTool(parts)
	if f == nil || agent == nil {
		return nil
	}
	for _, item := range agent.get("tools").parts() {
		if slices.Contains(p.tools.exact(item.text), f.Name) {
			return item
		}
	}
	return agent.get("toolPreset")
}

// agentTool returns the tool of an agent to which a pointer leads, and the agent as it is written; nil if there is none.
func (p *places) agentTool(parts []string) (*tool.Tool, *fields) {
	i, err := strconv.Atoi(parts[1])
	k, err2 := strconv.Atoi(parts[3])
	if err != nil || err2 != nil || p.tools == nil || i >= len(p.tools.file.Agents) || k >= len(p.tools.file.Agents[i].Member.Tools) {
		return nil, nil
	}
	return p.tools.file.Agents[i].Member.Tools[k], pick(p.agents, parts)
}

// inTask follows a pointer into a task.
func (p *places) inTask(f *fields, rest []string) (*node, *source, int) {
	at, is := p.whens[f]
	if is && len(rest) > 0 && rest[0] == "when" {
		return at.find(rest[1:])
	}
	if l, is := p.loops[f]; is && l.until.n != nil && len(rest) > 1 && rest[0] == "repeat" && rest[1] == "until" {
		return l.until.find(rest[2:])
	}
	return inFields(f, rest)
}

// pick returns the element whose index is the second part of a pointer.
func pick(all []*fields, parts []string) *fields {
	if len(parts) < 2 {
		return nil
	}
	i, err := strconv.Atoi(parts[1])
	if err != nil || i < 0 || i >= len(all) {
		return nil
	}
	return all[i]
}

// input returns an input by its name or its index.
func (p *places) input(parts []string) *inputPlaceOf {
	if len(parts) < 2 {
		return nil
	}
	for i := range p.inputs {
		if p.inputs[i].name == parts[1] {
			return &p.inputs[i]
		}
	}
	if i, err := strconv.Atoi(parts[1]); err == nil && i >= 0 && i < len(p.inputs) {
		return &p.inputs[i]
	}
	return nil
}

// withFile adds to a message about the text of an input in which file that is.
func (p *places) withFile(message string) string {
	for i := range p.inputs {
		if in := &p.inputs[i]; in.file != "" {
			name := "input " + quote(in.name)
			message = strings.Replace(message, name+":", name+": "+in.file+":", 1)
		}
	}
	return message
}

// inFields follows a pointer into an agent or a task and its defaults.
func inFields(f *fields, parts []string) (*node, *source, int) {
	if len(parts) == 0 {
		return f.node, f.node.src, f.node.at
	}
	parts = inWorkspace(f, parts)
	n := f.get(parts[0])
	if n == nil {
		return nil, f.node.src, f.node.at
	}
	if parts[0] == "dependsOn" && len(parts) == 3 && parts[2] == "as" {
		item, src, at := walk(n, parts[1:2])
		if own := item.get("as"); own != nil {
			return own, own.src, own.at
		}
		if all := f.get("dependencyPayload"); all != nil {
			return all, all.src, all.at
		}
		return nil, src, at
	}
	return walk(n, parts[1:])
}

// inWorkspace returns a pointer into the uses or the dependencies of a task as the file has it: the first use and the last
// dependency can be those of the key workspace, and so can the files of another dependency.
func inWorkspace(f *fields, parts []string) []string {
	w := f.get("workspace")
	if len(parts) < 2 || w == nil {
		return parts
	}
	i, err := strconv.Atoi(parts[1])
	switch {
	case err != nil:
		return parts
	case parts[0] == "dependsOn" && continues(w):
		item, _, _ := walk(f.own("dependsOn"), parts[1:2])
		if len(parts) > 2 && parts[2] == "files" && item.get("files") == nil || item == nil {
			keys := append(slices.Clone(parts[2:min(3, len(parts))]), "task", "round")
			return []string{"workspace", keys[slices.IndexFunc(keys, func(key string) bool { return w.get(key) != nil })]}
		}
		return parts
	case parts[0] != "uses" || w.get("input") == nil:
		return parts
	case i > 0:
		return append([]string{"uses", strconv.Itoa(i - 1)}, parts[2:]...)
	case len(parts) > 2 && parts[2] == "need":
		return append([]string{"workspace"}, parts[2:]...)
	}
	return []string{"workspace", "input"}
}

// walk follows a pointer from a node as far as possible.
func walk(n *node, parts []string) (*node, *source, int) {
	if n == nil {
		return nil, nil, 0
	}
	for _, part := range parts {
		var next *node
		switch n.is {
		case isObject:
			next = n.get(part)
		case isList:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < n.len() {
				next = &n.kids[i]
			}
		}
		if next == nil {
			return nil, n.src, n.at
		}
		n = next
	}
	return n, n.src, n.at
}

// A traffic has the places of what agents send and where to.
type traffic struct {
	messages []*fields // of each message
	edges    []*fields // of each edge
}
