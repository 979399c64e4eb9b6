package progress

import (
	"cmp"
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// counts tracks the progress of a run.
type counts struct {
	outcomes record.Outcomes
	begun    map[task.ID]bool
	total    int
	planned  bool   // the tasks are known
	over     bool   // the run ended
	goal     bool   // the coordinator is to write an answer
	answer   bool   // the coordinator wrote it
	spent    string // the budget that ended the run, such as "token budget"; empty if none did
}

func newCounts(plan *engine.Plan) counts {
	if plan == nil {
		return counts{}
	}
	return counts{total: len(plan.Tasks), planned: true, goal: plan.Coordinator != nil}
}

// take counts an event.
func (t *counts) take(e event.Event) {
	if ofCoordinator(e) {
		t.goal = true
		t.answer = e.Type == event.AgentComplete && e.Title == string(engine.StepSynthesis) && e.Status == task.Completed && e.Bytes > 0
	}
	switch e.Type {
	case event.PlanReady:
		t.total, t.planned = len(e.Plan), true
	case event.TaskStart:
		if t.begun == nil {
			t.begun = map[task.ID]bool{}
		}
		t.begun[e.Task] = true
	case event.TaskComplete, event.TaskSkipped, event.Error:
		t.outcomes.Add(e.Status, e.Root, t.begun[e.Task])
	case event.Budget:
		if !e.OwnBudget {
			t.spent = cmp.Or(t.spent, budgetName(e.Code))
		}
	case event.RunComplete:
		t.over = true
	}
}

// outcome returns how the task or step of an event ended.
func (t *counts) outcome(e event.Event) string {
	var o record.Outcomes
	switch o.Add(e.Status, e.Root, t.begun[e.Task]); {
	case o.Completed == 1:
		return format.Completed
	case o.Failed == 1:
		return format.Failed
	case o.Cancelled == 1:
		return format.Cancelled
	}
	return format.Skipped
}

// String returns "3 of 7 tasks completed", or the state of a goal without tasks.
func (t *counts) String() string {
	text := format.OutcomeCounts(t.outcomes, format.Plural(t.total, "task"))
	switch {
	case t.planned && t.over && t.goal && !t.answer:
		text += ", no answer"
	case t.planned:
	case t.over:
		text = "no plan"
	default:
		text = "planning"
	}
	if t.spent != "" {
		text += ", " + t.spent + " spent"
	}
	return text
}

// ofCoordinator reports whether an event is about a step of the coordinator.
func ofCoordinator(e event.Event) bool { return e.Agent == handoff.Coordinator }

// stepName returns the name of a step. Only digests are numbered, since there may be several.
func stepName(e event.Event) string {
	if e.Title == string(engine.StepDigest) {
		return fmt.Sprintf("%s %d", e.Title, e.Attempt)
	}
	return e.Title
}

// begins reports whether an event begins a task or a step.
func begins(e event.Event) bool {
	return e.Type == event.TaskStart || ofCoordinator(e) && e.Type == event.AgentStart
}

// ends reports whether an event ends a task or a step.
func ends(e event.Event) bool {
	switch e.Type {
	case event.TaskComplete, event.TaskSkipped, event.Error:
		return true
	}
	return ofCoordinator(e) && e.Type == event.AgentComplete
}
