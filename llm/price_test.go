package llm_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/llm"
)

func TestCost(t *testing.T) {
	t.Parallel()
	plain := llm.Price{Input: 0.15, Output: 0.6}
	apart := llm.Price{Input: 2, Output: 8, CachedInput: new(0.5), Reasoning: new(12.0)}
	for _, tt := range []struct {
		name  string
		price llm.Price
		usage llm.Usage
		want  string
	}{
		{"nothing", plain, llm.Usage{}, "$0.00"},
		{"one token", plain, llm.Usage{InputTokens: 1}, "$0.00000015"},
		{"both sides", plain, llm.Usage{InputTokens: 1_000_000, OutputTokens: 500_000}, "$0.45"},
		{"cached and reasoning tokens without prices of their own", plain, llm.Usage{InputTokens: 10, CachedTokens: 4, OutputTokens: 10, ReasoningTokens: 9}, "$0.0000075"},
		{"cached and reasoning tokens with prices of their own", apart, llm.Usage{InputTokens: 1000, CachedTokens: 400, OutputTokens: 100, ReasoningTokens: 75}, "$0.0025"},
		{"more cached tokens than input", apart, llm.Usage{InputTokens: 1000, CachedTokens: 9000}, "$0.0005"},
		{"more reasoning tokens than output", apart, llm.Usage{OutputTokens: 100, ReasoningTokens: math.MaxInt}, "$0.0012"},
		{"counts below zero", apart, llm.Usage{InputTokens: -5, OutputTokens: -5, CachedTokens: -5, ReasoningTokens: -5}, "$0.00"},
		{"cached counts below zero", apart, llm.Usage{InputTokens: 10, CachedTokens: -10}, "$0.00002"},
		{"an overflow", plain, llm.Usage{InputTokens: math.MaxInt, OutputTokens: math.MaxInt}, "$9223372.036854775807"},
		{"a free model", llm.Price{}, llm.Usage{InputTokens: math.MaxInt, OutputTokens: 1}, "$0.00"},
		{"the finest price", llm.Price{Input: 0.000001}, llm.Usage{InputTokens: 3}, "$0.000000000003"},
		{"a price that is finer still is not free", llm.Price{Input: 1e-30}, llm.Usage{InputTokens: 3}, "$0.000000000003"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.price.Cost(tt.usage).String())
			require.GreaterOrEqual(t, pricing.MaxCost(tt.price, tt.usage), tt.price.Cost(tt.usage))
		})
	}
	require.Equal(t, "$0.0032", pricing.MaxCost(apart, llm.Usage{InputTokens: 1000, OutputTokens: 100}).String(), "input is not taken for cached, output is taken for reasoning")
}

// Costs are exact: the sum of the costs of many calls is the cost of their sum,
// in whole multiples of a millionth of a dollar for a million tokens.
func TestCostsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		micros := rapid.Int64Range(0, 1_000_000_000_000)
		in, out := micros.Draw(rt, "input"), micros.Draw(rt, "output")
		cached, reasoning := micros.Draw(rt, "cached"), micros.Draw(rt, "reasoning")
		dollars := func(m int64) float64 { return float64(m) / 1e6 }
		p := llm.Price{Input: dollars(in), Output: dollars(out), CachedInput: new(dollars(cached)), Reasoning: new(dollars(reasoning))}
		require.True(t, pricing.IsValid(p))
		sum, want := llm.Money(0), new(big.Int)
		for range rapid.IntRange(1, 20).Draw(rt, "calls") {
			tokens := rapid.IntRange(0, 100_000)
			u := llm.Usage{InputTokens: tokens.Draw(rt, "in"), OutputTokens: tokens.Draw(rt, "out")}
			u.CachedTokens = rapid.IntRange(0, u.InputTokens).Draw(rt, "of which cached")
			u.ReasoningTokens = rapid.IntRange(0, u.OutputTokens).Draw(rt, "of which reasoning")
			sum = sum.Add(p.Cost(u))
			for _, part := range [][2]int64{{in, int64(u.InputTokens - u.CachedTokens)}, {cached, int64(u.CachedTokens)}, {out, int64(u.OutputTokens - u.ReasoningTokens)}, {reasoning, int64(u.ReasoningTokens)}} {
				want.Add(want, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
			}
			require.LessOrEqual(t, p.Cost(u), pricing.MaxCost(p, u))
		}
		require.Equal(t, want.Int64(), int64(sum))
	})
}

func TestMoneyString(t *testing.T) {
	t.Parallel()
	for amount, want := range map[llm.Money]string{
		0: "$0.00", llm.Dollars(1): "$1.00", 12*llm.Dollars(1) + llm.Dollars(1)/2: "$12.50", llm.Dollars(1) / 8: "$0.125", 1: "$0.000000000001",
		-llm.Dollars(1) / 4: "-$0.25", math.MinInt64: "-$9223372.036854775808",
	} {
		require.Equal(t, want, amount.String())
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := llm.Money(rapid.Int64Min(0).Draw(rt, "amount"))
		r, ok := new(big.Rat).SetString(strings.TrimPrefix(m.String(), "$"))
		require.True(t, ok)
		require.Zero(t, r.Cmp(big.NewRat(int64(m), int64(llm.Dollars(1)))), "%s", m)
	})
}

func TestDollars(t *testing.T) {
	t.Parallel()
	require.Equal(t, 150*llm.Dollars(1)/1000, llm.Dollars(0.15))
	require.Equal(t, llm.Money(math.MaxInt64), llm.Dollars(math.Inf(1)))
	require.Equal(t, llm.Money(math.MinInt64), llm.Dollars(math.Inf(-1)))
	require.Equal(t, llm.Money(1), llm.Dollars(1e-20), "a budget that is rounded to zero would be none")
	require.Negative(t, llm.Dollars(math.NaN()))
	require.Equal(t, llm.Money(math.MaxInt64), llm.Money(math.MaxInt64).Add(1))
	require.Equal(t, llm.Dollars(1), llm.Dollars(1).Add(-5))
	for _, bad := range []llm.Price{{Input: -1}, {Output: math.NaN()}, {CachedInput: new(math.Inf(1))}, {Reasoning: new(2e6)}} {
		require.False(t, pricing.IsValid(bad), "%+v", bad)
	}
}
