package plan

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/planning"
)

// A coordinator that may grant tools reads of the tools of the runtime too. It assigns tasks by name, so it
// reads the names of agents also where the policy hides them from other agents.

// plannable returns the tools of the runtime of a member as a coordinator reads them.
func plannable(t *Roster, member int) (list []planning.Tool) {
	for _, f := range t.Network.toolsOf(member) {
		known := planning.Tool{Name: f.Name}
		switch {
		case f.To != nil:
			known.Name = transferName(t.Config.Agents[f.To.Member].Name)
			known.Description = fmt.Sprintf("gives the task to %s, who finishes it", plannedName(t, f.To.Member))
		case f.Name == SendHandoff:
			known.Description = "sends messages to " + neighborNames(t, t.Network.Neighbors(member))
		case f.Name == DelegateToAgent:
			known.Description = "has a goal pursued by " + neighborNames(t, t.Network.delegates(member))
		case f.Name == SpawnAgent:
			known.Description = fmt.Sprintf("has up to %d copies of the agent pursue goals", t.Config.Agents[member].Spawn.WithDefaults().Max)
		}
		list = append(list, known)
	}
	return list
}

// plannedName returns the name of an agent as a coordinator reads it: with what other agents call it, if that differs.
func plannedName(t *Roster, member int) string {
	name := t.Config.Agents[member].Name
	if shown := t.Rules.ShownName(name); shown != name {
		return fmt.Sprintf("%s (%s)", name, shown)
	}
	return name
}

// neighborNames lists neighbors: as many as a line of the roster has room for, and how many more there are.
func neighborNames(t *Roster, list []Neighbor) string {
	const most = 90
	var b strings.Builder
	for k, n := range list {
		name := plannedName(t, n.Member)
		if k > 0 {
			if b.Len()+len(name) > most {
				fmt.Fprintf(&b, " and %d more", len(list)-k)
				break
			}
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}

// runtimeKinds says which tools of the runtime agents of the roster have.
func runtimeKinds(t *Roster) (kinds planning.RuntimeTools) {
	for member := range agentsOf(t) {
		for _, f := range t.Network.toolsOf(member) {
			kinds.Send = kinds.Send || f.Name == SendHandoff
			kinds.Spawn = kinds.Spawn || f.Name == SpawnAgent
			kinds.Delegate = kinds.Delegate || f.Name == DelegateToAgent
			kinds.Transfer = kinds.Transfer || f.To != nil
			kinds.Numbered = t.Rules.HidesIdentity()
		}
	}
	return kinds
}
