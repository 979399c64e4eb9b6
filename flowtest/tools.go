package flowtest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/tool"
)

// A tool reads the arguments of its calls, as the gate delivers them. Tools of files work in the
// workspace. No other tool is called for real by a stand-in, but with arguments that have every
// canary that it knows.

// fileTools are the tools that stand-ins call for real.
var fileTools = []string{"file_read", "file_write", "file_edit", "grep", "glob"}

// A toolInput is what a tool was called with.
type toolInput struct {
	reader string
	text   string
}

// observed returns a tool that records its arguments. It does nothing if all agents that have it
// are stand-ins, unless it is a tool of files.
func (t *testTeam) observed(of *tool.Tool) *tool.Tool {
	out := *of
	out.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		t.mu.Lock()
		t.toolInputs = append(t.toolInputs, toolInput{naming.ToolPrefix + of.Name, string(c.Arguments)})
		t.mu.Unlock()
		if t.replaces(of.Name) {
			return tool.Result{Text: "done"}, nil
		}
		return of.Run(ctx, c)
	}
	return &out
}

// replaces reports whether the calls of a tool do nothing.
func (t *testTeam) replaces(name string) bool {
	if slices.Contains(fileTools, name) {
		return false
	}
	for i := range t.f.file.Agents {
		m := &t.f.file.Agents[i].Member
		if t.f.agents[m.Name] != nil && slices.ContainsFunc(m.Tools, func(f *tool.Tool) bool { return f.Name == name }) {
			return false
		}
	}
	return true
}

// observeTools makes the members of the team have tools that record their arguments.
func (t *testTeam) observeTools() {
	seen := map[string]*tool.Tool{} // members with tools of one name have the same tool
	for i, tools := range t.f.tools {
		own := make([]*tool.Tool, len(tools))
		for k, of := range tools {
			if seen[of.Name] == nil {
				seen[of.Name] = t.observed(of)
			}
			own[k] = seen[of.Name]
		}
		t.f.file.Agents[i].Member.Tools = own
	}
}

// otherCalls returns one call of each tool that does nothing, unless they were made.
func (t *testTeam) otherCalls(p prompt.Prompt, words []string) (calls []llm.ToolCall) {
	for _, f := range p.Tools() {
		made := slices.ContainsFunc(p.Messages(), func(m prompt.Message) bool {
			return slices.ContainsFunc(m.Calls, func(c prompt.Call) bool { return c.Name == f.Name })
		})
		if made || !t.replaces(f.Name) || strings.HasPrefix(f.Name, plan.TransferPrefix) {
			continue
		}
		if f.Name == plan.SendHandoff {
			calls = append(calls, t.handoffCalls(p, f.Parameters, words)...)
			continue
		}
		arguments, err := argumentsWith(string(f.Parameters), words)
		if err != nil {
			t.report("flowtest finds no arguments for the tool %s: %v", f.Name, err)
			continue
		}
		calls = append(calls, llm.ToolCall{Name: f.Name, Arguments: arguments})
	}
	return calls
}

// transferCall returns the call with which a stand-in transfers its conversation, along its first edge, once it
// has called its other tools; nil if it has none, or was refused. The reason has all that it knows.
func transferCall(p prompt.Prompt, words []string) []llm.ToolCall {
	for _, f := range p.Tools() {
		if !strings.HasPrefix(f.Name, plan.TransferPrefix) {
			continue
		}
		made := slices.ContainsFunc(p.Messages(), func(m prompt.Message) bool {
			return slices.ContainsFunc(m.Calls, func(c prompt.Call) bool { return c.Name == f.Name })
		})
		arguments, err := json.Marshal(map[string]string{"reason": strings.Join(append([]string{"transfer"}, words...), " ")})
		if made || err != nil {
			continue
		}
		return []llm.ToolCall{{Name: f.Name, Arguments: string(arguments)}}
	}
	return nil
}

// handoffCalls returns a call of send_handoff for each agent to which an edge leads. A handoff is no result of its
// task: it has what the prompt has, and the canaries for handoffs.
func (t *testTeam) handoffCalls(p prompt.Prompt, schema string, words []string) (calls []llm.ToolCall) {
	own := t.canariesOf(p.Receipt().Task)
	said := slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return slices.ContainsFunc(own, func(x *canary) bool { return x.word == word })
	})
	for _, x := range t.handoffsOf(p.Receipt().Task) {
		said = append(said, x.word)
	}
	var shape struct {
		Properties struct {
			To struct {
				Enum []string `json:"enum"`
			} `json:"to"`
		} `json:"properties"`
	}
	err := json.Unmarshal([]byte(schema), &shape)
	for _, to := range shape.Properties.To.Enum {
		var arguments []byte
		if arguments, err = json.Marshal(map[string]string{"to": to, "message": strings.Join(append([]string{"handoff"}, said...), " ")}); err == nil {
			calls = append(calls, llm.ToolCall{Name: plan.SendHandoff, Arguments: string(arguments)})
		}
	}
	if err != nil || len(calls) == 0 {
		t.report("flowtest finds no arguments for the tool %s: %v", plan.SendHandoff, err)
	}
	return calls
}

// argumentsWith returns small arguments that a schema allows, with words in each free text.
func argumentsWith(schema string, words []string) (string, error) {
	shape, err := decodeSchema(schema)
	if err != nil {
		return "", err
	}
	raw, err := scripted.Instance(shape)
	if err != nil {
		return "", err
	}
	value, err := jsonvalue.Decode(string(raw))
	if err != nil {
		return "", err
	}
	out, err := valid(schema, value, words)
	return out.Canonical(), err
}

// mayReach reports whether a canary may be in what a tool reads.
func (p *planFlow) mayReach(g *allowance, tool string) bool {
	at := p.reader(tool)
	for t, may := range g.tasks {
		if may && at >= 0 && p.g.Tasks[t].Agent == at {
			return true
		}
	}
	return false
}

// toolPlaces adds what tools were called with.
func (r *run) toolPlaces(out []place) []place {
	for _, in := range r.team.toolInputs {
		out = append(out, place{kind: aToolInput, task: -1, reader: in.reader, name: "the arguments of a call of " + in.reader, lower: strings.ToLower(in.text)})
	}
	return out
}
