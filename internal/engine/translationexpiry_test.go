package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
)

// The translation of a result is also used if its task ran again with an equal result.
func TestTranslationIsReusedForAnEqualResult(t *testing.T) {
	t.Parallel()
	tm := func() *engine.Team {
		maker, reader := member("maker", says("It was a long day, and nothing came of it, but for the rain in the evening.")), member("reader", retells(says("It rained."), says("So what.")))
		maker.Version, reader.Version = "1", "1"
		return governed(t, summarizing(200), maker, reader)
	}
	specs := []task.Spec{spec("maker"), spec("reader", "maker")}
	journal := &memory{}
	want := run(t, tm(), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	require.NoError(t, want.Err())
	res := run(t, tm(), &engine.RunOptions{RunID: "r", Fresh: []string{"maker"}, Journal: after(journal.history(journal.len()))}, specs...)
	require.NoError(t, res.Err())
	require.Equal(t, answers(want), answers(res))
}
