package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Terms returns the terms of what from makes for to. Nil means the defaults; a team
// without a policy has no others.
func (t *Roster) Terms(from, to string) *gate.Terms {
	if t.Rules == nil {
		return nil
	}
	return t.Rules.Between(from, to)
}

// govern compiles the policy, if there is one or an agent has a default of its own.
func (t *Roster) govern() task.Problems {
	policy := t.Config.Policy
	if policy == nil && !slices.ContainsFunc(t.Config.Agents, func(m Member) bool { return m.Handoff != "" || m.narrows() }) {
		return nil
	}
	if policy == nil {
		policy = &handoff.Policy{}
	}
	rules, err := gate.Compile(policy, t.Config.parties())
	if err != nil {
		found, ok := errors.AsType[task.Problems](err)
		if !ok {
			return task.Problems{{Pointer: "/policy", Message: err.Error(), Err: err}}
		}
		return placeDefaults(t.Config.Agents, found)
	}
	t.Rules = rules
	return nil
}

// placeDefaults moves problems with what an agent says of itself to the agent.
func placeDefaults(members []Member, found task.Problems) task.Problems {
	for i := range found {
		key, rest, _ := strings.Cut(strings.TrimPrefix(found[i].Pointer, "/policy/"), "/")
		own := map[string]string{"default": "handoff", "allow": "allowedContextFields", "block": "blockedContextFields", "translate": "translate"}[key]
		for k := range members {
			if found[i].Subject == fmt.Sprintf("agent %q", members[k].Name) && own != "" {
				found[i].Pointer = naming.Pointer("agents", k, own)
				if rest != "" {
					found[i].Pointer += "/" + rest
				}
			}
		}
	}
	return found
}

// redacted returns the personal kinds, and the names of the policy's own patterns, that
// are taken out on every edge to an agent.
func redacted(rules *gate.Rulebook) []redact.Kind {
	kinds, policy := redact.DefaultKinds(), rules.Policy()
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

// DependencyGrant is the grant of the result of task up to task i.
func (p *Plan) DependencyGrant(i, j, up int) gate.Grant {
	t, from := p.Graph.Task(i), p.Graph.Task(up)
	d := &t.DependsOn[j]
	g := gate.WholeOf(gate.Source{Kind: handoff.Dependency, Name: string(d.Task)}, p.Line(i))
	if isRead(p.Graph.Task(i), j) {
		g.Source.Kind = handoff.Condition
	}
	if d.Need != nil {
		g.Paths = d.Need
	}
	g.Item = d.Item
	if g.Terms = termsTo(p, i, from.Assignee); p.Schemas[up] != nil {
		g.Names = p.Schemas[up]
	}
	g.MaxBytes = p.Roster().MemberLimits(int(p.Members[i])).On(g.Source, d.MaxContextBytes)
	return g
}

// InputGrant is the grant of a named input to task i.
func (p *Plan) InputGrant(i, j int) gate.Grant {
	t := p.Graph.Task(i)
	u := &t.Uses[j]
	g := gate.WholeOf(gate.Source{Kind: handoff.Input, Name: u.Name}, p.Line(i))
	if u.Need != nil {
		g.Paths = u.Need
	}
	if len(u.Reveal) > 0 {
		g.Reveal = make(map[redact.Kind][]task.Path, len(u.Reveal))
		for kind, paths := range u.Reveal {
			g.Reveal[redact.Kind(kind)] = paths
		}
	}
	g.Terms = termsTo(p, i, handoff.User)
	own := 0
	if k, known := p.InputIndex[strings.ToLower(u.Name)]; known {
		own = p.Options().Inputs[k].MaxContextBytes
	}
	g.MaxBytes = p.Roster().MemberLimits(int(p.Members[i])).On(g.Source, own)
	narrowToItem(p, &g, t, u)
	return g
}

// Line is where task i is written, for people; empty for a task made in Go.
func (p *Plan) Line(i int) string {
	if p.lines == nil {
		return ""
	}
	return p.lines[i]
}

// writeLines notes where tasks are written, if any of them has a line.
func (p *Plan) writeLines() {
	for i := range p.Graph.Len() {
		if at := p.Graph.Task(i).Source.Origin.String(); at != "" {
			if p.lines == nil {
				p.lines = make([]string, p.Graph.Len())
			}
			p.lines[i] = at
		}
	}
}
