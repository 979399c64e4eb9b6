package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
)

func TestLoopDetectionThatDetectsNothingIsAnError(t *testing.T) {
	t.Parallel()
	for want, limit := range map[string]plan.LoopDetection{
		"one repetition would end every task":                     {MaxRepetitions: 1},
		"the window of 2 turns is shorter than the 3 repetitions": {Window: 2},
		"the window of 4 turns is shorter than the 5 repetitions": {Window: 4, MaxRepetitions: 5},
		`unknown action "stop"`:                                   {OnLoop: "stop"},
		"a number is negative":                                    {MaxRepetitions: -1},
		"a number is negative: use a positive one":                {Window: -1},
	} {
		_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "clerk", Agent: asksModel, Conversation: plan.Conversation{LoopDetection: &limit}}}})
		require.ErrorContains(t, err, want)
	}
}
