package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A message that no agent was given waits for the agent's next task, also one of
// another run on the same bus.
func TestMessagesOfAnAgentThatWasNeverCalledWait(t *testing.T) {
	t.Parallel()
	t.Run("the budget was spent", func(t *testing.T) {
		t.Parallel()
		tm := newTeamWith(t, edges("ada>bob"), member("ada", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: 100}}, nil
		}), member("bob", never(t)))
		bus := tm.NewBus()
		var heard audience
		o := heard.options()
		o.MaxTokenBudget, o.Bus, o.Messages = 50, bus, []engine.Message{{From: "ada", To: "bob", Text: "hello"}}
		res := run(t, tm, o, spec("ada"), spec("bob", "ada"))
		require.Equal(t, engine.StatusBudget, res.Status)
		require.NotContains(t, heard.types(), "message bob")
		require.NotContains(t, heard.types(), "agent_start bob")
		waiting, err := bus.Unread("bob")
		require.NoError(t, err)
		require.Len(t, waiting, 1)
	})
	t.Run("the run ended between two attempts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // the first wait is at least 15 s
			defer cancel()
			tm := newTeam(t, member("bob", never(t)))
			bus := tm.NewBus()
			s := scopeAll(retrying("bob", 3))
			s.RetryDelay = time.Hour
			res, err := tm.RunTasks(ctx, []task.Spec{s}, &engine.RunOptions{
				Memory: newFaulty(nil, func() error { return errStore }), Bus: bus, Messages: []engine.Message{{From: "user", To: "bob", Text: "hello"}},
			})
			require.NoError(t, err)
			require.Equal(t, engine.StatusTimeout, res.Status)
			waiting, err := bus.Unread("bob")
			require.NoError(t, err)
			require.Len(t, waiting, 1)
		})
	})
}

// Problems that no plan could solve are reported before planning.
func TestMessageAboveItsReaderIsRefusedBeforePlanning(t *testing.T) {
	t.Parallel()
	_, err := led(t, engine.AgentFunc(never(t)), member("bob", never(t))).RunTeam(t.Context(), engine.Goal{Text: "Do it."},
		&engine.RunOptions{Messages: []engine.Message{{From: "user", To: "bob", Text: "x", Classification: label.Confidential}}})
	requireFaults(t, err, fault{"/messages/0/classification", `"bob" may see internal`, nil})
}

// The words of a step that failed are read no longer than what it had read.
//
// Requirement: G16.
func TestErrorsOfTheCoordinatorExpireWithWhatItRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if strings.Contains(p.Text(), "(part 1 of") {
				return agent.Reply{}, errors.New("bad prompt: canary")
			}
			time.Sleep(time.Hour)
			return agent.Reply{Text: "a digest"}, nil
		})
		long := says(strings.Repeat("words and ", 600))
		tm, err := engine.New(engine.Config{Agents: []engine.Member{member("ada", long), member("bob", long)}, Coordinator: &engine.Coordinator{Agent: c, Limits: plan.Limits{MaxPromptBytes: 8000}}})
		require.NoError(t, err)
		brief := spec("ada")
		brief.TTL = time.Minute
		res, err := tm.RunTasks(t.Context(), []task.Spec{brief, spec("bob")}, &engine.RunOptions{Answer: &engine.Goal{Text: "x"}})
		require.NoError(t, err)
		require.Equal(t, "COORDINATOR_SYNTHESIS_FAILED", res.Errors[0].Code)
		require.Equal(t, "[withheld: expired]", res.Errors[0].Message)
		require.NotContains(t, res.Steps[0].Error.Error(), "canary")
	})
}
