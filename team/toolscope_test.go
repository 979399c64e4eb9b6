package team_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A caseFile is what a tool returns.
type caseFile struct {
	Score int    `json:"score"`
	Notes string `json:"notes"`
}

// Rules for what a tool returns to an agent work as those for results of agents do: by paths, by
// blocks, by mode, by the default of the policy, and by what the agent itself says. The decision is
// recorded with its rule.
func TestResultsOfToolsAreScoped(t *testing.T) {
	t.Parallel()
	pair := func(r handoff.PairRule) *handoff.Policy {
		r.From, r.To = "tool:claims", "clerk"
		return &handoff.Policy{Rules: []handoff.PairRule{r}}
	}
	tests := []struct {
		name   string
		policy *handoff.Policy
		mode   handoff.Mode
		in     team.Intake
		want   string
		lacks  string
	}{
		{name: "whole", want: `"notes":"private"`},
		{name: "allowed paths", policy: pair(handoff.PairRule{Allow: []task.Path{"/score"}}), want: `{"score":7}`, lacks: "private"},
		{name: "blocked paths", policy: pair(handoff.PairRule{Block: []task.Path{"notes"}}), want: `{"score":7}`, lacks: "private"},
		{name: "minimal", policy: pair(handoff.PairRule{Mode: handoff.Minimal}), want: "[withheld: minimal]", lacks: "private"},
		{name: "translated", policy: pair(handoff.PairRule{Translate: &handoff.Translation{Fields: []task.Path{"/score"}}}), want: `{"score":7}`, lacks: "private"},
		{name: "rule from everyone", policy: &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Anyone, To: "clerk", Block: []task.Path{"notes"}}}}, want: `{"score":7}`, lacks: "private"},
		{name: "scoped default", policy: &handoff.Policy{Default: handoff.Scoped}, want: "Call refused: none of the granted parts", lacks: "private"},
		{name: "fields that the agent allows", in: team.Intake{AllowedContextFields: []task.Path{"/score"}}, want: `{"score":7}`, lacks: "private"},
		{name: "fields that the agent blocks", in: team.Intake{BlockedContextFields: []task.Path{"notes"}}, want: `{"score":7}`, lacks: "private"},
		{name: "mode of the agent", mode: handoff.Minimal, want: "[withheld: minimal]", lacks: "private"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := tool.New("claims", "Returns the claim of a person.", func(context.Context, lookupArguments) (caseFile, error) { return caseFile{7, "private"}, nil }, tool.Options{Effect: tool.None})
			require.NoError(t, err)
			model := &chat{replies: []llm.Response{calls("claims", `{"name":"ann"}`), says("done")}}
			tm, err := team.New(team.Config{Policy: tt.policy, Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{f}, Handoff: tt.mode, Intake: tt.in}}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Score", Description: "What is the score?", Assignee: "clerk"}}, nil)
			require.NoError(t, err)
			got := model.requests[1].Messages[2].Text
			require.Contains(t, got, tt.want)
			if tt.lacks != "" {
				require.NotContains(t, got, tt.lacks)
			}
			require.NotNil(t, res)
		})
	}
}
