package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// TransferPrefix begins the names of the tools with which an agent transfers its conversation; the name
// of the agent that is to continue it follows.
const TransferPrefix = "transfer_to_"

// MaxTransfers is how often the conversation of an attempt at a task may be transferred.
const MaxTransfers = 8

// MaxTransferReason is the largest size of the reason of a transfer, in bytes.
const MaxTransferReason = 4 << 10

// maxToolName is the longest name of a tool.
const maxToolName = 64

// transfers returns the neighbors to which a member may transfer its conversation.
func (n *Network) transfers(member int) (list []Neighbor) {
	for _, to := range n.Neighbors(member) {
		if to.Transfer {
			list = append(list, to)
		}
	}
	return list
}

// transferName returns the name of the tool that transfers to an agent: with what is no letter, digit,
// hyphen or underscore replaced, and cut to what the name of a tool may have.
func transferName(agent string) string {
	fitted := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, agent)
	return TransferPrefix + fitted[:min(len(fitted), maxToolName-len(TransferPrefix))]
}

// transferTo returns the tool with which a member transfers its conversation to a neighbor.
func transferTo(t *Roster, to Neighbor) RuntimeTool {
	m := &t.Config.Agents[to.Member]
	name := t.Rules.ShownName(m.Name)
	text := fmt.Sprintf("Transfers the conversation to %s, who finishes the task in your place. Call it alone; you do not continue after it.", name)
	if m.Description != "" {
		text += " " + name + ": " + t.Rules.WithoutNames(m.Description)
	}
	f := runtimeTool(transferName(name), text, tool.None, map[string]any{
		"reason": map[string]any{"type": "string", "maxLength": MaxTransferReason, "description": "why, and what that agent should know"},
	})
	f.To = &to
	if f.Other = transferName(m.Name); f.Other == f.Name {
		f.Other = transferName(gate.Numbered(to.Member))
	}
	if f.Other == f.Name {
		f.Other = ""
	}
	return f
}

// TransferTools returns the tools with which a member transfers a conversation that was transferred to it.
func TransferTools(t *Roster, member int) (list []RuntimeTool) {
	for _, f := range t.Network.toolsOf(member) {
		if f.To != nil {
			list = append(list, f)
		}
	}
	return list
}

// checkTransferNames reports edges whose tools would have a name that another tool of the agent has.
func checkTransferNames(t *Roster, found *task.Problems) {
	for i := range t.Config.Agents {
		m, known := &t.Config.Agents[i], map[string]string{}
		for _, f := range m.Tools {
			if f != nil {
				known[f.Name] = fmt.Sprintf("the tool %q", f.Name)
			}
		}
		for _, to := range t.Network.transfers(i) {
			of := t.Config.Agents[to.Member].Name
			at := subject{found: found, pointer: naming.Pointer("edges", to.Edge, "transfer"), name: fmt.Sprintf("edge %d", to.Edge+1)}
			for _, name := range slices.Compact([]string{transferName(of), transferName(gate.Numbered(to.Member))}) {
				if other := known[name]; other != "" {
					at.report(fmt.Sprintf("agent %q would have two tools %q: that which transfers to %q, and %s", m.Name, name, of, other), renameHint(other, of), task.ErrDuplicate)
					break
				}
				known[name] = fmt.Sprintf("that which transfers to %q", of)
			}
		}
	}
}

// renameHint says what to rename.
func renameHint(other, agent string) string {
	if strings.HasPrefix(other, "the tool") {
		return fmt.Sprintf("rename the tool, or agent %q", agent)
	}
	return "rename one of the two agents, so that their names differ in letters, digits, '-' or '_'"
}

// A Holder is an agent that the conversation of a task can be transferred to.
type Holder struct {
	Member int
	Edge   int // of the first transfer that can lead to it
	again  bool
}

// Holders returns the agents to which the conversation of task i can be transferred, also by one that it
// was transferred to, in the order of the number of transfers. Its assignee is among them if it can get
// the conversation back.
func Holders(p *Plan, i int) (list []Holder) {
	var next []Neighbor
	for _, t := range RuntimeTools(p, i) {
		if t.To != nil {
			next = append(next, *t.To)
		}
	}
	if len(next) == 0 {
		return nil
	}
	network := &p.Roster().Network
	known := map[int]bool{}
	for range MaxTransfers {
		var after []Neighbor
		for _, to := range next {
			if !known[to.Member] {
				known[to.Member] = true
				list = append(list, Holder{Member: to.Member, Edge: to.Edge})
				after = append(after, network.transfers(to.Member)...)
			}
		}
		next = after
	}
	for k := range list {
		list[k].again = network.carries(list[k].Member, list[k].Member) != nil
	}
	return list
}

// carries returns the highest label of what a member can transfer to another one, by way of others too;
// nil if it can transfer nothing to it.
func (n *Network) carries(from, to int) *label.Classification {
	for level := label.Secret; level >= label.Public; level-- {
		met := map[int]bool{}
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			for _, next := range n.transfers(queue[0]) {
				if next.Max < level || met[next.Member] {
					continue
				}
				if next.Member == to {
					return &level
				}
				met[next.Member] = true
				queue = append(queue, next.Member)
			}
		}
	}
	return nil
}

// transferredLabel returns the most sensitive level of what the tools of the holders of task i return.
func transferredLabel(p *Plan, i int) label.Classification { return LevelOf(holderTools(p, i)) }

// holderTools returns the tools of the agents to which the conversation of task i can be transferred.
func holderTools(p *Plan, i int) (tools []*tool.Tool) {
	for _, h := range Holders(p, i) {
		m := &p.Roster().Config.Agents[h.Member]
		tools = append(tools, m.reachable(m.Tools)...)
	}
	return tools
}

// checkTransfers reports edges to agents that can never finish a task.
func (c *labelCheck) checkTransfers() {
	p := c.plan
	for i := range p.Graph.Len() {
		for _, h := range Holders(p, i) {
			if why, hint := cannotHold(p, i, h.Member); why != "" {
				c.advise(c.about(fmt.Sprintf("edge %d", h.Edge+1), "edges", h.Edge), fmt.Sprintf("task %q cannot be transferred along it: %s", p.Graph.Task(i).Title, why), hint)
			}
		}
	}
}

// addHolders adds what the calls of the holders of task i can take. One that can get the conversation
// back counts as often as there can be transfers.
func addHolders(by []agentUsage, p *Plan, i int) {
	attempts := min(p.Graph.Task(i).MaxRetries, mostInt-1) + 1
	for _, h := range Holders(p, i) {
		held := attempts
		if h.again {
			held = times(attempts, MaxTransfers)
		}
		by[h.Member].addGoals(p.Roster(), h.Member, held, MaxTurns)
	}
}

// MayHold reports whether an agent performs task i, or its conversation can be transferred to it.
func MayHold(p *Plan, i int, agent string) bool {
	return p.Graph.Task(i).Assignee == agent || slices.ContainsFunc(Holders(p, i), func(h Holder) bool { return p.Roster().Config.Agents[h.Member].Name == agent })
}

// transferPairs adds the pairs between which something may be delivered because the conversation of task i
// is transferred: its holders read what its agent may read, and what each earlier holder and its tools
// made, and whoever may read the result reads what they made.
func transferPairs(p *Plan, i int, used map[[2]string]bool) {
	holders := Holders(p, i)
	if len(holders) == 0 {
		return
	}
	first := p.Graph.Task(i).Assignee
	var makes, reads []string // for its agent, and of it
	for pair := range used {
		if pair[1] == first {
			makes = append(makes, pair[0])
		}
		if pair[0] == first {
			reads = append(reads, pair[1])
		}
	}
	for _, d := range p.Graph.Downstream(i) {
		reads = append(reads, p.Graph.Task(int(d)).Assignee)
	}
	earlier := []string{first}
	for _, h := range holders {
		m := &p.Roster().Config.Agents[h.Member]
		earlier = append(earlier, m.Name)
		for _, f := range m.reachable(m.Tools) {
			reader := gate.ToolReader(f.Name)
			if earlier = append(earlier, reader); f.Approve != "" {
				earlier = append(earlier, f.Approve)
			}
			used[[2]string{m.Name, reader}], used[[2]string{reader, m.Name}], used[[2]string{reader, handoff.User}] = true, true, true
		}
	}
	for _, f := range p.Tools(i) {
		if earlier = append(earlier, gate.ToolReader(f.Name)); f.Approve != "" {
			earlier = append(earlier, f.Approve)
		}
	}
	for _, h := range holders {
		name := p.Roster().Config.Agents[h.Member].Name
		for _, from := range append(slices.Clip(makes), earlier...) {
			used[[2]string{from, name}] = true
		}
		for _, to := range reads {
			used[[2]string{name, to}] = true
		}
	}
}
