package team_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/stretchr/testify/require"
)

// An answer that comes too late is refused, and its sender is told why: if it was being stored when the
// question ended, and if it is sent afterwards.
//
// Requirement: G56.
func TestALateAnswerIsRefused(t *testing.T) {
	t.Parallel()
	limited := assigned("decide", "editor")
	limited.Timeout, limited.OnTimeout = time.Second, "fail"
	pays := func(editor agent.Func, slow team.Member) *team.Team { tm, _ := paying(t, editor, slow); return tm }
	decides := func(editor agent.Func, slow team.Member) *team.Team {
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "editor", Agent: person.New(editor)}, slow}})
		require.NoError(t, err)
		return tm
	}
	for _, tt := range []struct {
		name   string
		asks   task.Spec
		typed  string // in the process of the run; empty if nothing is
		team   func(editor agent.Func, slow team.Member) *team.Team
		is     error
		reason string
	}{
		{"out of time", limited, "", decides, journal.ErrNoQuestion, "it failed meanwhile, as at the end of its time"},
		{"answered on the terminal", assigned("decide", "editor"), "Go.", decides, journal.ErrNoQuestion, "the question was answered where the run works"},
		{"approved on the terminal", assigned("decide", "clerk"), `{"decision":"yes"}`, pays, journal.ErrAnswered, "it was answered already by editor at "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := journal.InMemory(journal.Options{})
				defer j.Close()
				stored, end := make(chan bool), make(chan bool)
				tm := tt.team(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
					if tt.typed == "" {
						<-ctx.Done()
						return agent.Reply{}, ctx.Err()
					}
					<-stored
					return agent.Reply{Text: tt.typed}, nil
				}, team.Member{Name: "slow", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { <-end; return agent.Reply{}, nil })})
				ended := make(chan bool)
				go func() {
					defer close(ended)
					_, _ = tm.RunTasks(t.Context(), []task.Spec{tt.asks, assigned("work", "slow")}, &team.RunOptions{RunID: "r1", Journal: j})
				}()
				open(t, j, "decide")
				late := func(q *runstate.Question) (record.Answer, error) {
					if tt.typed == "" {
						time.Sleep(time.Second)
					} else {
						stored <- true
					}
					time.Sleep(100 * time.Millisecond)
					return answerAs("bob", `{"decision":"no"}`)(q)
				}
				err := leave(t.Context(), j, idOf("decide"), late)
				for range 2 { // at that moment, and afterwards
					require.ErrorIs(t, err, tt.is)
					require.ErrorContains(t, err, tt.reason)
					err = leave(t.Context(), j, idOf("decide"), answerAs("bob", `{"decision":"no"}`))
				}
				close(end)
				<-ended
			})
		})
	}
}
