package engine

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A Journal makes one run durable. It is safe for concurrent use.
type Journal interface {
	// Append takes entries that belong together: after a crash all of them are
	// there or none, and behind what earlier calls brought. It keeps the slice
	// and does not wait. done is called once, in the order of the calls: with nil
	// when the entries are as durable as the journal can make them, and never
	// within Append. After an error nothing more is taken, and every later done
	// is given that error.
	Append(entries []record.Entry, done func(error))

	// Recall returns what other runs were answered under this key of reuse,
	// the newest first, as far as it may be taken: reusable and kept. None is no
	// error.
	Recall(ctx context.Context, key record.Key) ([]record.AgentCall, error)
}

// begin tells the journal what the run is of.
func (r *run) begin() {
	if r.ledger == nil {
		return
	}
	b := &record.RunStart{Run: r.id, Name: r.team.Config.Name, Time: r.start, Goal: r.answers}
	if r.plan != nil {
		b.Tasks = r.outline()
	}
	for i := range r.options.Inputs {
		in := &r.options.Inputs[i]
		given := record.Input{
			Name: in.Name, Classification: in.Classification, Bytes: plan.InputSize(in, r.options.RecordClearance()), Key: sha256.Sum256([]byte(in.Text)), Line: in.Origin.String(),
		}
		if in.Envelope != nil {
			given.FromRun, given.FromTask = in.Envelope.Header().Run, in.Envelope.Task()
		}
		b.Inputs = append(b.Inputs, given)
	}
	r.ledger.add(nil, record.Entry{Begin: b}) // at once: a journal knows the run before it is asked for answers
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
	end := &record.RunEnd{Time: res.EndedAt, Status: string(res.Status), Warnings: res.Warnings}
	room := max(reasonsInEnd/(len(res.Errors)+1), leastReason)
	for i := range res.Tasks {
		t := &res.Tasks[i]
		e := record.TaskEnd{Task: t.ID, Title: t.Title, Agent: t.Assignee, Status: t.Status, Attempts: t.Metrics.Attempts}
		if t.Status == task.Failed || t.Status == task.Skipped {
			e.Reason = t.Result
		}
		if t.Error != nil {
			e.Reason, e.Code, e.Root = t.Error.Message, t.Error.Code, t.Error.Root
		}
		if len(e.Reason) > room { // whole it stands with the exchange
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
