package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A plan grants the tools of the runtime that it names, and its coordinator can name others. So a tool with
// which a planned task can never reach anyone makes the plan invalid, where a spec, whose edges its author
// can change, gets a problem or a warning about the edge.

// A namedTool is a tool of the runtime that a planned task names. The rounds of a loop and the items of a
// list have it in common.
type namedTool struct{ written, title, tool string }

// checkNamedTools reports tools of the runtime that a planned task names and can never use.
func checkNamedTools(h handoffPlan, found *findings) {
	p := h.plan
	first, useless := map[namedTool]task.Problem{}, []namedTool(nil)
	usable := map[namedTool]bool{}
	for i := range p.Graph.Len() {
		t := p.Graph.Task(i)
		if len(t.Tools) == 0 || Joins(t) || t.IsComputed() {
			continue
		}
		own := p.Roster().Network.toolsOf(int(p.Members[i]))
		for k := range own {
			f := &own[k]
			at := slices.IndexFunc(t.Tools, func(name string) bool { return f.isNamed([]string{name}) })
			if at < 0 {
				continue
			}
			key := namedTool{writtenAt(t), t.Title, t.Tools[at]}
			if t.Instance != nil {
				key.title = t.Instance.Title
			}
			why, hint := uselessBecause(h, i, f)
			if why == "" {
				usable[key] = true
			} else if _, known := first[key]; !known {
				useless = append(useless, key)
				first[key] = task.Problem{
					Pointer: naming.Pointer("tasks", i, "tools", at), Subject: fmt.Sprintf("task %q", t.Title),
					Message: fmt.Sprintf("tools[%d]: %q could never be used: %s", at, t.Tools[at], why), Hint: hint, Err: task.ErrInvalid,
				}
			}
		}
	}
	for _, key := range useless {
		if !usable[key] {
			found.add(first[key])
		}
	}
}

// uselessBecause says why task i can never use a tool of the runtime, and what to plan instead; empty if it
// can.
func uselessBecause(h handoffPlan, i int, f *RuntimeTool) (why, hint string) {
	p := h.plan
	switch {
	case f.To != nil:
		why, _ = cannotHold(p, i, f.To.Member)
		return why, "leave it out, and plan a task for an agent that may see the result"
	case f.Name == SendHandoff:
		return unreadBecause(h, i), "leave it out, or plan a task for a reader that this one does not depend on"
	case f.Name == DelegateToAgent:
		var reasons []string
		for _, to := range p.Roster().Network.delegates(int(p.Members[i])) {
			if delegates(p, i, to) {
				return "", ""
			}
			reasons = append(reasons, cannotDelegate(p, i, to))
		}
		return strings.Join(reasons, "; "), "leave it out, and plan a task for an agent that may see the result"
	}
	return "", ""
}

// unreadBecause says why nobody can ever read what task i sends; empty if somebody can.
func unreadBecause(h handoffPlan, i int) string {
	p, agents := h.plan, h.plan.Roster().Config.Agents
	var reasons []string
	for _, n := range p.Roster().Network.Neighbors(int(p.Members[i])) {
		name := agents[n.Member].Name
		if len(h.tasks[n.Member]) == 0 {
			if n.Transfer || mayBeHeldBy(p, n.Member) { // it reads them when it gets a conversation
				return ""
			}
			reasons = append(reasons, fmt.Sprintf("%q has no task", name))
			continue
		}
		u := edgeUse{Neighbor: n, least: label.Secret}
		for _, to := range h.tasks[n.Member] {
			if !h.follows(to, i) {
				u.count(h, to, int(p.Members[i]), []int{i})
			}
		}
		switch {
		case u.readable:
			return ""
		case !u.ordered:
			reasons = append(reasons, fmt.Sprintf("every task of %q has ended before", name))
		case !u.below:
			reasons = append(reasons, fmt.Sprintf("its context is at least %v, and the edge to %q carries at most %v", h.least(i), name, n.Max))
		case u.withheld != nil && u.withheld.Withheld():
			reasons = append(reasons, u.withheld.Detail)
		default:
			return ""
		}
	}
	return strings.Join(reasons, "; ")
}

// mayBeHeldBy reports whether the conversation of a task can be transferred to a member.
func mayBeHeldBy(p *Plan, member int) bool {
	for i := range p.Graph.Len() {
		if slices.ContainsFunc(Holders(p, i), func(h Holder) bool { return h.Member == member }) {
			return true
		}
	}
	return false
}
