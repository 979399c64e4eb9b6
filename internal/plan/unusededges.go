package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// An edgeWay is one way of an edge: from a member to a neighbor.
type edgeWay struct {
	from int
	Neighbor
}

// checkUnusedEdges warns of edges that no task can use, whatever its context is, unless something else was said
// about the edge. A plan of a coordinator and a turn of a chat do not need all edges of the team.
func checkUnusedEdges(h handoffPlan, f *findings) {
	if isPlanned(h.plan) || h.plan.Options().Turn != nil {
		return
	}
	team := h.plan.Roster()
	ways := make([][]edgeWay, len(team.Config.Edges))
	for from := range h.tasks {
		for _, n := range team.Network.Neighbors(from) {
			ways[n.Edge] = append(ways[n.Edge], edgeWay{from, n})
		}
	}
	said := func(list task.Problems, at string) bool {
		return slices.ContainsFunc(list, func(p task.Problem) bool { return p.Pointer == at })
	}
	for k := range ways {
		if at := naming.Pointer("edges", k); !said(f.found, at) && !said(f.advice, at) {
			checkUnusedEdge(h, f, k, ways[k])
		}
	}
}

// checkUnusedEdge warns of an edge that no task can use, or not as it is written.
func checkUnusedEdge(h handoffPlan, f *findings, k int, ways []edgeWay) {
	team := h.plan.Roster()
	e, about := &team.Config.Edges[k], f.about(fmt.Sprintf("edge %d", k+1), "edges", k)
	var senders []string // that have work
	sends, delegates, transfers := false, false, false
	for _, w := range ways {
		m, working := &team.Config.Agents[w.from], len(h.tasks[w.from]) > 0
		has := func(is func(*RuntimeTool) bool) bool {
			return slices.ContainsFunc(h.tasks[w.from], func(i int) bool {
				return slices.ContainsFunc(RuntimeTools(h.plan, i), func(one RuntimeTool) bool { return is(&one) })
			})
		}
		_, _, callsModel := m.callLimits() // an agent written in Go can send without a tool
		holds := w.Transfer && mayBeHeldBy(h.plan, w.from)
		if working || holds {
			senders = append(senders, fmt.Sprintf("%q", m.Name))
		}
		sends = sends || h.sendsAlong(w.from, w.Neighbor) || working && !callsModel ||
			has(func(one *RuntimeTool) bool { return one.Name == SendHandoff })
		delegates = delegates || w.Delegate && has(func(one *RuntimeTool) bool { return one.Name == DelegateToAgent })
		transfers = transfers || holds || has(func(one *RuntimeTool) bool { return one.To != nil && one.To.Member == w.Member })
	}
	work, transfer := strings.Join(senders, " or "), transferName(team.Rules.ShownName(e.To))
	switch {
	case len(senders) == 0 && len(ways) > 0 && !sends:
		f.advise(about, fmt.Sprintf("%q has no task, so it sends nothing along the edge", team.Config.Agents[ways[0].from].Name), "give it a task, or remove the edge")
	case len(senders) == 0: // only a message of the options is sent, or the ends are invalid
	case sends || delegates || transfers:
		if e.Delegate && !delegates {
			f.advise(about.at("delegate"), fmt.Sprintf("no task of %s has the tool %s", work, DelegateToAgent), "add it to tools of a task, or remove delegate")
		}
		if e.Transfer && !transfers {
			f.advise(about.at("transfer"), fmt.Sprintf("no task of %s has the tool %s", work, transfer), "add it to tools of a task, or remove transfer")
		}
	default:
		name := SendHandoff
		if e.Transfer {
			name = transfer
		} else if e.Delegate {
			name = DelegateToAgent
		}
		f.advise(about, fmt.Sprintf("no task of %s has a tool that uses the edge", work), fmt.Sprintf("add %s to tools of a task, or remove the edge", name))
	}
}
