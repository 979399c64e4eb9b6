package specfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// A Coordinator plans and answers goals. Settings of its connection that the file does not
// set are the spec's, not those of agentDefaults. Its Agent is nil: [File.Build] connects
// it only for a goal.
type Coordinator struct {
	engine.Coordinator
	Connection
}

// agent returns the coordinator as an agent, for [File.Build].
func (c *Coordinator) agent() Agent {
	m := engine.Member{
		Name: handoff.Coordinator, SystemPrompt: c.SystemPrompt, Written: plan.Written{SystemParams: c.SystemParams, Origin: c.Origin},
		Backend: c.Backend, Provider: openAI,
	}
	return Agent{Member: m, Connection: c.Connection}
}

// hasGoal reports whether a run of the file calls the coordinator.
func hasGoal(f *File) bool {
	return f.Goal != nil || f.Run.Answer != nil || f.Answerer == handoff.Coordinator
}

// readCoordinator reads the coordinator. A file without tasks has one even without a goal or the key,
// since a goal may be given later.
func (r *reader) readCoordinator() {
	defer func() { r.subject = nil }()
	n := r.coordinatorNode()
	root := cmp.Or(n, r.places.main.node)
	if root == nil || n == nil && !hasGoal(r.file) && len(r.file.Tasks) > 0 {
		return
	}
	r.mine = func() string { return "coordinator: " }
	f := &fields{place: placesByName["coordinator"], node: root}
	if n != nil {
		r.subject = r.mine
		if f = r.fields(n, "coordinator", nil); f == nil {
			return
		}
	}
	r.places.coordinator = f
	r.file.Coordinator = r.coordinator(f)
}

// coordinator reads a coordinator.
func (r *reader) coordinator(f *fields) *Coordinator {
	c := &Coordinator{Connection: r.connection(f)}
	c.SystemPrompt, c.SystemParams = r.fill("systemPrompt", r.pick(f, "systemPrompt"))
	c.Instructions = r.plainText("instructions", r.pick(f, "instructions"))
	has := func(key, word string) bool { return slices.Contains(textList(f.own(key)), word) }
	c.MayGrant = plan.Grants{Memory: has("mayGrant", "memory"), Inputs: has("mayGrant", "inputs"), Tools: has("mayGrant", "tools")}
	c.MayPlan.When, c.MayPlan.Repeat, c.MayPlan.ForEach, c.MayPlan.Verify = has("mayPlan", "when"), has("mayPlan", "repeat"), has("mayPlan", "forEach"), has("mayPlan", "verify")
	members{
		{"accepts", &c.Accepts}, {"approve", &c.Approve}, {"reuse", &c.Reuse}, {"maxContextBytes", &c.MaxContextBytes}, {"maxPromptBytes", &c.MaxPromptBytes},
		{"maxTokenBudget", &c.MaxTokenBudget}, {"maxCostBudget", &c.MaxCostBudget},
	}.read(f.own)
	c.Coordinator.Model, c.EndpointNames = c.ModelAsWritten(), c.endpointNames()
	c.Origin = f.node.origin()
	return c
}

// coordinatorNode returns the settings of the coordinator: those of Options.Coordinator,
// of the main file, or of the team's file; nil if there are none.
func (r *reader) coordinatorNode() *node {
	own := r.places.main.spec.own("coordinator")
	if r.o.Coordinator == "" {
		return cmp.Or(own, r.places.roster.spec.own("coordinator"))
	}
	if own != nil {
		r.warn(own, "", "coordinator: not used: %s brings one", r.o.called("Coordinator"))
		r.subject = func() string { return "coordinator: " }
		r.fields(own, "coordinator", nil) // report its problems nevertheless
		r.subject = nil
	}
	n := r.open(r.o.Coordinator, "Coordinator")
	if n == nil || n.get("coordinator") == nil {
		return n
	}
	for _, other := range n.parts() {
		if other.key != "coordinator" {
			r.badKey(other, ErrUnknown, "known here: coordinator", "unknown key %s in the file of the coordinator", quote(other.key))
		}
	}
	return n.get("coordinator")
}

// checkMemory reports what reads the shared memory if sharedMemory is false.
func (r *reader) checkMemory() {
	defer func() { r.subject = nil }()
	off := r.places.sharedMemory()
	if off == nil || off.text != "false" {
		return
	}
	r.checkScopes(r.places.tasks, r.file.Tasks)
	grants := r.places.coordinator.own("mayGrant")
	for _, n := range grants.parts() {
		if n.text == "memory" {
			r.subject = nil
			r.bad(n, "write sharedMemory: true, or remove the word", "coordinator: mayGrant: memory needs the shared memory, and sharedMemory is false")
		}
	}
}

// checkScopes reports tasks that read the shared memory.
func (r *reader) checkScopes(places []*fields, tasks []task.Spec) {
	for i, f := range places {
		r.checkScopes(r.places.loops[f].tasks, loopTasks(&tasks[i]))
		scope := f.get("memoryScope")
		if text(scope) != string(task.ScopeAll) {
			continue
		}
		if r.subject = nil; scope == f.own("memoryScope") {
			r.subject = func() string { return taskName(i, tasks[i].Title) + ": " }
		}
		r.bad(scope, "write sharedMemory: true, or name in dependsOn what the task needs", "memoryScope: all needs the shared memory, and sharedMemory is false")
	}
}

// sharedMemory returns the value of the key sharedMemory, or nil.
func (p *places) sharedMemory() *node {
	return cmp.Or(p.main.spec.own("sharedMemory"), p.main.team.own("sharedMemory"), p.roster.spec.own("sharedMemory"), p.roster.team.own("sharedMemory"))
}

// plainText returns a text in which parameters are not replaced, and warns of what looks
// like one.
func (r *reader) plainText(key string, n *node) string {
	from, words := r.textOf(n)
	if i := strings.Index(words, paramOpen); i >= 0 {
		src, at := from, i
		if from == nil {
			src, at = placeInText(n, i)
		}
		r.warnAt(src, at, "parameters are replaced in the goal, in descriptions and system prompts", "%s: %s is plain text here", key, quote(firstWord(words[i:])))
	}
	return words
}

// firstWord returns the text up to the first closing brace or whitespace.
func firstWord(text string) string {
	if i := strings.IndexAny(text, "} \t\r\n"); i >= 0 {
		return strings.TrimSpace(text[:i+1])
	}
	return text
}
