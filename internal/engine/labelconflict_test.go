package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// planned returns what is wrong with a plan.
func planned(t *testing.T, tm *engine.Team, o *engine.RunOptions, specs ...task.Spec) task.Problems {
	t.Helper()
	_, err := tm.Plan(specs, o)
	var found task.Problems
	require.ErrorAs(t, err, &found)
	return found
}

var claim = &engine.RunOptions{Inputs: []engine.Input{{Name: "claim", Text: "x", Classification: label.Confidential}}}

// A label conflict of 10,000 tasks and as many agents is one readable problem, and
// is found quickly.
func TestLabelConflictOf10000TasksIsOneProblem(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	const n = 10_000
	members := []engine.Member{cleared("intake", label.Confidential, never(t))}
	first := spec("intake")
	first.Uses = []task.Use{{Name: "claim"}}
	specs := []task.Spec{first}
	for i := range n {
		name := fmt.Sprint("agent ", i%1000)
		if i < 1000 {
			members = append(members, member(name, never(t)))
		}
		after := "intake"
		if i > 0 && i%2 == 0 {
			after = fmt.Sprint("task ", i-1)
		}
		specs = append(specs, by(name, spec(fmt.Sprint("task ", i), after)))
	}
	tm := newTeam(t, members...)
	start := time.Now()
	found := planned(t, tm, claim, specs...)
	t.Log("planned in", time.Since(start))
	require.Len(t, found, 1)
	require.Less(t, len(found[0].Message), 8<<10)
	require.Less(t, len(found[0].Hint), 4<<10)
	require.Contains(t, found[0].Message, "10000 tasks receive context that their agents may not read")
	require.Contains(t, found[0].Message, "and others")
	require.Contains(t, found[0].Message, " and 7 more)")
	require.Less(t, strings.Count(found[0].Hint, "set accepts"), 30)
}
