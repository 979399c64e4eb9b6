package plan

import (
	"fmt"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
)

// IsPerson reports whether the agent of a member is a person.
func (m *Member) IsPerson() bool {
	_, ok := m.Agent.(*person.Agent)
	return ok
}

// Users returns the names of who can answer for a member that is a person; none if anybody can.
func (m *Member) Users() []string {
	if p, ok := m.Agent.(*person.Agent); ok {
		return p.Users()
	}
	return nil
}

// checkTimeouts reports tasks that say what happens if a person does not answer, and that a
// person does not perform.
func checkTimeouts(c *checker) {
	for i, t := range c.plan.Graph.Tasks() {
		if t.OnTimeout != "" && !c.team.Find(t.Assignee).IsPerson() {
			c.task(i).at("onTimeout").report(fmt.Sprintf("onTimeout: agent %q is not a person; its attempts fail after timeoutMs", t.Assignee), "remove it", task.ErrInvalid)
		}
	}
}

// checkPeople reports settings of people that only models have.
func (c *Config) checkPeople(found *task.Problems) {
	for i := range c.Agents {
		m := &c.Agents[i]
		if !m.IsPerson() {
			continue
		}
		about := subject{found, naming.Pointer("agents", i), fmt.Sprintf("agent %q", m.Name)}
		if len(m.Tools) > 0 {
			about.at("tools").report("a person cannot call tools", "remove the tools, or use a model", task.ErrInvalid)
		}
		if m.SystemPrompt != "" {
			about.at("systemPrompt").report("a person has no system prompt", "write what to do in the descriptions of tasks", task.ErrInvalid)
		}
	}
	if k := c.Coordinator; k != nil {
		if m := (Member{Agent: k.Agent}); m.IsPerson() {
			subject{found, "/coordinator", "coordinator"}.report("a person cannot be the coordinator", "use a model", task.ErrInvalid)
		}
	}
}
