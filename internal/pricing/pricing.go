// Package pricing checks prices of models, and bounds what a call can cost.
package pricing

import "github.com/runteam/runteam/llm"

// Max is the highest amount of a valid price. It is far above what any model costs.
const Max = 1_000_000

// IsValid reports whether all amounts of p are numbers from zero to [Max].
func IsValid(p llm.Price) bool {
	for _, amount := range [...]*float64{&p.Input, &p.Output, p.CachedInput, p.Reasoning} {
		if amount != nil && !(*amount >= 0 && *amount <= Max) { // also true of NaN
			return false
		}
	}
	return true
}

// MaxCost returns the most that u can cost, however many of its input tokens are cached
// and of its output tokens are reasoning.
func MaxCost(p llm.Price, u llm.Usage) llm.Money {
	highest := llm.Price{Input: p.Input, Output: p.Output}
	if p.CachedInput != nil {
		highest.Input = max(highest.Input, *p.CachedInput)
	}
	if p.Reasoning != nil {
		highest.Output = max(highest.Output, *p.Reasoning)
	}
	return highest.Cost(u)
}
