package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/llm"
)

// Conditions of a model call that was not made. A [*BudgetError] wraps them.
var (
	ErrBudget     = errors.New("token budget exceeded") // too few tokens were left
	ErrCostBudget = errors.New("cost budget exceeded")  // too little money was left
)

// A BudgetError reports a call that a budget did not admit. Amounts are tokens, or
// [llm.Money] of a cost budget. What was left is not here: it would reveal the size of prompts
// and replies that the caller may not see. Needed is zero for a call that the caller may not see,
// and Spent leaves such calls out.
type BudgetError struct {
	Agent  string
	Own    bool // it is the agent's own budget, not that of the run
	Cost   bool // it is a cost budget
	Needed int64
	Spent  int64 // the cost of finished calls; zero for a token budget
	Limit  int64
}

// Error names the agent and the budget, and says what the call needed.
func (e *BudgetError) Error() string {
	if !e.Cost {
		whose, need := "", ""
		if e.Own {
			whose = "its "
		}
		if e.Needed > 0 {
			need = fmt.Sprintf(": it needs %d with a short reply", e.Needed)
		}
		return fmt.Sprintf("%v: a call of %q does not fit into what is left of %s%d tokens%s", ErrBudget, e.Agent, whose, e.Limit, need)
	}
	whose, where, need := "", "of the run", "does not fit"
	if e.Own {
		whose, where = fmt.Sprintf(" of agent %q", e.Agent), "of the agent"
	}
	if e.Needed > 0 {
		need = "costs " + llm.Money(e.Needed).String() + " with a short reply"
	}
	return fmt.Sprintf("%v: %v of %v%s spent, and a call of %q %s; raise maxCostBudget %s",
		ErrCostBudget, llm.Money(e.Spent), llm.Money(e.Limit), whose, e.Agent, need, where)
}

// Unwrap returns [ErrBudget] or [ErrCostBudget].
func (e *BudgetError) Unwrap() error {
	if e != nil && e.Cost {
		return ErrCostBudget
	}
	return ErrBudget
}

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
	calls    []plan.PriorCall // that were paid, if the run is a turn of a session
	keeps    bool             // calls are kept
	freed    chan struct{}    // closed and replaced whenever a reservation ends
}

// newBudgets returns the accounts of a run and its agents. Those of the run come first,
// so that its error is reported if several refuse a call.
func newBudgets(t *plan.Roster, o *RunOptions, bus *bus) *budgets {
	b := &budgets{team: t, bus: bus, keeps: o.Turn != nil, freed: make(chan struct{})}
	open := func(agent string, limit plan.Budget) {
		if n := limit.MaxTokenBudget; n > 0 {
			b.accounts = append(b.accounts, &account{agent: agent, limit: int64(n)})
		}
		if n := limit.MaxCostBudget; n > 0 {
			b.accounts = append(b.accounts, &account{agent: agent, cost: true, limit: int64(n)})
		}
	}
	open("", o.Budget)
	for i := range t.Config.Agents {
		open(t.Config.Agents[i].Name, t.Config.Agents[i].Budget)
	}
	if c := t.Config.Coordinator; c != nil {
		open(handoff.Coordinator, c.Budget)
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

// count counts calls that other processes, or other turns of the session, have paid.
func (b *budgets) count(calls []plan.PriorCall) {
	for _, s := range calls {
		cost := b.costOf(&s)
		for _, a := range b.of(s.Agent) {
			if !s.Told {
				add(&a.spent, a.amount(s.Usage, cost))
			}
			if !s.Hidden {
				add(&a.shown, int64(cost))
			}
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

// take reserves the most that a call may take in all its accounts, and returns it. If too little is left only because of
// other reservations, it waits for these calls to end: most take less than is reserved for them. If too little is left
// without them, the reply gets what is left, if that is enough for a short one.
func (b *budgets) take(ctx context.Context, who string, from []*account, most llm.Usage, price llm.Price, hidden bool) (llm.Usage, error) {
	short := llm.Usage{InputTokens: most.InputTokens, OutputTokens: min(most.OutputTokens, tokencount.Reply)}
	for len(from) > 0 {
		b.mu.Lock()
		granted, wait := most, false
		for _, a := range from {
			left := a.limit - a.spent
			switch {
			case a.cost && a.amount(most, pricing.MaxCost(price, most)) == 0: // a free model costs nothing
			case a.reply(left, most, price) < short.OutputTokens: // waiting would not help
				n := a.amount(short, pricing.MaxCost(price, short))
				if hidden {
					n = 0
				}
				err := a.short(who, n)
				b.mu.Unlock()
				return granted, err
			case a.reply(left-a.reserved, most, price) == most.OutputTokens:
			case a.reserved > 0:
				wait = true
			default:
				granted.OutputTokens = min(granted.OutputTokens, max(powerOfTwo(a.reply(left, most, price)), short.OutputTokens))
			}
		}
		if !wait {
			cost := pricing.MaxCost(price, granted)
			for _, a := range from {
				a.reserved += a.amount(granted, cost)
			}
			b.mu.Unlock()
			return granted, nil
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return granted, context.Cause(ctx)
		}
	}
	return most, nil
}

// reply returns how many tokens of a reply an amount is enough for, at most those of a call; below zero if it is not enough
// for the prompt.
func (a *account) reply(amount int64, of llm.Usage, price llm.Price) int {
	return sort.Search(min(of.OutputTokens, math.MaxInt-1)+1, func(n int) bool {
		u := llm.Usage{InputTokens: of.InputTokens, OutputTokens: n}
		return a.amount(u, pricing.MaxCost(price, u)) > amount
	}) - 1
}

// powerOfTwo returns the highest power of two that is not above n. A limit of a reply that is rounded so says little of what
// hidden calls took.
func powerOfTwo(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// short returns the error of a call for which the account has too little left. The caller
// holds the lock.
func (a *account) short(who string, needed int64) error {
	return &BudgetError{Agent: who, Own: a.agent != "", Cost: a.cost, Needed: needed, Spent: a.shown, Limit: a.limit}
}

// paid returns the calls that were paid since the run was opened here.
func (b *budgets) paid() []plan.PriorCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// settle ends the reservation of an estimate with what the call took.
func (b *budgets) settle(agent string, from []*account, estimate llm.Usage, most llm.Money, took llm.Usage, cost llm.Money) {
	if len(from) == 0 && !b.keeps {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keeps {
		b.calls = append(b.calls, plan.PriorCall{Agent: agent, Usage: took, Cost: cost, Hidden: true}) // see show
	}
	for _, a := range from {
		a.reserved -= a.amount(estimate, most)
		add(&a.spent, a.amount(took, cost))
	}
	if len(from) == 0 {
		return
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

// show adds a cost to what errors show to the caller.
func (b *budgets) show(agent string, cost llm.Money) {
	if cost == 0 || len(b.accounts) == 0 && !b.keeps {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keeps {
		b.calls = append(b.calls, plan.PriorCall{Agent: agent, Cost: cost, Told: true})
	}
	for _, a := range b.of(agent) {
		add(&a.shown, int64(cost))
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
