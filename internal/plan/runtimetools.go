package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/tool"
)

// A RuntimeTool is a tool that the runtime performs itself. What an agent passes to it goes to
// agents, so it is neither a reader of arguments nor a source of results of its own.
type RuntimeTool struct {
	*tool.Tool                       // without a function
	Arguments  func() *schema.Schema // of this agent; read with the first call

	// To is the agent to which a call transfers the conversation; nil for any other tool.
	To *Neighbor

	// Other is the name of a tool that transfers under a policy that differs in whether it hides
	// identities; empty if there is none. A task can name the tool by either.
	Other string

	// Required says that a call may wait for a reply, whose label is then part of that of its task.
	Required bool
}

// SendHandoff is the name of the tool with which an agent sends a handoff to a neighbor.
const SendHandoff = "send_handoff"

// isRuntimeTool reports whether a name belongs to a tool of the runtime.
func isRuntimeTool(name string) bool {
	return name == SendHandoff || name == SpawnAgent || name == DelegateToAgent
}

// RuntimeToolHint says what gives an agent a tool of the runtime; empty for any other name.
func RuntimeToolHint(name string) string {
	switch name {
	case SpawnAgent:
		return "set spawn of the agent"
	case SendHandoff:
		return "write an edge that leads from the agent to another one"
	case DelegateToAgent:
		return "write an edge with delegate: true that leads from the agent to another one"
	}
	if strings.HasPrefix(name, TransferPrefix) {
		return "write an edge with transfer: true that leads from the agent to another one"
	}
	return ""
}

// RuntimeTools returns the tools of the runtime that task i may call: those of its agent, unless the
// task names its tools. One whose handoffs nobody could read sends none.
func RuntimeTools(p *Plan, i int) []RuntimeTool {
	member := int(p.Members[i])
	own, named := ReadBy(p, i).Network.toolsOf(member), p.Graph.Task(i).Tools
	if member < len(p.unread) && p.unread[member] {
		own = slices.DeleteFunc(slices.Clone(own), func(t RuntimeTool) bool { return t.Name == SendHandoff })
	}
	if named == nil || len(own) == 0 {
		return own
	}
	return slices.DeleteFunc(slices.Clone(own), func(t RuntimeTool) bool { return !t.isNamed(named) })
}

// isNamed reports whether a task that names these tools has the tool.
func (t *RuntimeTool) isNamed(by []string) bool {
	return slices.Contains(by, t.Name) || t.Other != "" && slices.Contains(by, t.Other)
}

// toolsOf returns the tools of the runtime that a member has.
func (n *Network) toolsOf(member int) []RuntimeTool {
	if member >= len(n.tools) { // the member that performs tasks without an agent
		return nil
	}
	return n.tools[member]
}

// toolNames returns their names.
func (n *Network) toolNames(member int) (names []string) {
	for _, t := range n.toolsOf(member) {
		names = append(names, t.Name)
	}
	return names
}

// otherNames returns the names that they have under another policy; see [RuntimeTool].
func (n *Network) otherNames(member int) (names []string) {
	for _, t := range n.toolsOf(member) {
		if t.Other != "" {
			names = append(names, t.Other)
		}
	}
	return names
}

// equip makes the tools of the runtime for each member, with the names that the policy shows.
func equip(t *Roster) {
	tools := make([][]RuntimeTool, len(t.Config.Agents))
	for i := range tools {
		if neighbors := t.Network.Neighbors(i); len(neighbors) > 0 {
			tools[i] = append(tools[i], sendHandoff(t, neighbors, t.Network.repliers(i)))
		}
		if t.Config.Agents[i].Spawn != nil {
			tools[i] = append(tools[i], spawnAgent(&t.Config.Agents[i]))
		}
		if to := t.Network.delegates(i); len(to) > 0 {
			tools[i] = append(tools[i], delegateToAgent(t, &t.Config.Agents[i], to))
		}
		for _, to := range t.Network.transfers(i) {
			tools[i] = append(tools[i], transferTo(t, to))
		}
	}
	t.Network.tools = tools
}

// NeighborShownAs returns the neighbor of a member that prompts call by a name.
func NeighborShownAs(t *Roster, member int, name string) (agent string, ok bool) {
	for _, n := range t.Network.Neighbors(member) {
		if of := t.Config.Agents[n.Member].Name; t.Rules.ShownName(of) == name {
			return of, true
		}
	}
	return "", false
}

// MaxHandoffs is how many handoffs an attempt at a task may send.
const MaxHandoffs = 128

// DefaultMessageBytes is the largest size of a message that an agent sends, if Config.MaxMessageBytes is not set.
const DefaultMessageBytes = 16 << 10

// MaxReplyTimeout is the longest time that a task may wait for a reply.
const MaxReplyTimeout = 24 * time.Hour

// DefaultReplyTimeout is how long a task waits for a reply if its agent does not say.
const DefaultReplyTimeout = 5 * time.Minute

// sendHandoff returns the tool with which a member sends handoffs. It names its neighbors and no other
// agent. repliers are those of them that can answer.
func sendHandoff(t *Roster, neighbors []Neighbor, repliers []int) RuntimeTool {
	var names []string
	var list strings.Builder
	for _, n := range neighbors {
		to := &t.Config.Agents[n.Member]
		name := t.Rules.ShownName(to.Name)
		names = append(names, name)
		if to.Description != "" {
			fmt.Fprintf(&list, "\n- %s: %s", name, t.Rules.WithoutNames(to.Description))
		} else {
			fmt.Fprintf(&list, "\n- %s", name)
		}
	}
	properties := map[string]any{
		"to":         map[string]any{"enum": names, "description": "the agent that is to read it"},
		"message":    map[string]any{"type": "string", "minLength": 1, "maxLength": t.Config.MaxMessageBytes, "description": "what the agent is to know, in a few sentences"},
		"structured": map[string]any{"type": "object", "description": "the same as data, if that helps"},
		"artifacts": map[string]any{"type": "array", "maxItems": 32, "description": "what it refers to", "items": map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{"type", "ref"},
			"properties": map[string]any{"type": map[string]any{"type": "string", "maxLength": 64}, "ref": map[string]any{"type": "string", "maxLength": 512}},
		}},
		"status": map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{"ok"}, "description": "whether the work that it is about succeeded",
			"properties": map[string]any{"ok": map[string]any{"type": "boolean"}, "reason": map[string]any{"type": "string", "maxLength": 512}},
		},
		"meta":       map[string]any{"type": "object", "description": "notes about the handoff, such as a ticket number"},
		"contextRef": map[string]any{"type": "string", "maxLength": 64, "description": "the id of the handoff that it answers"},
	}
	if len(repliers) > 0 {
		properties["response"] = responseSchema(t, repliers)
	}
	description := "Sends a handoff to another agent, who reads it with its next turn or, if it does not work now, with its next task. Agents:" + list.String()
	f := runtimeTool(SendHandoff, description, tool.Workspace, properties, "to", "message")
	f.Required = len(repliers) > 0
	return f
}

// runtimeTool returns a tool of the runtime with these arguments.
func runtimeTool(name, description string, effect tool.Effect, properties map[string]any, required ...string) RuntimeTool {
	object := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		object["required"] = required
	}
	parameters := mustJSON(object)
	return RuntimeTool{
		Tool: &tool.Tool{Name: name, Description: description, Parameters: parameters, Options: tool.Options{Effect: effect}},
		Arguments: sync.OnceValue(func() *schema.Schema {
			s, err := schema.Parse(string(parameters))
			if err != nil {
				panic("runteam: " + err.Error()) // the schema is written here
			}
			return s
		}),
	}
}

// responseSchema returns the schema of the reply that a sender asks for.
func responseSchema(t *Roster, repliers []int) map[string]any {
	names := make([]string, len(repliers))
	for k, i := range repliers {
		names[k] = t.Rules.ShownName(t.Config.Agents[i].Name)
	}
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"expectation"},
		"description": "whether the agent is to reply; possible with " + strings.Join(names, ", "),
		"properties": map[string]any{
			"expectation": map[string]any{"enum": []string{NoReply, OptionalReply, RequiredReply}, "description": "none: no reply is accepted; optional: a reply is a message like any other; required: this call returns the reply, and you wait for it"},
			"timeoutMs":   map[string]any{"type": "integer", "minimum": 1, "maximum": MaxReplyTimeout.Milliseconds(), "description": fmt.Sprintf("how long to wait for a required reply, in milliseconds; %d if it is left out", DefaultReplyTimeout.Milliseconds())},
		},
	}
}

// What a sender expects of the reader of a handoff.
const (
	NoReply       = "none"
	OptionalReply = "optional"
	RequiredReply = "required"
)

// mustJSON writes a value that can be written.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("runteam: " + err.Error())
	}
	return raw
}
