package connect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
)

// A replyCheck finds the replies of a script that no call gets. Without the warning a misspelled title or goal
// would silently select another reply.
type replyCheck struct {
	titles   []string // of the tasks; nil if they are unknown
	approved []string // titles of the approvals of tools
	children bool     // an agent of the spec spawns children or delegates goals
	goals    []string // that the script passes to children
	anyGoal  bool     // a child may have another goal: of a template, or of a process
}

// unusedReplies warns of replies for unknown tasks and goals.
func unusedReplies(script *scripted.Script, file *specfile.File) (found []specfile.Problem) {
	c := newReplyCheck(script, file)
	for i := range script.Replies {
		r := &script.Replies[i]
		message, hint := c.problem(r)
		if message == "" {
			continue
		}
		found = append(found, specfile.Problem{
			File: r.At.File, Line: r.At.Line, Column: r.At.Column, Message: message + ", so this reply is never used", Hint: hint,
		})
	}
	return found
}

// newReplyCheck reads which tasks and goals there are.
func newReplyCheck(script *scripted.Script, file *specfile.File) *replyCheck {
	c := &replyCheck{}
	if file.Goal == nil && file.Answerer == "" { // else the tasks are not planned yet, or have no titles
		c.titles, _ = specfile.JudgesOf(file.Tasks) // another step reports the error
		for t := range specfile.AllTasks(file.Tasks) {
			c.titles = append(c.titles, strings.TrimSpace(t.Title))
		}
	}
	for _, name := range file.Approved() {
		c.approved = append(c.approved, plan.ApprovalTitle(name))
	}
	for _, e := range file.Config.Edges {
		c.children = c.children || e.Delegate
	}
	for i := range file.Agents {
		c.children = c.children || file.Agents[i].Member.Spawn != nil
		c.anyGoal = c.anyGoal || file.Agents[i].Process != nil
	}
	for i := range script.Replies {
		c.readGoals(&script.Replies[i])
	}
	return c
}

// readGoals adds the goals that a reply passes to children.
func (c *replyCheck) readGoals(r *scripted.Reply) {
	c.anyGoal = c.anyGoal || strings.Contains(r.Body, plan.SpawnAgent) || strings.Contains(r.Body, plan.DelegateToAgent)
	for i := range r.ToolCalls {
		call := &r.ToolCalls[i]
		if call.Name != plan.SpawnAgent && call.Name != plan.DelegateToAgent {
			continue
		}
		goal, _ := call.Arguments["goal"].(string)
		if strings.Contains(goal, "{{") {
			c.anyGoal = true
		} else {
			c.goals = append(c.goals, strings.TrimSpace(goal))
		}
	}
}

// problem says why no call gets a reply, and what to write instead; the message is empty if there is such a call.
func (c *replyCheck) problem(r *scripted.Reply) (message, hint string) {
	switch {
	case r.Task != "" && c.titles != nil:
		return c.taskProblem(r.Task)
	case r.Goal == "":
		return "", ""
	case !c.children:
		return "no agent of the spec has spawn, and no edge has delegate", "give an agent spawn, or remove the reply"
	case !c.anyGoal && !slices.ContainsFunc(c.goals, func(goal string) bool { return hasPiece(goal, r.Goal) }):
		hint = "write a piece of the goal of a call of " + plan.SpawnAgent + " or " + plan.DelegateToAgent
		if near, ok := naming.Nearest(strings.TrimSpace(r.Goal), c.goals); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return fmt.Sprintf("no call in the script has a goal with %q", r.Goal), hint
	}
	return "", ""
}

// taskProblem says why no call gets a reply for a task.
func (c *replyCheck) taskProblem(title string) (message, hint string) {
	if has(c.titles, title) || has(c.approved, title) || c.children && has([]string{scripted.ChildTitle}, title) {
		return "", ""
	}
	hint = "write the title of a task of the spec"
	if near, ok := naming.Nearest(strings.TrimSpace(title), c.titles); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if slices.ContainsFunc(c.goals, func(goal string) bool { return hasPiece(goal, title) }) {
		hint = "write goal: in place of task: for a child"
	}
	return fmt.Sprintf("there is no task %q", title), hint
}

// hasPiece reports whether a goal has a piece, as the key goal of a reply matches it.
func hasPiece(goal, piece string) bool {
	return strings.Contains(strings.ToLower(goal), strings.ToLower(strings.TrimSpace(piece)))
}

// has reports whether a word is in a list, whatever its case.
func has(list []string, word string) bool {
	return slices.ContainsFunc(list, func(known string) bool { return naming.Normalize(known) == naming.Normalize(word) })
}
