package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
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

// The conflicts that one input causes are one problem, which names every affected
// agent and what would solve it.
func TestLabelConflictNamesAllAgentsOnce(t *testing.T) {
	t.Parallel()
	intake := cleared("intake", label.Confidential, never(t))
	first := spec("intake")
	first.Uses = []task.Use{{Name: "claim"}}
	tm := newTeam(t, intake, member("fraud", never(t)), cleared("middle", label.Confidential, never(t)), cleared("letters", label.Public, never(t)))
	found := planned(t, tm, claim, first, spec("fraud", "intake"), spec("middle", "intake"), spec("letters", "middle"), by("fraud", spec("again", "fraud")))
	require.Len(t, found, 1, found.Error())
	p := found[0]
	require.Equal(t, "/tasks/1/dependsOn/0", p.Pointer)
	require.Contains(t, p.Message, `by input "claim"`)
	require.Contains(t, p.Message, `3 tasks receive context that their agents may not read`)
	require.Contains(t, p.Message, `"fraud" accepts internal ("fraud", "again")`)
	require.Contains(t, p.Message, `"letters" accepts public ("letters")`)
	require.NotContains(t, p.Message, `"middle" accepts`)
	require.Contains(t, p.Hint, `set accepts: confidential on agent "fraud"`)
	require.Contains(t, p.Hint, `set accepts: confidential on agent "letters"`)
	require.Contains(t, p.Hint, "declassify")
	requireRule(t, p.Err, gate.RuleClearance)
}

// A conflict of one task names the task.
func TestLabelConflictOfOneTaskNamesTheTask(t *testing.T) {
	t.Parallel()
	first := spec("intake")
	first.Uses = []task.Use{{Name: "claim"}}
	found := planned(t, newTeam(t, cleared("intake", label.Confidential, never(t)), member("fraud", never(t))), claim, first, spec("fraud", "intake"))
	require.Len(t, found, 1)
	require.Equal(t, `the context is confidential, and "fraud" accepts internal (through "intake", confidential by input "claim")`, found[0].Message)
	require.Equal(t, `remove the confidential context, declassify the parts that it needs, or set accepts: confidential on agent "fraud"`, found[0].Hint)
}

// Each cause is one problem: a classification, an input, a message.
func TestEachCauseOfALabelConflictIsOneProblem(t *testing.T) {
	t.Parallel()
	first, own := spec("intake"), by("intake", spec("own"))
	first.Uses, own.Classification = []task.Use{{Name: "claim"}}, label.Confidential
	low := func(title, after string) task.Spec { return by("low", spec(title, after)) }
	tm := newTeamWith(t, edges("intake>told"), cleared("intake", label.Confidential, never(t)), cleared("told", label.Confidential, never(t)), member("low", never(t)))
	o := *claim
	o.Messages = []engine.Message{{From: "intake", To: "told", Text: "m", Classification: label.Confidential}}
	found := planned(t, tm, &o, first, own, spec("told"), low("a", "intake"), low("b", "intake"), low("c", "own"), low("d", "own"), low("e", "told"), low("f", "told"))
	require.Len(t, found, 3, found.Error())
	text := found.Error()
	for _, root := range []string{`by input "claim"`, "by its own classification", `by a message from "intake"`} {
		require.Contains(t, text, root)
	}
}

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
