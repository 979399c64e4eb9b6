package engine

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
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Conditions of a model call that was not made.
var (
	// ErrBudget reports that a token budget had not enough left. A [*BudgetError] wraps it.
	ErrBudget = errors.New("token budget exceeded")
	// ErrCostBudget reports that a cost budget had not enough left. A [*CostBudgetError] wraps it.
	ErrCostBudget = errors.New("cost budget exceeded")
)

// A BudgetError reports a call that a token budget did not admit. It has a coarse class
// of what was needed and omits what was left, which would reveal the exact size of
// prompts and replies that the caller may not see.
type BudgetError struct {
	Agent  string
	Own    bool // it is the agent's own budget, not that of the run
	Needed int  // estimated tokens of the call, rounded up to a [gate.TokenClass]
	Limit  int  // tokens
}

// Error names the agent, the budget and what the call needed.
func (e *BudgetError) Error() string {
	whose := ""
	if e.Own {
		whose = "its "
	}
	return fmt.Sprintf("%v: a call of %q does not fit into what is left of %s%d tokens: it may need up to %d",
		ErrBudget, e.Agent, whose, e.Limit, e.Needed)
}

// Unwrap returns [ErrBudget].
func (e *BudgetError) Unwrap() error { return ErrBudget }

// A CostBudgetError reports a call that a cost budget did not admit.
type CostBudgetError struct {
	Agent  string
	Own    bool      // it is the agent's own budget, not that of the run
	Needed llm.Money // the most that the call may cost, its prompt rounded up to a [gate.TokenClass]
	Spent  llm.Money // the cost of finished calls; coarse if the caller may not see them
	Limit  llm.Money
}

// Error says how much of the budget is spent and which setting to change.
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

// refusedByBudget reports whether a budget did not admit the call, so that it was not made.
func refusedByBudget(err error) bool {
	return errors.Is(err, ErrBudget) || errors.Is(err, ErrCostBudget) || errors.Is(err, plan.ErrNoPrice)
}

// exhausted is the kind of budget of the run that refused a model call.
type exhausted uint8

const (
	notExhausted exhausted = iota
	tokensExhausted
	costExhausted
)

// skipReason is the reason of the tasks that were skipped because of the budget.
func (e exhausted) skipReason() string {
	if e == costExhausted {
		return "Skipped: cost budget spent."
	}
	return "Skipped: token budget spent."
}

// An account is one budget: the tokens or the cost of a run or of one agent.
// Amounts are tokens or [llm.Money].
type account struct {
	agent    string // pays only calls of this agent; empty means all calls of the run
	cost     bool   // amounts are money, else tokens
	limit    int64
	spent    int64
	reserved int64
	shown    int64 // the cost of finished calls that errors show to the caller; only if cost is set
}

// amount returns the part of a usage and its cost that counts for the account.
func (a *account) amount(u llm.Usage, cost llm.Money) int64 {
	if a.cost {
		return int64(cost)
	}
	return int64(total(u))
}

// add adds an amount, at most up to the largest int64.
func add(sum *int64, amount int64) { *sum += min(amount, math.MaxInt64-*sum) }

// budgets are the accounts of a run. One lock covers them all, so that either all
// accounts of a call admit it or none does.
type budgets struct {
	team *plan.Roster
	bus  *bus

	mu       sync.Mutex // guards the rest
	accounts []*account
	freed    chan struct{} // closed and replaced whenever a reservation ends
}

// newBudgets returns the accounts of a run and its agents. Those of the run come first,
// so that its error is reported if several refuse a call.
func newBudgets(t *plan.Roster, o *plan.Options, bus *bus) *budgets {
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
	for i := range t.Config.Agents {
		m := &t.Config.Agents[i]
		open(m.Name, m.MaxTokenBudget, m.MaxCostBudget)
	}
	if c := t.Config.Coordinator; c != nil {
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

// price returns the price of the named model, or of the agent's model if the name is
// empty. It reports whether there is one.
func (b *budgets) price(agent, model string) (llm.Price, bool) {
	p, ok := b.team.Config.Prices[cmp.Or(model, b.team.Find(agent).FirstModel())]
	return p, ok
}

// resume counts what earlier processes of the run spent.
func (b *budgets) resume(p *past) {
	for _, s := range p.spending() {
		cost := b.costOf(&s)
		for _, a := range b.of(s.Agent) {
			add(&a.spent, a.amount(s.Usage, cost))
			add(&a.shown, int64(cost))
		}
	}
}

// costOf returns the recorded cost of earlier calls, else the cost by their price.
func (b *budgets) costOf(s *plan.PriorCall) llm.Money {
	if s.Cost > 0 {
		return s.Cost
	}
	p := b.team.Config.Prices[s.Model]
	return p.Cost(s.Usage)
}

// take reserves the most that a call may take in all its accounts. If too little is left
// only because of other reservations, it waits for these calls to end: most take less
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
			if n > a.limit-a.spent { // waiting would not help
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

// short returns the error of a call for which the account has too little left. The caller
// holds the lock.
func (a *account) short(who string, estimate llm.Usage, price llm.Price) error {
	rounded := llm.Usage{InputTokens: gate.TokenClass(estimate.InputTokens), OutputTokens: estimate.OutputTokens}
	if a.cost {
		return &CostBudgetError{
			Agent: who, Own: a.agent != "", Needed: price.MaxCost(rounded), Spent: llm.Money(a.shown), Limit: llm.Money(a.limit),
		}
	}
	return &BudgetError{Agent: who, Own: a.agent != "", Needed: gate.TokenClass(total(estimate)), Limit: int(a.limit)}
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

// show adds a cost to what errors show to the caller.
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

// A payer is the agent and the attempt that a call is made for.
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
	charged llm.Usage  // charged for all calls
	counted llm.Usage  // counted by the endpoints
	paid    llm.Money  // cost of charged, without models that have no price
	cost    llm.Money  // cost of counted and of what the agent reports, likewise
	partly  bool       // cost lacks that of a model without a price
	turns   int        // calls that were answered
	refused exhausted  // the budget of the run that refused a call
	ended   bool       // the exchange has ended; calls of goroutines it left behind emit no events
}

// meter returns a meter for an exchange, and a context in which it pays the model calls.
func (b *budgets) meter(ctx context.Context, who payer) (*meter, context.Context) {
	m := &meter{budgets: b, who: who, accounts: b.of(who.agent)}
	return m, supervise.WithBudget(ctx, m)
}

// checkLeft returns an error if an account has nothing left. An agent written in Go may
// report what it took only afterwards.
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
	if price, priced = m.budgets.price(m.who.agent, model); !priced && m.paysCost() {
		err = noPrice(m.who.agent, cmp.Or(model, m.budgets.team.Find(m.who.agent).FirstModel()))
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
func (m *meter) Reserve(ctx context.Context, model string, estimate llm.Usage) (settle func(supervise.CallUsage), err error) {
	price, priced, err := m.priceOf(model)
	if err == nil {
		err = m.budgets.take(ctx, m.who.agent, m.accounts, estimate, price)
	}
	if err != nil {
		m.refuse(err)
		return nil, err
	}
	return func(s supervise.CallUsage) {
		cost := price.Cost(s.Charged)
		if s.Counted == (llm.Usage{}) { // how many tokens are cached or reasoning is unknown
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
	m.budgets.settle(m.accounts, llm.Usage{}, 0, extra, cost)
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
	ev := event.Event{
		Type:    event.Budget,
		Task:    m.who.task,
		Title:   m.who.title,
		Agent:   m.who.agent,
		Attempt: m.who.number,
		Problem: event.Problem{Message: err.Error()},
	}
	which := notExhausted
	if short, ok := err.(*BudgetError); ok { //nolint:errorlint // only an error of this meter counts
		which, ev.Code, ev.OwnBudget = tokensExhausted, codes.Budget, short.Own
	} else if short, ok := err.(*CostBudgetError); ok { //nolint:errorlint // as above
		which, ev.Code, ev.OwnBudget = costExhausted, codes.CostBudget, short.Own
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

// total returns the tokens of a usage. Negative counts are zero, and a sum that would
// overflow is the largest int.
func total(u llm.Usage) int {
	in, out := max(u.InputTokens, 0), max(u.OutputTokens, 0)
	if in > math.MaxInt-out {
		return math.MaxInt
	}
	return in + out
}
