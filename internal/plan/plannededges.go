package plan

import (
	"slices"

	"github.com/runteam/runteam/label"
)

// A PlannedEdge is one way of an edge of the team. A bidirectional edge has two.
type PlannedEdge struct {
	From   string                `json:"from"`
	To     string                `json:"to"`
	Label  label.Classification  `json:"label"`           // of what may be sent, at most: by the edge and by the clearance of its reader
	Sends  *label.Classification `json:"sends,omitempty"` // of what a task of this plan can get along it, at most; nil if no task can get anything
	Grants []string              `json:"grants"`          // the tools that From has because of it
	Files  []string              `json:"files,omitempty"` // globs of the files that it may pass with a goal
}

// A PlannedSpawning says how an agent may spawn children, with every default filled in.
type PlannedSpawning struct {
	Max       int   `json:"max"` // at one task
	Depth     int   `json:"depth"`
	TimeoutMs int64 `json:"timeoutMs"` // of each child
	MaxTurns  int   `json:"maxTurns"`

	Files []string `json:"files,omitempty"` // globs of the files that a call may pass
}

// plannedSpawning returns how a member may spawn children; nil if it may not.
func (m *Member) plannedSpawning() *PlannedSpawning {
	if m.Spawn == nil {
		return nil
	}
	s := m.Spawn.WithDefaults()
	return &PlannedSpawning{s.Max, s.Depth, s.Timeout.Milliseconds(), s.MaxTurns, s.Files}
}

// plannedEdges returns the edges of the team in the order of the roster.
func plannedEdges(p *Plan) (list []PlannedEdge) {
	t := p.Roster()
	for from := range t.Config.Agents {
		for _, n := range t.Network.Neighbors(from) {
			e := PlannedEdge{From: t.Config.Agents[from].Name, To: t.Config.Agents[n.Member].Name, Grants: []string{}, Files: t.Config.Edges[n.Edge].Files}
			e.Label = min(n.Max, t.Capabilities[n.Member].Clearance())
			if from >= len(p.unread) || !p.unread[from] {
				e.Grants = append(e.Grants, SendHandoff)
			}
			if n.Delegate {
				e.Grants = append(e.Grants, DelegateToAgent)
			}
			if n.Transfer {
				e.Grants = append(e.Grants, transferName(t.Rules.ShownName(e.To)))
			}
			e.Sends = higher(arrivingFrom(p, from, n), transferredBy(p, from, n, e.Label))
			list = append(list, e)
		}
	}
	return list
}

// arrivingFrom returns the highest label of what tasks of a neighbor can get from a member; nil if that is nothing.
func arrivingFrom(p *Plan, from int, n Neighbor) (level *label.Classification) {
	for i, list := range p.arrivals {
		if int(p.Members[i]) != n.Member {
			continue
		}
		for _, a := range list {
			if a.from != from {
				continue
			}
			if d := arrivalDelivery(p, i, a); d.counts() && (level == nil || *level < d.Classification) {
				level = new(d.Classification)
			}
		}
	}
	return level
}

// transferredBy returns the highest label, up to a limit, of the tasks whose conversation a member can transfer
// to a neighbor; nil if there is none.
func transferredBy(p *Plan, from int, n Neighbor, limit label.Classification) (level *label.Classification) {
	if !n.Transfer {
		return nil
	}
	for i := range p.Labels {
		holders := Holders(p, i)
		if len(holders) > 0 && (int(p.Members[i]) == from || slices.ContainsFunc(holders, func(h Holder) bool { return h.Member == from })) {
			level = higher(level, new(min(p.Labels[i], limit)))
		}
	}
	return level
}

// higher returns the higher of two labels, of which each may be nil for none.
func higher(a, b *label.Classification) *label.Classification {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}
