package team

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
)

// checkIdle warns of rules and entries for a pair of which nothing ever
// crosses: they look like protection, or like a permission, and are neither.
func (c *checker) checkIdle() {
	policy := c.team.config.Policy
	if policy == nil {
		return
	}
	used := c.pairs()
	idle := func(subject, from, to string, tokens ...any) {
		if from == handoff.Anyone || to == handoff.Anyone || used[[2]string{from, to}] {
			return
		}
		c.advice = append(c.advice, task.Problem{
			Pointer: task.Pointer(append([]any{"policy"}, tokens...)...), Subject: subject,
			Message: fmt.Sprintf("no effect here: %q is given nothing that %q makes", to, from),
		})
	}
	for i := range policy.Rules {
		r := &policy.Rules[i]
		idle(fmt.Sprintf("rule %s→%s", r.From, r.To), r.From, r.To, "rules", i)
	}
	for i, d := range policy.Declassify {
		idle(fmt.Sprintf("%q", d.Name), d.From, d.To, "declassify", i)
	}
	for i, e := range policy.Endorse {
		idle(fmt.Sprintf("%q", e.Name), e.From, e.To, "endorse", i)
	}
	for i, n := range policy.Renew {
		idle(fmt.Sprintf("%q", n.Name), n.From, n.To, "renew", i)
	}
}

// pairs returns of whom what may cross to whom in a run of the plan.
func (c *checker) pairs() map[[2]string]bool {
	g, used := c.plan.graph, map[[2]string]bool{}
	remembering := map[string]bool{}
	for i := range g.Len() {
		t := g.Task(i)
		used[[2]string{t.Assignee, handoff.User}] = true
		if c.options.Answer != nil {
			used[[2]string{t.Assignee, handoff.Coordinator}] = true
		}
		if c.options.planned {
			used[[2]string{handoff.Coordinator, t.Assignee}] = true
		}
		if len(t.Uses) > 0 {
			used[[2]string{handoff.User, t.Assignee}] = true
		}
		for _, up := range g.Upstream(i) {
			used[[2]string{g.Task(int(up)).Assignee, t.Assignee}] = true
		}
		remembering[t.Assignee] = remembering[t.Assignee] || t.MemoryScope == task.ScopeAll
	}
	if c.options.Answer != nil {
		used[[2]string{handoff.User, handoff.Coordinator}] = true
		used[[2]string{handoff.Coordinator, handoff.User}] = true
		used[[2]string{handoff.Coordinator, handoff.Coordinator}] = true
	}
	for i := range c.team.caps {
		for k := range c.team.caps {
			from, to := c.team.caps[i].Agent, c.team.caps[k].Agent
			if remembering[to] || c.options.Bus != nil {
				used[[2]string{from, to}] = true
			}
		}
		for k := range c.options.Messages {
			if m := &c.options.Messages[k]; m.reads(c.team.caps[i].Agent) {
				used[[2]string{m.From, c.team.caps[i].Agent}] = true
			}
		}
	}
	return used
}
