package plan

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// checkIdle warns of rules and entries for a pair between which nothing is ever delivered:
// they look like protection, or like a permission, and are neither.
func (c *checker) checkIdle() {
	policy := c.team.Config.Policy
	if policy == nil {
		return
	}
	used := c.deliveringPairs()
	warn := func(name, why string, tokens ...any) {
		c.advise(c.about(name, "policy").at(tokens...), "no effect here: "+why, "")
	}
	idle := func(name, from, to string, tokens ...any) bool {
		if from == handoff.Anyone || to == handoff.Anyone || used[[2]string{from, to}] {
			return false
		}
		warn(name, fmt.Sprintf("%q receives nothing from %q", to, from), tokens...)
		return true
	}
	for i := range policy.Rules {
		r := &policy.Rules[i]
		name := fmt.Sprintf("rule %s→%s", r.From, r.To)
		if !idle(name, r.From, r.To, "rules", i) && len(r.Reveal) > 0 {
			adviseReveals(c.about(name, "policy", "rules", i, "reveal"), r.Reveal, c.team.Terms(r.From, r.To), nil, true, &c.findings)
		}
	}
	for i, d := range policy.Declassify {
		if idle(fmt.Sprintf("%q", d.Name), d.From, d.To, "declassify", i) {
			continue
		}
		if why := c.lowersNothing(&d); why != "" {
			warn(fmt.Sprintf("%q", d.Name), why, "declassify", i, "lowerTo")
		}
	}
	for i, e := range policy.Endorse {
		if !idle(fmt.Sprintf("%q", e.Name), e.From, e.To, "endorse", i) && e.To == handoff.User {
			warn(fmt.Sprintf("%q", e.Name), "the caller has no system prompt", "endorse", i, "to")
		}
	}
	for i, n := range policy.Renew {
		idle(fmt.Sprintf("%q", n.Name), n.From, n.To, "renew", i)
	}
}

// lowersNothing says why a declassifier is certain to lower nothing between its pair in a
// run of the plan; "" if it may. Messages of a bus and entries of the caller's memory can
// have any label.
func (c *checker) lowersNothing(d *handoff.Declassifier) string {
	reader := *c.options.UserAccepts
	if i, ok := c.team.Index(d.To); ok {
		reader = c.team.Capabilities[i].Clearance()
	} else if d.To == handoff.Coordinator && c.team.Config.Coordinator != nil {
		caps := c.team.Coordinator(&c.options)
		reader = caps.Clearance()
	} else if f := c.team.Config.tool(d.To); f != nil {
		reader = f.Accepts
	}
	highest, brought := c.highestBetween(d.From, d.To), c.options.Bus != nil || c.options.Memory != nil
	switch {
	case d.LowerTo > reader:
		return fmt.Sprintf("%q may see %v, and lowerTo is above that", d.To, reader)
	case d.From != handoff.Coordinator && !brought && highest <= d.LowerTo:
		return fmt.Sprintf("context from %q is at most %v, and lowerTo is not below that", d.From, highest)
	}
	return ""
}

// highestBetween returns the highest label that what a producer makes for a reader can have.
func (c *checker) highestBetween(from, to string) label.Classification {
	level := label.Public
	if from == handoff.User && c.options.Answer != nil {
		level = c.options.Answer.Classification
	}
	for i := range c.plan.Graph.Len() {
		if t := c.plan.Graph.Task(i); MayHold(c.plan, i, from) {
			level = level.Join(c.plan.Labels[i])
		} else if from == handoff.User {
			for _, u := range t.Uses {
				level = level.Join(c.plan.Input(u).Classification)
			}
		}
	}
	for i := range c.options.Messages {
		if m := &c.options.Messages[i]; m.From == from && reads(c.team, m, to) {
			level = level.Join(m.Classification)
		}
	}
	for k := range c.options.Conversation {
		if of := &c.options.Conversation[k]; of.From == from && of.Envelope != nil {
			level = level.Join(of.Envelope.Classification())
		}
	}
	return level
}

// deliveringPairs returns the pairs of a producer and a reader between which a run may deliver
// something.
func (c *checker) deliveringPairs() map[[2]string]bool {
	g, used := c.plan.Graph, map[[2]string]bool{}
	readsMemory := map[string]bool{}
	for i := range g.Len() {
		t := g.Task(i)
		used[[2]string{t.Assignee, handoff.User}] = true
		if c.options.Answer != nil {
			used[[2]string{t.Assignee, handoff.Coordinator}] = true
		}
		if t.Source.Record != nil {
			used[[2]string{t.Source.Record.From, t.Assignee}] = true
		}
		if len(t.Uses) > 0 {
			used[[2]string{handoff.User, t.Assignee}] = true
		}
		for _, up := range g.Upstream(i) {
			used[[2]string{g.Task(int(up)).Assignee, t.Assignee}] = true
		}
		for _, f := range c.plan.Tools(i) {
			used[[2]string{t.Assignee, gate.ToolReader(f.Name)}], used[[2]string{gate.ToolReader(f.Name), t.Assignee}] = true, true
			used[[2]string{gate.ToolReader(f.Name), handoff.User}] = true // in the records of the run
		}
		if c.options.Answer == nil {
			for k := range c.options.Conversation {
				used[[2]string{c.options.Conversation[k].From, t.Assignee}] = true
			}
		}
		transferPairs(c.plan, i, used)
		readsMemory[t.Assignee] = readsMemory[t.Assignee] || t.MemoryScope == task.ScopeAll
	}
	if c.options.Answer != nil {
		used[[2]string{handoff.User, handoff.Coordinator}] = true
		used[[2]string{handoff.Coordinator, handoff.User}] = true
		used[[2]string{handoff.Coordinator, handoff.Coordinator}] = true
	}
	for i := range c.team.Capabilities {
		for k := range c.team.Capabilities {
			from, to := c.team.Capabilities[i].Agent, c.team.Capabilities[k].Agent
			if _, sends := c.team.Network.Reaches(i, k); readsMemory[to] || sends {
				used[[2]string{from, to}] = true
			}
		}
		if c.options.Bus != nil {
			used[[2]string{handoff.User, c.team.Capabilities[i].Agent}] = true
		}
		for k := range c.options.Messages {
			if m := &c.options.Messages[k]; reads(c.team, m, c.team.Capabilities[i].Agent) {
				used[[2]string{m.From, c.team.Capabilities[i].Agent}] = true
			}
		}
	}
	return used
}
