package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Conditions of a model call that was not made.
var (
	// ErrBudget reports that a token budget had not enough left. A [*BudgetError] wraps it.
	ErrBudget = errors.New("token budget exceeded")
	// ErrCostBudget reports that a cost budget had not enough left. A [*CostBudgetError] wraps it.
	ErrCostBudget = errors.New("cost budget exceeded")
	// ErrNoPrice reports a model whose calls a cost budget cannot count.
	ErrNoPrice = errors.New("the model has no price")
)

// A BudgetError says for which agent a token budget was not enough. It says roughly
// how much was needed and not how much was left, which would tell the exact size
// of prompts and replies that the caller may not see.
type BudgetError struct {
	Agent  string
	Own    bool // the budget is that of the agent, and not of the run
	Needed int  // tokens that the call was estimated to take, rounded up to a [handoff.TokenClass]
	Limit  int
}

// Error says who needed how much of what.
func (e *BudgetError) Error() string {
	whose := ""
	if e.Own {
		whose = "its "
	}
	return fmt.Sprintf("%v: a call of %q does not fit into what is left of %s%d tokens: it may need up to %d", ErrBudget, e.Agent, whose, e.Limit, e.Needed)
}

// Unwrap returns [ErrBudget].
func (e *BudgetError) Unwrap() error { return ErrBudget }

// A CostBudgetError says for which agent a cost budget was not enough.
type CostBudgetError struct {
	Agent  string
	Own    bool      // the budget is that of the agent, and not of the run
	Needed llm.Money // what the call may cost, with its prompt rounded up to a [handoff.TokenClass]
	Spent  llm.Money // what finished calls cost, in the form that the caller is cleared for
	Limit  llm.Money
}

// Error says how much was spent of what, and what to do.
func (e *CostBudgetError) Error() string {
	whose, where := "", "of the run"
	if e.Own {
		whose, where = fmt.Sprintf(" of agent %q", e.Agent), "of the agent"
	}
	return fmt.Sprintf("%v: %v of %v%s spent, and a call of %q may cost up to %v; raise maxCostBudget %s, or lower maxTokens of the agent",
		ErrCostBudget, e.Spent, e.Limit, whose, e.Agent, e.Needed, where)
}

// Unwrap returns [ErrCostBudget].
func (e *CostBudgetError) Unwrap() error { return ErrCostBudget }

// refusedByBudget reports whether an error is that of a call that was not made.
func refusedByBudget(err error) bool {
	return errors.Is(err, ErrBudget) || errors.Is(err, ErrCostBudget) || errors.Is(err, ErrNoPrice)
}

// exhausted says which budget of a run refused a model call.
type exhausted uint8

const (
	notExhausted exhausted = iota
	tokensExhausted
	costExhausted
)

// skipReason says why what had not begun was skipped.
func (e exhausted) skipReason() string {
	if e == costExhausted {
		return "Skipped: cost budget spent."
	}
	return "Skipped: token budget spent."
}

// An account is one budget: the tokens or the cost of a run or of one agent.
// Amounts are tokens or [llm.Money].
type account struct {
	agent    string // whose calls it pays; empty for all calls of the run
	cost     bool
	limit    int64
	spent    int64
	reserved int64
	shown    int64 // of a cost account, what finished calls cost, in the form for the caller
}

// amount is what a usage takes from the account, or at most takes.
func (a *account) amount(u llm.Usage, cost llm.Money) int64 {
	if a.cost {
		return int64(cost)
	}
	return int64(total(u))
}

// add adds an amount, up to the largest there is.
func add(sum *int64, amount int64) { *sum += min(amount, math.MaxInt64-*sum) }

// budgets are the accounts of a run. One lock covers them all, so that a call is
// admitted by all budgets that it concerns, or by none.
type budgets struct {
	team *Team
	bus  *bus

	mu       sync.Mutex // guards the rest
	accounts []*account
	freed    chan struct{} // closed and made anew whenever a reservation ends
}

// newBudgets returns the accounts of a run. Those of the run are first: if several
// refuse a call, the error is that of the run.
func newBudgets(t *Team, o *RunOptions, bus *bus) *budgets {
	b := &budgets{team: t, bus: bus, freed: make(chan struct{})}
	open := func(agent string, tokens int, cost llm.Money) {
		if tokens > 0 {
			b.accounts = append(b.accounts, &account{agent: agent, limit: int64(tokens)})
		}
		if cost > 0 {
			b.accounts = append(b.accounts, &account{agent: agent, cost: true, limit: int64(cost)})
		}
	}
	open("", o.MaxTokenBudget, o.MaxCostBudget)
	for i := range t.config.Agents {
		m := &t.config.Agents[i]
		open(m.Name, m.MaxTokenBudget, m.MaxCostBudget)
	}
	if c := t.config.Coordinator; c != nil {
		open(handoff.Coordinator, c.MaxTokenBudget, c.MaxCostBudget)
	}
	return b
}

// of returns the accounts that the calls of an agent are paid from.
func (b *budgets) of(agent string) (list []*account) {
	for _, a := range b.accounts {
		if a.agent == "" || a.agent == agent {
			list = append(list, a)
		}
	}
	return list
}

// price returns the price of a call: that of the model, or if it does not name
// itself, that of the model of its agent.
func (b *budgets) price(agent, model string) (llm.Price, bool) {
	p, ok := b.team.config.Prices[cmp.Or(model, b.team.modelOf(agent))]
	return p, ok
}

// resume counts what earlier processes of the run spent.
func (b *budgets) resume(p *past) {
	for _, s := range p.spending() {
		cost := b.costOf(&s)
		for _, a := range b.of(s.agent) {
			add(&a.spent, a.amount(s.usage, cost))
			add(&a.shown, int64(cost))
		}
	}
}

// costOf returns what earlier calls cost.
func (b *budgets) costOf(s *spending) llm.Money {
	if s.cost > 0 {
		return s.cost
	}
	p := b.team.config.Prices[s.model]
	return p.Cost(s.usage)
}

// take reserves what a call may take in all accounts. While one has not enough
// left only because of calls under way, it waits for those: they mostly take less
// than is reserved for them.
func (b *budgets) take(ctx context.Context, who string, from []*account, estimate llm.Usage, price llm.Price) error {
	if len(from) == 0 {
		return nil
	}
	most := price.MaxCost(estimate)
	for {
		b.mu.Lock()
		wait := false
		for _, a := range from {
			n := a.amount(estimate, most)
			if a.cost && n == 0 {
				continue // a free model costs nothing, whatever is left
			}
			if n > a.limit-a.spent { // also when nothing is under way: then all that is left is free
				err := a.short(who, estimate, price)
				b.mu.Unlock()
				return err
			}
			wait = wait || n > a.limit-a.spent-a.reserved
		}
		if !wait {
			for _, a := range from {
				a.reserved += a.amount(estimate, most)
			}
			b.mu.Unlock()
			return nil
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// short is the error of a call that the account has not enough left for. The
// caller holds the lock.
func (a *account) short(who string, estimate llm.Usage, price llm.Price) error {
	rounded := llm.Usage{InputTokens: handoff.TokenClass(estimate.InputTokens), OutputTokens: estimate.OutputTokens}
	if a.cost {
		return &CostBudgetError{Agent: who, Own: a.agent != "", Needed: price.MaxCost(rounded), Spent: llm.Money(a.shown), Limit: llm.Money(a.limit)}
	}
	return &BudgetError{Agent: who, Own: a.agent != "", Needed: handoff.TokenClass(total(estimate)), Limit: int(a.limit)}
}

// settle ends the reservation of an estimate with what the call took.
func (b *budgets) settle(from []*account, estimate llm.Usage, most llm.Money, took llm.Usage, cost llm.Money) {
	if len(from) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range from {
		a.reserved -= a.amount(estimate, most)
		add(&a.spent, a.amount(took, cost))
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

// show counts a cost that errors may tell the caller.
func (b *budgets) show(agent string, cost llm.Money) {
	if len(b.accounts) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.of(agent) {
		add(&a.shown, int64(cost))
	}
}

// payer is for whom a call is made.
type payer struct {
	agent  string
	task   task.ID
	title  string
	number int
}

// A meter pays the model calls of one exchange from its budgets, and counts them.
type meter struct {
	budgets  *budgets
	who      payer
	accounts []*account

	mu      sync.Mutex // guards the rest: an agent may make calls side by side
	charged llm.Usage  // what calls were charged
	counted llm.Usage  // what endpoints counted of them
	paid    llm.Money  // the price of charged, as far as it is known
	cost    llm.Money  // the price of counted and of what the agent reports, likewise
	partly  bool       // cost is without the price of a model
	turns   int        // calls that were answered
	refused exhausted  // which budget of the run refused a call
	ended   bool       // the exchange has ended; what an agent left behind tells nothing
}

// meter returns what pays for an exchange, and a context in which it does.
func (b *budgets) meter(ctx context.Context, who payer) (*meter, context.Context) {
	m := &meter{budgets: b, who: who, accounts: b.of(who.agent)}
	return m, agent.WithBudget(ctx, m)
}

// checkLeft refuses to begin when nothing is left, since an agent written in Go may say
// only afterwards what it took.
func (m *meter) checkLeft() error {
	price, known := m.budgets.price(m.who.agent, "")
	least := llm.Usage{InputTokens: 1}
	m.budgets.mu.Lock()
	var err error
	for _, a := range m.accounts {
		free := a.cost && known && price.MaxCost(llm.Usage{InputTokens: 1, OutputTokens: 1}) == 0
		if a.limit <= a.spent && !free && err == nil {
			err = a.short(m.who.agent, least, price)
		}
	}
	m.budgets.mu.Unlock()
	if err != nil {
		m.refuse(err)
	}
	return err
}

// paysCost reports whether a cost budget counts the calls.
func (m *meter) paysCost() bool {
	for _, a := range m.accounts {
		if a.cost {
			return true
		}
	}
	return false
}

// priceOf returns the price of a model, if it has one. Under a cost budget a model
// without one is an error.
func (m *meter) priceOf(model string) (price llm.Price, priced bool, err error) {
	if price, priced = m.budgets.price(m.who.agent, model); !priced && m.paysCost() {
		err = noPrice(m.who.agent, cmp.Or(model, m.budgets.team.modelOf(m.who.agent)))
	}
	return price, priced, err
}

// noPrice is the error of a call without a price under a cost budget.
func noPrice(agent, model string) error {
	if model == "" {
		return fmt.Errorf("%w: agent %q called a model without a name; set Model of the agent to one of prices", ErrNoPrice, agent)
	}
	return fmt.Errorf("%w: agent %q called %q, which a cost budget cannot count; add it to prices", ErrNoPrice, agent, model)
}

// Reserve admits a model call.
func (m *meter) Reserve(ctx context.Context, model string, estimate llm.Usage) (settle func(agent.Spent), err error) {
	price, priced, err := m.priceOf(model)
	if err == nil {
		err = m.budgets.take(ctx, m.who.agent, m.accounts, estimate, price)
	}
	if err != nil {
		m.refuse(err)
		return nil, err
	}
	return func(s agent.Spent) {
		cost := price.Cost(s.Charged)
		if s.Counted == (llm.Usage{}) { // nobody knows how many of the tokens are the expensive ones
			cost = price.MaxCost(s.Charged)
		}
		m.mu.Lock()
		m.charged, m.counted = m.charged.Add(s.Charged), m.counted.Add(s.Counted)
		m.paid, m.cost = m.paid.Add(cost), m.cost.Add(price.Cost(s.Counted))
		m.partly = m.partly || !priced && s.Counted != (llm.Usage{})
		if s.Answered {
			m.turns++
		}
		m.mu.Unlock()
		m.budgets.settle(m.accounts, estimate, price.MaxCost(estimate), s.Charged, cost)
	}, nil
}

// settleReported pays for what an agent reports beyond the calls that were charged. What it
// reports counts as the usage of all its calls, those too that were charged.
func (m *meter) settleReported(reported llm.Usage) error {
	m.mu.Lock()
	extra := llm.Usage{
		InputTokens: max(reported.InputTokens-m.charged.InputTokens, 0), OutputTokens: max(reported.OutputTokens-m.charged.OutputTokens, 0),
		CachedTokens: max(reported.CachedTokens-m.charged.CachedTokens, 0), ReasoningTokens: max(reported.ReasoningTokens-m.charged.ReasoningTokens, 0),
	}
	if total(extra) == 0 {
		m.mu.Unlock()
		return nil
	}
	price, priced, err := m.priceOf("")
	cost := price.Cost(extra)
	m.partly = m.partly || !priced
	m.charged, m.paid, m.cost = m.charged.Add(extra), m.paid.Add(cost), m.cost.Add(cost)
	m.mu.Unlock()
	m.budgets.settle(m.accounts, llm.Usage{}, 0, extra, cost)
	return err
}

// addUsage adds to a reply the model calls that the agent does not report. It returns
// what the calls were charged, and what they cost by the counted tokens: zero if
// not all prices are known.
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

// end ends the meter, and returns which budget of the run refused a call of it.
func (m *meter) end() exhausted {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	return m.refused
}

// refuse notes a call that was not made, and tells subscribers.
func (m *meter) refuse(err error) {
	ev := event.Event{Type: event.Budget, Task: m.who.task, Title: m.who.title, Agent: m.who.agent, Attempt: m.who.number, Message: err.Error()}
	which := notExhausted
	if short, ok := err.(*BudgetError); ok { //nolint:errorlint // of this meter, and of no other
		which, ev.Code, ev.OwnBudget = tokensExhausted, CodeBudget, short.Own
	} else if short, ok := err.(*CostBudgetError); ok { //nolint:errorlint // likewise
		which, ev.Code, ev.OwnBudget = costExhausted, CodeCostBudget, short.Own
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if which == notExhausted {
		return
	}
	if !ev.OwnBudget {
		m.refused = cmp.Or(m.refused, which)
	}
	if !m.ended {
		m.budgets.bus.emit(ev)
	}
}

// total is how many tokens a usage counts. Whoever counts may be mistaken: below
// zero is nothing, and more than there can be is as many as there can be.
func total(u llm.Usage) int {
	in, out := max(u.InputTokens, 0), max(u.OutputTokens, 0)
	if in > math.MaxInt-out {
		return math.MaxInt
	}
	return in + out
}
