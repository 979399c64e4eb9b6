package team

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
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
				found[i].Pointer = naming.Pointer("agents", k, "handoff")
			}
		}
	}
	return found
}

// redacts returns what is taken out on every edge to an agent, beside secrets.
func (b *termbook) redacts() []redact.Kind {
	kinds := redact.DefaultKinds()
	if b == nil {
		return kinds
	}
	policy := b.rules.Policy()
	for _, k := range policy.Redact.Kinds {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for _, p := range policy.Redact.Patterns {
		kinds = append(kinds, redact.Kind(p.Name))
	}
	return kinds
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
	g.MaxBytes = p.team().memberLimits(int(p.members[i])).on(g.Source, d.MaxContextBytes)
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
	own := 0
	if k, known := p.inputs[strings.ToLower(u.Name)]; known {
		own = p.options().Inputs[k].MaxContextBytes
	}
	g.MaxBytes = p.team().memberLimits(int(p.members[i])).on(g.Source, own)
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
