package team_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// An asker answers each item, and remembers which items it was asked about. It fails for items that
// are named so.
type asker struct {
	mu    sync.Mutex
	asked []string
}

func (a *asker) team(t require.TestingT) *team.Team {
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Backend: team.Backend{Version: "1"}, Agent: agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		item := p.Sections()[0].Text
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, item)
		if strings.HasPrefix(item, "bad") {
			return agent.Reply{}, fmt.Errorf("no answer")
		}
		return agent.Reply{Text: "answer to " + item}, nil
	})}}})
	require.NoError(t, err)
	return tm
}

// taken returns what was asked since the last time, sorted.
func (a *asker) taken() []string {
	asked := a.asked
	a.asked = nil
	slices.Sort(asked)
	return asked
}

// each runs a task for each item of an input.
func eachItem(items ...string) ([]task.Spec, []team.Input) {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = fmt.Sprintf("%q", item)
	}
	return []task.Spec{{Title: "Ask", Description: "d", Assignee: "a", ForEach: &task.ForEach{Input: "list", MaxItems: 8}}}, []team.Input{{Name: "list", Text: "[" + strings.Join(quoted, ",") + "]"}}
}

// After a list is reordered or gets items, a run that reuses results asks only for what is new: an
// answer belongs to what was shown, and not to the position of an item.
func TestReusedItemsSurviveChangesOfTheList(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	rapid.Check(t, func(t *rapid.T) {
		a, j := &asker{}, journal.InMemory()
		defer j.Close()
		tm, known := a.team(t), map[string]bool{}
		for n := range 3 {
			items := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 5, rapid.ID[string]).Draw(t, "items")
			specs, inputs := eachItem(items...)
			res, err := tm.RunTasks(context.Background(), specs, &team.RunOptions{Journal: j, RunID: fmt.Sprint("run", n), Reuse: true, Inputs: inputs})
			require.NoError(t, err)
			var fresh []string
			for _, item := range items {
				if !known[item] {
					fresh = append(fresh, item)
				}
				known[item] = true
			}
			slices.Sort(fresh)
			require.Equal(t, fresh, a.taken())
			for i, item := range items {
				require.Equal(t, "answer to "+item, res.Tasks[i].Result)
			}
		}
	})
}

// The same holds for a run that is resumed after its list was changed.
func TestResumedItemsSurviveChangesOfTheList(t *testing.T) {
	t.Parallel()
	a, j := &asker{}, journal.InMemory()
	defer j.Close()
	tm := a.team(t)
	specs, inputs := eachItem("a", "bad", "c")
	_, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{Journal: j, RunID: "run", Inputs: inputs})
	require.Error(t, err)
	require.Equal(t, []string{"a", "bad", "c"}, a.taken())
	specs, inputs = eachItem("c", "new", "a", "c")
	res, err := tm.Resume(t.Context(), "run", &team.RunOptions{Journal: j, Tasks: specs, Inputs: inputs})
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, a.taken())
	var results []string
	for i := range res.Tasks {
		results = append(results, res.Tasks[i].Title+" "+res.Tasks[i].Result)
	}
	require.Equal(t, []string{"Ask[1] answer to c", "Ask[2] answer to new", "Ask[3] answer to a", "Ask[4] answer to c"}, results)
	_, err = tm.Resume(t.Context(), "run", &team.RunOptions{Journal: j, Tasks: specs, Inputs: inputs})
	require.NoError(t, err)
	require.Empty(t, a.taken())
}

// The same holds for loops and lists in a list: neither a title nor a heading has the position of the
// item that they are for.
func TestMovedItemsKeepAnswersOfTheirLoopsAndLists(t *testing.T) {
	t.Parallel()
	for _, resume := range []bool{false, true} {
		a, j := &asker{}, journal.InMemory()
		defer j.Close()
		tm := a.team(t)
		ask := func(title string, after ...task.Ref) task.Spec {
			return task.Spec{Title: title, Description: "d", Assignee: "a", Uses: []task.Use{{Name: "item"}}, DependsOn: after}
		}
		parts := ask("Part")
		parts.Uses, parts.ForEach = nil, &task.ForEach{Task: "Split", Path: "/parts", MaxItems: 2, As: "part"}
		check := task.Spec{Title: "Check", Value: []byte(`{"ok":false}`), OutputSchema: []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)}
		specs := []task.Spec{{Title: "Items", ForEach: &task.ForEach{Input: "list", MaxItems: 2, Output: "Loop", Tasks: []task.Spec{
			{Title: "Split", Value: []byte(`{"parts":["p","q"]}`)}, parts,
			ask("Sum", task.Ref{Each: "Part"}),
			{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Check", "/ok", true), Output: "Write", Tasks: []task.Spec{ask("Write", task.Ref{Task: "Write", Round: task.Previous, Optional: true}), check}}},
		}}}}
		options := func(run, items string) *team.RunOptions {
			return &team.RunOptions{RunID: run, Journal: j, Reuse: true, Tasks: specs, Inputs: []team.Input{{Name: "list", Text: items}}}
		}
		_, err := tm.RunTasks(t.Context(), specs, options("run", `["x","y"]`))
		require.NoError(t, err)
		require.Len(t, a.taken(), 10, "for each item, two parts, their sum, and two rounds")
		if moved := `["y","x"]`; resume {
			_, err = tm.Resume(t.Context(), "run", options("run", moved))
		} else {
			_, err = tm.RunTasks(t.Context(), specs, options("other", moved))
		}
		require.NoError(t, err)
		require.Empty(t, a.taken())
	}
}
