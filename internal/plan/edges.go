package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Neighbor is an agent to which another one may send.
type Neighbor struct {
	Member int                  // an index into the roster
	Edge   int                  // an index into the edges
	Max    label.Classification // the highest label of what is sent

	Delegate bool // goals may be delegated along the edge
	Transfer bool // conversations may be transferred along the edge
}

// A Network says which agents may send to which.
type Network struct {
	neighbors [][]Neighbor    // of each member
	tools     [][]RuntimeTool // of each member
}

// A networkCheck checks the edges of a roster and lists the neighbors of each member.
type networkCheck struct {
	*Roster
	found     *task.Problems
	known     map[[2]int]int // the edge of each way
	neighbors [][]Neighbor
}

// newNetwork returns the network of a roster.
func newNetwork(of *Roster, found *task.Problems) Network {
	t := networkCheck{of, found, map[[2]int]int{}, make([][]Neighbor, len(of.Config.Agents))}
	for k := range t.Config.Edges {
		e := &t.Config.Edges[k]
		about := subject{found: t.found, pointer: naming.Pointer("edges", k), name: fmt.Sprintf("edge %d", k+1)}
		from, isFrom := t.end(about.at("from"), e.From)
		to, isTo := t.end(about.at("to"), e.To)
		if e.MaxClassification != nil {
			about.at("maxClassification").checkLabel(*e.MaxClassification)
		}
		if checkPassedFiles(about, e.Files); len(e.Files) > 0 && !e.Delegate {
			about.at("files").report("files are passed with delegated goals, and the edge does not delegate", "write delegate: true, or remove files", task.ErrInvalid)
		}
		if !isFrom || !isTo {
			continue
		}
		if from == to {
			about.at("to").report(fmt.Sprintf("%q is connected to itself", e.To), "name another agent, or remove the edge", task.ErrInvalid)
			continue
		}
		ways := [][2]int{{from, to}}
		if e.Bidirectional {
			ways = append(ways, [2]int{to, from})
		}
		for _, way := range ways {
			t.add(about, way, k)
		}
	}
	for i := range t.neighbors {
		slices.SortFunc(t.neighbors[i], func(a, b Neighbor) int { return a.Member - b.Member })
	}
	return Network{neighbors: t.neighbors}
}

// end returns the index of the agent at an end of an edge.
func (t networkCheck) end(at subject, name string) (i int, ok bool) {
	if i, ok = t.Index(name); ok {
		return i, true
	}
	switch name {
	case "":
		at.report("an end of the edge is missing", "name an agent", ErrUnknownAgent)
	case handoff.User, handoff.Coordinator, handoff.Anyone:
		at.report(fmt.Sprintf("%q is no agent of the team", name), "edges connect two agents; the user sends messages to any agent", ErrUnknownAgent)
	default:
		at.report(fmt.Sprintf("unknown agent %q", name), naming.Suggest(name, t.Names()), ErrUnknownAgent)
	}
	return 0, false
}

// add adds one way of an edge.
func (t networkCheck) add(about subject, way [2]int, edge int) {
	from, to, e := &t.Config.Agents[way[0]], &t.Config.Agents[way[1]], &t.Config.Edges[edge]
	if first, twice := t.known[way]; twice {
		about.report(fmt.Sprintf("edge %d already leads from %q to %q", first+1, from.Name, to.Name), "keep one of them; bidirectional: true leads both ways", task.ErrDuplicate)
		return
	}
	t.known[way] = edge
	switch {
	case from.IsPerson():
		about.report(fmt.Sprintf("%q is a person, who sends no handoffs", from.Name), fmt.Sprintf("remove the edge, or this way of it; what a person writes is the result of a task, so have a task of %q depend on it", to.Name), task.ErrInvalid)
	case from.Process() != nil:
		about.report(fmt.Sprintf("%q is a command, which sends no handoffs", from.Name), "remove the edge; what a command prints is the result of its task", task.ErrInvalid)
	case e.Delegate && to.IsPerson():
		about.at("delegate").report(fmt.Sprintf("%q is a person, to whom no agent delegates", to.Name), "remove delegate, or give the person a task", task.ErrInvalid)
	case e.Delegate && to.Process() != nil:
		about.at("delegate").report(fmt.Sprintf("%q is a command, to which no agent delegates", to.Name), "remove delegate, or give the command a task", task.ErrInvalid)
	case e.Transfer && to.IsPerson():
		about.at("transfer").report(fmt.Sprintf("%q is a person, to whom no agent transfers its conversation", to.Name), "remove transfer; a person approves calls of tools, or has a task", task.ErrInvalid)
	case e.Transfer && to.Process() != nil:
		about.at("transfer").report(fmt.Sprintf("%q is a command, to which no agent transfers its conversation", to.Name), "remove transfer, or give the command a task", task.ErrInvalid)
	default:
		t.neighbors[way[0]] = append(t.neighbors[way[0]], Neighbor{Member: way[1], Edge: edge, Max: e.Max(), Delegate: e.Delegate, Transfer: e.Transfer})
	}
}

// Neighbors returns the agents to which a member may send, in the order of the roster.
func (n *Network) Neighbors(member int) []Neighbor {
	if member >= len(n.neighbors) { // the member that performs tasks without an agent
		return nil
	}
	return n.neighbors[member]
}

// Reaches reports whether an edge leads from one member to another.
func (n *Network) Reaches(from, to int) (Neighbor, bool) {
	list := n.Neighbors(from)
	k := slices.IndexFunc(list, func(other Neighbor) bool { return other.Member == to })
	if k < 0 {
		return Neighbor{}, false
	}
	return list[k], true
}

// repliers returns the neighbors of a member that may send to it, in the order of the roster.
func (n *Network) repliers(member int) (list []int) {
	for _, to := range n.Neighbors(member) {
		if _, back := n.Reaches(to.Member, member); back {
			list = append(list, to.Member)
		}
	}
	return list
}
