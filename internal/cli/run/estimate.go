package run

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
)

// An Estimate says which models a run could call, and the most that their calls can take and cost, in JSON.
type Estimate struct {
	Scripted bool                 `json:"scripted"` // a script answers in place of the models
	Models   []EstimatedModel     `json:"models"`
	AtMost   *engine.PlannedUsage `json:"atMost,omitempty"` // nil for a goal: its tasks are not planned yet

	CostBudget float64  `json:"costBudget,omitempty"` // of the run, in US dollars
	Missing    []string `json:"missing"`              // inputs without a text, which count as empty
	Problem    string   `json:"problem,omitempty"`    // why the run could not begin so; the rest is then not known
}

// An EstimatedModel is a model that a run could call, in JSON.
type EstimatedModel struct {
	Model    string   `json:"model"`
	Endpoint string   `json:"endpoint"` // without a path, which may come from a variable
	Local    bool     `json:"local"`    // the endpoint is on this computer
	Priced   bool     `json:"priced"`
	Free     bool     `json:"free"` // its price is zero
	Agents   []string `json:"agents"`
}

// Estimate checks the run as Prepare does, and returns what it could cost. Nothing is called.
func (l Launch) Estimate(ctx context.Context, con *console.Console, missing []string) (*Estimate, error) {
	j, err := l.job()
	if err != nil {
		return nil, err
	}
	con = silent(con)
	file, err := j.loadSpec(ctx, con)
	if err != nil {
		return nil, err
	}
	t, err := connect.BuildTeam(file, connect.Unconnected(con.LookupEnv))
	if err != nil {
		return nil, located(file, err)
	}
	o := j.Options(file)
	e := &Estimate{Scripted: j.Offline || j.Script != "", Models: []EstimatedModel{}, CostBudget: o.MaxCostBudget.Dollars(), Missing: append([]string{}, missing...)}
	works := func(string) bool { return true }
	if file.Goal == nil {
		p, err := files.Await(ctx, func() (*engine.Plan, error) { return t.Plan(file.Tasks, &o) }) // Plan takes no context, and patterns of a policy may be slow
		if err != nil {
			return nil, located(file, err)
		}
		e.AtMost = &p.AtMost
		works = func(agent string) bool {
			i := slices.IndexFunc(p.Agents, func(a engine.PlannedAgent) bool { return a.Name == agent })
			return i >= 0 && (p.Agents[i].Tasks > 0 || len(p.Edges) > 0)
		}
	}
	for i := range file.Agents {
		if a := &file.Agents[i]; a.Process == nil && !a.Person && works(a.Member.Name) {
			err = errors.Join(err, e.add(a.Member.Name, a.Connection, file, con.LookupEnv))
		}
	}
	if c := file.Coordinator; c != nil && file.Goal != nil {
		err = errors.Join(err, e.add(handoff.Coordinator, c.Connection, file, con.LookupEnv))
	}
	return e, err
}

// add adds the models that an agent may call.
func (e *Estimate) add(agent string, own specfile.Connection, file *specfile.File, lookup func(string) (string, bool)) error {
	bases, err := connect.AllBaseURLs(own, lookup)
	if err != nil {
		return err
	}
	for i, to := range append([]specfile.Connection{own}, own.Fallback...) {
		price, priced := file.Config.Prices[to.ModelAsWritten()]
		m := EstimatedModel{Model: to.ModelAsWritten(), Endpoint: origin(bases[i]), Local: endpoint.IsLocal(bases[i]), Priced: priced, Free: priced && pricing.MaxCost(price, llm.Usage{InputTokens: 1, OutputTokens: 1}) == 0}
		k := slices.IndexFunc(e.Models, func(of EstimatedModel) bool { return of.Model == m.Model && of.Endpoint == m.Endpoint })
		if k < 0 {
			k, e.Models = len(e.Models), append(e.Models, m)
		}
		e.Models[k].Agents = append(e.Models[k].Agents, agent)
	}
	return nil
}

// origin returns a base URL without its path.
func origin(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
