package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// checkPayloads reports dependencies that are delivered in a form that their results do
// not have.
func (c *checker) checkPayloads(i int) {
	g, p := c.plan.Graph, c.plan
	for j, d := range g.Task(i).DependsOn {
		from := int(g.Upstream(i)[j])
		if isRead(p.Graph.Task(i), j) {
			continue // its check says more
		}
		if (d.As == task.Structured || d.As == task.Both) && p.Schemas[from] == nil && !d.Optional {
			dependency(c, i, j).report(fmt.Sprintf("%q has no outputSchema, so it has no structured result to deliver", g.Task(from).Title),
				"give it an outputSchema, or leave dependencyPayload out", task.ErrInvalid)
		}
	}
}

// checkRefusals reports what the gate is certain to refuse of a task.
func (c *labelCheck) checkRefusals(i int, parts []delivery) {
	p := c.plan
	if c.reportRuledOut(i, parts) {
		return
	}
	tk := p.Graph.Task(i)
	_, err := gate.Negotiate(gate.Request{
		Session: "plan", Caller: handoff.User, Task: tk.ID,
		Classification: p.Labels[i], RequiredTags: tk.RequiredTags, Tools: ToolNames(p.Tools(i)), Duration: tk.Timeout, Declassified: p.Declassified(i),
	}, &c.team.Capabilities[p.Members[i]])
	if err != nil {
		c.reportRefusal(i, err)
		return
	}
	if k, why, hint := untaggable(tk.RequiredTags, p.Schemas[i], &c.team.Config.Agents[p.Members[i]]); why != "" {
		c.task(i).at("requiredTags", k).report(why, hint, &gate.Refusal{Rule: gate.RuleTags, Reason: why})
	}
}

// untaggable returns the first of the tags that no answer to a task with this schema carries, why, and what to
// write; an empty reason if there is none. Only a program can tag an answer in another way than by a member of it:
// an agent written in Go, or what it has ask a person.
func untaggable(tags []string, s *schema.Schema, m *Member) (k int, why, hint string) {
	if _, _, callsModel := m.callLimits(); !callsModel && m.Process() == nil {
		return 0, "", ""
	}
	for k, tag := range tags {
		switch {
		case s == nil:
			return k, fmt.Sprintf("no answer carries the tag %q: the task has no outputSchema, and an answer in text has no tags", tag),
				fmt.Sprintf("write an outputSchema with the property %q, or remove the tag from requiredTags", tag)
		case s.Has([]string{tag}) == schema.No:
			return k, fmt.Sprintf("no answer carries the tag %q: the outputSchema allows no member of that name", tag),
				fmt.Sprintf("add the property %q to the outputSchema, or remove the tag from requiredTags", tag)
		}
	}
	return 0, "", ""
}

// checkReaders reports the messages whose reader is not cleared for them.
func (c *checker) checkReaders() {
	for k := range c.options.Messages {
		m := &c.options.Messages[k]
		for i := range c.team.Capabilities {
			caps := &c.team.Capabilities[i]
			if !reads(c.team, m, caps.Agent) {
				continue
			}
			if x := c.team.MessageCrossing(m.From, m.Classification, caps); x.Withheld() {
				hint := fmt.Sprintf("set accepts: %v on agent %q, lower the message's label, or write to another agent", m.Classification, caps.Agent)
				if x.Rule == gate.RuleSecret {
					hint = "write a rule for the pair that states a mode, or lower the message's label"
				}
				c.about(fmt.Sprintf("message %d", k+1), "messages", k, "classification").report(x.Detail, hint, &gate.Refusal{Rule: x.Rule, Reason: x.Detail})
				break
			}
		}
	}
}

// reportRuledOut reports the required context that a rule withholds at any clearance:
// secrets without a rule for the pair, and context above a label limit.
func (c *labelCheck) reportRuledOut(i int, parts []delivery) (found bool) {
	for j := range parts {
		x := &parts[j].crossing
		if parts[j].Optional || !x.Withheld() || x.Reason == gate.ReasonClearance {
			continue
		}
		detail, hint := x.Detail, "classify it confidential instead of secret, or add a rule for the pair that sets a mode"
		if x.Rule != gate.RuleSecret {
			detail, hint = fmt.Sprintf("%s: %s", x.Rule, x.Detail), "raise maxClassification, declassify what is needed, or remove it"
			if x.Detail == gate.NotTranslated {
				hint = "write by: excerpt, or optional: true on the dependency"
			}
			if x.Line != "" {
				detail = fmt.Sprintf("%s (%s): %s", x.Rule, x.Line, x.Detail)
			}
		}
		c.part(i, parts[j].part).report(detail, hint, &gate.Refusal{Rule: x.Rule, Reason: x.Detail})
		found = true
	}
	return found
}

// Declassified reports whether the policy lowers everything that leaves a task to
// what its agent produces, or below: on each edge to another task, for every reader
// of the result in the shared memory, and for the coordinator. The caller, who sees
// all results, counts where there is no other reader.
func (p *Plan) Declassified(i int) bool {
	if ReadBy(p, i).Rules == nil {
		return false
	}
	t, o := p.Graph.Task(i), p.Options()
	caps := p.Roster().Capabilities
	produces := caps[p.Members[i]].Produces
	if produces >= p.Labels[i] {
		return false // there is nothing to lower
	}
	lowers := func(c *gate.Capabilities) bool {
		x := ReadBy(p, i).Terms(t.Assignee, c.Agent).Admit(p.Labels[i], c.Clearance(), c.Agent)
		return x.Withheld() || x.Lowers != nil && x.After <= produces
	}
	ways := 0
	if o.Answer != nil && p.Roster().Config.Coordinator != nil {
		ways++
		if c := p.Roster().Coordinator(o); !lowers(&c) {
			return false
		}
	}
	for _, d := range p.Graph.Downstream(i) {
		ways++
		if !lowers(&caps[p.Members[d]]) {
			return false
		}
	}
	for k := range p.Members {
		if p.Graph.Task(k).MemoryScope != task.ScopeAll || k == i {
			continue
		}
		if ways++; !lowers(&caps[p.Members[k]]) {
			return false
		}
	}
	return ways > 0 || lowers(&gate.Capabilities{Agent: handoff.User, Accepts: *o.UserAccepts})
}

// reportRefusal reports the refusal of a handshake.
func (c *labelCheck) reportRefusal(i int, err error) {
	r, ok := errors.AsType[*gate.Refusal](err)
	if !ok {
		c.task(i).report(err.Error(), "", err)
		return
	}
	switch r.Rule {
	case gate.RuleTags:
		c.task(i).at("requiredTags").report(r.Reason, r.Hint, r)
	case gate.RuleSession:
		c.task(i).at("timeoutMs").report(r.Reason, r.Hint, r)
	default:
		c.blocked = append(c.blocked, blockedTask{i, r})
	}
}

// raiser returns the part that makes a task's label as high as it is.
func raiser(level, classification label.Classification, parts []delivery) partOf {
	if classification != level {
		for j := range parts {
			if parts[j].counts() && parts[j].Classification == level {
				return parts[j].part
			}
		}
	}
	return partOf{}
}

// part returns the place of a part of task i.
func (c *labelCheck) part(i int, p partOf) subject {
	switch at := c.task(i); p.kind {
	case handoff.Input:
		return at.at("uses", p.n)
	case handoff.Files:
		return dependency(c.checker, i, c.plan.Folders.layers[i][p.n].Via[0])
	case handoff.Dependency, handoff.Condition:
		return dependency(c.checker, i, int(p.n))
	case handoff.Message:
		return at.at("assignee")
	case handoff.Conversation:
		return at.at("assignee")
	case handoff.Memory:
		return at.at("memoryScope")
	case byEdge:
		return c.about(fmt.Sprintf("edge %d", p.n+1), "edges", p.n)
	default:
		return at.at("classification")
	}
}

// longestPath is how many tasks of a path a message names.
const longestPath = 8

// path says what raised the label of a task, back to its origin.
func (c *labelCheck) path(i int) string {
	var b strings.Builder
	for n := 0; ; n++ {
		by, level := c.raised[i], c.plan.Labels[i]
		switch {
		case by.kind == handoff.Message:
			fmt.Fprintf(&b, "%v by a message from %q", level, c.options.Messages[by.n].From)
			return b.String()
		case by.kind == byEdge:
			e := &c.team.Config.Edges[by.n]
			fmt.Fprintf(&b, "%v by a handoff along the edge between %q and %q", level, e.From, e.To)
			return b.String()
		case by.kind == handoff.Conversation:
			fmt.Fprintf(&b, "%v by what %q said in turn %d", level, c.options.Conversation[by.n].From, c.options.Conversation[by.n].Turn)
			return b.String()
		case by.kind == handoff.Memory:
			fmt.Fprintf(&b, "%v by what others may have written to the shared memory", level)
			return b.String()
		case by.kind == "":
			fmt.Fprintf(&b, "%v by %s", level, raisedByTool(c.checker, i))
			return b.String()
		case n == longestPath:
			b.WriteString("and others before it")
			return b.String()
		}
		up, input := c.madeBy(i, by)
		if up < 0 {
			fmt.Fprintf(&b, "%v by input %q", level, input)
			return b.String()
		}
		how := "through"
		if by.kind == handoff.Condition {
			how = "by the condition on"
		}
		i = up
		fmt.Fprintf(&b, "%s %q, ", how, c.plan.Graph.Task(i).Title)
	}
}

// raisedByTool says which tool gave task i its label; if none did, the label is the task's own.
func raisedByTool(c *checker, i int) string {
	p := c.plan
	raises := func(f *tool.Tool) bool { return f.Level() == p.Labels[i] }
	named := func(list []*tool.Tool) string {
		if k := slices.IndexFunc(list, raises); k >= 0 {
			return list[k].Name
		}
		return ""
	}
	if p.Graph.Task(i).Classification == p.Labels[i] {
		return "its own classification"
	}
	if name := named(reachableIn(p, i)); name != "" {
		return fmt.Sprintf("what its tool %q returns", name)
	}
	for _, to := range Delegates(p, i) {
		m := &c.team.Config.Agents[to.Member]
		if name := named(ForChildren(m.Tools)); name != "" {
			return fmt.Sprintf("what tool %q returns to %q, to which it can delegate", name, m.Name)
		}
	}
	for _, h := range Holders(p, i) {
		m := &c.team.Config.Agents[h.Member]
		if name := named(m.reachable(m.Tools)); name != "" {
			return fmt.Sprintf("what tool %q returns to %q, to which it can be transferred", name, m.Name)
		}
	}
	return "its own classification"
}
