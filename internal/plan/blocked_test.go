package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// planned returns what is wrong with a plan.
func planned(t *testing.T, r roster, o *plan.Options, specs ...task.Spec) task.Problems {
	t.Helper()
	_, err := r.plan(specs, o)
	var found task.Problems
	require.ErrorAs(t, err, &found)
	return found
}

// The conflicts that one input causes are one problem, which names every affected
// agent and what would solve it.
func TestLabelConflictNamesAllAgentsOnce(t *testing.T) {
	t.Parallel()
	intake := cleared("intake", label.Confidential)
	first := spec("intake")
	first.Uses = []task.Use{{Name: "claim"}}
	r := newTeam(t, intake, member("fraud"), cleared("middle", label.Confidential), cleared("letters", label.Public))
	found := planned(t, r, withClaim("x"), first, spec("fraud", "intake"), spec("middle", "intake"), spec("letters", "middle"), by("fraud", spec("again", "fraud")))
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

// Each cause is one problem: a classification, an input, a message.
func TestEachCauseOfALabelConflictIsOneProblem(t *testing.T) {
	t.Parallel()
	first, own := spec("intake"), by("intake", spec("own"))
	first.Uses, own.Classification = []task.Use{{Name: "claim"}}, label.Confidential
	low := func(title, after string) task.Spec { return by("low", spec(title, after)) }
	r := newTeamWith(t, edges("intake>told"), cleared("intake", label.Confidential), cleared("told", label.Confidential), member("low"))
	o := withClaim("x")
	o.Messages = []plan.Message{{From: "intake", To: "told", Text: "m", Classification: label.Confidential}}
	found := planned(t, r, o, first, own, spec("told"), low("a", "intake"), low("b", "intake"), low("c", "own"), low("d", "own"), low("e", "told"), low("f", "told"))
	require.Len(t, found, 3, found.Error())
	text := found.Error()
	for _, root := range []string{`by input "claim"`, "by its own classification", `by a message from "intake"`} {
		require.Contains(t, text, root)
	}
}

// A conflict of one task names the task.
func TestLabelConflictOfOneTaskNamesTheTask(t *testing.T) {
	t.Parallel()
	first := spec("intake")
	first.Uses = []task.Use{{Name: "claim"}}
	found := planned(t, newTeam(t, cleared("intake", label.Confidential), member("fraud")), withClaim("x"), first, spec("fraud", "intake"))
	require.Len(t, found, 1)
	require.Equal(t, `the context is confidential, and "fraud" accepts internal (through "intake", confidential by input "claim")`, found[0].Message)
	require.Equal(t, `remove the confidential context, declassify the parts that it needs, or set accepts: confidential on agent "fraud"`, found[0].Hint)
}
