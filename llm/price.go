package llm

import (
	"fmt"
	"math"
	"strings"
)

// A Price is what the tokens of a model cost, in US dollars per million tokens. Amounts
// are rounded to a millionth of a dollar.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`

	CachedInput *float64 `json:"cachedInput,omitempty"` // for input tokens that the endpoint read from its cache; nil means Input
	Reasoning   *float64 `json:"reasoning,omitempty"`   // for the reasoning among the output tokens; nil means Output
}

func (p Price) cachedInput() float64 { return orElse(p.CachedInput, p.Input) }
func (p Price) reasoning() float64   { return orElse(p.Reasoning, p.Output) }

// orElse returns *amount, or other if amount is nil.
func orElse(amount *float64, other float64) float64 {
	if amount == nil {
		return other
	}
	return *amount
}

// Cost returns what u costs. Negative counts are zero. CachedTokens are at most
// InputTokens, and ReasoningTokens at most OutputTokens.
func (p Price) Cost(u Usage) Money {
	in, out := max(u.InputTokens, 0), max(u.OutputTokens, 0)
	cached, reasoning := min(max(u.CachedTokens, 0), in), min(max(u.ReasoningTokens, 0), out)
	return tokenCost(p.Input, in-cached).Add(tokenCost(p.cachedInput(), cached)).
		Add(tokenCost(p.Output, out-reasoning)).Add(tokenCost(p.reasoning(), reasoning))
}

// tokenCost returns what so many tokens cost at a price per million.
func tokenCost(price float64, tokens int) Money {
	each := Money(math.Round(price * float64(dollar/1_000_000)))
	if price > 0 {
		each = max(each, 1)
	}
	switch {
	case each <= 0 || tokens <= 0:
		return 0
	case Money(tokens) > math.MaxInt64/each:
		return math.MaxInt64
	}
	return each * Money(tokens)
}

// Money is an amount in picodollars (10⁻¹² USD), so that sums are exact. A sum or product
// that would overflow is the largest amount, which is more than nine million dollars.
type Money int64

// dollar is one US dollar.
const dollar Money = 1_000_000_000_000

// Dollars returns an amount of dollars, rounded to the nearest Money. A positive amount
// is never rounded to zero. NaN is the lowest Money, which no budget accepts.
func Dollars(amount float64) Money {
	switch exact := math.Round(amount * float64(dollar)); {
	case math.IsNaN(amount):
		return math.MinInt64
	case exact >= math.MaxInt64:
		return math.MaxInt64
	case exact <= math.MinInt64:
		return math.MinInt64
	case exact == 0 && amount > 0:
		return 1
	default:
		return Money(exact)
	}
}

// Dollars returns the float64 nearest to m in dollars.
func (m Money) Dollars() float64 { return float64(m) / float64(dollar) }

// Add returns the sum of m and n. Negative amounts count as zero.
func (m Money) Add(n Money) Money {
	m, n = max(m, 0), max(n, 0)
	if n > math.MaxInt64-m {
		return math.MaxInt64
	}
	return m + n
}

// String returns the exact amount with at least two decimals, such as $0.0175.
func (m Money) String() string {
	sign, whole, rest := "$", m/dollar, m%dollar
	if m < 0 {
		sign, whole, rest = "-$", -whole, -rest
	}
	decimals := fmt.Sprintf("%012d", int64(rest))
	return fmt.Sprintf("%s%d.%s%s", sign, int64(whole), decimals[:2], strings.TrimRight(decimals[2:], "0"))
}
