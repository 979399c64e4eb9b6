package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A message for an agent whose task begins much later is delivered once, after
// whichever commit the run was interrupted.
func TestMessagesForLaterTasksSurviveAnInterruption(t *testing.T) {
	t.Parallel()
	play := func(o *engine.RunOptions, read *[]string) {
		first := versioned{engine.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "x"}, engine.OutboxFrom(ctx).Send("eve", "for later")
		})}
		other := versioned{engine.AgentFunc(says("x"))}
		last := versioned{engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			*read = append(*read, p.Text())
			return agent.Reply{Text: "x"}, nil
		})}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "ada", Agent: first}, {Name: "bob", Agent: other}, {Name: "eve", Agent: last}}, Edges: edges("ada>eve")})
		require.NoError(t, err)
		o.RunID, o.Bus = "r", tm.NewBus()
		res, err := tm.RunTasks(t.Context(), []task.Spec{spec("ada"), spec("bob", "ada"), spec("eve", "bob")}, o)
		require.NoError(t, err)
		require.NoError(t, res.Err())
	}
	whole, asked := &memory{}, 0
	play(&engine.RunOptions{Journal: whole}, &[]string{})
	for n := range whole.len() + 1 {
		var read []string
		play(&engine.RunOptions{Journal: (&memory{}).after(whole.history(n))}, &read)
		for _, text := range read {
			require.Equal(t, 1, strings.Count(text, "- **ada**: for later"), "after %d commits", n)
			asked++
		}
	}
	require.Greater(t, asked, 2)
}
