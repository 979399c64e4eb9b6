package team_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A person's answer is in the journal although the run is canceled at the moment when the person
// gives it. So a resumed run does not ask again.
//
// Requirement: G56.
func TestTheAnswerOfACanceledRunIsNotLost(t *testing.T) {
	t.Parallel()
	decide := approval("Send it?")
	free := []task.Spec{assigned("decide", "editor"), assigned("send", "writer", "decide")}
	refund := []task.Spec{assigned("refund", "clerk")}
	low, goal := &lowered{score: 7}, team.Goal{Text: planGoal}
	teamOf := func(editor agent.Func) *team.Team { return teamWith(t, person.New(editor)) }
	tests := []struct {
		name   string
		specs  []task.Spec // nil for a goal
		answer string
		make   func(editor agent.Func) *team.Team
		again  string // what the person is asked about after the resume
	}{
		{"a text", free, "Go.", teamOf, ""},
		{"a form", decide, `{"choice":"send"}`, teamOf, ""},
		{"a call", refund, `{"decision":"yes"}`, func(editor agent.Func) *team.Team { tm, _ := paying(t, editor); return tm }, ""},
		{"a refused call", refund, `{"decision":"no","reason":"too much"}`, func(editor agent.Func) *team.Team { tm, _ := paying(t, editor); return tm }, ""},
		{"a declassifier", low.graph(false), yes, func(editor agent.Func) *team.Team { return low.team(t, editor) }, ""},
		{"a plan", nil, yes, func(editor agent.Func) *team.Team {
			return new(planned).team(t, []string{onePlan, onePlan}, nil, func(c *team.Config) { c.Agents[1].Agent = person.New(editor) })
		}, ""},
		{"another plan", nil, askedFirst, func(editor agent.Func) *team.Team {
			return new(planned).team(t, []string{onePlan, otherPlan, otherPlan}, nil, func(c *team.Config) { c.Agents[1].Agent = person.New(editor) })
		}, "Look for the offers"},
	}
	for _, tt := range tests {
		for _, late := range []bool{false, true} { // whether the person takes a moment after the end of the context
			t.Run(fmt.Sprintf("%s, late %v", tt.name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := journal.InMemory(journal.Options{})
					defer j.Close()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var asked []string
					tm := tt.make(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
						if asked = append(asked, p.Text()); len(asked) > 1 {
							return agent.Reply{}, person.ErrLater
						}
						cancel()
						if late {
							time.Sleep(20 * time.Millisecond)
						}
						return agent.Reply{Text: tt.answer}, nil
					})
					o := &team.RunOptions{RunID: "r1", Journal: j, UserAccepts: new(label.Secret), Inputs: low.options().Inputs}
					start := func() (*team.Result, error) { return tm.RunTasks(ctx, tt.specs, o) }
					if tt.specs == nil {
						start = func() (*team.Result, error) { return tm.RunTeam(ctx, goal, o) }
					}
					res, err := start()
					require.ErrorIs(t, err, context.Canceled)
					require.NoError(t, res.JournalErr)
					require.Len(t, asked, 1)

					if o.RunID, o.Tasks = "", tt.specs; tt.specs == nil {
						o.Answer = &goal
					}
					res, err = tm.Resume(t.Context(), "r1", o)
					require.NoError(t, err)
					if tt.again == "" {
						require.Len(t, asked, 1)
						require.Equal(t, team.StatusOK, res.Status)
						return
					}
					require.Len(t, asked, 2)
					require.Contains(t, asked[1], tt.again)
				})
			})
		}
	}
}
