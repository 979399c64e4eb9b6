package team

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// checkFlow propagates labels through the graph in dependency order and asks
// the handshake and the gate about each task what they will be asked at
// dispatch, with the highest labels that can come.
func (c *checker) checkFlow() {
	g, p := c.plan.graph, c.plan
	n := g.Len()
	p.members = make([]int32, n)
	p.schemas = make([]*agent.Schema, n)
	p.labels = make([]label.Classification, n)
	p.least = make([]label.Classification, n)
	p.inputs = c.inputs
	c.raised = make([]int32, n)
	for i := range n {
		t := g.Task(i)
		m, _ := c.team.member(t.Assignee)
		p.members[i], p.schemas[i] = int32(m), c.schema(t, m)
	}
	if p.remembers() {
		c.memory = slices.Repeat([]label.Classification{label.Public}, n)
		for c.propagate(false); c.remember(); { // what a task finds in memory raises what others find there
			c.propagate(false)
		}
	}
	c.propagate(true)
	p.memory = c.memory
	c.checkReaders()
}

// propagate computes the labels of all tasks. With judge it also reports what
// is certain to be refused.
func (c *checker) propagate(judge bool) {
	g, p := c.plan.graph, c.plan
	var parts []handoff.Part
	for _, at := range g.Order() {
		i := int(at)
		tk, caps := g.Task(i), &c.team.caps[p.members[i]]
		clearance := caps.Clearance()
		parts = parts[:0]
		p.least[i] = tk.Classification
		for _, u := range tk.Uses {
			parts = append(parts, handoff.Part{Classification: c.input(u).Classification})
			p.least[i] = p.least[i].Join(c.input(u).Classification)
		}
		up := g.Upstream(i)
		for j, d := range tk.DependsOn {
			parts = append(parts, p.part(int(up[j]), d.Optional, clearance))
			if !d.Optional {
				p.least[i] = p.least[i].Join(p.least[up[j]])
			}
		}
		parts = c.around(i, parts)
		level := handoff.Label(tk.Classification, clearance, parts)
		p.labels[i] = level
		c.raised[i] = raiser(level, tk.Classification, parts)
		if judge {
			c.judge(i, parts)
		}
	}
}

// around adds what may reach a task beside what it names: messages to its
// agent, and the shared memory. Neither must.
func (c *checker) around(i int, parts []handoff.Part) []handoff.Part {
	t := c.plan.graph.Task(i)
	for k := range c.options.Messages {
		if m := &c.options.Messages[k]; m.reads(t.Assignee) {
			parts = append(parts, handoff.Part{Classification: m.Classification, Optional: true})
		}
	}
	if t.MemoryScope == task.ScopeAll {
		most := min(c.memory[i], c.team.caps[c.plan.members[i]].Clearance()) // what is above it stays behind, and what is not may come
		parts = append(parts, handoff.Part{Classification: most, Optional: true})
	}
	return parts
}

// judge reports what is certain to be refused of a task.
func (c *checker) judge(i int, parts []handoff.Part) {
	g, p := c.plan.graph, c.plan
	tk := g.Task(i)
	for j, d := range tk.DependsOn {
		from := int(g.Upstream(i)[j])
		if (d.As == task.Structured || d.As == task.Both) && p.schemas[from] == nil && !d.Optional {
			c.problem(i, "dependsOn", j).say(fmt.Sprintf("%q has no outputSchema, so it has no structured result to deliver", g.Task(from).Title),
				"give it an outputSchema, or leave dependencyPayload out", task.ErrInvalid)
		}
	}
	if c.secret(i, parts) {
		return
	}
	_, err := handoff.Negotiate(handoff.Request{
		Session: "plan", Caller: handoff.User, Task: tk.ID,
		Classification: p.labels[i], RequiredTags: tk.RequiredTags, Duration: tk.Timeout,
	}, &c.team.caps[p.members[i]], time.Time{})
	if err != nil {
		c.refused(i, err)
	}
}

// remember computes what each task of scope all may find in the shared memory:
// the highest label, below secret, of a task that can have completed before
// it, which is any but those that follow from it. It reports whether anything
// has risen since the last time; labels are few, so soon nothing does.
func (c *checker) remember() (risen bool) {
	g, p := c.plan.graph, c.plan
	place := make([]int, g.Len()) // in the topological order
	for at, i := range g.Order() {
		place[i] = at
	}
	for _, level := range [...]label.Classification{label.Confidential, label.Internal} {
		first, count := g.Len(), 0
		for i, l := range p.labels {
			if l == level {
				first, count = min(first, place[i]), count+1
			}
		}
		for i := range c.memory {
			if count == 0 || c.memory[i] >= level || g.Task(i).MemoryScope != task.ScopeAll {
				continue
			}
			if place[i] > first || c.besides(i, level, count) {
				c.memory[i], risen = level, true
			}
		}
	}
	return risen
}

// mostWalked bounds how many edges are walked to see which tasks follow from
// which; beyond it every task is taken to come before every other.
const mostWalked = 10_000_000

// besides reports whether one of the count tasks with this label is neither i
// nor follows from it.
func (c *checker) besides(i int, level label.Classification, count int) bool {
	g := c.plan.graph
	if c.walked > mostWalked {
		return true
	}
	if c.seen == nil {
		c.seen = make([]int, g.Len())
	}
	c.walk++
	for queue := []int32{int32(i)}; len(queue) > 0; queue = queue[1:] {
		at := int(queue[0])
		if c.seen[at] == c.walk {
			continue
		}
		if c.seen[at] = c.walk; c.plan.labels[at] == level {
			count--
		}
		next := g.Downstream(at)
		if c.walked += 1 + len(next); c.walked > mostWalked {
			return true
		}
		queue = append(queue, next...)
	}
	return count > 0
}

// checkReaders reports the messages whose reader is not cleared for them.
func (c *checker) checkReaders() {
	for k := range c.options.Messages {
		m := &c.options.Messages[k]
		for i := range c.team.caps {
			caps := &c.team.caps[i]
			if !m.reads(caps.Agent) {
				continue
			}
			contract := handoff.Contract{Callee: caps.Agent, MaxInput: caps.Clearance()}
			if rule, _, detail := contract.Admits(m.Classification); rule != "" {
				c.add(task.Problem{
					Pointer: task.Pointer("messages", k, "classification"), Subject: fmt.Sprintf("message %d", k+1), Message: detail,
					Hint: fmt.Sprintf("set accepts: %v on agent %q, lower the message's label, or write to another agent", m.Classification, caps.Agent),
					Err:  &handoff.Refusal{Rule: rule, Reason: detail},
				})
				break
			}
		}
	}
}

// part returns what the result of a task can at most add to the label of a
// reader. One that the reader need not have may come out lower than planned,
// if something that it need not have is missing: then it is delivered after
// all, at any level up to the clearance.
func (p *Plan) part(i int, optional bool, clearance label.Classification) handoff.Part {
	most := min(clearance, label.Confidential) // secret is not delivered
	if !optional || p.labels[i] <= most || p.least[i] > most {
		return handoff.Part{Classification: p.labels[i], Optional: optional}
	}
	return handoff.Part{Classification: most, Optional: optional}
}

// secret reports the required context that is secret, which no clearance and
// no rule lets through yet.
func (c *checker) secret(i int, parts []handoff.Part) (found bool) {
	k := handoff.Contract{Callee: c.plan.graph.Task(i).Assignee, MaxInput: label.Secret}
	for j, part := range parts {
		if rule, _, detail := k.Admits(part.Classification); rule != "" && !part.Optional {
			c.part(i, j).say(detail, "write confidential where it is classified secret, or take it away", &handoff.Refusal{Rule: rule, Reason: detail})
			found = true
		}
	}
	return found
}

// refused words a handshake's refusal and points at what it is about.
func (c *checker) refused(i int, err error) {
	r, ok := errors.AsType[*handoff.Refusal](err)
	if !ok {
		c.problem(i).say(err.Error(), "", err)
		return
	}
	switch r.Rule {
	case handoff.RuleTags:
		c.problem(i, "requiredTags").say(r.Reason, r.Hint, r)
	case handoff.RuleSession:
		c.problem(i, "timeoutMs").say(r.Reason, r.Hint, r)
	default:
		c.part(i, int(c.raised[i])).say(r.Reason+" ("+c.path(i)+")", r.Hint, r)
	}
}

// own stands for a task's own classification among what gives it its label.
const own int32 = -1

// raiser returns the part that makes a task's label as high as it is.
func raiser(level, classification label.Classification, parts []handoff.Part) int32 {
	if classification != level {
		for j, part := range parts {
			if part.Classification == level {
				return int32(j)
			}
		}
	}
	return own
}

// part is the place of a task's input or dependency, counted as checkFlow
// lists them; own is the place of its classification.
func (c *checker) part(i, j int) place {
	t := c.plan.graph.Task(i)
	uses := len(t.Uses)
	switch {
	case j == int(own):
		return c.problem(i, "classification")
	case j < uses:
		return c.problem(i, "uses", j)
	case j < uses+len(t.DependsOn):
		return c.problem(i, "dependsOn", j-uses)
	case c.message(i, j) != nil:
		return c.problem(i, "assignee")
	}
	return c.problem(i, "memoryScope")
}

// message returns the message that is part j of a task, or nil: messages stand
// behind the dependencies.
func (c *checker) message(i, j int) *Message {
	t := c.plan.graph.Task(i)
	j -= len(t.Uses) + len(t.DependsOn)
	for k := range c.options.Messages {
		if m := &c.options.Messages[k]; m.reads(t.Assignee) {
			if j == 0 {
				return m
			}
			j--
		}
	}
	return nil
}

// longestPath is how many tasks of a path a message names.
const longestPath = 8

// path says what made a task's label as high as it is, back to where it began.
func (c *checker) path(i int) string {
	var b strings.Builder
	for n := 0; ; n++ {
		t, j := c.plan.graph.Task(i), int(c.raised[i])
		level := c.plan.labels[i]
		switch {
		case j == int(own):
			fmt.Fprintf(&b, "%v by its own classification", level)
			return b.String()
		case j < len(t.Uses):
			fmt.Fprintf(&b, "%v by input %q", level, t.Uses[j].Name)
			return b.String()
		case j >= len(t.Uses)+len(t.DependsOn):
			if m := c.message(i, j); m != nil {
				fmt.Fprintf(&b, "%v by a message from %q", level, m.From)
			} else {
				fmt.Fprintf(&b, "%v by what others may have written to the shared memory", level)
			}
			return b.String()
		case n == longestPath:
			b.WriteString("and others before it")
			return b.String()
		}
		i = int(c.plan.graph.Upstream(i)[j-len(t.Uses)])
		fmt.Fprintf(&b, "through %q, ", c.plan.graph.Task(i).Title)
	}
}
