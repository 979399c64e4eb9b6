package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A replay takes the answer of the run, whether it asks agents or not.
func TestReplayCallsNoTool(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]engine.RunOptions{"strict": {RunID: "r", Replay: &engine.Replay{}}, "asking": {RunID: "s", Replay: &engine.Replay{Ask: true}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pay, look := newCountedTool(t, "pay", tool.Options{}), newCountedTool(t, "look", noEffect)
			tm := toolTeam(t, callsFirst(call("pay", `{}`), call("look", `{}`)), pay.Tool, look.Tool)
			j, res := journaled(t, tm, errand())
			o.Journal = after(j.history(j.len()))
			again, err := start(t.Context(), tm, []task.Spec{errand()}, &o)
			require.NoError(t, err)
			require.Equal(t, answers(res), answers(again))
			require.EqualValues(t, 1, pay.calls.Load())
			require.EqualValues(t, 1, look.calls.Load())
		})
	}
}

// A replay that asks agents makes no external call; the agent gets an error in its place.
func TestReplayOfAnInterruptedRunMakesNoExternalCall(t *testing.T) {
	t.Parallel()
	pay := newCountedTool(t, "pay", tool.Options{})
	m := &listening{namedModel: callsFirst(call("pay", `{}`))}
	tm := toolTeam(t, m, pay.Tool)
	j, _ := journaled(t, tm, errand())
	h := interrupted(j, func(e *record.Entry) bool { return answerEntry(e) || e.Turn != nil })
	m.last.Messages = nil
	res := run(t, tm, &engine.RunOptions{RunID: "s", Replay: &engine.Replay{Ask: true}, Journal: after(h)}, errand())
	require.EqualValues(t, 1, pay.calls.Load())
	require.NoError(t, res.Err())
	require.Equal(t, "done", res.Output)
	require.Contains(t, m.answered(), "Call refused: a replay calls no tool with external effects.")
}
