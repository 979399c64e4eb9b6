package plan

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/tool"
)

// checkApproverLabels reports the tools of task i whose calls can never be approved, since the person
// may not see what the task passes to them. It notes those of which the person sees too little in unshown, by
// agent and tool.
func (c *checker) checkApproverLabels(i int, level label.Classification, unshown map[[2]string]bool) {
	var people []string
	tools := map[string][]string{} // by the person
	for _, f := range c.plan.Tools(i) {
		if f.Approve == "" {
			continue
		}
		if tools[f.Approve] == nil {
			people = append(people, f.Approve)
		}
		tools[f.Approve] = append(tools[f.Approve], f.Name)
	}
	for _, person := range people {
		from := c.plan.Graph.Task(i).Assignee
		if detail, hint, rule := unseen(c.team, from, person, level, "its context", "calls of "+toolsText(tools[person]), true); detail != "" {
			c.task(i).report(detail, hint, &gate.Refusal{Rule: rule, Reason: detail})
			continue
		}
		if adviseUnshown(c, c.task(i), person, "calls of "+toolsText(tools[person]), from, gate.Source{Kind: handoff.Arguments}, level) {
			for _, name := range tools[person] {
				unshown[[2]string{from, name}] = true
			}
		}
	}
}

// addApproval adds the person who has to approve calls of a tool as a reader of what an agent passes to the
// tool in task i, and the task that it works in as a reader of what that person says. It returns the source of
// that, if there is one.
func (b toolFlow) addApproval(f *tool.Tool, i int, agent string, in int, pass func(to int)) (said []int) {
	if f.Approve == "" {
		return nil
	}
	m, _ := b.team.Index(f.Approve)
	g, t, caps := &b.graph, b.plan.Graph.Task(i), &b.team.Capabilities[m]
	at := len(g.Tasks)
	title := flow.ApprovalTitle(f.Name, WrittenTitle(t))
	g.Tasks = append(g.Tasks, flow.Task{Title: title, Agent: m, Endpoints: b.endpointReaders(caps)})
	for _, to := range b.addArguments(f, argumentsReader{caps.Agent, caps.Clearance()}, i, agent, at) {
		pass(to)
	}
	source := len(g.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.ToolResult, Name: title, From: f.Approve, Task: at, Label: b.plan.Labels[i]})
	b.addSight(ReadBy(b.plan, i), source, f.Approve, label.Public, b.plan.Labels[i])
	b.toolResult(source, in, ReadBy(b.plan, i).Terms(f.Approve, agent))
	return []int{source}
}
