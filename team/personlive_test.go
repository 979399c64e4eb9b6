package team_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/stretchr/testify/require"
)

// silent is a person who is at the terminal and says nothing.
func silent(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
	<-ctx.Done()
	return agent.Reply{}, ctx.Err()
}

// open waits until a question about a task is open.
func open(t testing.TB, j *journal.Journal, title string) {
	for range 1000 {
		list, _ := j.Questions(t.Context(), "r1") // there may be no run yet
		for _, q := range list {
			if q.Title == title && q.Open() {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nobody was asked about " + title)
}

// Requirement: G56.
func TestALiveRunTakesTheAnswerOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, editor := range map[string]agent.Func{"at the terminal": silent, "elsewhere": later} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := journal.InMemory(journal.Options{})
				defer j.Close()
				var done atomic.Bool
				tm, err := team.New(team.Config{Agents: []team.Member{
					{Name: "writer", Agent: answering("hello")}, {Name: "editor", Agent: person.New(editor)},
					{Name: "slow", Agent: agent.Func(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
						for !done.Load() && ctx.Err() == nil {
							time.Sleep(time.Second)
						}
						return agent.Reply{Text: "at last"}, nil
					})},
				}})
				require.NoError(t, err)
				ended := make(chan *team.Result, 1)
				go func() {
					res, _ := tm.RunTasks(t.Context(), append(approval("Send it?"), assigned("work", "slow")), &team.RunOptions{RunID: "r1", Journal: j})
					ended <- res
				}()
				open(t, j, "decide")
				start := time.Now()
				require.ErrorIs(t, leave(t.Context(), j, idOf("decide"), answerAs("bob", `{"choice":"burn"}`)), journal.ErrRefused)
				taken, err := j.Answer(t.Context(), "r1", idOf("decide"), answerAs("ann", `{"choice":"send"}`))
				require.NoError(t, err)
				require.True(t, taken)
				require.LessOrEqual(t, time.Since(start), 4*time.Second, "two seconds each")
				require.ErrorIs(t, leave(t.Context(), j, idOf("decide"), answerAs("bob", `{"choice":"stop"}`)), journal.ErrAnswered)
				done.Store(true)
				res := <-ended
				require.Equal(t, team.StatusOK, res.Status)
				got, _ := res.Task("decide")
				require.JSONEq(t, `{"choice":"send"}`, got.Structured)
				require.Empty(t, res.WaitingFor("decide"))
				list, err := j.Questions(t.Context(), "r1")
				require.NoError(t, err)
				require.Equal(t, "ann", list[0].Answer.By)
			})
		})
	}
}

func TestAnAnswerAfterThatOnTheTerminalIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory(journal.Options{})
		defer j.Close()
		typed, end := make(chan bool), make(chan bool)
		tm, err := team.New(team.Config{Agents: []team.Member{
			{Name: "writer", Agent: answering("hello")},
			{Name: "editor", Agent: person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				<-typed
				return agent.Reply{Text: `{"choice":"stop"}`}, nil
			})},
			{Name: "slow", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				<-end
				return agent.Reply{Text: "at last"}, nil
			})},
		}})
		require.NoError(t, err)
		ended := make(chan *team.Result, 1)
		go func() {
			res, _ := tm.RunTasks(t.Context(), append(approval("Send it?"), assigned("work", "slow")), &team.RunOptions{RunID: "r1", Journal: j})
			ended <- res
		}()
		open(t, j, "decide")
		err = leave(t.Context(), j, idOf("decide"), func(q *runstate.Question) (record.Answer, error) {
			typed <- true
			time.Sleep(100 * time.Millisecond)
			return answerAs("bob", `{"choice":"send"}`)(q)
		})
		require.ErrorIs(t, err, journal.ErrRefused)
		require.ErrorContains(t, err, "was answered where the run works")
		end <- true
		res := <-ended
		got, _ := res.Task("decide")
		require.JSONEq(t, `{"choice":"stop"}`, got.Structured)
	})
}

// A command that is not confined could answer in place of the person.
func TestARunWithUnconfinedCommandsTakesNoAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory(journal.Options{})
		defer j.Close()
		tm, err := team.New(team.Config{Agents: []team.Member{
			{Name: "editor", Agent: person.New(silent), Accepts: label.Internal},
			{Name: "builder", Agent: &agent.Process{Command: "true", Confine: new(false)}},
		}})
		require.NoError(t, err)
		decide := assigned("decide", "editor")
		decide.Timeout = 3 * time.Second
		ended := make(chan *team.Result, 1)
		go func() {
			res, _ := tm.RunTasks(t.Context(), []task.Spec{decide}, &team.RunOptions{RunID: "r1", Journal: j})
			ended <- res
		}()
		open(t, j, "decide")
		err = leave(t.Context(), j, idOf("decide"), answerAs("builder", "yes"))
		require.ErrorIs(t, err, journal.ErrRefused)
		require.ErrorContains(t, err, "agent builder has commands that are not confined")
		require.Equal(t, team.StatusSuspended, (<-ended).Status)
		require.NoError(t, leave(t.Context(), j, idOf("decide"), answerAs("ann", "yes")), "a suspended run takes it")
	})
}
