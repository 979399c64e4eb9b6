package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// ApprovalTitle returns the title of the prompt that asks whether a tool may be called.
func ApprovalTitle(tool string) string { return "Approve " + tool }

// checkApprover reports a tool whose calls the person that it names cannot approve.
func (c *Config) checkApprover(of *subject, f *tool.Tool) {
	if f == nil || f.Approve == "" {
		return
	}
	var people []string
	for i := range c.Agents {
		m := &c.Agents[i]
		if m.IsPerson() {
			people = append(people, m.Name)
		}
		if !strings.EqualFold(m.Name, f.Approve) {
			continue
		}
		switch who := c.Unconfined(); {
		case !m.IsPerson():
			of.report(fmt.Sprintf("tool %q: agent %q cannot approve its calls: it is not a person", f.Name, m.Name), "name a member whose backend is a person", task.ErrInvalid)
		case m.Name != f.Approve:
			of.report(fmt.Sprintf("tool %q: the approver %q is written %q in the roster", f.Name, f.Approve, m.Name), "", task.ErrInvalid)
		case who != "":
			of.report(fmt.Sprintf("tool %q: agent %q has commands that are not confined, and such a command could approve a call in place of %q", f.Name, who, m.Name), unconfinedHint()+", or remove approve", ErrUnconfined)
		}
		return
	}
	hint := "add an agent whose backend is a person"
	if len(people) > 0 {
		hint = naming.Suggest(f.Approve, people)
	}
	of.report(fmt.Sprintf("tool %q: unknown approver %q", f.Name, f.Approve), hint, task.ErrUnknown)
}

// checkApproverLabel reports a tool whose calls can never be approved, since the person may not
// see what the task passes to it.
func (c *loweringCheck) checkApproverLabel(i int, f *tool.Tool, level label.Classification) {
	if f.Approve == "" {
		return
	}
	m, _ := c.team.Index(f.Approve)
	caps, from := &c.team.Capabilities[m], c.plan.Graph.Task(i).Assignee
	terms := c.team.Terms(from, f.Approve)
	x := terms.Admit(level, caps.Clearance(), f.Approve)
	switch {
	case terms.Mode() == handoff.Minimal:
		detail := fmt.Sprintf("%q has to approve calls of tool %q, and a rule of the policy delivers it nothing of agent %q", f.Approve, f.Name, from)
		c.task(i).report(detail, "change the rule, or name another approver", &gate.Refusal{Rule: gate.RuleTools, Reason: detail})
	case x.Withheld() || x.After > caps.Clearance():
		detail := fmt.Sprintf("its context is at least %v, and %q, who has to approve calls of tool %q, accepts at most %v", level, f.Approve, f.Name, caps.Clearance())
		c.task(i).report(detail, fmt.Sprintf("raise accepts of %q to %v, or name another approver", f.Approve, level), &gate.Refusal{Rule: cmp.Or(x.Rule, gate.RuleClearance), Reason: detail})
	}
}

// addApproval adds the person who has to approve calls of a tool as a reader of what task i passes
// to the tool, and the task as a reader of what that person says.
func (b toolFlow) addApproval(f *tool.Tool, i int, pass func(to int)) {
	if f.Approve == "" {
		return
	}
	m, _ := b.team.Index(f.Approve)
	g, t, caps := &b.graph, b.plan.Graph.Task(i), &b.team.Capabilities[m]
	at := len(g.Tasks)
	title := flow.ApprovalTitle(f.Name, t.Title)
	g.Tasks = append(g.Tasks, flow.Task{Title: title, Agent: m, Endpoints: b.endpointReaders(caps)})
	for _, to := range b.addArguments(f, argumentsReader{caps.Agent, caps.Clearance()}, i, at) {
		pass(to)
	}
	source := len(g.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.ToolResult, Name: title, From: f.Approve, Task: at, Label: b.plan.Labels[i]})
	b.addSight(source, f.Approve, label.Public, b.plan.Labels[i])
	terms := b.team.Terms(f.Approve, t.Assignee)
	e := flow.Edge{Source: source, Task: i, Delivers: pick.Everything(), Rule: gate.RuleTools, Minimal: terms.Mode() == handoff.Minimal}
	if rule, line := terms.Stated(); rule != "" {
		e.Rule, e.Line = rule, line
	}
	if delivers, err := terms.Delivers(nil); err == nil {
		e.Delivers = delivers
	}
	g.Edges = append(g.Edges, e)
}
