package scripted_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
)

// answerTo returns the answer of a script to a child with a goal.
func answerTo(t *testing.T, s *scripted.Script, goal string) string {
	t.Helper()
	h, err := scripted.New(s, false)
	require.NoError(t, err)
	text, err := h.Answer("", "# Task: Goal\n\n"+goal)
	require.NoError(t, err)
	return text
}

func TestRepliesForGoals(t *testing.T) {
	t.Parallel()
	s, err := scripted.Parse("script.yaml", []byte(`
replies:
  - {goal: look into prices, text: prices}
  - {goal: LOOK INTO, text: something}
  - {task: Goal, text: any child}
  - {text: a task}
`))
	require.NoError(t, err)
	for goal, want := range map[string]string{
		"Look into prices of wheat.": "prices", "Look into wheat.": "something", "Count.": "any child",
	} {
		require.Equal(t, want, answerTo(t, s, goal), goal)
	}
	h, err := scripted.New(s, false)
	require.NoError(t, err)
	text, err := h.Answer("", "# Task: Other\n\nlook into prices")
	require.NoError(t, err)
	require.Equal(t, "a task", text, "only a child has a goal")

	_, err = scripted.Parse("script.yaml", []byte("replies:\n  - {task: A, goal: x, text: y}\n"))
	require.ErrorContains(t, err, "goal: a reply for a child has neither task nor coordinator")
}

// TestRecordedGoals checks that a recording tells children apart whose prompts differ in their goal alone, in
// whatever order they ask, and also if one goal is a piece of another.
func TestRecordedGoals(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	m := r.Model(answering(llm.Response{Text: "short"}, llm.Response{Text: "long"}, llm.Response{Text: "other"}))
	goals := []string{"look into a", "look into a and b", "count:\n- c"}
	for _, goal := range goals {
		_, err := m.Call(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "# Task: Goal\n\n" + goal}}}, nil)
		require.NoError(t, err)
	}
	s, err := scripted.Parse("script.yaml", []byte(recordingOf(t, &r)))
	require.NoError(t, err)
	for i, want := range []string{"short", "long", "other"} {
		require.Equal(t, want, answerTo(t, s, goals[i]))
	}
}
