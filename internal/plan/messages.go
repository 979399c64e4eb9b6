package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// MessageCrossing decides on a message with this label for a reader. Its text was checked
// against no schema, so only an entry with unsafeText lowers it.
func (t *Roster) MessageCrossing(from string, level label.Classification, to *gate.Capabilities) gate.Admission {
	x := t.Terms(from, to.Agent).Admit(level, to.Clearance(), to.Agent)
	if d := x.Lowers; d != nil && !d.UnsafeText && !x.Withheld() {
		x.After, x.Lowers, x.Rule, x.Reason = level, nil, handoff.Rule(d.Name), gate.ReasonRule
		x.Detail = fmt.Sprintf("it is %v, %q may see %v, and %q lowers only the validated parts of a result", level, to.Agent, to.Clearance(), d.Name)
	}
	return x
}

// checkMessages checks the messages of the options; [checker.checkReaders] checks their
// labels.
func (c *checker) checkMessages() {
	names := c.team.Names()
	if b := c.options.Bus; b != nil && !slices.Equal(b.Agents(), names) {
		c.at("messages").report(fmt.Sprintf("the message bus is for a team with other agents (%s)", strings.Join(b.Agents(), ", ")), "create it with NewBus of this team", ErrUnknownAgent)
	}
	for i := range c.options.Messages {
		m := &c.options.Messages[i]
		about := c.about(fmt.Sprintf("message %d", i+1), "messages", i)
		if m.From != handoff.User && !slices.Contains(names, m.From) {
			about.at("from").report(fmt.Sprintf("unknown agent %q", m.From), naming.Suggest(m.From, append([]string{handoff.User}, names...)), ErrUnknownAgent)
		}
		if m.To != mailbox.Everyone && !slices.Contains(names, m.To) {
			about.at("to").report(fmt.Sprintf("unknown agent %q", m.To), naming.Suggest(m.To, names), ErrUnknownAgent)
		}
		if m.To == m.From && m.From != "" {
			about.at("to").report(fmt.Sprintf("%q sends the message to itself", m.From), "name another agent, or leave the message out", task.ErrInvalid)
		}
		switch {
		case m.Text == "":
			about.at("text").report("the message is empty", "write what it says", task.ErrInvalid)
		case len(m.Text) > mailbox.MaxContent:
			about.at("text").report(fmt.Sprintf("the message has %d bytes, at most %d are sent", len(m.Text), mailbox.MaxContent), "move long texts to inputs", task.ErrInvalid)
		case !utf8.ValidString(m.Text):
			about.at("text").report("the message is not valid UTF-8", "give a text, or clean it first", task.ErrInvalid)
		}
		checkWay(c.team, about, m)
		about.at("classification").checkLabel(m.Classification)
		about.at("ttlMs").checkSign("the TTL", int64(m.TTL))
	}
}

// checkWay reports a message of an agent for which no edge leads to its reader, or none for its label.
func checkWay(t *Roster, about subject, m *Message) {
	from, isAgent := t.Index(m.From)
	to, known := t.Index(m.To)
	switch {
	case !isAgent || m.From == m.To || !known && m.To != mailbox.Everyone: // reported, or of the user
		return
	case known:
		n, connected := t.Network.Reaches(from, to)
		if !connected {
			hint := fmt.Sprintf("add the edge {from: %s, to: %s}, or send it as user", m.From, m.To)
			about.report(fmt.Sprintf("no edge leads from %q to %q", m.From, m.To), connectable(t, from, hint), mailbox.ErrNoEdge)
			return
		}
		checkCarries(t, about, m, n)
	case len(t.Network.Neighbors(from)) == 0:
		about.report(fmt.Sprintf("no edge leads from %q to another agent", m.From), connectable(t, from, "add edges to those who are to read it, or send it as user"), mailbox.ErrNoEdge)
	default:
		for _, n := range t.Network.Neighbors(from) {
			if checkCarries(t, about, m, n) {
				return
			}
		}
	}
}

// connectable returns a hint to add an edge, unless none may lead from a person or a command.
func connectable(t *Roster, from int, hint string) string {
	if a := &t.Config.Agents[from]; a.IsPerson() || a.Process() != nil {
		return "send it as user"
	}
	return hint
}

// checkCarries reports a message above what the edge to its reader carries.
func checkCarries(t *Roster, about subject, m *Message, n Neighbor) (found bool) {
	if m.Classification <= n.Max || !m.Classification.Valid() {
		return false
	}
	to := t.Config.Agents[n.Member].Name
	about.at("classification").report(fmt.Sprintf("it is %v, and the edge from %q to %q carries at most %v", m.Classification, m.From, to, n.Max),
		fmt.Sprintf("raise maxClassification of the edge to %v, or lower the message's label", m.Classification), mailbox.ErrNoEdge)
	return true
}

// reads reports whether a message is for this reader. What an agent sends to everyone is for those to
// whom an edge leads.
func reads(t *Roster, m *Message, agent string) bool {
	if m.To != mailbox.Everyone {
		return m.To == agent
	}
	if m.From == agent || agent == handoff.Computed {
		return false
	}
	from, isAgent := t.Index(m.From)
	if !isAgent {
		return true
	}
	to, known := t.Index(agent)
	if !known {
		return false
	}
	_, connected := t.Network.Reaches(from, to)
	return connected
}
