package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

const (
	closedClaim = `{"type": "object", "properties": {"remarks": {"type": "string"}, "facts": {"type": "object", "properties": {"sum": {"type": "number"}}, "additionalProperties": false}}, "additionalProperties": false}`
	openClaim   = `{"type": "object", "properties": {"remarks": {"type": "string"}}}`
)

// withSchema is a member whose results match a schema.
func withSchema(name, schema string, run agentFunc) engine.Member {
	m := member(name, run)
	m.OutputSchema = []byte(schema)
	return m
}

// The policy of a goal is looked at before the coordinator is asked for a plan.
func TestPathsOfAPolicyAreCheckedBeforeAGoalIsPlanned(t *testing.T) {
	t.Parallel()
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{withSchema("a", closedClaim, never(t)), member("b", never(t))}, Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(never(t))},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Block: []task.Path{"remarkz"}}}},
	})
	require.NoError(t, err)
	_, err = tm.RunTeam(t.Context(), engine.Goal{Text: "Do it."}, nil)
	requireFaults(t, err, fault{"/policy/rules/0/block/0", `did you mean "remarks"?`, task.ErrUnknown})
}

// TestOnlyNarrowedContextIsMarkedNarrowed runs a block that finds nothing in
// what it is about, and one that does.
func TestOnlyNarrowedContextIsMarkedNarrowed(t *testing.T) {
	t.Parallel()
	play := func(reply string) (*gate.Decision, *engine.Result, string) {
		var text string
		tm, err := engine.New(engine.Config{
			Agents: []engine.Member{member("a", says(reply)), member("b", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				text = p.Text()
				return agent.Reply{Text: "read"}, nil
			})},
			Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Block: []task.Path{"/secretz"}}}},
		})
		require.NoError(t, err)
		made := by("a", spec("Make"))
		made.OutputSchema = []byte(openClaim)
		res, err := tm.RunTasks(t.Context(), []task.Spec{made, by("b", spec("Read", "Make"))}, nil)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		for _, s := range res.Tasks[1].Receipts[0].Sources {
			if s.Decision != nil {
				return s.Decision, res, text
			}
		}
		t.Fatal("no decision")
		return nil, nil, ""
	}
	d, res, same := play(`{"remarks": "x"}`)
	require.False(t, d.Parts().Narrowed)
	require.Empty(t, d.Parts().Dropped)
	require.Zero(t, res.Context.Withheld)
	d, res, less := play(`{"remarks": "x", "secretz": "y"}`)
	require.True(t, d.Parts().Narrowed)
	require.Equal(t, []task.Path{"/secretz"}, d.Parts().Dropped)
	require.Equal(t, 1, res.Context.Withheld)
	require.Equal(t, same, less, "the reader of a part does not learn whether there was more")
	require.Contains(t, same, `[envelope `)
	require.NotContains(t, same, "narrowed")
	require.Contains(t, same, "from \"a\", internal, in parts: data")
}
