package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
)

// A runScope is what all model calls of a run share. But for what its parts guard
// themselves, it does not change while calls are made.
type runScope struct {
	viewer
	*recorder
	tally

	// mu guards what workers and monitors share: the phase, the results of tasks
	// and steps, the queue and the messages. No code of the caller runs under it.
	mu sync.Mutex

	turnReads []record.Read // of the agents in a turn of a session; mu guards it

	options  RunOptions
	start    time.Time
	memo     *memo.Memo // what earlier processes recorded; nil if there is nothing
	fresh    freshTasks
	inputs   []*envelope.Envelope // parallel to options.Inputs
	budgets  *budgets
	messages *runMessages     // nil without messages
	memory   *memoryAccess    // nil if no task and no later run may read what is written
	calls    *callIDs         // of tools
	contents gate.FolderCache // of the folders that tasks are given

	steering  *steering       // nil if nobody can steer the run
	questions *questions      // to people
	approvals *memo.Approvals // of calls of tools
	deltas    *deltas         // of what models write; nil if nobody watches
	underWay  atomic.Int32    // calls of models and tools
}

func newRunScope(t *plan.Roster, o RunOptions, start time.Time) (*runScope, error) {
	if o.RunID == "" {
		o.RunID = uuid.NewString()
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	v := viewer{team: t, policies: newPolicies(t), id: o.RunID, session: o.RunID + "/" + handoff.User, accepts: o.RecordClearance()}
	r := &runScope{viewer: v, recorder: &recorder{viewer: v, sink: o.Recorder}, options: o, start: start, memo: o.Past}
	r.calls, r.approvals = newCallIDs(r.memo), r.memo.Approvals()
	r.inputs = make([]*envelope.Envelope, len(o.Inputs))
	for i, in := range o.Inputs {
		h := envelope.Header{ID: plan.InputID(in.Name), Producer: handoff.User, Run: r.id, Classification: in.Classification, CreatedAt: start}
		if in.TTL > 0 {
			h.ExpiresAt = start.Add(in.TTL)
		}
		if in.Envelope != nil {
			h.DerivedFrom, h.Truncated = []envelope.ID{in.Source()}, in.Envelope.Truncated()
			if o.Replay == nil { // a replay reads what its run read
				h.ExpiresAt = gate.Earliest(h.ExpiresAt, in.Envelope.ExpiresAt())
			}
		}
		payload, err := plan.PayloadOf(&in)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", in.Name, err)
		}
		e, err := envelope.New(h, payload)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", in.Name, err)
		}
		r.inputs[i] = e
		r.totalBytes += r.sizeOf(e)
	}
	return r, nil
}

// A tally sums up the model calls of a run.
type tally struct {
	answered     bool      // a model call was answered
	called       bool      // a model call was made
	recalled     bool      // a cached answer was used
	answeredInGo bool      // an agent answered without a model call
	overdrawn    exhausted // which budget had not enough left for a call
	journalErr   error     // why the journal failed
	context      Context   // how much context was sent
	totalBytes   int       // bytes of all inputs and results so far
}
