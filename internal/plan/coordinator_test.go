package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestGoalsAreChecked(t *testing.T) {
	t.Parallel()
	planning := newTeamOf(t, plan.Config{Agents: []plan.Member{member("ada")}, Coordinator: &plan.Coordinator{Agent: unused}})
	for name, tt := range map[string]struct {
		team roster
		goal plan.Goal
		want []fault
	}{
		"fine":           {planning, plan.Goal{Text: "Compare three tools."}, nil},
		"empty":          {planning, plan.Goal{Text: "\t"}, []fault{{"/goal", "the goal is empty", task.ErrInvalid}}},
		"no text":        {planning, plan.Goal{Text: "\xff"}, []fault{{"/goal", "UTF-8", task.ErrInvalid}}},
		"long":           {planning, plan.Goal{Text: strings.Repeat("x", gate.DefaultContextBytes+1)}, []fault{{"/goal", "reach the coordinator", brief.ErrTooLarge}}},
		"a label":        {planning, plan.Goal{Text: "x", Classification: -9}, []fault{{"/goal/classification", "unknown label", label.ErrUnknown}}},
		"no coordinator": {newTeam(t, member("ada")), plan.Goal{Text: "x"}, []fault{{"/coordinator", "this team has none", plan.ErrNoCoordinator}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := tt.team.CheckGoal(&tt.goal); tt.want != nil {
				requireFaults(t, found.Err(), tt.want...)
			} else {
				require.Empty(t, found)
			}
		})
	}
}

// What is wrong with the options of a goal is reported before its tasks are planned.
func TestOptionsOfAGoalAreChecked(t *testing.T) {
	t.Parallel()
	withholding := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Anyone, To: handoff.User, Block: []task.Path{"notes"}}}}
	for name, tt := range map[string]struct {
		policy *handoff.Policy
		o      plan.Options
		want   []fault
	}{
		"fine":        {nil, plan.Options{}, nil},
		"an output":   {nil, plan.Options{Output: "Letter"}, []fault{{"/output", "the coordinator's answer is the answer of the run", task.ErrInvalid}}},
		"a rule":      {withholding, plan.Options{}, []fault{{"/policy", "the coordinator's answer would be withheld", nil}}},
		"an option":   {nil, plan.Options{MaxConcurrency: -1}, []fault{{"/maxConcurrency", "is negative", task.ErrInvalid}}},
		"a recipient": {nil, plan.Options{Messages: []plan.Message{{From: handoff.User, To: "adda", Text: "x"}}}, []fault{{"/messages/0/to", `did you mean "ada"?`, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTeamOf(t, plan.Config{Agents: []plan.Member{member("ada")}, Coordinator: &plan.Coordinator{Agent: unused}, Policy: tt.policy})
			tt.o.Answer = &plan.Goal{Text: "Compare three tools."}
			if found := r.CheckGoalRun(tt.o.WithDefaults()); tt.want != nil {
				requireFaults(t, found.Err(), tt.want...)
			} else {
				require.Empty(t, found)
			}
		})
	}
}
