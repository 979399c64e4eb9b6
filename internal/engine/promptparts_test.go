package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// tooLong is what a model says of a prompt that exceeds its context window.
var tooLong = &llm.Error{Kind: callfault.PromptTooLong, Status: 400, Model: "m", Message: "maximum context length is 4096 tokens"}

// TestPromptThatIsTooLongNamesItsLargestParts checks that a task whose prompt exceeds
// the context window says what fills the prompt, and is not tried again.
func TestPromptThatIsTooLongNamesItsLargestParts(t *testing.T) {
	t.Parallel()
	reader := member("write", fails(tooLong))
	reader.SystemPrompt = strings.Repeat("s", 300)
	tm := newTeamWith(t, edges("read>write"), member("read", says(strings.Repeat("r", 42<<10))), member("note", says("short")), reader)
	write := spec("write", "read", "note")
	write.Uses, write.MaxRetries = []task.Use{{Name: "claim"}}, 3
	var a audience
	res := run(t, tm, a.with(engine.RunOptions{
		Inputs:   []engine.Input{{Name: "claim", Text: strings.Repeat("c", 12<<10)}},
		Messages: []engine.Message{{From: "read", To: "write", Text: strings.Repeat("m", 512)}},
	}), spec("read"), spec("note"), write)
	failed := res.Tasks[2]
	require.Equal(t, task.Failed, failed.Status)
	require.Equal(t, 1, failed.Metrics.Attempts, "no other attempt helps")
	require.Equal(t, "MODEL_PROMPT_TOO_LONG", failed.Error.Code)
	require.Contains(t, failed.Error.Message, `the prompt is too long (400): maximum context length is 4096 tokens; `)
	require.Regexp(t, `; largest parts of the prompt: result of task "read" 42 KiB, input "claim" 12 KiB$`, failed.Error.Message)
	ended := a.only(event.Error)
	require.Len(t, ended, 1)
	require.Equal(t, failed.Error.Message, ended[0].Message)
	var e *llm.Error
	require.True(t, errors.As(failed.Error, &e), "the cause stays")
	require.NotContains(t, run(t, newTeam(t, member("a", fails(&llm.Error{Kind: callfault.BadRequest, Status: 400}))), nil, spec("a")).Tasks[0].Error.Message, "largest parts")
}

// TestPartsOfAPromptThatIsTooLong checks that the error leaves out the parts
// that the caller may not see.
//
// Requirement: G54.
func TestPartsOfAPromptThatIsTooLong(t *testing.T) {
	t.Parallel()
	play := func(n int) string {
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "deep", Mode: handoff.Full}}}
		tm := governed(t, policy, cleared("deep", label.Secret, fails(tooLong)), member("open", says("x")))
		deep := by("deep", spec("read"))
		deep.Uses, deep.Classification = []task.Use{{Name: "pin"}, {Name: "open"}}, label.Secret
		res := run(t, tm, &engine.RunOptions{Output: "open", Inputs: []engine.Input{
			{Name: "pin", Text: strings.Repeat("x", n), Classification: label.Secret}, {Name: "open", Text: strings.Repeat("o", 600)},
		}}, deep, spec("open"))
		require.Equal(t, "MODEL_PROMPT_TOO_LONG", res.Tasks[0].Error.Code)
		return res.Tasks[0].Error.Message
	}
	first := play(1200)
	require.Equal(t, first, play(1300))
	require.Contains(t, first, `; largest parts of the prompt: input "open" 600 bytes`)
}

// TestSynthesisThatIsTooLongNamesItsLargestParts checks the same for a prompt of the
// coordinator.
func TestSynthesisThatIsTooLongNamesItsLargestParts(t *testing.T) {
	t.Parallel()
	c := &planner{answer: func(prompt.Prompt) (string, error) { return "", tooLong }}
	tm := led(t, c, member("ada", says(strings.Repeat("a", 9<<10))), member("bob", says("fine")))
	res, err := tm.RunTasks(t.Context(), []task.Spec{spec("ada"), spec("bob")}, &engine.RunOptions{Answer: &engine.Goal{Text: "What is it?"}})
	require.NoError(t, err)
	require.Len(t, res.Errors, 1)
	require.Equal(t, "MODEL_PROMPT_TOO_LONG", res.Errors[0].Reason)
	require.Regexp(t, `; largest parts of the prompt: result of task "ada" 9 KiB, system prompt [0-9.]+ KiB$`, res.Errors[0].Message)
}
