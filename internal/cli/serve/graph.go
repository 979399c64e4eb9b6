package serve

import (
	"context"
	"errors"
	"sync"

	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/export"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/steer"
)

// graphs makes the documents that need the plan of a run or a second run.
type graphs struct{ *documents }

// A planCache has the plans of the runs that were shown last. It is safe for concurrent use.
type planCache struct {
	mu  sync.Mutex // guards all, and is held while a plan is made
	all []cachedPlan
}

// maxPlans is the number of cached plans.
const maxPlans = 4

// A cachedPlan is the plan of a run, or the error that it has none.
type cachedPlan struct {
	of   planKey
	plan *engine.Plan
	err  error
}

// A planKey says from what a plan was made. A plan changes with the spec and the policies of the run; under a policy
// that replaced another one, and as long as there is none, also with what the run records.
type planKey struct {
	run       string
	processes int
	policies  int
	row       int64 // the last one; zero if the plan does not depend on it
}

// keyOf returns the key of the plan of a run.
func (g *graphs) keyOf(ctx context.Context, k *journals.StoredRun) (planKey, error) {
	of := planKey{run: k.Run, processes: len(k.History.Begins)}
	for i := range k.History.Log {
		if c := k.History.Log[i].Command; c != nil && c.Kind == steer.ReplacePolicy {
			of.policies++
		}
	}
	last, err := g.j.LastRow(ctx, k.Run)
	of.row = last
	return of, journals.ReadError(ctx, err)
}

// plan returns the plan of a run by its newest policy. The error has the
// code not_found if there is none for the user of the run.
func (g *graphs) plan(ctx context.Context, k *journals.StoredRun) (*engine.Plan, error) {
	of, err := g.keyOf(ctx, k)
	if err != nil {
		return nil, err
	}
	fixed := of
	fixed.row = 0
	plans := g.plans
	plans.mu.Lock()
	defer plans.mu.Unlock()
	for _, c := range plans.all {
		if c.of == of || c.of == fixed {
			return c.plan, c.err
		}
	}
	p, err := restored.PlanFor(ctx, g.con, g.flags, &k.Info, &k.Whole)
	none, isNone := errors.AsType[*restored.NoPlanError](err)
	switch {
	case isNone:
		err = &inspector.Error{Code: inspector.NotFound, Message: none.Error()}
	case err != nil:
		return nil, err
	case of.policies == 0:
		of = fixed
	}
	plans.all = append(plans.all, cachedPlan{of, p, err})
	plans.all = plans.all[max(0, len(plans.all)-maxPlans):]
	return p, err
}

// Graph returns the graph of a run; see [inspector.Graph]. Without a plan it shows what was recorded.
func (g *graphs) Graph(ctx context.Context, run string) (any, error) {
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) {
		p, err := g.plan(ctx, k)
		if refused, ok := errors.AsType[*inspector.Error](err); err != nil && (!ok || refused.Code != inspector.NotFound) {
			return nil, err
		}
		return rungraph.New(k, p), nil
	})
}

// Flow returns who could see what by the plan of a run; see [inspector.Flow].
func (g *graphs) Flow(ctx context.Context, run string, of inspector.FlowQuery) (any, error) {
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) {
		p, err := g.plan(ctx, k)
		if err != nil {
			return nil, err
		}
		return plan.FlowOf(p, of.From, of.To)
	})
}

// Handoffs returns decisions of the gate; see [inspector.Handoffs].
func (g *graphs) Handoffs(ctx context.Context, run string, of inspector.HandoffQuery) (any, error) {
	if pair := of.From != "" && of.To != ""; pair == (of.Task != "") {
		return nil, &inspector.Error{Code: inspector.BadRequest, Message: "the request names neither one task nor one pair of agents", Hint: "add ?task=TASK, or ?from=AGENT&to=AGENT"}
	}
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) {
		if of.Task != "" {
			return explain.HandoffsOf(k, of.Task)
		}
		return explain.HandoffsBetween(k, of.From, of.To), nil
	})
}

// Compare compares a run with another one; see [inspector.Comparer].
func (g *graphs) Compare(ctx context.Context, run, other string) (any, error) {
	found, err := journals.Find(ctx, g.j, other)
	if err != nil {
		return nil, problem(err)
	}
	after, err := journals.Load(ctx, g.con, g.j, found, "")
	if err != nil {
		return nil, problem(err)
	}
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) { return replay.Compare(k, after), nil })
}

// Export returns a run as one HTML file; see [inspector.Exporter].
func (g *graphs) Export(ctx context.Context, run string) (name string, html []byte, err error) {
	found, err := journals.Find(ctx, g.j, run)
	if err != nil {
		return "", nil, problem(err)
	}
	level, err := g.j.Label(ctx, found.Run)
	if err == nil {
		name, html, err = export.Page(ctx, g.con, g.flags, g.j, found, level)
	}
	return name, html, problem(err)
}

var (
	_ inspector.Graph    = (*graphs)(nil)
	_ inspector.Flow     = (*graphs)(nil)
	_ inspector.Handoffs = (*graphs)(nil)
	_ inspector.Comparer = (*graphs)(nil)
	_ inspector.Exporter = (*graphs)(nil)
)
