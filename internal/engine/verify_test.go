package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A panel writes a text, judges it, and counts how often it is asked. It does not accept the first
// draft, and the second judge of one name never accepts.
type panel struct{ counter }

func (p *panel) Run(ctx context.Context, text prompt.Prompt) (agent.Reply, error) {
	reply, err := p.counter.Run(ctx, text)
	switch first, _, _ := strings.Cut(text.Text(), "\n"); {
	case strings.HasSuffix(first, "judge worker 2"):
		reply.Text = fmt.Sprintf(`{"accept":false,"critique":%q}`, reply.Text)
	case strings.Contains(first, ": judge"):
		reply.Text = fmt.Sprintf(`{"accept":%t,"critique":%q}`, strings.Contains(text.Text(), "revised "), reply.Text)
	case strings.Contains(text.Text(), "Objections of the judges"):
		reply.Text = "revised " + reply.Text
	}
	return reply, err
}

// After a crash at any commit, no judge and no task is asked again that has answered, and the verdict
// is the same.
func TestVerifyResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	judges := []task.Judge{{Agent: "worker"}, {Agent: "worker"}, {Agent: "worker"}}
	specs := []task.Spec{
		{Title: "write", Description: "Write.", Assignee: "worker", Verify: &task.Verify{Judges: judges, MaxRounds: 3}},
		by("worker", spec("read", "write")),
	}
	whole, first := &memory{}, &panel{}
	want, err := teamOf(t, first).RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r", Journal: whole})
	require.NoError(t, err)
	require.NoError(t, want.Err())
	require.Equal(t, map[string]int{"write": 2, "write: judge worker": 2, "write: judge worker 2": 2, "write: judge worker 3": 2, "read": 1}, first.count())
	for n := range whole.len() + 1 {
		past, again, answered := whole.history(n), &panel{}, 0
		for i := range past.Log {
			if x := past.Log[i].Exchange; x != nil && x.Completed() && x.Agent == "worker" {
				answered++
			}
		}
		res, err := start(t.Context(), teamOf(t, again), specs, &engine.RunOptions{RunID: "r", Journal: (&memory{}).after(past)})
		require.NoError(t, err)
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		asked := 0
		for _, calls := range again.count() {
			asked += calls
		}
		require.Equal(t, 9-answered, asked, "after %d commits", n)
	}
}
