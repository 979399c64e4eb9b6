package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// What of the shared memory is certain to be held is no way in the flow table.
//
// Requirement: G54.
func TestFlowTableOmitsWithheldMemory(t *testing.T) {
	t.Parallel()
	never, err := flow.ParseAssertion("task one never reaches b")
	require.NoError(t, err)
	one, two := by("a", spec("one")), by("b", spec("two"))
	one.Classification, two.MemoryScope = label.Confidential, task.ScopeAll
	r := newTeam(t, cleared("a", label.Confidential), cleared("b", label.Internal))
	p, err := r.plan([]task.Spec{one, two}, &plan.Options{Assert: []flow.Assertion{never}})
	require.NoError(t, err)
	require.True(t, p.Findings[0].Holds, p.Findings[0].Why)
}
