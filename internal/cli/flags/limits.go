package flags

import (
	"time"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/llm"
	"github.com/spf13/cobra"
)

// Limits are the flags that bound time, tokens and cost. They take precedence over the spec.
type Limits struct {
	timeout time.Duration
	Budget  int
	Cost    float64 // US dollars
}

// AddTo adds the flags to a command; whole names what the time limit ends.
func (l *Limits) AddTo(cmd *cobra.Command, whole string) {
	f := cmd.Flags()
	f.DurationVar(&l.timeout, "timeout", 0, "end "+whole+" after `TIME`, such as 90s or 5m (default: the spec's, else none)")
	f.IntVar(&l.Budget, "max-token-budget", 0, "stop calling models once the token budget `N` would be exceeded (default: the spec's, else no limit)")
	f.Float64Var(&l.Cost, "max-cost-budget", 0, "stop calling models once the cost budget of `USD` US dollars would be exceeded, by the prices in the spec (default: the spec's, else no limit)")
}

// Check refuses limits that nothing can meet.
func (l *Limits) Check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("timeout") && l.timeout <= 0:
		return exit.Usagef("--timeout %v: write a time above zero, such as 90s", l.timeout)
	case changed("max-token-budget") && l.Budget < 1:
		return exit.Usagef("--max-token-budget %d: write 1 or more", l.Budget)
	case changed("max-cost-budget") && !(l.Cost >= 0.000001 && l.Cost <= pricing.Max):
		return exit.Usagef("--max-cost-budget %v: write a number of US dollars from 0.000001 to 1000000", l.Cost)
	}
	return nil
}

// Apply replaces the limits of a spec by those that are set.
func (l *Limits) Apply(o *engine.RunOptions) {
	if l.timeout > 0 {
		o.Timeout = l.timeout
	}
	if l.Budget > 0 {
		o.MaxTokenBudget = l.Budget
	}
	if l.Cost > 0 {
		o.MaxCostBudget = llm.Dollars(l.Cost)
	}
}
