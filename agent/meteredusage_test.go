package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/llm"
)

// A till is a budget that records reservations.
type till struct {
	models    []string
	estimates []llm.Usage
	took      []llm.Usage
	counted   []bool
	answered  []bool
	refuses   error
}

func (b *till) Reserve(_ context.Context, model string, most llm.Usage) (llm.Usage, func(supervise.CallUsage), error) {
	b.models, b.estimates = append(b.models, model), append(b.estimates, most)
	return most, func(s supervise.CallUsage) {
		b.took, b.counted = append(b.took, s.Charged), append(b.counted, s.Counted != llm.Usage{})
		b.answered = append(b.answered, s.Answered)
	}, b.refuses
}

func TestEachCallIsPaid(t *testing.T) {
	t.Parallel()
	answered := llm.Usage{InputTokens: 12, OutputTokens: 3}
	for _, tt := range []struct {
		name    string
		replies []func() (llm.Response, error) // the last one again and again
		took    []llm.Usage
		counted []bool
	}{
		{"counted by the endpoint", []func() (llm.Response, error){
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{answered}, []bool{true}},
		{"measured, since nobody counted", []func() (llm.Response, error){
			func() (llm.Response, error) { return llm.Response{Text: "nine byte"}, nil },
		}, []llm.Usage{{InputTokens: 8, OutputTokens: 3}}, []bool{false}},
		{"a refusal costs nothing, and the next call is paid anew", []func() (llm.Response, error){
			func() (llm.Response, error) {
				return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 503}
			},
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{}, answered}, []bool{false, true}},
		{"a call that broke off was read", []func() (llm.Response, error){
			func() (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: callfault.Cut} },
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{InputTokens: 8}, answered}, []bool{false, true}},
		{"a call that failed and was counted", []func() (llm.Response, error){
			func() (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: callfault.Cut, Usage: answered} },
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{answered, answered}, []bool{true, true}},
		{"an unusable reply costs what was reserved", []func() (llm.Response, error){
			func() (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: callfault.BadResponse} },
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{InputTokens: 8, OutputTokens: 50}, answered}, []bool{false, true}},
		{"an unusable reply costs what was counted if that is more", []func() (llm.Response, error){
			func() (llm.Response, error) {
				return llm.Response{}, &llm.Error{Kind: callfault.BadResponse, Usage: llm.Usage{InputTokens: 1, OutputTokens: 900}}
			},
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{InputTokens: 8, OutputTokens: 900}, answered}, []bool{true, true}},
		{"a count below zero costs what was reserved", []func() (llm.Response, error){
			func() (llm.Response, error) {
				return llm.Response{Usage: llm.Usage{InputTokens: 3, OutputTokens: -9}}, nil
			},
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{InputTokens: 8, OutputTokens: 50}, answered}, []bool{true, true}},
		{"a count below zero beside an error is none", []func() (llm.Response, error){
			func() (llm.Response, error) {
				return llm.Response{}, &llm.Error{Kind: callfault.Cut, Usage: llm.Usage{InputTokens: -9, OutputTokens: 1}}
			},
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{InputTokens: 8, OutputTokens: 1}, answered}, []bool{true, true}},
		{"an empty reply was read", []func() (llm.Response, error){
			func() (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: callfault.Empty} },
			func() (llm.Response, error) { return llm.Response{Text: "fine", Usage: answered}, nil },
		}, []llm.Usage{{InputTokens: 8}, answered}, []bool{false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // waits between calls
				calls := 0
				m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
					calls++
					return tt.replies[min(calls, len(tt.replies))-1]()
				})
				b := &till{}
				_, err := agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 50}}).Run(supervise.With(t.Context(), b, 0), promptOf(t, "", "")) // 31 bytes
				require.NoError(t, err)
				require.Equal(t, tt.took, b.took)
				require.Equal(t, tt.counted, b.counted)
				for _, e := range b.estimates {
					require.Equal(t, 50, e.OutputTokens)
				}
			})
		})
	}
}

// A reply above the size limit is not requested again, and costs what was reserved.
func TestOversizedReplyIsPaid(t *testing.T) {
	t.Parallel()
	m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Kind: callfault.TooLarge}
	})
	b := &till{}
	_, err := agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 50}}).Run(supervise.With(t.Context(), b, 0), promptOf(t, "", "")) // 31 bytes
	require.Error(t, err)
	require.Equal(t, []llm.Usage{{InputTokens: 8, OutputTokens: 50}}, b.took)
}

// The usage of an agent is never below zero, even if its endpoint counts wrongly.
func TestUsageOfFailedCallsIsNotNegative(t *testing.T) {
	t.Parallel()
	m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Kind: callfault.TooLarge, Usage: llm.Usage{InputTokens: -9, OutputTokens: 4}}
	})
	reply, err := agent.New(m, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
	require.Error(t, err)
	require.Equal(t, llm.Usage{OutputTokens: 4}, reply.Usage)
}

func TestRefusedCallIsNotMade(t *testing.T) {
	t.Parallel()
	m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		t.Error("it was called")
		return llm.Response{}, nil
	})
	broke := errors.New("no money")
	_, err := agent.New(m, agent.Options{}).Run(supervise.With(t.Context(), &till{refuses: broke}, 0), promptOf(t, "", ""))
	require.ErrorIs(t, err, broke)
}

func TestEachCallIsEstimated(t *testing.T) {
	t.Parallel()
	silent := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "fine"}, nil
	})
	for most, want := range map[int]int{0: tokencount.LongReply, 7: 7} {
		b := &till{}
		_, err := agent.New(silent, agent.Options{Settings: llm.Settings{MaxTokens: most}}).Run(supervise.With(t.Context(), b, 0), promptOf(t, "four", "")) // and 31 bytes
		require.NoError(t, err)
		require.Equal(t, []llm.Usage{{InputTokens: 9, OutputTokens: want}}, b.estimates, "rounded up")
	}
}

// A model may be a team of agents. What it calls is paid with the call to it, or
// it would wait for what was set aside for itself.
func TestNestedMeteredCallIsPaidOnce(t *testing.T) {
	t.Parallel()
	leaf := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "fine", Usage: llm.Usage{InputTokens: 1, OutputTokens: 1}}, nil
	})
	outer := llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		inner, err := agent.New(leaf, agent.Options{}).Run(ctx, promptOf(t, "", ""))
		return llm.Response{Text: inner.Text, Usage: llm.Usage{InputTokens: 12, OutputTokens: 3}}, err
	})
	b := &till{}
	reply, err := agent.New(outer, agent.Options{Settings: llm.Settings{MaxTokens: 50}}).Run(supervise.With(t.Context(), b, 0), promptOf(t, "", ""))
	require.NoError(t, err)
	require.Equal(t, "fine", reply.Text)
	require.Len(t, b.estimates, 1)
	require.Equal(t, []llm.Usage{{InputTokens: 12, OutputTokens: 3}}, b.took)
}
