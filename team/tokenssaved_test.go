package team_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// savedBy runs a maker with a result and a reader of parts of it, and returns the result and the
// tokens that the decisions about prompts saved, by the events.
func savedBy(t *testing.T, p *handoff.Policy, made string, level label.Classification) (res *team.Result, saved int) {
	t.Helper()
	tm, err := team.New(team.Config{Policy: p, Agents: []team.Member{
		{Name: "maker", Agent: answering(made), Accepts: level}, {Name: "reader", Agent: answering("done"), Accepts: level},
	}})
	require.NoError(t, err)
	res, err = tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Make", Description: "Make it.", Assignee: "maker", Classification: level},
		{Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: []task.Ref{{Task: "Make"}}},
		{Title: "Read again", Description: "Read it.", Assignee: "reader", DependsOn: []task.Ref{{Task: "Make"}}},
		{Title: "Other", Description: "Do it.", Assignee: "reader"},
	}, &team.RunOptions{Output: "Other", UserAccepts: new(label.Confidential), Subscribers: []func(event.Event){func(e event.Event) {
		if h, ok := e.Data.(event.Handoff); ok && e.Agent != handoff.User {
			saved += max((h.Bytes+3)/4-(h.Sent+3)/4, 0)
		}
	}}})
	require.NoError(t, err)
	return res, saved
}

// The tokens that scoping saves are counted for each task and for the run, as the sum over the
// decisions, and are in the JSON form.
func TestTokensSavedAreTheSumOverDecisions(t *testing.T) {
	t.Parallel()
	made := `{"notes":"` + strings.Repeat("n", 4000) + `","score":1}`
	scoped := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Allow: []task.Path{"/score"}}}}
	res, saved := savedBy(t, scoped, made, label.Internal)
	require.Equal(t, saved, res.Context.TokensSaved)
	require.Equal(t, 2*((len(made)+3)/4-3), saved) // {"score":1} is left
	require.Equal(t, []int{0, saved / 2, saved / 2}, []int{res.TokensSaved("Make"), res.TokensSaved("Read"), res.TokensSaved("Read again")})
	raw, err := json.Marshal(res)
	require.NoError(t, err)
	var document struct {
		Context struct{ TokensSaved int }
		Tasks   []struct{ Metrics struct{ TokensSaved int } }
	}
	require.NoError(t, json.Unmarshal(raw, &document))
	require.Equal(t, saved, document.Context.TokensSaved)
	require.Equal(t, saved/2, document.Tasks[1].Metrics.TokensSaved)

	res, saved = savedBy(t, nil, made, label.Internal)
	require.Zero(t, saved)
	require.Zero(t, res.Context.TokensSaved)
}

// Of a value that the caller may not see, nothing is counted.
func TestTokensSavedRevealNoSize(t *testing.T) {
	t.Parallel()
	minimal := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Allow: []task.Path{"/score"}}}}
	for _, n := range []int{1100, 3500, 9000} {
		res, _ := savedBy(t, minimal, `{"notes":"`+strings.Repeat("n", n)+`","score":1}`, label.Secret)
		require.Zero(t, res.Context.TokensSaved)
	}
}
