package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// goalHeading stands above the goal in the prompt of a child.
const goalHeading = "Goal"

// goalFor makes the envelope of the goal of a child. It is as sensitive as what its parent had read.
func (g *childGroup) goalFor(c *childCall, of *descendant) (*envelope.Envelope, error) {
	a, x := g.of, g.x
	hops := 0
	for _, earlier := range a.earlier {
		hops = max(hops, gate.HopsOf(earlier.sealed))
	}
	h, err := (&gate.Compartment{Contract: x.contract}).GateMessage(x.sealed, hops, time.Now())
	if err != nil {
		return nil, err
	}
	if e := of.edge; e != nil && h.Classification > e.Max {
		return nil, &gate.Refusal{Rule: gate.RuleClearance, Reason: fmt.Sprintf("your context is %v, and at most %v may be delegated to %s", h.Classification, e.Max, c.To)}
	}
	h.ID, h.Producer, h.Task, h.CreatedAt = envelope.ID(x.identity()+"/"+c.call.ID+"/goal"), a.caps.Agent, a.task.ID, time.Now()
	return envelope.New(h, envelope.Text(c.Goal))
}

// newChild makes the attempt of a child. The description of its task is its goal, and it is offered
// nothing else.
func (g *childGroup) newChild(goal *envelope.Envelope, c *childCall, of *descendant) *attempt {
	a, r := g.of, g.of.run
	m := &r.team.Config.Agents[of.member]
	limit := of.limits.Timeout
	if asked := time.Duration(c.TimeoutMs) * time.Millisecond; asked > 0 {
		limit = min(limit, asked)
	}
	if m.MaxSession > 0 {
		limit = min(limit, m.MaxSession)
	}
	child := &attempt{graph: a.graph, planned: true, index: a.index, member: of.member}
	child.run, child.scheduler = r, a.scheduler
	child.attemptRelations = attemptRelations{root: cmp.Or(a.root, a), depth: a.depth + 1, maxTurns: of.limits.MaxTurns}
	child.request = request{
		task:   &task.Task{ID: a.task.ID, Spec: task.Spec{Title: a.task.Title, Assignee: m.Name, Timeout: limit, Classification: label.Public, Workspace: a.task.Workspace}},
		number: a.number, does: m.Agent, by: a.by, caps: &r.team.Capabilities[of.member], bound: a.bound, limits: r.team.MemberLimits(of.member),
		tools: of.tools, part: c.part(a), heading: goalHeading, child: c.link, declassified: of.edge == nil || a.declassified, start: c.began, began: c.began,
	}
	child.least = plan.LevelOf(of.tools)
	child.runtimeTools = of.runtime
	source := gate.Source{Kind: handoff.Plan, Name: string(a.task.ID) + child.part}
	grant := gate.WholeOf(source, "goal")
	grant.Terms, grant.MaxBytes = a.by.Terms(goal.Producer(), m.Name), child.limits.On(source, 0)
	child.offers, child.grants = []gate.Offer{{Source: source, Title: goalHeading, Envelope: goal}}, []gate.Grant{grant}
	return child
}

// A finding is a result that the gate treats like any equal one: the same text, label and, if there are rules,
// producer.
type finding struct {
	text     string
	level    label.Classification
	producer string // empty if no rule can tell two apart
}

// finding returns the result of a child that has completed.
func (g *childGroup) finding(c *childCall) finding {
	e := c.outcome.envelope
	f := finding{text: gate.RecordOf(e).Text, level: e.Classification()}
	if g.of.by.Rules != nil {
		f.producer = e.Producer()
	}
	return f
}

// answers fills in what the parent gets of its children. A result that several of them gave is written
// once, and each of them is named as a source of it. Equal results to which different rules apply are not
// compared: what the parent gets of one must not depend on what it may not see of another.
func (g *childGroup) answers(answers []toolAnswer) error {
	all := g.status()
	first := map[finding]*childCall{}
	same := map[*childCall][]string{}
	for _, c := range g.list {
		if c.outcome.code == "" {
			f := g.finding(c)
			if first[f] == nil {
				first[f] = c
			}
			same[first[f]] = append(same[first[f]], c.call.ID)
		}
	}
	for _, c := range g.list {
		e, status := c.outcome.envelope, c.outcome.status()
		made := &ToolCallMetrics{Tool: c.tool.Name, Duration: c.took, Failed: c.outcome.code != ""}
		if c.child == nil {
			made = nil
		}
		switch from := same[c]; {
		case status == childComplete && from == nil:
			notice, err := g.notice(c, fmt.Sprintf("Complete, with the same result as %s.", first[g.finding(c)].call.ID))
			if err != nil {
				return err
			}
			e = notice
		case len(from) > 1:
			status += ", the result of " + strings.Join(from, ", ")
		}
		title := "status " + status
		if c.returned {
			title += "; what it changed is in your workspace"
		}
		if len(g.list) > 1 {
			title += "; all: " + all
		}
		answers[c.at] = toolAnswer{id: c.call.ID, envelope: e, failed: c.outcome.code != "", title: title, made: made}
	}
	return nil
}

// status returns the status of all children of a turn: complete, timeout if none completed and one
// ran out of time, or partial.
func (g *childGroup) status() string {
	done := func(status string) bool {
		return slices.ContainsFunc(g.list, func(c *childCall) bool { return c.outcome.status() == status })
	}
	switch {
	case !done(childTimeout) && !done(childFailed):
		return childComplete
	case done(childComplete) || !done(childTimeout):
		return "partial"
	}
	return childTimeout
}
