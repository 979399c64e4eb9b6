package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
)

// addConversation adds what was said in earlier turns: one source for each producer and label, since a
// long session would have a row for each text otherwise.
func addConversation(b *flowBuilder) {
	g := &b.graph
	first := len(g.Sources)
	b.said = make([]int, len(b.options.Conversation))
	for k := range b.options.Conversation {
		c := &b.options.Conversation[k]
		if b.said[k] = -1; c.Envelope == nil {
			continue
		}
		level := c.Envelope.Classification()
		at := slices.IndexFunc(g.Sources[first:], func(s flow.Source) bool { return s.From == c.From && s.Label == level })
		if b.said[k] = first + at; at < 0 {
			b.said[k] = len(g.Sources)
			g.Sources = append(g.Sources, flow.Source{Kind: handoff.Conversation, Name: fmt.Sprintf("earlier turns of %s, %v", c.From, level), From: c.From, Task: -1, Label: level})
		}
	}
}

// addTurns adds what a turn of the coordinator reads of earlier turns.
func addTurns(b *flowBuilder, at int) {
	caps := b.coordinatorCaps()
	seen := map[int]bool{}
	for k := range b.options.Conversation {
		source := b.said[k]
		if source < 0 || seen[source] {
			continue
		}
		seen[source] = true
		from, level := b.graph.Sources[source].From, b.graph.Sources[source].Label
		grant := gate.Grant{Terms: b.team.Terms(from, handoff.Coordinator)}
		b.edge(source, at, &grant, nil, deliveryOf(grant.Terms, level, level, true, caps), false)
		if e := &b.graph.Edges[len(b.graph.Edges)-1]; e.Rule == "" {
			e.Rule = gate.RuleTurns
		}
	}
}
