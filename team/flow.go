package team

import (
	"errors"
	"fmt"
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
	var parts []handoff.Part
	for _, at := range g.Order() {
		i := int(at)
		tk := g.Task(i)
		m, _ := c.team.member(tk.Assignee)
		p.members[i] = int32(m)
		p.schemas[i] = c.schema(tk, m)
		caps := &c.team.caps[m]
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
			if (d.As == task.Structured || d.As == task.Both) && p.schemas[up[j]] == nil && !d.Optional {
				c.problem(i, "dependsOn", j).say(fmt.Sprintf("%q has no outputSchema, so it has no structured result to deliver", g.Task(int(up[j])).Title),
					"give it an outputSchema, or leave dependencyPayload out", task.ErrInvalid)
			}
		}
		level := handoff.Label(tk.Classification, clearance, parts)
		p.labels[i] = level
		c.raised[i] = raiser(level, tk.Classification, parts)
		if c.secret(i, parts) {
			continue
		}
		_, err := handoff.Negotiate(handoff.Request{
			Session: "plan", Caller: handoff.User, Task: tk.ID,
			Classification: level, RequiredTags: tk.RequiredTags, Duration: tk.Timeout,
		}, caps, time.Time{})
		if err != nil {
			c.refused(i, err)
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
	uses := len(c.plan.graph.Task(i).Uses)
	switch {
	case j == int(own):
		return c.problem(i, "classification")
	case j < uses:
		return c.problem(i, "uses", j)
	}
	return c.problem(i, "dependsOn", j-uses)
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
		case n == longestPath:
			b.WriteString("and others before it")
			return b.String()
		}
		i = int(c.plan.graph.Upstream(i)[j-len(t.Uses)])
		fmt.Fprintf(&b, "through %q, ", c.plan.graph.Task(i).Title)
	}
}
