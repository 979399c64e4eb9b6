package plan

import (
	"errors"
	"slices"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Candidates returns what package assign needs to know of the members.
func (t *Roster) Candidates() []assign.Agent {
	list := make([]assign.Agent, agentsOf(t))
	for i := range list {
		m, caps := &t.Config.Agents[i], &t.Capabilities[i]
		list[i] = assign.Agent{
			Name: m.Name, Description: m.Description, SystemPrompt: m.SystemPrompt, Capabilities: m.Capabilities, Tools: slices.Concat(m.toolNames(), t.Network.toolNames(i), t.Network.otherNames(i)), Provider: m.Provider,
			Clearance: caps.Clearance(), Produces: caps.Produces, OutputTags: caps.OutputTags, MaxSession: caps.MaxSession,
		}
	}
	return list
}

// assign chooses the agents of tasks without an assignee before anything runs, so that the
// flow check has the whole graph. It also checks that the other agents have what their
// tasks require.
//
// An agent must be cleared for everything that may reach the task. If none is, an agent
// that is cleared for its required context is chosen, and the gate withholds the rest.
func (c *checker) assign() {
	g := c.plan.Graph
	defer c.assignComputed()
	if !slices.ContainsFunc(g.Tasks(), func(t task.Task) bool { return t.Assignee == "" && !t.IsComputed() }) {
		if slices.ContainsFunc(g.Tasks(), func(t task.Task) bool { return t.Requires != nil }) {
			c.refuse(assign.Check(g, c.team.Candidates()))
		}
		return
	}
	agents := c.team.Candidates()
	chosen, err := assign.Tasks(g, c.bounds(true), agents, c.options.Strategy)
	if err != nil {
		chosen, err = assign.Tasks(g, c.bounds(false), agents, c.options.Strategy)
	}
	if err != nil {
		c.refuse(err)
		return
	}
	c.plan.assigned = make([]bool, g.Len())
	c.specs = slices.Clone(c.specs)
	sameInRounds(g, chosen)
	for i, agent := range chosen {
		if g.Task(i).Assignee == "" && agent != assign.None {
			c.plan.assigned[i], c.specs[i].Assignee = true, agents[agent].Name
			g.Assign(i, agents[agent].Name)
		}
	}
}

// refuse adds the problems of an assignment.
func (c *checker) refuse(err error) {
	if found, ok := errors.AsType[task.Problems](err); ok {
		c.found = append(c.found, found...)
	} else if err != nil {
		c.add(task.Problem{Pointer: "/tasks", Message: err.Error(), Err: err})
	}
}

// bounds returns the labels of the tasks as far as they do not depend on who
// does them: with everything that may reach them, or with what they must have.
func (c *checker) bounds(optional bool) []label.Classification {
	g := c.plan.Graph
	levels := make([]label.Classification, g.Len())
	highest := label.Public
	for _, at := range g.Order() {
		i := int(at)
		t := g.Task(i)
		level := t.Classification
		for _, u := range t.Uses {
			level = level.Join(c.input(u).Classification)
		}
		for j, up := range g.Upstream(i) {
			if from := levels[up]; !t.DependsOn[j].Optional || optional && from < label.Secret {
				level = level.Join(from)
			}
		}
		levels[i] = level
		if level < label.Secret {
			highest = highest.Join(level)
		}
	}
	if optional {
		for i := range levels {
			if g.Task(i).MemoryScope == task.ScopeAll {
				levels[i] = levels[i].Join(highest)
			}
		}
	}
	return levels
}

// WasAssigned reports whether the caller named no agent for a task.
func (p *Plan) WasAssigned(i int) bool { return p.assigned != nil && p.assigned[i] }
