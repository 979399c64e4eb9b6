package assign

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// noAgent returns the problem of a task, just narrowed, without an eligible agent: the
// demands that no agent meets or, if each is met by some agent, the agent that meets most.
func (r *roster) noAgent(i int, t *task.Task) task.Problem {
	p := task.Problem{Pointer: naming.Pointer("tasks", i, "assignee"), Subject: subject(i, t), Err: ErrNoAgent}
	if len(r.agents) == 0 {
		p.Message, p.Hint = "there are no agents", "add one with a name"
		return p
	}
	var messages []string
	for k := range r.demands {
		d := &r.demands[k]
		if d.who != nil && !d.who.empty() {
			continue
		}
		message, hint := r.unmet(d)
		if messages = append(messages, message); len(messages) == 1 {
			p.Hint = hint
			if d.kind <= provider {
				p.Pointer = naming.Pointer("tasks", i, "requires")
			}
		}
	}
	if len(messages) > 0 {
		p.Message = strings.Join(messages, "; ")
		return p
	}
	nearest, lacks := r.nearestAgent()
	p.Message = fmt.Sprintf("no agent has all that the task needs: %q comes nearest, but %s", nearest, lacks)
	p.Hint = "let one agent have it all, or ask for less"
	if t.Requires != nil {
		p.Pointer = naming.Pointer("tasks", i, "requires")
	} else if len(t.Tools) > 0 {
		p.Pointer = naming.Pointer("tasks", i, "tools")
	}
	return p
}

// nearestAgent returns the agent that meets the most demands, the first of several, and
// what it lacks.
func (r *roster) nearestAgent() (name, lacks string) {
	fewest := len(r.demands) + 1
	nearest := int32(0)
	for i := range int32(len(r.agents)) {
		missed := 0
		for k := range r.demands {
			if !r.demands[k].metBy(i) {
				missed++
			}
		}
		if missed < fewest {
			fewest, nearest = missed, i
		}
	}
	return r.agents[nearest].Name, r.lacks(nearest)
}

// lacks lists the demands of the task that an agent does not meet; empty if there are none.
func (r *roster) lacks(i int32) string {
	var list []string
	for k := range r.demands {
		if d := &r.demands[k]; !d.metBy(i) {
			list = append(list, d.lack(&r.agents[i]))
		}
	}
	return strings.Join(list, " and ")
}

// named returns the agent that a task names, unless there is none or it lacks
// what the task requires.
func (r *roster) named(i int, t *task.Task) (who int32, p task.Problem, bad bool) {
	who, known := r.index[t.Assignee]
	if !known {
		return 0, r.unknown(i, t), true
	}
	if t.Requires == nil {
		return who, p, false
	}
	r.demands = r.demands[:0]
	r.require(t)
	lacks := r.lacks(who)
	if lacks == "" {
		return who, p, false
	}
	p = task.Problem{
		Pointer: naming.Pointer("tasks", i, "requires"), Subject: subject(i, t), Err: ErrRequires,
		Message: fmt.Sprintf("agent %q %s", t.Assignee, lacks), Hint: "give it to the agent, or require less",
	}
	r.intersect()
	if others := r.list(); len(others) > 0 {
		p.Hint = fmt.Sprintf("%q has all that it requires: name that one, or none", r.agents[others[0]].Name)
	}
	return who, p, true
}

// unknown returns the problem of a task that names an unknown agent.
func (r *roster) unknown(i int, t *task.Task) task.Problem {
	p := task.Problem{
		Pointer: naming.Pointer("tasks", i, "assignee"), Subject: subject(i, t), Err: ErrUnknown,
		Message: fmt.Sprintf("unknown agent %q", t.Assignee), Hint: "write the name of an agent, or none",
	}
	if r.nearest -= len(r.agents); r.nearest < 0 {
		return p
	}
	names := make([]string, len(r.agents))
	for k := range names {
		names[k] = r.agents[k].Name
	}
	if near, ok := naming.Nearest(t.Assignee, names); ok {
		p.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return p
}

func subject(i int, t *task.Task) string {
	if t.Title == "" {
		return fmt.Sprintf("task %d", i+1)
	}
	return fmt.Sprintf("task %q", t.Title)
}
