package engine

import (
	"context"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// Recorded returns the result as records of the run hold it. That is r itself,
// unless [RunOptions].Reveal showed more to the caller.
func (r *Result) Recorded() *Result {
	if r.recorded == nil {
		return r
	}
	out := *r.recorded
	out.Command, out.Audit, out.JournalErr = r.Command, r.Audit, r.JournalErr // set since
	return &out
}

// reveal opens, in a result that is in the records of the run, what only the
// clearance that was raised for the result allows. The gate rules on each value
// again.
func (r *run) reveal(res *Result) {
	recorded := *res
	recorded.Tasks, recorded.Errors, recorded.Steps = slices.Clone(res.Tasks), slices.Clone(res.Errors), slices.Clone(res.Steps)
	res.recorded = &recorded
	for i := range res.Tasks {
		t := &res.Tasks[i]
		r.revealTask(i, t)
		if same := t.Error != nil && t.Result == t.Error.Message; r.revealError(&t.Error) && same {
			t.Result = t.Error.Message
		}
	}
	for i := range res.Steps {
		r.revealError(&res.Steps[i].Error)
	}
	for i := range res.Errors {
		e := &res.Errors[i]
		r.revealError(&e)
		res.Errors[i] = *e
	}
	if c := r.coordinator; c.goal != nil {
		r.revealText(&res.Goal, c.goalText, gate.Source{Kind: handoff.Dependency, Name: "goal"})
	}
	switch {
	case !r.answers && r.plan != nil:
		res.Output = r.joined()
	case r.coordinator.synthesis != nil && res.Output != "":
		r.revealText(&res.Output, r.coordinator.synthesis, gate.Source{Kind: handoff.Dependency, Name: string(r.coordinator.synthesis.Task())})
	}
}

// revealTask opens the result and the text of a task.
func (r *results) revealTask(i int, t *TaskResult) {
	source := gate.Source{Kind: handoff.Dependency, Name: string(t.ID)}
	if t.Status == task.Completed && t.Envelope != nil && t.Result != expired {
		t.Structured = r.revealText(&t.Result, t.Envelope, source)
	}
	if own := r.plan.Graph.Task(i); own.Classification <= *r.options.UserAccepts {
		t.Description, t.Metadata = own.Description, own.Metadata
		if e := r.plannedText(i); e != nil {
			r.revealText(&t.Description, e, source)
		}
	}
}

// revealError opens the words of an error that were withheld, and reports
// whether they are others now. The error that records hold stays as it is.
func (r *runScope) revealError(e **TaskError) bool {
	if *e == nil || (*e).said == nil || (*e).Message != withheld((*e).said.Classification()) {
		return false
	}
	opened := **e
	r.revealText(&opened.Message, opened.said, gate.Source{Kind: handoff.Fault, Name: string(opened.Task)})
	*e = &opened
	return true
}

// revealTime is how long the gate may check a text that is revealed, also when
// the run was canceled.
const revealTime = 30 * time.Second

// revealText sets a text to what of an envelope passes to the caller now, and
// returns its structured part. It stays as it is where the gate cannot rule.
func (r *runScope) revealText(text *string, e *envelope.Envelope, source gate.Source) (structured string) {
	ctx, cancel := context.WithTimeout(context.Background(), revealTime)
	defer cancel()
	seen, err := r.toClearance(ctx, e, source, *r.options.UserAccepts, time.Now())
	if err != nil {
		return ""
	}
	*text = seen.text
	return seen.structured
}
