package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/tool"
)

// A PlannedUsage is the most that the model calls of a run can take. Tokens are estimates, with a
// token for each four bytes. Calls count if they are answered: one that is made again because its
// endpoint failed does not, and neither does what people who steer the run cause.
type PlannedUsage struct {
	Calls        int `json:"calls"`
	PromptTokens int `json:"promptTokens"`          // of all prompts
	Tokens       int `json:"tokens,omitempty"`      // of prompts and answers; zero if there is no bound on some answers
	TokenBudget  int `json:"tokenBudget,omitempty"` // of the run, if Tokens is no more because of it

	Cost       *float64 `json:"cost,omitempty"`       // in US dollars, of the calls by the prices of their models; nil if there is no bound
	CostBudget float64  `json:"costBudget,omitempty"` // of the run, if Cost is no more because of it
	Unpriced   []string `json:"unpriced,omitempty"`   // models that may be called and have no price

	UnboundedAnswers []string `json:"unboundedAnswers,omitempty"` // agents whose models have no bound on an answer
	NotCounted       []string `json:"notCounted,omitempty"`       // agents whose calls are not known, such as programs
}

// Bounds of one attempt at a task.
const (
	MaxTurns     = 200 // the turns of an agent that has no bound of its own
	MaxToolCalls = 128 // the calls of tools in one turn
)

// mostInt bounds counts, so that sums of them do not overflow. JSON numbers are exact up to it.
const mostInt = 1 << 53

// times returns a product, at most mostInt.
func times(a, b int) int {
	if a > 0 && b > mostInt/a {
		return mostInt
	}
	return a * b
}

// An agentUsage is what the calls of one agent can take.
type agentUsage struct {
	calls, prompts, answers int
	unbounded               bool // some answer
	unknown                 bool // what it calls
}

// mostUsage returns the most that the model calls of a run of the plan can take.
func mostUsage(p *Plan) PlannedUsage {
	team := p.Roster()
	by := make([]agentUsage, len(team.Config.Agents))
	for i := range p.Graph.Len() {
		if t := p.Graph.Task(i); !Joins(t) && !t.IsComputed() && int(p.Members[i]) < len(by) {
			by[p.Members[i]].add(p, i)
			addChildren(by, p, i)
			addHolders(by, p, i)
		}
	}
	var all PlannedUsage
	for k := range by {
		u, m := &by[k], &team.Config.Agents[k]
		all.Calls, all.PromptTokens = min(all.Calls+u.calls, mostInt), min(all.PromptTokens+u.prompts, mostInt)
		tokens := min(u.prompts+u.answers, mostInt)
		switch budget := m.MaxTokenBudget; {
		case budget > 0 && (u.unbounded || tokens > budget):
			tokens = budget
		case u.unbounded:
			all.UnboundedAnswers = append(all.UnboundedAnswers, m.Name)
		}
		all.Tokens = min(all.Tokens+tokens, mostInt)
		if u.unknown {
			all.NotCounted = append(all.NotCounted, m.Name)
		}
	}
	if p.Options().Answer != nil || p.Goal {
		all.NotCounted = append(all.NotCounted, handoff.Coordinator)
	}
	bounded := len(all.UnboundedAnswers) == 0
	if !bounded {
		all.Tokens = 0
	}
	all.addCost(p, by)
	if budget := p.Options().MaxTokenBudget; budget > 0 && (!bounded || len(all.NotCounted) > 0 || all.Tokens > budget) {
		all.Tokens, all.TokenBudget = budget, budget
	}
	return all
}

// addCost adds the most that the calls of agents can cost. The prices are those of the dearest model that an agent may call.
func (all *PlannedUsage) addCost(p *Plan, by []agentUsage) {
	team, sum, whole, bounded := p.Roster(), llm.Money(0), llm.Money(0), true // whole is what the token budget of the run can cost
	for k := range by {
		u, m := &by[k], &team.Config.Agents[k]
		if u.calls == 0 {
			continue
		}
		highest, unpriced := highestPrice(team.Config.Prices, m)
		all.Unpriced = append(all.Unpriced, unpriced...)
		cost, known := llm.Money(math.MaxInt64), len(unpriced) == 0 && !u.unbounded
		if known {
			cost = pricing.MaxCost(highest, llm.Usage{InputTokens: u.prompts, OutputTokens: u.answers})
		}
		if n := m.MaxTokenBudget; n > 0 && len(unpriced) == 0 {
			cost, known = min(cost, dearest(highest, n)), true
		}
		if n := m.MaxCostBudget; n > 0 {
			cost, known = min(cost, n), true
		}
		sum, bounded = sum.Add(cost), bounded && known
		whole = max(whole, dearest(highest, p.Options().MaxTokenBudget))
	}
	slices.Sort(all.Unpriced)
	all.Unpriced = slices.Compact(all.Unpriced)
	if n := p.Options().MaxTokenBudget; n > 0 && len(all.Unpriced)+len(all.NotCounted) == 0 && (!bounded || sum > whole) {
		sum, bounded = whole, true
	}
	if n := p.Options().MaxCostBudget; n > 0 && (!bounded || len(all.NotCounted) > 0 || sum > n) {
		sum, bounded, all.CostBudget = n, true, n.Dollars()
	}
	if bounded && all.Calls > 0 {
		all.Cost = new(sum.Dollars())
	}
}

// dearest returns the most that so many tokens can cost.
func dearest(price llm.Price, tokens int) llm.Money {
	return max(pricing.MaxCost(price, llm.Usage{InputTokens: tokens}), pricing.MaxCost(price, llm.Usage{OutputTokens: tokens}))
}

// highestPrice returns the highest price of the models that a member may call, and those without a price.
func highestPrice(prices map[string]llm.Price, m *Member) (highest llm.Price, unpriced []string) {
	for _, model := range modelsOf(m.Agent) {
		model = cmp.Or(model, m.Model)
		price, priced := prices[model]
		if !priced {
			unpriced = append(unpriced, cmp.Or(model, "no model"))
			continue
		}
		one := pricing.MaxCost(price, llm.Usage{InputTokens: 1e6}).Dollars()
		highest.Input = max(highest.Input, one)
		highest.Output = max(highest.Output, pricing.MaxCost(price, llm.Usage{OutputTokens: 1e6}).Dollars())
	}
	return highest, unpriced
}

// callLimits returns how many calls an attempt of an agent makes and how many tokens each answer has at most, of
// which zero is unlimited. Only those of an agent that calls a model are known.
func (m *Member) callLimits() (calls, answerTokens int, known bool) {
	limited, known := m.Agent.(interface {
		CallLimits() (calls, answerTokens int)
	})
	if !known {
		return 0, 0, false
	}
	calls, answerTokens = limited.CallLimits()
	return calls, answerTokens, true
}

// add adds what the calls for task i can take.
func (u *agentUsage) add(p *Plan, i int) {
	t, m := p.Graph.Task(i), &p.Roster().Config.Agents[p.Members[i]]
	turns, answer, known := m.callLimits()
	switch {
	case m.IsPerson():
		return
	case !known:
		u.unknown = true
		return
	}
	turns = cmp.Or(min(turns, MaxTurns), MaxTurns)
	s, tools := sizesOfPrompts(p, i), p.Tools(i)
	translated, later := s.translated, s.most
	switch {
	case len(tools)+len(RuntimeTools(p, i)) > 0:
		if slices.ContainsFunc(tools, func(f *tool.Tool) bool { return p.Roster().Terms(gate.ToolReader(f.Name), t.Assignee).ByReader() }) {
			translated += (turns - 1) * MaxToolCalls
		}
	case p.Schemas[i] != nil:
		turns, later = min(turns, 2), s.corrected // the answer, and its correction
	default:
		turns = 1
	}
	attempts := min(t.MaxRetries, mostInt-1) + 1
	prompts := s.first + times(turns-1, later) + times(translated, s.most)
	u.calls = min(u.calls+times(attempts, turns+translated), mostInt)
	u.prompts = min(u.prompts+times(attempts, min(prompts, mostInt)), mostInt)
	if answer > 0 {
		u.answers = min(u.answers+times(times(attempts, turns+translated), answer), mostInt)
	} else {
		u.unbounded = true
	}
}
