package plan

import (
	"fmt"
	"io"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/llm"
)

// mostNamed is how many agents a line about model calls names.
const mostNamed = 5

// writeUsage writes the most that the model calls of a run can take.
func writeUsage(w io.Writer, u *engine.PlannedUsage) {
	text := "none"
	if u.Calls > 0 {
		text = "at most " + format.Number(u.Calls)
	}
	switch {
	case u.TokenBudget > 0:
		text += fmt.Sprintf(", with %s by the token budget", format.Plural(u.TokenBudget, "token"))
	case u.Calls == 0:
	case len(u.UnboundedAnswers) == 0:
		text += fmt.Sprintf(", with about %s tokens", format.Number(roundedUp(u.Tokens)))
	default:
		text += fmt.Sprintf(", with about %s tokens of prompts; answers unbounded: no maxTokens for %s", format.Number(roundedUp(u.PromptTokens)), format.List(u.UnboundedAnswers, mostNamed))
	}
	switch {
	case u.CostBudget > 0:
		text += fmt.Sprintf("; at most %v by the cost budget", llm.Dollars(u.CostBudget))
	case u.Cost != nil && *u.Cost > 0:
		text += fmt.Sprintf("; at most about $%.2g", *u.Cost)
	}
	if len(u.NotCounted) > 0 {
		text += "; not counted: calls of " + format.List(u.NotCounted, mostNamed)
	}
	fmt.Fprintf(w, "model calls: %s\n", text)
}

// roundedUp returns the next number with two significant digits.
func roundedUp(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}
