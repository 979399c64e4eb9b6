package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Tools returns the tools that task i may call: those of its agent, unless the task names some
// of them.
func (p *Plan) Tools(i int) []*tool.Tool {
	own, named := p.Roster().Config.Agents[p.Members[i]].Tools, p.Graph.Task(i).Tools
	if named == nil {
		return own
	}
	return slices.DeleteFunc(slices.Clone(own), func(t *tool.Tool) bool { return !slices.Contains(named, t.Name) })
}

// ToolLabel returns the most sensitive level of what the tools of a task return, the replies that its
// agent may wait for and the tools of agents to which it may delegate or transfer among them. A task with
// tools has at least this label from its first prompt on, so that no result raises it.
func (p *Plan) ToolLabel(i int) label.Classification {
	level := toolLevel(p, i)
	if i < len(p.replies) {
		level = level.Join(p.replies[i])
	}
	return level
}

// toolLevel is ToolLabel without the replies.
func toolLevel(p *Plan, i int) label.Classification {
	return LevelOf(reachableIn(p, i)).Join(delegatedLabel(p, i)).Join(transferredLabel(p, i))
}

// toolNames returns the names of the tools of the member.
func (m *Member) toolNames() (names []string) {
	return ToolNames(m.Tools)
}

// ToolNames returns the names of tools. A nil tool has none, which the check of the team reports.
func ToolNames(list []*tool.Tool) (names []string) {
	for _, f := range list {
		if f != nil {
			names = append(names, f.Name)
		}
	}
	return names
}

// toolNames returns the name of each tool of the team once, in the order of the members.
func (c *Config) toolNames() (names []string) {
	seen := map[string]bool{}
	for i := range c.Agents {
		for _, f := range c.Agents[i].Tools {
			if f != nil && !seen[f.Name] {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// tool returns the tool that a name such as tool:search means as a reader, or nil.
func (c *Config) tool(reader string) *tool.Tool {
	for i := range c.Agents {
		for _, f := range c.Agents[i].Tools {
			if gate.ToolReader(f.Name) == reader {
				return f
			}
		}
	}
	return nil
}

// A PlannedTool is a tool of an agent as the gate sees it.
type PlannedTool struct {
	Name     string               `json:"name"`
	Accepts  label.Classification `json:"accepts"`  // of arguments, at most
	Produces label.Classification `json:"produces"` // of results, joined with the arguments
	Effect   tool.Effect          `json:"effect"`

	// Network says that a call may reach the network: its effect is external, or a server
	// makes the call. A confined server cannot.
	Network bool `json:"network"`

	// Untrusted says whether the agent may call it from untrusted context: always, since it has
	// no external effect; allowed by AllowUntrusted; or refused.
	Untrusted string `json:"untrusted"`

	Server string `json:"server,omitempty"` // confined or unconfined, if a program of this machine makes the calls
	Reason string `json:"reason,omitempty"` // why one that is not confined may run where a person approves something
}

// PlannedToolOf describes a tool. allowed says that AllowUntrusted lists it.
func PlannedToolOf(t *tool.Tool, allowed bool) PlannedTool {
	p := PlannedTool{Name: t.Name, Accepts: t.Accepts, Produces: t.Level(), Effect: cmp.Or(t.Effect, tool.External), Untrusted: "always"}
	p.Network = p.Effect == tool.External || t.Foreign
	if t.Program != nil {
		if p.Server, p.Reason = process.Unconfined, t.Program.Reason; t.Program.Confined {
			p.Server, p.Network = process.Confined, false
		}
	}
	if p.Effect == tool.External {
		if p.Untrusted = "refused"; allowed {
			p.Untrusted = "allowed"
		}
	}
	return p
}

// plannedTools describes the tools of the member.
func (m *Member) plannedTools() (all []PlannedTool) {
	for _, t := range m.Tools {
		all = append(all, PlannedToolOf(t, slices.Contains(m.AllowUntrusted, t.Name)))
	}
	return all
}

// checkTools reports tools that cannot be used as they are, and returns the schemas of their
// parameters by name.
func (c *Config) checkTools(found *task.Problems) map[string]*schema.Schema {
	parameters := map[string]*schema.Schema{}
	known, states := map[string]*tool.Tool{}, map[string][]*tool.Tool{}
	for i := range c.Agents {
		m := &c.Agents[i]
		own := map[string]bool{}
		for k, f := range m.Tools {
			of := subject{found: found, pointer: naming.Pointer("agents", i, "tools", k), name: fmt.Sprintf("agent %q", m.Name)}
			if err := f.Check(); err != nil {
				of.report(err.Error(), "", fmt.Errorf("%w: %w", task.ErrInvalid, err))
				continue
			}
			if isRuntimeTool(f.Name) {
				of.report(fmt.Sprintf("%q is the name of a tool of the runtime", f.Name), "rename the tool", task.ErrInvalid)
				continue
			}
			if first, shared := known[f.Name]; own[f.Name] {
				of.report(fmt.Sprintf("duplicate tool %q", f.Name), "remove or rename one", task.ErrInvalid)
			} else if shared && first != f {
				of.report(fmt.Sprintf("tool %q differs from the tool of that name of another agent", f.Name), "give both agents the same tool, or rename one", task.ErrInvalid)
			}
			if f.Stateful && known[f.Name] == nil {
				state := cmp.Or(f.State, f.Name)
				states[state] = append(states[state], f)
				of.checkState(f, states[state])
			}
			if own[f.Name] = true; known[f.Name] == nil {
				parameters[f.Name], _ = schema.Parse(string(f.Parameters)) // it was checked
			}
			known[f.Name] = f
		}
		for _, name := range m.AllowUntrusted {
			if !own[name] {
				(subject{found: found, pointer: naming.Pointer("agents", i, "allowUntrusted"), name: fmt.Sprintf("agent %q", m.Name)}).report(
					fmt.Sprintf("unknown tool %q in AllowUntrusted", name), naming.Suggest(name, m.toolNames()), task.ErrUnknown)
			}
		}
	}
	return parameters
}

// checkState reports a tool that could return what a tool with the same state accepts, at a
// lower level, or could pass something to such a tool.
func (of subject) checkState(f *tool.Tool, sharing []*tool.Tool) {
	for _, other := range sharing {
		for _, pair := range [...][2]*tool.Tool{{f, other}, {other, f}} {
			if in, out := pair[0], pair[1]; in.Accepts > out.Level() {
				of.report(fmt.Sprintf("tool %q accepts %v, and tool %q, which shares its state, produces %v", in.Name, in.Accepts, out.Name, out.Level()),
					fmt.Sprintf("raise Produces of %q to %v, or set another State", out.Name, in.Accepts), task.ErrInvalid)
			}
		}
	}
}

// checkToolNames reports tools of a task that its agent does not have or, if it names no
// agent, that no agent has.
func (c *checker) checkToolNames(about func() subject, s *task.Spec) {
	if len(s.Tools) == 0 {
		return
	}
	known, who := c.team.Config.toolNames(), "no agent has"
	var other []string
	if m, ok := c.team.Index(s.Assignee); ok {
		known, who = c.team.Config.Agents[m].toolNames(), fmt.Sprintf("agent %q does not have", s.Assignee)
		known, other = append(known, c.team.Network.toolNames(m)...), c.team.Network.otherNames(m)
	} else if s.Assignee != "" {
		return // the agent is unknown
	} else {
		for m := range c.team.Config.Agents {
			known, other = append(known, c.team.Network.toolNames(m)...), append(other, c.team.Network.otherNames(m)...)
		}
	}
	for k, name := range s.Tools {
		if name := strings.TrimSpace(name); slices.Contains(known, name) || slices.Contains(other, name) {
			continue
		}
		hint := "give the tool to an agent, or remove it here"
		if runtime := RuntimeToolHint(name); runtime != "" {
			hint = runtime + ", or remove it here"
		} else if len(known) > 0 {
			hint = naming.Suggest(name, known)
		}
		about().at("tools", k).report(fmt.Sprintf("%s the tool %q", who, name), hint, task.ErrUnknown)
	}
}

// checkToolLabels reports tools that can never be called: the context of a task is always
// more sensitive than the tool accepts, and no entry of the policy lowers it.
func (c *checker) checkToolLabels() {
	p, unshown := c.plan, map[[2]string]bool{}
	defer func() { checkHolderTools(c, unshown) }()
	for i := range p.Graph.Len() {
		tk := p.Graph.Task(i)
		level := p.least[i].Join(p.ToolLabel(i))
		c.checkApproverLabels(i, level, unshown)
		for _, f := range p.Tools(i) {
			reader := gate.ToolReader(f.Name)
			terms := c.team.Terms(tk.Assignee, reader)
			if most := terms.Admit(p.Labels[i], f.Accepts, reader); most.Lowers != nil {
				c.checkBoundedArguments(most.Lowers, f)
			}
			x := terms.Admit(level, f.Accepts, reader)
			if !x.Withheld() && x.After <= f.Accepts {
				c.checkUntrusted(i, f)
				continue
			}
			detail := fmt.Sprintf("its context is at least %v, and tool %q of agent %q accepts at most %v", level, f.Name, tk.Assignee, f.Accepts)
			hint := fmt.Sprintf("leave it out of the tools of the task, or raise Accepts of the tool to %v", level)
			if x.Rule == gate.RuleSecret {
				detail = fmt.Sprintf("its context is secret, and no rule lets agent %q pass that to tool %q", tk.Assignee, f.Name)
				hint = fmt.Sprintf("leave it out of the tools of the task, or write a rule from %q to %q with mode: full", tk.Assignee, reader)
			}
			c.task(i).report(detail, hint, &gate.Refusal{Rule: cmp.Or(x.Rule, gate.RuleClearance), Reason: detail})
		}
	}
}

// An UntrustedCallError reports a tool that its agent may not call from untrusted context.
type UntrustedCallError struct {
	Tool    string
	Agent   int // index into the roster
	refusal *gate.Refusal
}

func (e *UntrustedCallError) Error() string { return e.refusal.Error() }

func (e *UntrustedCallError) Unwrap() error { return e.refusal }

// checkUntrusted reports a tool with an external effect that can never be called, since the
// task reads untrusted context and its agent may not call the tool from there.
func (c *checker) checkUntrusted(i int, f *tool.Tool) {
	tk := c.plan.Graph.Task(i)
	if f.Effect == tool.None || f.Effect == tool.Workspace || slices.Contains(c.team.Config.Agents[c.plan.Members[i]].AllowUntrusted, f.Name) {
		return
	}
	what, from := untrustedOf(c, i, tk.Assignee, c.plan.Tools(i))
	if what == "" {
		return
	}
	detail := fmt.Sprintf("the tool %q of agent %q has external effects, and %s is untrusted", f.Name, tk.Assignee, what)
	refused := &UntrustedCallError{Tool: f.Name, Agent: int(c.plan.Members[i]), refusal: &gate.Refusal{Rule: gate.RuleTools, Reason: detail}}
	c.task(i).report(detail, untrustedHint(f, tk.Assignee, from), refused)
}

// untrustedHint says how an agent may call a tool although what somebody delivers to it is untrusted.
func untrustedHint(f *tool.Tool, agent, from string) (hint string) {
	if f.Effect == "" {
		hint = "if the tool changes nothing, set its Effect to none; else "
	}
	return hint + fmt.Sprintf("add %q to AllowUntrusted of agent %q, or endorse what %q delivers to it", f.Name, agent, from)
}

// untrustedOf returns what an agent with these tools always has in its context in task i and nobody endorses,
// and who delivers it; empty if there is nothing.
func untrustedOf(c *checker, i int, agent string, tools []*tool.Tool) (what, from string) {
	tk := c.plan.Graph.Task(i)
	for _, t := range tools {
		if t.Foreign {
			return fmt.Sprintf("the definition of tool %q, written by a server,", t.Name), gate.ToolReader(t.Name)
		}
	}
	for _, u := range tk.Uses {
		if !c.team.Terms(handoff.User, agent).Endorses() {
			return fmt.Sprintf("input %q", u.Name), handoff.User
		}
	}
	for j, up := range c.plan.Graph.Upstream(i) {
		from := c.plan.Graph.Task(int(up))
		if terms := c.team.Terms(from.Assignee, agent); !tk.DependsOn[j].Optional && terms.Mode() != handoff.Minimal && !terms.Endorses() {
			return fmt.Sprintf("the result of task %q", from.Title), from.Assignee
		}
	}
	return "", ""
}
