package engine

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// openLog opens the run in the journal, unless there is none or it is open already.
func (r *run) openLog(ctx context.Context) (err error) {
	if r.log = r.options.Log; r.log != nil || r.options.Journal == nil {
		return nil
	}
	start := r.runStart()
	ctx = context.WithoutCancel(ctx) // a run that is canceled at once is recorded too
	r.log, err = r.options.Journal.OpenRun(ctx, record.Opening{Run: r.id, Name: start.Name, Time: start.Time, Tasks: start.Tasks, Inputs: start.Inputs, Turn: r.options.Turn})
	return err
}

// closeLog releases the run in the journal and returns the head of its chain of
// decisions. The context may have ended: the run must be released all the same.
func (r *run) closeLog(ctx context.Context) (head string, err error) {
	if r.log == nil {
		return "", nil
	}
	return r.log.Close(context.WithoutCancel(ctx))
}

// begin records the start of the run.
func (r *run) begin() {
	if r.ledger != nil {
		entries := []record.Entry{{Begin: r.runStart()}} // before the journal looks for cached answers
		if r.memo != nil && !r.memo.Is(memo.Own) {
			entries = append(entries, policiesOf(r.memo)...)
		}
		r.ledger.add(nil, entries...)
	}
}

// runStart is what the journal stores of the beginning of the run.
func (r *run) runStart() *record.RunStart {
	b := &record.RunStart{Run: r.id, Name: r.team.Config.Name, Time: r.start, Goal: r.answers, Accepts: new(r.accepts), Label: new(r.accepts), Policy: storedPolicy(r.team), Budget: record.Budget{Tokens: r.options.MaxTokenBudget, Cost: r.options.MaxCostBudget}}
	if k, ok := r.log.(record.WorkspaceKeeper); ok {
		b.Workspaces = k.Workspaces().Place
	}
	if r.plan != nil {
		b.Tasks, b.Label = outlineOf(r.plan), new(r.plan.CallerSees())
	}
	for i := range r.options.Inputs {
		in := &r.options.Inputs[i]
		given := record.Input{
			Name: in.Name, Classification: in.Classification, Bytes: plan.InputSize(in, r.accepts), Key: sha256.Sum256([]byte(in.Text)), Line: in.Origin.String(),
		}
		if in.Envelope != nil {
			h := in.Envelope.Header()
			given.FromRun, given.FromTask = h.Run, h.Task
		}
		b.Inputs = append(b.Inputs, given)
	}
	return b
}

// The reasons of all failures share so many bytes of the last entry, which a
// journal keeps in one line; each has at least so many.
const (
	reasonsInEnd = 1 << 20
	leastReason  = 256
)

// ending is what the journal keeps of how the run ended.
func (r *run) ending(res *Result) record.Entry {
	if r.ledger == nil {
		return record.Entry{}
	}
	end := &record.RunEnd{Time: res.EndedAt, Status: string(res.Status), Warnings: res.Warnings, Usage: res.Usage, Partial: res.IsPartial()}
	room := max(reasonsInEnd/(len(res.Errors)+1), leastReason)
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if r.branches.isLeftOut(i) {
			continue
		}
		e := record.TaskEnd{Task: t.ID, Title: t.Title, Agent: t.Assignee, Status: t.Status, Attempts: t.Metrics.Attempts}
		if t.Status == task.Failed || t.Status == task.Skipped || t.Status == task.NotNeeded {
			e.Reason = t.Result
		}
		if t.Error != nil {
			e.Reason, e.Code, e.Root, e.Accepted = t.Error.Message, t.Error.Code, t.Error.Root, t.Error.Accepted
		}
		if len(e.Reason) > room { // the entry of the call has all of it
			e.Reason = strings.ToValidUTF8(e.Reason[:room], "") + "…"
		}
		end.Tasks = append(end.Tasks, e)
	}
	for i := range res.Errors {
		if e := &res.Errors[i]; e.Task == "" {
			end.Errors = append(end.Errors, record.Failure{Code: e.Code, Message: e.Message})
		}
	}
	if r.answers {
		end.Answer = res.Output
	} else if r.plan != nil {
		for _, i := range r.plan.Outputs {
			end.Output = append(end.Output, r.tasks[i].ID)
		}
	}
	return record.Entry{End: end}
}
