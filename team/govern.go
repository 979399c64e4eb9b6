package team

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A termbook is the policy of a team. Nil is that of a team without one, in
// which nothing need be asked.
type termbook struct{ rules *handoff.Rulebook }

// between returns the terms of what from makes for to; nil, which stands for
// the defaults, if the team has no policy.
func (b *termbook) between(from, to string) *handoff.Terms {
	if b == nil {
		return nil
	}
	return b.rules.Between(from, to)
}

// govern compiles the policy, if there is one or an agent has a default of its own.
func (t *Team) govern() task.Problems {
	policy := t.config.Policy
	parties := make([]handoff.Party, len(t.config.Agents))
	needed := policy != nil
	for i := range t.config.Agents {
		m := &t.config.Agents[i]
		parties[i] = handoff.Party{Name: m.Name, Default: m.Handoff}
		needed = needed || m.Handoff != ""
	}
	if !needed {
		return nil
	}
	if policy == nil {
		policy = &handoff.Policy{}
	}
	rules, err := policy.Compile(parties)
	if err != nil {
		found, ok := errors.AsType[task.Problems](err)
		if !ok {
			return task.Problems{{Pointer: "/policy", Message: err.Error(), Err: err}}
		}
		return t.placeDefaults(found)
	}
	t.edges = &termbook{rules}
	return nil
}

// placeDefaults points what is wrong with an agent's default to the agent.
func (t *Team) placeDefaults(found task.Problems) task.Problems {
	for i := range found {
		for k := range t.config.Agents {
			if m := &t.config.Agents[k]; found[i].Subject == fmt.Sprintf("agent %q", m.Name) && m.Handoff != "" {
				found[i].Pointer = task.Pointer("agents", k, "handoff")
			}
		}
	}
	return found
}

// words returns the redactor of events.
func (b *termbook) words() *redact.Redactor {
	if b == nil {
		return redact.All()
	}
	return b.rules.Words()
}

// digest returns what names the policy of the team in records.
func (b *termbook) digest() string {
	if b == nil {
		return (*handoff.Rulebook)(nil).Digest()
	}
	return b.rules.Digest()
}

// dependencyGrant is the grant of the result of task up to task i.
func (p *Plan) dependencyGrant(b *termbook, i, j, up int) handoff.Grant {
	t, from := p.graph.Task(i), p.graph.Task(up)
	d := &t.DependsOn[j]
	g := handoff.WholeOf(handoff.Source{Kind: handoff.Dependency, Name: string(d.Task)}, p.line(i))
	if d.Need != nil {
		g.Paths = d.Need
	}
	if g.Terms = b.between(from.Assignee, t.Assignee); p.schemas[up] != nil {
		g.Names = p.schemas[up]
	}
	return g
}

// inputGrant is the grant of a named input to task i.
func (p *Plan) inputGrant(b *termbook, i, j int) handoff.Grant {
	t := p.graph.Task(i)
	u := &t.Uses[j]
	g := handoff.WholeOf(handoff.Source{Kind: handoff.Input, Name: u.Name}, p.line(i))
	if u.Need != nil {
		g.Paths = u.Need
	}
	if len(u.Reveal) > 0 {
		g.Reveal = make(map[redact.Kind][]task.Path, len(u.Reveal))
		for kind, paths := range u.Reveal {
			g.Reveal[redact.Kind(kind)] = paths
		}
	}
	g.Terms = b.between(handoff.User, t.Assignee)
	return g
}

// line is where task i is written, for people; empty for a task made in Go.
func (p *Plan) line(i int) string {
	if p.lines == nil {
		return ""
	}
	return p.lines[i]
}

// writeLines notes where tasks are written, if any of them says so.
func (p *Plan) writeLines() {
	for i := range p.graph.Len() {
		if at := p.graph.Task(i).Origin.String(); at != "" {
			if p.lines == nil {
				p.lines = make([]string, p.graph.Len())
			}
			p.lines[i] = at
		}
	}
}

// checkGrants reports needs and reveals that cannot be meant.
func (c *checker) checkGrants(i int) {
	g, p := c.plan.graph, c.plan
	t := g.Task(i)
	for j := range t.DependsOn {
		d := &t.DependsOn[j]
		at := func() place { return c.problem(i, "dependsOn", j) } // most say nothing
		if d.Need != nil && len(d.Need) == 0 {
			at().say("an empty need grants nothing", "write paths, or leave need out for the whole", task.ErrInvalid)
			continue
		}
		up := int(g.Upstream(i)[j])
		grant := p.dependencyGrant(c.team.edges, i, j, up)
		if r := grant.Terms.Contradiction(d.Need); r != nil {
			at().say(fmt.Sprintf("%q to %q: %s", g.Task(up).Assignee, t.Assignee, r.Reason), r.Hint, r)
		} else if _, err := grant.Terms.Delivers(d.Need); err != nil {
			at().say(err.Error(), "", err)
		} else {
			c.checkOpaque(i, j, up, &grant)
		}
	}
	for j := range t.Uses {
		u := &t.Uses[j]
		at := func() place { return c.problem(i, "uses", j) }
		grant := p.inputGrant(c.team.edges, i, j)
		switch r := grant.Terms.Contradiction(u.Need); {
		case u.Need != nil && len(u.Need) == 0:
			at().say("an empty need grants nothing", "write paths, or leave need out for the whole", task.ErrInvalid)
		case r != nil:
			at().say(fmt.Sprintf("%q to %q: %s", handoff.User, t.Assignee, r.Reason), r.Hint, r)
		default:
			if _, err := grant.Terms.Delivers(u.Need); err != nil {
				at().say(err.Error(), "", err)
			}
		}
		for _, r := range handoff.CheckReveal(grant.Reveal) {
			where := c.problem(i, "uses", j, "reveal")
			where.pointer += strings.TrimSuffix(r.Pointer(), "/")
			where.say(r.Message, r.Hint, task.ErrInvalid)
		}
	}
}

// checkOpaque reports a result that is certain to be a text where only parts
// of a value may cross: it would be held.
func (c *checker) checkOpaque(i, j, up int, grant *handoff.Grant) {
	// A text may be one strict JSON value, so this is only a warning.
	s, _ := grant.Terms.Delivers(c.plan.graph.Task(i).DependsOn[j].Need)
	if s.Whole() || grant.Terms.Mode() == handoff.Minimal || c.plan.schemas[up] != nil {
		return
	}
	at := c.problem(i, "dependsOn", j)
	c.advice = append(c.advice, task.Problem{
		Pointer: at.pointer, Subject: at.subject,
		Message: fmt.Sprintf("only parts of the result of %q may cross, and it has no outputSchema: a reply that is not one JSON value will be held", c.plan.graph.Task(up).Title),
		Hint:    "give that task an outputSchema",
	})
}
