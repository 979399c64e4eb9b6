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
)

// graphs makes the documents that need the plan of a run or a second run.
type graphs struct {
	*documents
	mu    sync.Mutex // guards plans
	plans []cachedPlan
}

// maxPlans is the number of cached plans. Plans do not change: the journal has a copy of each spec.
const maxPlans = 4

// A cachedPlan is the plan of a run, or the error that it has none.
type cachedPlan struct {
	run  string
	plan *engine.Plan
	err  error
}

// plan returns the plan of the run with this ID. The error has the code not_found if there is none for the
// viewer.
func (g *graphs) plan(ctx context.Context, run string) (*engine.Plan, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range g.plans {
		if of.run == run {
			return of.plan, of.err
		}
	}
	p, err := restored.PlanFor(ctx, g.con, g.flags, g.j, run, g.accepts)
	if none, ok := errors.AsType[*restored.NoPlanError](err); ok {
		err = &inspector.Error{Code: inspector.NotFound, Message: none.Error()}
	} else if err != nil {
		return nil, err
	}
	g.plans = append(g.plans, cachedPlan{run, p, err})
	g.plans = g.plans[max(0, len(g.plans)-maxPlans):]
	return p, err
}

// Graph returns the drawing of a run; see [inspector.Graph]. Without a plan it shows what was recorded.
func (g *graphs) Graph(ctx context.Context, run string, expand []string) (any, error) {
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) {
		p, err := g.plan(ctx, k.Run)
		if refused, ok := errors.AsType[*inspector.Error](err); err != nil && (!ok || refused.Code != inspector.NotFound) {
			return nil, err
		}
		return rungraph.New(k, p, expand), nil
	})
}

// Flow returns who could see what by the plan of a run; see [inspector.Flow].
func (g *graphs) Flow(ctx context.Context, run, from, to string) (any, error) {
	found, err := journals.Find(ctx, g.j, run)
	if err != nil {
		return nil, problem(err)
	}
	p, err := g.plan(ctx, found.Run)
	if err != nil {
		return nil, problem(err)
	}
	flow, err := plan.FlowOf(p, from, to)
	return flow, problem(err)
}

// Handoffs returns decisions of the gate; see [inspector.Handoffs].
func (g *graphs) Handoffs(ctx context.Context, run string, of inspector.HandoffQuery) (any, error) {
	if pair := of.From != "" && of.To != ""; pair == (of.Task != "") {
		return nil, &inspector.Error{Code: inspector.BadRequest, Message: "the request names neither one task nor one pair of agents", Hint: "add ?task=TASK, or ?from=AGENT&to=AGENT"}
	}
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) {
		if of.Task != "" {
			return explain.HandoffsOf(k.Trace, of.Task)
		}
		return explain.HandoffsBetween(k.Trace, of.From, of.To), nil
	})
}

// ofReplay is the name under which a run is compared with its replay.
const ofReplay = "replay"

// Compare compares a run with another one, or with its replay; see [inspector.Comparer].
func (g *graphs) Compare(ctx context.Context, run, other string) (any, error) {
	if other == ofReplay {
		return g.replay(ctx, run)
	}
	found, err := journals.Find(ctx, g.j, other)
	if err != nil {
		return nil, problem(err)
	}
	after, err := journals.LoadFor(ctx, g.con, g.j, found, "", g.accepts)
	if err != nil {
		return nil, problem(err)
	}
	return g.with(ctx, run, func(k *journals.StoredRun) (any, error) { return replay.Compare(k, after), nil })
}

// replay compares a run with its replay. Prompts are built from the whole run, and shown as the viewer sees them.
func (g *graphs) replay(ctx context.Context, run string) (any, error) {
	found, err := journals.Find(ctx, g.j, run)
	if err != nil {
		return nil, problem(err)
	}
	whole, err := journals.Load(ctx, g.con, g.j, found, "")
	if err != nil {
		return nil, problem(err)
	}
	shown, err := journals.LoadFor(ctx, g.con, g.j, found, "", g.accepts)
	if err != nil {
		return nil, problem(err)
	}
	d, err := replay.Repeat(ctx, g.con, g.flags, whole, shown, g.accepts)
	return d, problem(err)
}

// Export returns a run as one HTML file; see [inspector.Exporter].
func (g *graphs) Export(ctx context.Context, run string) (name string, html []byte, err error) {
	found, err := journals.Find(ctx, g.j, run)
	if err == nil {
		name, html, err = export.Page(ctx, g.con, g.flags, g.j, found, g.accepts)
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
