package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/team"
)

// limits bound what a command may take, before the spec does.
type limits struct {
	timeout time.Duration
	budget  int
	cost    float64 // US dollars
}

// flags adds the flags of a command; whole is what the time limit ends.
func (l *limits) flags(cmd *cobra.Command, whole string) {
	f := cmd.Flags()
	f.DurationVar(&l.timeout, "timeout", 0, "end "+whole+" after `TIME`, such as 90s or 5m (default: the spec's, else none)")
	f.IntVar(&l.budget, "max-token-budget", 0, "stop calling models once the token budget `N` would be exceeded (default: the spec's, else no limit)")
	f.Float64Var(&l.cost, "max-cost-budget", 0, "stop calling models once the cost budget of `USD` US dollars would be exceeded, by the prices in the spec (default: the spec's, else no limit)")
}

// check refuses limits that leave nothing.
func (l *limits) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("timeout") && l.timeout <= 0:
		return usageError("--timeout %v: write a time above zero, such as 90s", l.timeout)
	case changed("max-token-budget") && l.budget < 1:
		return usageError("--max-token-budget %d: write 1 or more", l.budget)
	case changed("max-cost-budget") && !(l.cost >= 0.000001 && l.cost <= llm.MaxPrice):
		return usageError("--max-cost-budget %v: write a number of US dollars from 0.000001 to 1000000", l.cost)
	}
	return nil
}

// apply puts the limits over those of a spec.
func (l *limits) apply(o *team.RunOptions) {
	if l.timeout > 0 {
		o.Timeout = l.timeout
	}
	if l.budget > 0 {
		o.MaxTokenBudget = l.budget
	}
	if l.cost > 0 {
		o.MaxCostBudget = llm.Dollars(l.cost)
	}
}
