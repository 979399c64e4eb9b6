package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A meter pays the model calls of one model call from its budgets, and counts them.
type meter struct {
	budgets  *budgets
	accounts []*account
	agent    string
	task     *task.Task
	attempt  int
	hidden   bool              // the caller may not see all of its prompt
	context  supervise.Context // of the agent's work

	mu      sync.Mutex // guards the rest: an agent may make calls side by side
	charged llm.Usage  // charged for all calls
	counted llm.Usage  // counted by the endpoints
	paid    llm.Money  // cost of charged, without models that have no price
	cost    llm.Money  // cost of counted and of what the agent reports, likewise
	turns   int        // calls that were answered
	partly  bool       // cost lacks that of a model without a price
	refused exhausted  // the budget of the run that refused a call
	ended   bool       // the model call has ended; calls of goroutines it left behind emit no events
}

// meter returns a meter for a model call.
func (b *budgets) meter(x *modelCall) *meter {
	accounts := b.of(x.caps.Agent)
	if x.task.IsComputed() { // it calls no model, so it also runs when a budget is used up
		accounts = nil
	}
	return &meter{budgets: b, accounts: accounts, agent: x.caps.Agent, task: x.task, attempt: x.number, hidden: x.hidden}
}

// checkLeft returns an error if an account has nothing left. An agent written in Go may
// report what it took only afterwards.
func (m *meter) checkLeft() error {
	if len(m.accounts) == 0 {
		return nil
	}
	price, known := m.budgets.price(m.agent, "")
	m.budgets.mu.Lock()
	var err error
	for _, a := range m.accounts {
		free := a.cost && known && pricing.MaxCost(price, llm.Usage{InputTokens: 1, OutputTokens: 1}) == 0
		if a.limit <= a.spent && !free && err == nil {
			err = a.short(m.agent, 0)
		}
	}
	m.budgets.mu.Unlock()
	if err != nil {
		m.refuse(err)
	}
	return err
}

// paysCost reports whether one of the accounts is a cost budget.
func (m *meter) paysCost() bool {
	for _, a := range m.accounts {
		if a.cost {
			return true
		}
	}
	return false
}

// priceOf returns the price of a model, and whether it has one. If it has none, a cost
// budget makes that an error.
func (m *meter) priceOf(model string) (price llm.Price, priced bool, err error) {
	if price, priced = m.budgets.price(m.agent, model); !priced && m.paysCost() {
		err = noPrice(m.agent, cmp.Or(model, m.budgets.team.Find(m.agent).FirstModel()))
	}
	return price, priced, err
}

// noPrice is the error of a call without a price under a cost budget.
func noPrice(agent, model string) error {
	if model == "" {
		return fmt.Errorf("%w: agent %q called a model without a name; set Model of the agent to one of prices", plan.ErrNoPrice, agent)
	}
	return fmt.Errorf("%w: agent %q called %q, which a cost budget cannot count; add it to prices", plan.ErrNoPrice, agent, model)
}

// Reserve admits a model call.
func (m *meter) Reserve(ctx context.Context, model string, most llm.Usage) (granted llm.Usage, settle func(supervise.CallUsage), err error) {
	price, priced, err := m.priceOf(model)
	if err == nil {
		granted, err = m.budgets.take(ctx, m.agent, m.accounts, most, price, m.hidden)
	}
	if err != nil {
		m.refuse(err)
		return granted, nil, err
	}
	return granted, func(s supervise.CallUsage) {
		cost := price.Cost(s.Charged)
		if s.Counted == (llm.Usage{}) { // how many tokens are cached or reasoning is unknown
			cost = pricing.MaxCost(price, s.Charged)
		}
		m.mu.Lock()
		m.charged, m.counted = m.charged.Add(s.Charged), m.counted.Add(s.Counted)
		m.paid, m.cost = m.paid.Add(cost), m.cost.Add(price.Cost(s.Counted))
		m.partly = m.partly || !priced && s.Counted != (llm.Usage{})
		if s.Answered {
			m.turns++
		}
		m.mu.Unlock()
		m.budgets.settle(m.agent, m.accounts, granted, pricing.MaxCost(price, granted), s.Charged, cost)
	}, nil
}

// settleReported pays for what an agent reports beyond what its calls were charged. The
// reported usage covers all calls of the agent, including those that were charged.
func (m *meter) settleReported(reported llm.Usage) error {
	m.mu.Lock()
	extra := llm.Usage{}.Add(less(reported, m.charged)) // Add counts what is below zero as zero
	if total(extra) == 0 {
		m.mu.Unlock()
		return nil
	}
	price, priced, err := m.priceOf("")
	cost := price.Cost(extra)
	m.partly = m.partly || !priced
	m.charged, m.paid, m.cost = m.charged.Add(extra), m.paid.Add(cost), m.cost.Add(cost)
	m.mu.Unlock()
	m.budgets.settle(m.agent, m.accounts, llm.Usage{}, 0, extra, cost)
	return err
}

// settleReply pays for the usage that a reply reports. It returns err or, if that is
// nil, what is wrong with the usage.
func (m *meter) settleReply(r *agent.Reply, err error) error {
	if counted := (llm.Usage{}).Add(r.Usage); counted != r.Usage || r.Turns < 0 { // below zero
		r.Usage, r.Turns = counted, max(r.Turns, 0)
		if err == nil {
			err = errUsage
		}
	}
	if unpriced := m.settleReported(r.Usage); err == nil {
		err = unpriced
	}
	return err
}

// addUsage adds the model calls that the agent did not report to a reply. It returns what
// the calls were charged and what they cost by the counted tokens, which is zero if a
// price is unknown.
func (m *meter) addUsage(r *agent.Reply) (paid, cost llm.Money) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, v := r.Usage, m.counted
	r.Usage = llm.Usage{
		InputTokens: max(u.InputTokens, v.InputTokens), OutputTokens: max(u.OutputTokens, v.OutputTokens),
		CachedTokens: max(u.CachedTokens, v.CachedTokens), ReasoningTokens: max(u.ReasoningTokens, v.ReasoningTokens),
	}
	r.Turns = max(r.Turns, m.turns)
	if m.partly {
		return m.paid, 0
	}
	return m.paid, m.cost
}

// end ends the meter, and returns the kind of budget of the run that refused a call.
func (m *meter) end() exhausted {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	return m.refused
}

// refuse records a call that was not made because of err, and emits an event.
func (m *meter) refuse(err error) {
	short, ok := err.(*BudgetError) //nolint:errorlint // only an error of this meter counts
	if !ok {
		return
	}
	kind, code := tokensExhausted, codes.Budget
	if short.Cost {
		kind, code = costExhausted, codes.CostBudget
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !short.Own {
		m.refused = cmp.Or(m.refused, kind)
	}
	if !m.ended {
		m.budgets.bus.emit(event.Event{
			Type:    event.Budget,
			Task:    m.task.ID,
			Title:   m.task.Title,
			Agent:   m.agent,
			Attempt: m.attempt,
			Problem: event.Problem{Code: code, Message: err.Error(), OwnBudget: short.Own},
		})
	}
}
