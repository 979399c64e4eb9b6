package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// What a declassifier delivers below its label must not carry much: the schema of the
// producer's results has to bound it.

// checkLowered holds the declassifiers on the way to a task to the schemas of
// what they lower.
func (c *checker) checkLowered(i int, parts []delivery) {
	t := c.plan.Graph.Task(i)
	for j := range parts {
		lower, part := parts[j].crossing.Lowers, parts[j].part
		if lower != nil && lower.Approve != "" {
			c.checkLoweringApproval(lower, i, &parts[j])
		}
		switch {
		case lower == nil:
		case part.kind == handoff.Input:
			c.checkBounded(lower, nil, fmt.Sprintf("input %q", t.Uses[part.n].Name), inOutputSchema)
		case part.kind == handoff.Dependency, part.kind == handoff.Condition:
			up := int(c.plan.Graph.Upstream(i)[part.n])
			c.checkBounded(lower, c.plan.Schemas[up], fmt.Sprintf("the result of %q", c.plan.Graph.Task(up).Title), inOutputSchema)
		case part.kind == handoff.Files:
			what := fmt.Sprintf("input %q", c.plan.Folders.layers[i][part.n].Source(c.plan).Name)
			if up := c.plan.Folders.layers[i][part.n].Task; up >= 0 {
				what = fmt.Sprintf("the output files of %q", c.plan.Graph.Task(up).Title)
			}
			c.checkBounded(lower, nil, what, inOutputSchema)
		}
	}
}

// checkLoweringApproval reports a declassifier that needs an approval which nobody can give for a
// delivery to task i.
func (c *checker) checkLoweringApproval(d *handoff.Declassifier, i int, a *delivery) {
	at := naming.Pointer("policy", "declassify", c.declassifierIndex(d), "approve")
	report := func(detail, hint string, err error) {
		if !slices.ContainsFunc(c.found, func(p task.Problem) bool { return p.Pointer == at && p.Message == detail }) {
			c.add(task.Problem{Pointer: at, Subject: fmt.Sprintf("%q", d.Name), Message: detail, Hint: hint, Err: err})
		}
	}
	t, terms := c.plan.Graph.Task(i), c.team.Terms(a.from, c.plan.Graph.Task(i).Assignee)
	switch {
	case a.part.kind == handoff.Condition, a.part.kind == handoff.Input && listOf(t, &t.Uses[a.part.n]) != nil:
		report(fmt.Sprintf("the condition or the list of task %q reads what it lowers, and no person is asked before that", WrittenTitle(t)), "remove approve, or raise the clearance", task.ErrInvalid)
	case a.part.kind != handoff.Dependency && a.part.kind != handoff.Input:
		report(fmt.Sprintf("only results and inputs can be approved, and task %q gets %v", t.Title, a.part.kind), "remove approve", task.ErrInvalid)
	case terms.ByReader():
		report(fmt.Sprintf("what %q gets is summarized by a model, and no person can approve that beforehand", t.Assignee), "remove approve, or summarize by: excerpt", task.ErrInvalid)
	default:
		caps := &c.team.Capabilities[c.plan.Members[i]]
		lowest := label.Public
		for lowest < a.most && terms.Admit(lowest, caps.Clearance(), caps.Agent).Lowers == nil {
			lowest++
		}
		if detail, hint, rule := unseen(c.team, a.from, d.Approve, lowest, fmt.Sprintf("what %q makes", a.from), "what it lowers", true); detail != "" {
			report(detail, hint, &gate.Refusal{Rule: rule, Reason: detail})
			return
		}
		about := subject{&c.found, at, fmt.Sprintf("%q", d.Name)}
		adviseUnshown(c, about, d.Approve, "what it lowers", a.from, gate.Source{Kind: a.part.kind}, lowest)
	}
}

// checkLoweredOutside does the same for what the user and the coordinator read.
func (c *checker) checkLoweredOutside() {
	if c.team.Rules == nil {
		return
	}
	readers := []gate.Capabilities{{Agent: handoff.User, Accepts: *c.options.UserAccepts}}
	if c.options.Answer != nil && c.team.Config.Coordinator != nil {
		readers = append(readers, c.team.Coordinator(&c.options))
	}
	for i := range c.plan.Graph.Len() {
		t := c.plan.Graph.Task(i)
		for k := range readers {
			x := c.team.Terms(t.Assignee, readers[k].Agent).Admit(c.plan.Labels[i], readers[k].Clearance(), readers[k].Agent)
			if x.Lowers != nil {
				c.checkBounded(x.Lowers, c.plan.Schemas[i], fmt.Sprintf("the result of %q", t.Title), inOutputSchema)
			}
		}
	}
}

// checkBoundedArguments holds a declassifier of what an agent passes to a tool to the parameters of
// the tool. As long as the server of a tool is not connected, its parameters are not known;
// a call whose arguments they do not bound is refused.
func (c *checker) checkBoundedArguments(d *handoff.Declassifier, f *tool.Tool) {
	if isDeclared(f) && !d.UnsafeText {
		c.advise(c.about(fmt.Sprintf("%q", d.Name), "policy", "declassify", c.declassifierIndex(d), "paths"), fmt.Sprintf("the parameters of tool %q are not known yet: what they do not bound will not be lowered", f.Name), "")
		return
	}
	c.checkBounded(d, c.team.Parameters[f.Name], fmt.Sprintf("an argument of tool %q", f.Name), fmt.Sprintf("the parameters of tool %q", f.Name))
}

// isDeclared reports whether a tool is that of a server that is not connected, of which only
// the name is known.
func isDeclared(f *tool.Tool) bool {
	return f.Foreign && f.Description == "" && string(f.Parameters) == `{"type":"object"}`
}

// inOutputSchema says where results are bounded.
const inOutputSchema = "the outputSchema"

// declassifierIndex returns the index of a declassifier in the policy.
func (c *checker) declassifierIndex(d *handoff.Declassifier) int {
	return slices.IndexFunc(c.team.Config.Policy.Declassify, func(o handoff.Declassifier) bool { return o.Name == d.Name })
}

// checkBounded reports the paths of a declassifier that a schema does not bound, and warns where
// that is allowed. in says where to bound them.
func (c *checker) checkBounded(d *handoff.Declassifier, schema *schema.Schema, what, in string) {
	for k, path := range d.Paths {
		pointer := naming.Pointer("policy", "declassify", c.declassifierIndex(d), "paths", k)
		err := schema.Bounded(path)
		if err == nil || c.impossible[pointer] {
			continue
		}
		p := task.Problem{
			Pointer: pointer, Subject: fmt.Sprintf("%q", d.Name),
			Message: fmt.Sprintf("%s: %v", what, err), Hint: "bound it in " + in + ", or set unsafeText: true if it may carry whatever its producer has read", Err: err,
		}
		if near := nearestPath([]governed{{schema: schema}}, path, grants); near.meant != "" {
			p.Hint = near.question() + " else " + p.Hint
		}
		if d.UnsafeText {
			p.Message, p.Hint = fmt.Sprintf("%s is delivered as %v by unsafeText: it can carry whatever its producer has read", what, d.LowerTo), ""
			c.advice = append(c.advice, p)
			continue
		}
		c.add(p)
	}
}
