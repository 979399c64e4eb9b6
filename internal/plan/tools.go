package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// ToolLabel returns the most sensitive level of what the tools of a task's agent return. A
// task with tools has at least this label from its first prompt on, so that no result raises
// it.
func (p *Plan) ToolLabel(i int) label.Classification {
	level := label.Public
	for _, t := range p.Roster().Config.Agents[p.Members[i]].Tools {
		level = level.Join(t.Level())
	}
	return level
}

// toolNames returns the names of the tools of the member.
func (m *Member) toolNames() (names []string) {
	for _, f := range m.Tools {
		names = append(names, f.Name)
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

// checkTools reports tools that cannot be used as they are.
func (c *Config) checkTools(found *task.Problems) {
	known := map[string]*tool.Tool{}
	for i := range c.Agents {
		m := &c.Agents[i]
		own := map[string]bool{}
		for k, f := range m.Tools {
			of := subject{found: found, pointer: naming.Pointer("agents", i, "tools", k), name: fmt.Sprintf("agent %q", m.Name)}
			if err := f.Check(); err != nil {
				of.report(err.Error(), "", fmt.Errorf("%w: %w", task.ErrInvalid, err))
				continue
			}
			if first, shared := known[f.Name]; own[f.Name] {
				of.report(fmt.Sprintf("duplicate tool %q", f.Name), "remove or rename one", task.ErrInvalid)
			} else if shared && first != f {
				of.report(fmt.Sprintf("tool %q differs from the tool of that name of another agent", f.Name), "give both agents the same tool, or rename one", task.ErrInvalid)
			}
			own[f.Name], known[f.Name] = true, f
		}
		for _, name := range m.AllowUntrusted {
			if !own[name] {
				(subject{found: found, pointer: naming.Pointer("agents", i, "allowUntrusted"), name: fmt.Sprintf("agent %q", m.Name)}).report(
					fmt.Sprintf("unknown tool %q in AllowUntrusted", name), naming.Suggest(name, m.toolNames()), task.ErrUnknown)
			}
		}
	}
}

// checkToolLabels reports tools that can never be called: the context of a task is always
// more sensitive than the tool accepts, and no entry of the policy lowers it.
func (c *checker) checkToolLabels() {
	p := c.plan
	for i := range p.Graph.Len() {
		tk := p.Graph.Task(i)
		level := p.least[i].Join(p.ToolLabel(i))
		for _, f := range c.team.Config.Agents[p.Members[i]].Tools {
			reader := gate.ToolReader(f.Name)
			x := c.team.Terms(tk.Assignee, reader).Admit(level, f.Accepts, reader)
			if !x.Withheld() && x.After <= f.Accepts {
				c.checkUntrusted(i, f)
				continue
			}
			detail := fmt.Sprintf("its context is at least %v, and tool %q of agent %q accepts at most %v", level, f.Name, tk.Assignee, f.Accepts)
			c.task(i).report(detail, fmt.Sprintf("use an agent without the tool, or raise Accepts of the tool to %v", level), &gate.Refusal{Rule: gate.RuleClearance, Reason: detail})
		}
	}
}

// checkUntrusted reports a tool with an external effect that can never be called, since the
// task reads untrusted context and its agent may not call the tool from there.
func (c *checker) checkUntrusted(i int, f *tool.Tool) {
	tk := c.plan.Graph.Task(i)
	if f.Effect == tool.None || f.Effect == tool.Workspace || slices.Contains(c.team.Config.Agents[c.plan.Members[i]].AllowUntrusted, f.Name) {
		return
	}
	report := func(what, from string) {
		detail := fmt.Sprintf("the tool %q of agent %q has external effects, and %s is untrusted", f.Name, tk.Assignee, what)
		c.task(i).report(detail, fmt.Sprintf("add %q to AllowUntrusted of agent %q, or endorse what %q delivers to it", f.Name, tk.Assignee, from), &gate.Refusal{Rule: gate.RuleTools, Reason: detail})
	}
	for _, t := range c.team.Config.Agents[c.plan.Members[i]].Tools {
		if t.Foreign {
			report(fmt.Sprintf("the definition of tool %q, written by a server,", t.Name), gate.ToolReader(t.Name))
			return
		}
	}
	for _, u := range tk.Uses {
		if !c.team.Terms(handoff.User, tk.Assignee).Endorses() {
			report(fmt.Sprintf("input %q", u.Name), handoff.User)
			return
		}
	}
	for j, up := range c.plan.Graph.Upstream(i) {
		from := c.plan.Graph.Task(int(up))
		if terms := c.team.Terms(from.Assignee, tk.Assignee); !tk.DependsOn[j].Optional && terms.Mode() != handoff.Minimal && !terms.Endorses() {
			report(fmt.Sprintf("the result of task %q", from.Title), from.Assignee)
			return
		}
	}
}
