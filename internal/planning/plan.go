package planning

import (
	"fmt"
	"unicode/utf8"

	"github.com/runteam/runteam/task"
)

// Rules say what a plan may name and grant. The zero value allows no assignee, and no grant
// but dependencies.
type Rules struct {
	Agents   []string // names of the roster; an assignee must be exactly one of them
	Inputs   []string // names of the inputs that may be granted, if MayGrant.Inputs
	MayGrant Grants
	MayPlan  Constructs

	// Tools are the names of the tools of each agent that may be granted, if MayGrant.Tools.
	Tools map[string][]string
}

// ParsePlan reads a plan from a coordinator's reply: a JSON array of tasks,
// alone, in a code fence or within prose. It is read strictly, because a model
// wrote it: an unknown key, a wrong type, an unknown agent, task, input or tool,
// a duplicate title, a cycle, a grant that the rules do not allow, or a text that
// could pass for the prompt builder's own makes it invalid.
//
// The error is [task.Problems], with everything wrong at once, at most one
// problem for each value, and pointers such as /tasks/2/dependsOn/0 into the
// array; [Faults] writes them for the coordinator. Specs that come back without
// an error resolve as a graph, unless they have loops, lists or judges, which are to be checked
// as they are written out; the Tools of each task and judge are what it grants, and never nil but for
// a loop. Titles and roles are harmless words, and so are the words of schemas, conditions, lists and
// judges; a description is clean text, but what it says has not been through the gate.
func ParsePlan(text string, r Rules) ([]task.Spec, error) {
	items, problem := plan(text)
	if problem != nil {
		return nil, task.Problems{*problem}
	}
	p := newReader(&r, len(items))
	for i, item := range items {
		p.task(item, &p.specs[i], "tasks", i)
	}
	if problem := tooLarge(p.specs); problem != nil {
		return nil, task.Problems{*problem}
	}
	p.resolve()
	if len(p.found) > 0 {
		return nil, p.found
	}
	return p.specs, nil
}

// plan returns the items of the array that a reply holds, or why it holds none.
func plan(text string) ([]any, *task.Problem) {
	switch {
	case len(text) > MaxPlanBytes:
		return nil, whole(fmt.Sprintf("%d bytes, at most %d", len(text), MaxPlanBytes), "plan fewer tasks, or shorter descriptions")
	case !utf8.ValidString(text):
		return nil, whole("it is not valid UTF-8", "")
	}
	v, err := find(text)
	if err != nil {
		return nil, whole(err.Error(), "answer with one JSON array of tasks, and with nothing else")
	}
	items, ok := v.([]any)
	switch {
	case !ok:
		return nil, whole("it is one object, not an array", "write the array of tasks alone, also around a single task: [{…}]")
	case len(items) == 0:
		return nil, whole("it has no tasks", "plan one task at least")
	case len(items) > MaxTasks:
		return nil, whole(fmt.Sprintf("%d tasks, at most %d", len(items), MaxTasks), "plan fewer tasks")
	}
	return items, nil
}

// whole is a problem of the plan as a whole.
func whole(message, hint string) *task.Problem {
	return &task.Problem{Pointer: "/tasks", Subject: "the plan", Message: message, Hint: hint, Err: ErrPlan}
}
