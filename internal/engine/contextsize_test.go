package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// The sums of a run hide from a caller the exact sizes of an input and a message
// that the caller may not see.
//
// Requirement: G54.
func TestSumsHideExactSizesAboveTheCaller(t *testing.T) {
	t.Parallel()
	play := func(n int) (event.Context, []int) {
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "deep", Mode: handoff.Full}}}
		tm := governed(t, policy, cleared("deep", label.Secret, says("x")), member("open", says("x")))
		deep := by("deep", spec("read"))
		deep.Uses, deep.Classification = []task.Use{{Name: "pin"}}, label.Secret
		j := &memory{}
		res := run(t, tm, &engine.RunOptions{
			RunID: "run", Journal: j, Output: "open",
			Inputs:   []engine.Input{{Name: "pin", Text: strings.Repeat("x", n), Classification: label.Secret}},
			Messages: []engine.Message{{From: "user", To: "deep", Text: strings.Repeat("y", n), Classification: label.Secret}},
		}, deep, spec("open"))
		var sent []int
		for _, e := range j.history(j.len()).Log {
			if e.Sent != nil {
				sent = append(sent, e.Sent.Bytes)
			}
		}
		return res.Context, sent
	}
	first, sent := play(1200)
	second, again := play(1300)
	require.Equal(t, first, second)
	require.Equal(t, []int{0}, sent)
	require.Equal(t, sent, again)
}
