package engine

import (
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// results has, for each task of a run, what it is granted and what its result is.
type results struct {
	*runScope
	plan     *plan.Plan
	queue    *readyqueue.Queue
	tasks    []TaskResult         // empty until [results.prepare]
	faults   []*envelope.Envelope // of each task, why it failed by itself
	planned  []*envelope.Envelope // of each task, its description if a coordinator wrote it; nil if none did
	folders  folders
	branches *brancher
	readBy   []*plan.Roster // of each task, by whose policy its last attempt read; nil if there was none
	batch    *batch         // what becomes durable together with the result of the attempt that has just ended
}

// newResults prepares the run of a plan.
func newResults(scope *runScope, p *plan.Plan) (*results, error) {
	r := &results{
		runScope: scope, plan: p, queue: readyqueue.New(p.Graph),
		faults: make([]*envelope.Envelope, p.Graph.Len()), readBy: make([]*plan.Roster, p.Graph.Len()),
	}
	r.folders = folders{run: r, left: map[task.ID]taskFiles{}}
	r.branches = &brancher{run: r, names: itemNamer{run: r}, decided: map[int]error{}, rounds: map[string]*comparedRounds{}}
	var err error
	if r.planned, err = r.plannedTexts(); err != nil {
		return nil, err
	}
	for i := range r.team.Config.Agents {
		if n := r.team.Config.Agents[i].MaxParallel; n > 0 {
			r.queue.Limit(r.team.Config.Agents[i].Name, n)
		}
	}
	for _, of := range parallelLists(p) {
		r.queue.LimitGroup(of.tasks, of.most)
	}
	r.memory = openMemory(r.options.Memory, p, r.viewer)
	r.markFresh(p)
	r.messages.redeliver(p)
	return r, nil
}
