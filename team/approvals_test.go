package team_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// paying is a team of a clerk who pays once, and an editor who approves that.
func paying(t testing.TB, editor agent.Func, more ...team.Member) (tm *team.Team, paid *int) {
	paid = new(int)
	pay, err := tool.New("pay", "Pays.", func(context.Context, struct{ Amount int }) (string, error) { *paid++; return "paid", nil }, tool.Options{Approve: "editor"})
	require.NoError(t, err)
	model := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if len(r.Messages) < 3 {
			return calls("pay", `{"Amount": 5}`), nil
		}
		return llm.Response{Text: r.Messages[len(r.Messages)-1].Text}, nil
	})
	tm, err = team.New(team.Config{Agents: append([]team.Member{
		{Name: "clerk", Agent: agent.New(named{model}, agent.Options{}), Tools: []*tool.Tool{pay}, AllowUntrusted: []string{"pay"}},
		{Name: "editor", Agent: person.New(editor)},
	}, more...)})
	require.NoError(t, err)
	return tm, paid
}

// Requirement: G56.
func TestASuspendedRunResumesWithAnApproval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer string
		paid   int
		want   string
	}{{`{"decision":"yes"}`, 1, "paid"}, {`{"decision":"no","reason":"too much"}`, 0, "Call refused by editor: too much"}} {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		defer j.Close()
		specs := []task.Spec{assigned("refund", "clerk")}
		tm, paid := paying(t, later)
		res, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{RunID: "r1", Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, "editor", 0}, []any{res.Status, res.WaitingFor("refund"), *paid})
		require.NotZero(t, res.Usage.InputTokens+res.Usage.OutputTokens+len(res.Tasks[0].Receipts))

		require.NoError(t, leave(t.Context(), j, idOf("refund"), answerAs("ann", tt.answer)))
		require.ErrorIs(t, leave(t.Context(), j, idOf("refund"), answerAs("bob", tt.answer)), journal.ErrAnswered)
		tm, paid = paying(t, func(context.Context, prompt.Prompt) (agent.Reply, error) {
			t.Error("it was answered")
			return agent.Reply{}, person.ErrLater
		})
		for range 2 {
			res, err = tm.Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
			require.NoError(t, err)
			require.Equal(t, []any{team.StatusOK, tt.paid}, []any{res.Status, *paid})
			require.Contains(t, res.Output, tt.want)
		}
		list, err := j.Questions(t.Context(), "r1")
		require.NoError(t, err)
		require.Equal(t, []any{true, "ann"}, []any{list[0].Ended, list[0].Answer.By})

		tm, paid = paying(t, later)
		res, err = tm.RunTasks(t.Context(), specs, &team.RunOptions{RunID: "r2", Journal: j, Reuse: true})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, 0}, []any{res.Status, *paid}, "no other run takes an approval")
	}
}

// The conversation waits without a slot, and goes on in the same process.
func TestALiveRunTakesAnApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory(journal.Options{})
		defer j.Close()
		worked, release := make(chan bool, 1), make(chan bool)
		tm, paid := paying(t, later, team.Member{Name: "slow", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			worked <- true
			<-release
			return agent.Reply{Text: "at last"}, nil
		})})
		ended := make(chan *team.Result, 1)
		go func() {
			res, _ := tm.RunTasks(t.Context(), []task.Spec{assigned("refund", "clerk"), assigned("work", "slow")}, &team.RunOptions{RunID: "r1", Journal: j, MaxConcurrency: 1})
			ended <- res
		}()
		<-worked // in the only slot
		open(t, j, "refund")
		require.ErrorIs(t, leave(t.Context(), j, idOf("refund"), answerAs("bob", `{"decision":"perhaps"}`)), journal.ErrRefused)
		taken, err := j.Answer(t.Context(), "r1", idOf("refund"), answerAs("ann", `{"decision":"yes"}`))
		require.NoError(t, err)
		require.True(t, taken)
		release <- true
		res := <-ended
		require.Equal(t, []any{team.StatusOK, 1}, []any{res.Status, *paid})
		got, _ := res.Task("refund")
		require.Contains(t, got.Result, "paid")
		require.Empty(t, res.WaitingFor("refund"))
	})
}

// The time limit of the task ends the wait, not the question.
func TestAnApprovalOutlivesTheTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory(journal.Options{})
		defer j.Close()
		tm, paid := paying(t, silent)
		refund := assigned("refund", "clerk")
		refund.Timeout, refund.MaxRetries = 200*time.Millisecond, 3
		res, err := tm.RunTasks(t.Context(), []task.Spec{refund}, &team.RunOptions{RunID: "r1", Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, 0}, []any{res.Status, *paid})
	})
}
