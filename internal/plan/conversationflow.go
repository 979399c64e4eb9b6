package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// addConversation adds what was said in earlier turns: one source for each producer, label and list of what was
// read, since a long session would have a row for each text otherwise.
func addConversation(b *flowBuilder) {
	g := &b.graph
	type group struct {
		from  string
		level label.Classification
		reads []record.Read
	}
	var groups []group
	first := len(g.Sources)
	b.said = make([]int, len(b.options.Conversation))
	for k := range b.options.Conversation {
		c := &b.options.Conversation[k]
		if b.said[k] = -1; c.Envelope == nil {
			continue
		}
		of := group{c.From, c.Envelope.Classification(), c.Reads}
		at := slices.IndexFunc(groups, func(o group) bool {
			return o.from == of.from && o.level == of.level && slices.Equal(o.reads, of.reads)
		})
		if b.said[k] = first + at; at < 0 {
			b.said[k] = len(g.Sources)
			groups = append(groups, of)
			g.Sources = append(g.Sources, flow.Source{Kind: handoff.Conversation, Name: fmt.Sprintf("earlier turns of %s, %v", of.from, of.level), From: of.from, Task: -1, Label: of.level})
		}
	}
}

// addAnswered makes the answers of earlier turns derive from what they were made of: what was read in those
// turns, as far as this plan has it, and what this turn reads, whose answer is a source of the graph. The spec of
// an earlier turn, or what its coordinator planned, may have been another one.
func addAnswered(g *flow.Graph, conversation []ConversationText, said []int, answer int) {
	for k, source := range said {
		c := &conversation[k]
		if source < 0 || !c.IsAnswer() || g.Sources[source].Task >= 0 {
			continue
		}
		at := len(g.Tasks)
		g.Sources[source].Task = at
		g.Tasks = append(g.Tasks, flow.Task{Title: fmt.Sprintf("turn %d", c.Turn), Agent: flow.Nobody})
		from := []int{answer}
		for i := range g.Sources {
			s := &g.Sources[i]
			if s.Kind != handoff.Conversation && slices.ContainsFunc(c.Reads, func(r record.Read) bool {
				return r.Kind == s.Kind && (r.Input == s.Name || r.Kind != handoff.Input && slices.Contains(naming.Links(r.From), s.From))
			}) {
				from = append(from, i)
			}
		}
		for _, i := range from {
			g.Edges = append(g.Edges, flow.Edge{Source: i, Task: at, Delivers: pick.Everything(), Rule: gate.RuleTurns})
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
		level := b.graph.Sources[source].Label
		grant := gate.Grant{Terms: b.team.Terms(b.options.Conversation[k].MadeBy(handoff.Coordinator), handoff.Coordinator)}
		b.edge(source, at, &grant, nil, deliveryOf(grant.Terms, level, level, true, caps), false)
		if e := &b.graph.Edges[len(b.graph.Edges)-1]; e.Rule == "" {
			e.Rule = gate.RuleTurns
		}
	}
}
