package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/tool"
)

// A holding is an agent that can take over the conversation of a task, with the transfers that lead to it.
type holding struct {
	task   int
	member int
	way    []Neighbor
	least  label.Classification // of its context
}

// holdings returns the holders of task i that can take it over from its agent or from each other, each with
// the fewest transfers.
func holdings(p *Plan, i int) (list []holding) {
	known := map[int]bool{}
	var ways [][]Neighbor
	for _, t := range RuntimeTools(p, i) {
		if t.To != nil {
			ways = append(ways, []Neighbor{*t.To})
		}
	}
	for ; len(ways) > 0; ways = ways[1:] {
		way := ways[0]
		member := way[len(way)-1].Member
		if why, _ := cannotHold(p, i, member); known[member] || len(way) > MaxTransfers || why != "" {
			continue
		}
		known[member] = true
		list = append(list, holding{i, member, way, leastHeld(p, i)})
		for _, to := range p.Roster().Network.transfers(member) {
			ways = append(ways, append(slices.Clip(way), to))
		}
	}
	return list
}

// names returns the holders on the way to a holder, itself among them, behind the agent of the task.
func (h *holding) names(p *Plan) []string {
	names := []string{p.Graph.Task(h.task).Assignee}
	for _, to := range h.way {
		names = append(names, p.Roster().Config.Agents[to.Member].Name)
	}
	return names
}

// A refusedTool is a tool of a holder whose calls the gate refuses.
type refusedTool struct {
	holding
	tool   int    // of the agent
	verb   string // are, can be, or can only be
	detail string
	hint   string
	err    error
	others int // tasks with the same problem
}

// A holderCheck finds the tools that agents have and cannot call where a conversation was transferred to
// them. It only warns: the conversation need not be transferred, and the agent may have other tasks for the
// tool.
type holderCheck struct {
	*checker
	refused []*refusedTool
}

// checkHolderTools does for later holders what checkToolLabels does for the agents of tasks. A problem is
// reported once for each tool, and not if the agent has it in a task of its own.
func checkHolderTools(c *checker, unshown map[[2]string]bool) {
	h := holderCheck{checker: c}
	for i := range c.plan.Graph.Len() {
		for _, one := range holdings(c.plan, i) {
			for k := range c.team.Config.Agents[one.member].Tools {
				h.checkLabel(&one, k)
				h.checkApprover(&one, k, unshown)
				h.checkUntrusted(&one, k)
			}
		}
	}
	for _, r := range h.refused {
		p, m := c.plan, &c.team.Config.Agents[r.member]
		in := fmt.Sprintf("task %q", p.Graph.Task(r.task).Title)
		if r.others > 0 {
			in += fmt.Sprintf(" and %d more", r.others)
		}
		way := r.names(p)
		chain := way[0]
		for _, name := range way[1:] {
			chain = naming.Chain(chain, name)
		}
		c.advise(c.about(fmt.Sprintf("agent %q", m.Name), "agents", r.member, "tools", r.tool),
			fmt.Sprintf("calls of tool %q %s refused in %s, which can be transferred to it (%s): %s", m.Tools[r.tool].Name, r.verb, in, chain, r.detail), r.hint)
		c.advice[len(c.advice)-1].Err = r.err
	}
}

// add notes a problem of a tool, unless it is known from another task.
func (c *holderCheck) add(r refusedTool) {
	same := slices.IndexFunc(c.refused, func(o *refusedTool) bool {
		return o.member == r.member && o.tool == r.tool && o.verb == r.verb && o.detail == r.detail
	})
	if same >= 0 {
		c.refused[same].others++
		return
	}
	c.refused = append(c.refused, &r)
}

// member returns the agent of a holding, and one of its tools.
func (c *holderCheck) member(h *holding, k int) (*Member, *tool.Tool) {
	m := &c.team.Config.Agents[h.member]
	return m, m.Tools[k]
}

// checkLabel finds a tool that accepts less than the context of the holder always is. No declassifier lowers
// what a later holder passes to a tool.
func (c *holderCheck) checkLabel(h *holding, k int) {
	m, f := c.member(h, k)
	reader := gate.ToolReader(f.Name)
	x := c.team.Terms(m.Name, reader).Admit(h.least, f.Accepts, reader)
	r := refusedTool{holding: *h, tool: k, verb: "are", hint: fmt.Sprintf("raise Accepts of the tool to %v, or remove it from the tools of %q", h.least, m.Name)}
	switch {
	case x.Rule == gate.RuleSecret:
		r.detail = fmt.Sprintf("its context is secret, and no rule lets agent %q pass that to tool %q", m.Name, f.Name)
		r.hint = fmt.Sprintf("write a rule from %q to %q with mode: full, or remove the tool from the tools of %q", m.Name, reader, m.Name)
	case x.Withheld() && x.Rule != gate.RuleClearance:
		r.detail, r.hint = x.Detail, fmt.Sprintf("change the rule, or remove the tool from the tools of %q", m.Name)
	case x.Lowers != nil:
		r.detail = fmt.Sprintf("its context is at least %v, the tool accepts at most %v, and only the arguments of a task's own agent are lowered", h.least, f.Accepts)
		r.hint = fmt.Sprintf("raise Accepts of the tool to %v, or give %q a task of its own for these calls", h.least, m.Name)
	case x.Withheld() || x.After > f.Accepts:
		r.detail = fmt.Sprintf("its context is at least %v, and the tool accepts at most %v", h.least, f.Accepts)
	default:
		return
	}
	r.err = &gate.Refusal{Rule: cmp.Or(x.Rule, gate.RuleClearance), Reason: r.detail}
	c.add(r)
}

// checkApprover finds a tool whose calls the person who has to approve them cannot see. unshown has the
// tools, by agent and name, for which that is reported already.
func (c *holderCheck) checkApprover(h *holding, k int, unshown map[[2]string]bool) {
	m, f := c.member(h, k)
	if f.Approve == "" || unshown[[2]string{m.Name, f.Name}] {
		return
	}
	r := refusedTool{holding: *h, tool: k, verb: "are"}
	detail, hint, rule := unseen(c.team, m.Name, f.Approve, h.least, "its context", "them", true)
	if detail != "" {
		r.detail, r.hint, r.err = detail, hint, &gate.Refusal{Rule: rule, Reason: detail}
		c.add(r)
		return
	}
	if why, hint := unshownBy(c.checker, m.Name, gate.Source{Kind: handoff.Arguments}, h.least); why != "" {
		r.verb, r.hint = "can only be", hint
		r.detail = fmt.Sprintf("the question to %q shows what the user of the run may see, and %s", f.Approve, why)
		c.add(r)
	}
}

// checkUntrusted finds a tool with an external effect whose agent may not call it from untrusted context, and
// has such context for certain or as soon as an earlier holder says something.
func (c *holderCheck) checkUntrusted(h *holding, k int) {
	m, f := c.member(h, k)
	if f.Effect == tool.None || f.Effect == tool.Workspace || slices.Contains(m.AllowUntrusted, f.Name) {
		return
	}
	verb := "are"
	what, from := untrustedOf(c.checker, h.task, m.Name, m.Tools)
	if what == "" {
		verb = "can be"
		what, from = c.untrustedPiece(h, m)
	}
	if what == "" {
		return
	}
	detail := fmt.Sprintf("the tool has external effects, and %s is untrusted", what)
	c.add(refusedTool{
		holding: *h, tool: k, verb: verb, detail: detail,
		hint: untrustedHint(f, m.Name, from),
		err:  &UntrustedCallError{Tool: f.Name, Agent: h.member, refusal: &gate.Refusal{Rule: gate.RuleTools, Reason: detail}},
	})
}

// untrustedPiece returns what earlier holders may add to the context of a holder that nobody endorses, and
// who delivers it. An agent that gets its own task back is not warned.
func (c *holderCheck) untrustedPiece(h *holding, m *Member) (what, from string) {
	p := c.plan
	if int(p.Members[h.task]) == h.member {
		return "", ""
	}
	tools := p.Tools(h.task)
	for k, name := range h.names(p)[:len(h.way)] {
		most := label.Secret // that the edges from there carry
		for _, to := range h.way[k:] {
			most = min(most, to.Max)
		}
		if k > 0 {
			tools = c.team.Config.Agents[h.way[k-1].Member].Tools
		}
		if c.isUntrusted(name, h, m, most) {
			return fmt.Sprintf("what %q says before", name), name
		}
		for _, f := range tools {
			if reader := gate.ToolReader(f.Name); c.isUntrusted(reader, h, m, most) {
				return fmt.Sprintf("what tool %q returns to %q before", f.Name, name), reader
			}
		}
	}
	return "", ""
}

// isUntrusted reports whether a piece of a producer is delivered to a holder, up to a label that edges carry,
// without an endorsement.
func (c *holderCheck) isUntrusted(from string, h *holding, m *Member, most label.Classification) bool {
	terms := c.team.Terms(from, m.Name)
	if terms.Mode() == handoff.Minimal || terms.Endorses() {
		return false
	}
	x := gate.Limited(terms, most, gate.Citation{Rule: gate.RuleEdge}, from, m.Name).Admit(h.least, c.team.Capabilities[h.member].Clearance(), m.Name)
	return !x.Withheld()
}

// leastHeld returns the lowest label that the context of a holder of task i can have.
func leastHeld(p *Plan, i int) label.Classification { return p.least[i].Join(p.ToolLabel(i)) }

// cannotHold says why a member can never take task i over, and what to do; empty if it can.
func cannotHold(p *Plan, i, member int) (why, hint string) {
	caps, t := &p.Roster().Capabilities[member], p.Graph.Task(i)
	least := leastHeld(p, i)
	switch {
	case caps.Clearance() < least:
		return fmt.Sprintf("the task is at least %v, and %q may see %v", least, caps.Agent, caps.Clearance()),
			fmt.Sprintf("raise accepts of agent %q to %v, or remove transfer from the edge", caps.Agent, least)
	case caps.Produces < least:
		return fmt.Sprintf("the task is at least %v, and %q produces at most %v", least, caps.Agent, caps.Produces),
			fmt.Sprintf("set produces: %v on agent %q, or remove transfer from the edge", least, caps.Agent)
	}
	_, err := gate.Negotiate(gate.Request{Session: "plan", Caller: handoff.User, Task: t.ID, Classification: least, RequiredTags: t.RequiredTags, Duration: t.Timeout}, caps)
	if r, refused := errors.AsType[*gate.Refusal](err); refused {
		return r.Reason, r.Hint
	}
	return withheldFrom(p, i, caps)
}

// withheldFrom says what a member that takes task i over requires and never gets; empty if there is nothing.
func withheldFrom(p *Plan, i int, caps *gate.Capabilities) (why, hint string) {
	t := p.Graph.Task(i)
	never := func(what, from string, least label.Classification) {
		terms := p.Roster().Terms(from, caps.Agent)
		x := terms.Admit(least, caps.Clearance(), caps.Agent)
		if why == "" && terms.Mode() != handoff.Minimal && x.Withheld() {
			why = fmt.Sprintf("it requires %s, which is withheld from %q: %s", what, caps.Agent, x.Detail)
			hint = "change the rule or the label, or remove transfer from the edge"
		}
	}
	for _, u := range t.Uses {
		never(fmt.Sprintf("input %q", u.Name), handoff.User, p.Input(u).Classification)
	}
	for j, up := range p.Graph.Upstream(i) {
		if d := &t.DependsOn[j]; !d.Optional && len(d.OneOf) == 0 && d.Each == "" && !isRead(t, j) && !isReread(t, j) {
			from := p.Graph.Task(int(up))
			never(fmt.Sprintf("the result of task %q", from.Title), from.Assignee, p.least[up])
		}
	}
	return why, hint
}
