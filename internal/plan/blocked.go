package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
)

// A blockedTask is a task that its agent cannot run because of its label.
type blockedTask struct {
	task int
	why  *gate.Refusal
}

// A root is what raised a label: a task's own classification, an input, a
// message, or the shared memory.
type root struct {
	task  int // of a task's own classification, and of the memory
	input string
	from  string // of a message
}

// reportBlocked reports the blocked tasks, in one problem for each label and what raised
// it: one edit may fix all of them.
func (c *labelCheck) reportBlocked() {
	type key struct {
		root  root
		level label.Classification
	}
	var order []key
	groups := map[key][]blockedTask{}
	for _, one := range c.blocked {
		k := key{c.root(one.task), c.plan.Labels[one.task]}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], one)
	}
	for _, k := range order {
		list := groups[k]
		slices.SortFunc(list, func(a, b blockedTask) int { return a.task - b.task })
		first := list[0]
		at := c.part(first.task, c.raised[first.task])
		if len(list) == 1 {
			at.report(first.why.Reason+" ("+c.path(first.task)+")", first.why.Hint, first.why)
			continue
		}
		at.report(fmt.Sprintf("%d tasks receive context that their agents may not read (%s): %s", len(list), c.path(first.task), c.blockedAgents(list)), c.edits(list, k.level), first.why)
	}
}

// mostNamed is how many blocked tasks, and edits, one message names.
const mostNamed = 20

// blockedAgents names the agents of blocked tasks, each with its clearance and its tasks.
func (c *labelCheck) blockedAgents(list []blockedTask) string {
	var b strings.Builder
	named := 0
	done := map[int32]bool{}
	for _, one := range list {
		m := c.plan.Members[one.task]
		if done[m] {
			continue
		}
		done[m] = true
		caps := &c.team.Capabilities[m]
		if named > 0 {
			b.WriteString("; ")
		}
		if named++; named > mostNamed {
			b.WriteString("and others")
			break
		}
		fmt.Fprintf(&b, "%q accepts %v (%s)", caps.Agent, min(caps.Clearance(), caps.Produces), c.tasksOf(list, m))
	}
	return b.String()
}

// tasksOf names the blocked tasks of one agent.
func (c *labelCheck) tasksOf(list []blockedTask, member int32) string {
	const most = 3
	var titles []string
	more := 0
	for _, one := range list {
		if c.plan.Members[one.task] != member {
			continue
		}
		if len(titles) == most {
			more++
			continue
		}
		titles = append(titles, fmt.Sprintf("%q", c.plan.Graph.Task(one.task).Title))
	}
	text := strings.Join(titles, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// edits lists what would unblock tasks.
func (c *labelCheck) edits(list []blockedTask, level label.Classification) string {
	var hints []string
	for _, one := range list {
		_, hint, _ := strings.Cut(one.why.Hint, ", or ") // what only this agent needs
		if hint != "" && !slices.Contains(hints, hint) && len(hints) < mostNamed {
			hints = append(hints, hint)
		}
	}
	return fmt.Sprintf("remove the %v context; or declassify the parts that they need; or %s", level, strings.Join(hints, " and "))
}

// root finds what raised the label of a task.
func (c *labelCheck) root(i int) root {
	for {
		switch by := c.raised[i]; by.kind {
		case handoff.Input, handoff.Dependency, handoff.Files, handoff.Condition:
			up, input := c.madeBy(i, by)
			if up < 0 {
				return root{task: -1, input: input}
			}
			i = up
		case handoff.Message:
			return root{task: -1, from: c.options.Messages[by.n].From}
		case handoff.Conversation:
			return root{task: -1, from: c.options.Conversation[by.n].From}
		default:
			return root{task: i}
		}
	}
}

// madeBy returns the task that made a part of task i, or -1 and the name of the input that it is.
func (c *labelCheck) madeBy(i int, part partOf) (up int, input string) {
	switch part.kind {
	case handoff.Input:
		return -1, c.plan.Graph.Task(i).Uses[part.n].Name
	case handoff.Files:
		l := &c.plan.Folders.layers[i][part.n]
		if l.Task >= 0 {
			return l.Task, ""
		}
		return -1, l.Source(c.plan).Name
	}
	return int(c.plan.Graph.Upstream(i)[part.n]), ""
}
