package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// Resume continues the run with this ID in o.Journal, with the tasks in o.Tasks or, if
// there are none, the goal in o.Answer. Completed tasks are not run again unless their
// prompts have changed since, and what earlier processes spent counts against the
// budgets. While another process works on the run, the error wraps [journal.ErrLeased].
//
// [journal.ErrLeased]: https://pkg.go.dev/github.com/runteam/runteam/journal#pkg-variables
func (t *Team) Resume(ctx context.Context, runID string, o *RunOptions) (*Result, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	if found := checkPrior(runID, o); len(found) > 0 {
		return nil, found
	}
	log, err := o.Journal.OpenRun(ctx, record.Opening{Run: runID, Resume: true})
	if err != nil {
		return nil, err
	}
	options := *o
	prior := log.History()
	options.Replay, options.Log, options.Past = nil, log, memo.Of(prior, memo.Own|memo.Lean)
	options.KeepCaller(prior)
	var res *Result
	if options.RunID, err = idOf(prior, runID); err == nil {
		res, err = t.again(ctx, &options)
	}
	if err != nil {
		_, _ = log.Close(context.WithoutCancel(ctx)) // nothing ran; that is the error
	}
	return res, err
}

// Replay repeats the run with this ID from o.Journal, with the tasks in o.Tasks or, if
// there are none, the goal in o.Answer. No agent is called and nothing is stored: the
// recorded answers are used, and a task whose prompt differs fails with [CodeReplay].
// With o.Replay.Ask, agents are called where prompts differ, and the new run is stored
// under o.RunID.
func (t *Team) Replay(ctx context.Context, runID string, o *RunOptions) (*Result, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	if found := checkPrior(runID, o); len(found) > 0 {
		return nil, found
	}
	prior, err := o.Journal.LoadRun(ctx, runID)
	if err != nil {
		return nil, err
	}
	options := *o
	options.Conversation = readAsBefore(options.Conversation, prior)
	if t := options.Turn; t != nil {
		options.Turn = new(*t)
		options.Turn.Repeats = true
	}
	if options.Replay == nil {
		options.Replay = &Replay{}
	}
	options.Past = memoOfReplay(prior, options.Replay)
	if !options.Replay.Ask {
		options.Journal = nil
		if options.RunID, err = idOf(prior, runID); err != nil {
			return nil, err
		}
	}
	return t.again(ctx, &options)
}

// idOf returns the ID of the run that a journal found by the first digits of its ID. The
// error says that it is another run.
func idOf(prior *record.History, runID string) (string, error) {
	if len(prior.Begins) == 0 {
		return runID, nil
	}
	if id := prior.Begins[0].Run; strings.HasPrefix(id, runID) {
		return id, nil
	}
	return "", task.Problems{{Pointer: "/runId", Message: fmt.Sprintf("the journal has run %q in its place", prior.Begins[0].Run), Hint: "give the ID of a run in the journal", Err: task.ErrInvalid}}
}

// again runs the tasks or the goal of the options.
func (t *Team) again(ctx context.Context, o *RunOptions) (*Result, error) {
	if len(o.Tasks) == 0 && o.Answer != nil {
		return t.RunTeam(ctx, *o.Answer, o)
	}
	return t.RunTasks(ctx, o.Tasks, o)
}

// checkPrior reports what is missing to find an earlier run.
func checkPrior(runID string, o *RunOptions) (found task.Problems) {
	if runID == "" {
		found = append(found, task.Problem{Pointer: "/runId", Message: "the ID of the run is empty", Hint: "give the ID of a run in the journal", Err: task.ErrInvalid})
	}
	if o == nil || o.Journal == nil {
		found = append(found, task.Problem{Pointer: "/journal", Message: "there is no journal to read the run from", Hint: "set Journal", Err: task.ErrInvalid})
	}
	return found
}

// memoOfReplay returns the memo of a run that is repeated.
func memoOfReplay(h *record.History, r *Replay) *memo.Memo {
	if r.Ask {
		return memo.Of(h, 0)
	}
	return memo.Of(h, memo.Own|memo.Strict)
}
