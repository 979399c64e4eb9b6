package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// result sums the run up.
func (r *run) result(ctx context.Context) *Result {
	res := &Result{
		RunID: r.id, Name: r.team.Config.Name, Goal: r.coordinator.goalFor(), Tasks: r.tasks, Steps: r.coordinator.steps, Status: StatusOK,
		StartedAt: r.memo.Began(r.start), EndedAt: r.memo.Ended(time.Now()), JournalErr: r.journalErr,
		Context:  r.context,
		Answered: r.answered || r.answeredInGo || !r.called || r.recalled,
		behind:   behind{deciding: r.plan.Deciding()},
	}
	now := time.Now()
	res.Prior, _ = r.memo.Spent()
	res.Usage = r.removedUsage()
	for i := range r.coordinator.steps {
		r.coordinator.steps[i].Error.expire(now)
		res.Usage = res.Usage.Add(r.coordinator.steps[i].Metrics.Usage)
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		t.expire(now)
		res.Usage = res.Usage.Add(t.Metrics.Usage)
		if t.Error != nil {
			res.Errors = append(res.Errors, *t.Error)
		}
		if isAccepted := t.Error != nil && t.Error.Accepted; t.Status != task.Completed && t.Status != task.NotNeeded && !isAccepted && !r.plansOnly {
			res.Status = StatusError
		}
	}
	for _, failed := range []*TaskError{r.coordinator.unplanned, r.coordinator.unanswered} {
		if failed.expire(now); failed != nil {
			res.Errors, res.Status = append(res.Errors, *failed), StatusError
		}
	}
	if r.answers && r.coordinator.output == "" && !r.plansOnly && res.Status == StatusOK {
		res.Status = StatusError // it ended before the coordinator answered
	}
	if isSuspended(r.tasks) || r.coordinator.waitsFor != "" {
		res.Status = StatusSuspended
	}
	if r.overdrawn != notExhausted {
		res.Status = StatusBudget
	}
	if r.journalErr != nil {
		res.Status = StatusError
	}
	if end := r.memo.End(); end != nil && !slices.ContainsFunc(res.Errors, func(e TaskError) bool { return e.Code == codes.Replay }) {
		res.Status = Status(end.Status) // a replay ends as the run did, even if the run was canceled
	}
	if res.setStop(ctx, r.isLeft(ctx)); res.Status != StatusInterrupted {
		r.messages.warnUndelivered(r.plan)
	}
	res.Warnings = append(warningsOf(r.plan), r.warnings...)
	if res.Output = r.coordinator.output; !r.answers && r.plan != nil {
		res.Output = r.joined()
	}
	return res
}

// setStop says why the run stopped before its work was done, if it did. left reports that a later process continues it.
func (r *Result) setStop(ctx context.Context, left bool) {
	if r.Status != StatusOK && ctx.Err() != nil {
		r.Cause = context.Cause(ctx)
		r.Status = StatusCanceled
		if errors.Is(r.Cause, ErrTimeout) || errors.Is(r.Cause, context.DeadlineExceeded) {
			r.Status = StatusTimeout
		}
	}
	if left {
		r.Status = StatusInterrupted
	}
}

// warningsOf returns the warnings of a plan as text; nil has none.
func warningsOf(p *plan.Plan) (texts []string) {
	if p == nil {
		return nil
	}
	for _, w := range p.Warnings {
		texts = append(texts, w.Error())
	}
	return texts
}

// removedUsage returns the usage that earlier processes of the run spent on what it no longer
// has: tasks that were renamed or removed since, and steps that were repeated.
func (r *run) removedUsage() llm.Usage {
	left, _ := r.memo.Spent()
	for i := range r.tasks {
		left = less(left, r.memo.Usage(r.tasks[i].ID))
	}
	for i := range r.coordinator.steps {
		if r.coordinator.steps[i].before {
			left = less(left, r.coordinator.steps[i].Metrics.Usage)
		}
	}
	return left
}

// Resumed returns the part of Usage that was spent since the run was resumed, and false if the
// run was not resumed.
func (r *Result) Resumed() (llm.Usage, bool) {
	return less(r.Usage, r.Prior), r.Prior != llm.Usage{}
}

func less(u, v llm.Usage) llm.Usage {
	return llm.Usage{
		InputTokens: u.InputTokens - v.InputTokens, OutputTokens: u.OutputTokens - v.OutputTokens,
		CachedTokens: u.CachedTokens - v.CachedTokens, ReasoningTokens: u.ReasoningTokens - v.ReasoningTokens,
	}
}

// expire replaces a result, or the text of an error, that has expired by the end of the run.
func (t *TaskResult) expire(now time.Time) {
	if t.Error.expire(now); t.Error != nil && t.Error.Message == expired {
		t.Result = expired
	}
	if t.Envelope != nil && t.Envelope.Fresh(now) != nil {
		t.Result, t.Structured = expired, ""
	}
}

// joined returns the answer: the result of the only output task that was needed, or the results of
// several, each under its title.
func (r *results) joined() string {
	var shown []*TaskResult
	needed := 0
	for _, i := range r.plan.Outputs {
		t := &r.tasks[i]
		if t.Status != task.NotNeeded {
			needed++
		}
		if t.Status == task.Completed && t.Result != "" {
			shown = append(shown, t)
		}
	}
	switch {
	case len(shown) == 0:
		return ""
	case len(shown) == 1 && needed == 1:
		return shown[0].Result
	}
	size := 0
	for _, t := range shown {
		size += len(t.ShownName()) + len(t.Result) + len("\n\n# \n\n")
	}
	var b strings.Builder
	b.Grow(size)
	for i, t := range shown {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("# ")
		b.WriteString(t.ShownName())
		b.WriteString("\n\n")
		b.WriteString(t.Result)
	}
	return b.String()
}
