package specfile

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
)

// readAgents reads the agents of the team.
func (r *reader) readAgents() {
	n := r.places.roster.spec.own("agents")
	if r.places.roster.team != nil {
		n = r.places.roster.team.own("agents")
	}
	r.places.agentList = n
	defaults := r.agentDefaults()
	if n == nil {
		if defaults != nil { // else what is wrong in its objects is reported with the first agent
			r.translation(defaults.get("translate"))
			r.readLoopDetection(defaults.get("loopDetection"))
			r.readSpawning(defaults.get("spawn"))
		}
		return
	}
	defer func() { r.subject = nil }()
	for i, item := range n.parts() {
		r.mine = func() string { return agentName(i, text(item.get("name"))) + ": " }
		r.subject = r.mine
		f, a := r.fields(item, "agent", defaults), Agent{} // so that indexes match the file
		if f != nil {
			a = r.readAgent(f)
		}
		r.places.agents, r.file.Agents = append(r.places.agents, f), append(r.file.Agents, a)
	}
}

// openAI is the only provider that a file can name.
const openAI = "openai"

// agentName names agent i in a message.
func agentName(i int, name string) string {
	if strings.TrimSpace(name) == "" {
		return fmt.Sprintf("agent %d", i+1)
	}
	return "agent " + quote(name)
}

// agentDefaults returns the defaults of the file with the agents, followed by those of the other files.
func (r *reader) agentDefaults() *fields {
	var first, last *fields
	for _, y := range append([]*layer{r.places.roster}, r.places.layers...) {
		n := y.spec.own("agentDefaults")
		if n == nil || last != nil && n == last.node || first != nil && n == first.node {
			continue
		}
		r.subject = func() string { return "agentDefaults: " }
		f := r.fields(n, "agentDefaults", nil)
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

// readAgent reads one agent.
func (r *reader) readAgent(f *fields) Agent {
	prompt, params := r.fill("systemPrompt", r.pick(f, "systemPrompt"))
	_, description := r.textOf(r.pick(f, "description"))
	m := engine.Member{
		SystemPrompt: prompt, Description: description, Written: plan.Written{SystemParams: params, Origin: f.node.origin()},
		OutputSchema: r.schema(r.pick(f, "outputSchema")), Provider: openAI,
	}
	members{
		{"name", &m.Name}, {"accepts", &m.Accepts}, {"produces", &m.Produces}, {"handoff", &m.Handoff}, {"outputTags", &m.OutputTags},
		{"reuse", &m.Reuse}, {"maxSessionMs", &m.MaxSession}, {"maxParallel", &m.MaxParallel}, {"capabilities", &m.Capabilities},
		{"maxTokenBudget", &m.MaxTokenBudget}, {"maxCostBudget", &m.MaxCostBudget},
		{"maxContextBytes", &m.MaxContextBytes}, {"maxPromptBytes", &m.MaxPromptBytes}, {"maxContextTokens", &m.MaxContextTokens},
		{"allowedContextFields", &m.AllowedContextFields}, {"blockedContextFields", &m.BlockedContextFields},
	}.read(f.get)
	m.Translate = r.translation(f.get("translate"))
	if a := r.readBackend(f); !a.HasModel() {
		if m.Provider = ""; a.Person {
			m.SystemPrompt, m.SystemParams = "", nil // of agentDefaults
		}
		a.Member = m
		return a
	}
	m.LoopDetection = r.readLoopDetection(f.get("loopDetection"))
	m.Spawn = r.readSpawning(f.get("spawn"))
	a := Agent{Member: m, Connection: r.connection(f)}
	a.Member.Model, a.Member.EndpointNames = a.ModelAsWritten(), a.endpointNames()
	return a
}

// pick returns a value or its default, and sets the subject of messages: a problem of a
// default is reported without naming an agent, so that it is reported once.
func (r *report) pick(f *fields, name string) *node {
	n := f.own(name)
	if r.subject = r.mine; n == nil {
		r.subject = nil
		n = f.defaults.get(name)
	}
	return n
}

// readLoopDetection reads when an agent repeats itself; nil means that nothing looks for it.
func (r *reader) readLoopDetection(n *node) *plan.LoopDetection {
	if n == nil || n.is != isObject {
		return nil
	}
	f, l := r.fields(n, "loopDetection", nil), &plan.LoopDetection{}
	members{{"maxRepetitions", &l.MaxRepetitions}, {"loopDetectionWindow", &l.Window}, {"onLoopDetected", &l.OnLoop}}.read(f.own)
	return l
}

// readSpawning reads how an agent spawns children; nil means that it does not.
func (r *reader) readSpawning(n *node) *plan.Spawning {
	if n == nil || n.is != isObject {
		return nil
	}
	f, s := r.fields(n, "spawn", nil), &plan.Spawning{}
	members{{"max", &s.Max}, {"depth", &s.Depth}, {"timeoutMs", &s.Timeout}, {"maxTurns", &s.MaxTurns}, {"files", &s.Files}}.read(f.own)
	return s
}
