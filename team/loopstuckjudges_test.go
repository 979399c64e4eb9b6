package team_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// learning are settled agents of which the critic accepts draft n, and says something else of each.
func learning(n int64, calls *atomic.Int64) []team.Member {
	as := func(name string, does func() string) team.Member {
		return team.Member{Name: name, Agent: settledAgent{agent.Func(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: does()}, ctx.Err()
		})}}
	}
	return []team.Member{
		as("writer", func() string { return "the same" }),
		as("critic", func() string {
			k := calls.Add(1)
			return fmt.Sprintf(`{"valid":%t,"feedback":"more %d"}`, k >= n, k)
		}),
		as("publisher", func() string { return "published" }),
		as("judge", func() string { return `{"accept":true,"critique":""}` }),
	}
}

// What a task with judges, or a judge, reads of the round before makes rounds differ, and so do
// judges that may answer differently and agents of a loop in a list.
func TestRoundsWithJudgesOrInLists(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(members []team.Member, specs []task.Spec) []task.Spec{
		"a task with judges reads": func(_ []team.Member, specs []task.Spec) []task.Spec { return specs },
		"a judge reads": func(_ []team.Member, specs []task.Spec) []task.Spec {
			write := &specs[0].Repeat.Tasks[0]
			write.Verify.Judges[0].DependsOn, write.DependsOn = write.DependsOn, nil
			return specs
		},
		"a judge reads more": func(_ []team.Member, specs []task.Spec) []task.Spec {
			write := &specs[0].Repeat.Tasks[0]
			write.Verify.Judges[0].DependsOn, write.DependsOn = write.DependsOn, []task.Ref{{Task: "Write", Round: task.Previous, Optional: true}}
			return specs
		},
		"a judge may answer differently": func(members []team.Member, specs []task.Spec) []task.Spec {
			members[3].Agent = members[3].Agent.(settledAgent).Agent
			specs[0].Repeat.Tasks[0].DependsOn = []task.Ref{{Task: "Write", Round: task.Previous, Optional: true}}
			return specs
		},
		"in a list, an agent may answer differently": func(members []team.Member, specs []task.Spec) []task.Spec {
			members[1].Agent = members[1].Agent.(settledAgent).Agent
			specs[0].Repeat.Tasks[0].Verify, specs[0].Repeat.Tasks[0].DependsOn = nil, []task.Ref{{Task: "Write", Round: task.Previous, Optional: true}}
			return []task.Spec{{Title: "All", ForEach: &task.ForEach{Input: "leads", MaxItems: 1, Output: "Draft", Tasks: specs[:1]}}}
		},
	} {
		var calls atomic.Int64
		members := learning(5, &calls)
		_, specs := writing(t, 0, task.Repeat{MaxRounds: 9})
		specs[0].Repeat.Tasks[0].Verify = &task.Verify{Judges: judges("judge")}
		specs = change(members, specs)
		o := team.RunOptions{}
		if specs[0].ForEach != nil {
			o.Inputs = []team.Input{{Name: "leads", Text: `["a"]`}}
		}
		_, err := teamOf(t, members).RunTasks(t.Context(), specs, &o)
		require.NoError(t, err, name)
		require.EqualValues(t, 5, calls.Load(), name)
	}
}

// A loop with judges that repeats itself is stuck as any other, and so is one in a list. What is
// wrong with a loop in a list is reported there.
func TestStuckLoopWithJudgesOrInAList(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	members := append(stubborn(&calls, func(string) string { return "more" }), learning(0, &calls)[3])
	_, specs := writing(t, 0, task.Repeat{MaxRounds: 9})
	specs[0].Repeat.Tasks[0].Verify = &task.Verify{Judges: judges("judge")}
	_, err := teamOf(t, members).RunTasks(t.Context(), specs, nil)
	require.ErrorContains(t, err, "round 3 would be given the same as round 2")
	list := []task.Spec{{Title: "All", ForEach: &task.ForEach{Input: "leads", MaxItems: 1, Output: "Draft", Tasks: specs[:1]}}}
	o := team.RunOptions{Inputs: []team.Input{{Name: "leads", Text: `["a"]`}}}
	_, err = teamOf(t, members).RunTasks(t.Context(), list, &o)
	require.ErrorContains(t, err, "round 3 would be given the same as round 2")
	specs[0].Repeat.Tasks[0].DependsOn = nil
	_, err = teamOf(t, members).Plan(list, &o)
	var problems task.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, "/tasks/0/forEach/tasks/0/repeat", problems[0].Pointer)
	require.ErrorContains(t, err, "all rounds would be the same")
}
