package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// An intakePath is a path in what members say of the context that they receive. Members that have it
// from their defaults have the same one.
type intakePath struct {
	key  string // such as blockedContextFields
	path task.Path
}

// An intakeUse says what is known of an intakePath.
type intakeUse struct {
	problem  task.Problem // of the first member that can receive nothing at the path
	possible bool         // another member may receive something there
}

// checkIntakePaths reports the paths of allowedContextFields, blockedContextFields and translate of members
// at which no result that they read can have anything. What a member reads of an input is one value of many,
// and counts as anything.
func (c *pathCheck) checkIntakePaths() {
	if c.options.Replay != nil { // it may leave out what a member reads
		return
	}
	uses := map[intakePath]*intakeUse{}
	var order []intakePath
	for m := range c.team.Config.Agents {
		in := &c.team.Config.Agents[m].Intake
		if !in.narrows() {
			continue
		}
		results, others := c.readBy(m)
		if results == nil {
			continue
		}
		each := func(paths []task.Path, ask answer, tokens ...any) {
			list := results
			if tokens[0] != "allowedContextFields" { // which says nothing of what the user gave
				list = slices.Concat(results, others)
			}
			for k, p := range paths {
				at := intakePath{naming.Pointer(tokens...), p}
				if uses[at] == nil {
					uses[at], order = &intakeUse{}, append(order, at)
				}
				c.noteUse(uses[at], list, p, ask, m, append(slices.Clone(tokens), k))
			}
		}
		each(in.AllowedContextFields, grants, "allowedContextFields")
		each(in.BlockedContextFields, (*schema.Schema).Blocks, "blockedContextFields")
		if t := in.Translate; t != nil {
			each(t.Filter, (*schema.Schema).Blocks, "translate", "filter")
			each(t.Fields, grants, "translate", "fields")
		}
	}
	for _, at := range order {
		if u := uses[at]; !u.possible && u.problem.Pointer != "" {
			c.add(u.problem)
		}
	}
}

// noteUse compares a path of a member with what it reads.
func (c *pathCheck) noteUse(u *intakeUse, list []governed, p task.Path, ask answer, m int, tokens []any) {
	possible := func(g governed) bool { return g.schema == nil || g.known || ask(g.schema, p) != schema.No }
	if p == task.Whole || slices.ContainsFunc(list, possible) {
		u.possible = true
		return
	}
	if u.problem.Pointer != "" {
		return
	}
	near := nearestPath(list, p, ask)
	u.problem = task.Problem{
		Pointer: naming.Pointer(append([]any{"agents", m}, tokens...)...), Subject: fmt.Sprintf("agent %q", c.team.Config.Agents[m].Name),
		Message: fmt.Sprintf("no result that it reads matches %q", string(p)), Hint: near.hint(), Err: task.ErrUnknown,
	}
	if u.problem.Hint == "" {
		u.problem.Hint = "write a path that the outputSchema of what it reads allows, or remove it"
	}
}

// readBy returns what a member reads in this plan, or, of a goal that is not planned yet, what it may read:
// results, nil if there are none, and what the user gives. A value without a schema may be anything, and so
// may what tools, messages, the shared memory and output files have.
func (c *pathCheck) readBy(m int) (results, others []governed) {
	name := c.team.Config.Agents[m].Name
	anything := []governed{{}}
	sends := func(from int) bool { _, ok := c.team.Network.Reaches(from, m); return ok }
	if len(c.team.Config.Agents[m].Tools)+len(c.team.Network.toolsOf(m)) > 0 || slices.ContainsFunc(indexes(len(c.team.Config.Agents)), sends) ||
		c.options.Bus != nil || c.options.Memory != nil || len(c.options.Conversation) > 0 {
		return anything, nil
	}
	if c.plan == nil {
		return c.governs(handoff.Anyone, name), nil
	}
	values := governedValues{seen: map[*schema.Schema]bool{}, accepts: *c.options.UserAccepts}
	for i, by := range c.plan.Members {
		if int(by) != m {
			continue
		}
		t := c.plan.Graph.Task(i)
		if t.MemoryScope == task.ScopeAll || slices.ContainsFunc(t.DependsOn, func(r task.Ref) bool { return len(r.Files) > 0 }) {
			return anything, nil
		}
		if len(t.Uses) > 0 {
			others = anything
		}
		for _, up := range c.plan.Graph.Upstream(i) {
			values.add(c.plan.Schemas[up])
		}
	}
	if len(values.list) > 0 && slices.ContainsFunc(c.options.Messages, func(x Message) bool { return reads(c.team, &x, name) }) {
		return anything, nil
	}
	return values.list, others
}

// indexes returns the first n indexes.
func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
