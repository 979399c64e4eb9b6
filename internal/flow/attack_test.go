package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
)

// A text without a schema may be JSON with the property that an assertion is about.
// The finding names such texts for both claims, also those without a writer among
// the tasks, such as a message or a memory of the caller's.
func TestFindingNamesTextsThatMayHaveTheProperty(t *testing.T) {
	t.Parallel()
	named := func(name string) flow.Answer {
		if name == "ssn" {
			return flow.Yes
		}
		return flow.No
	}
	g := &flow.Graph{
		Readers: []flow.Reader{{Kind: flow.Agent, Name: "first"}, {Kind: flow.Agent, Name: "second"}, {Kind: flow.Agent, Name: "apart"}, {Kind: flow.Agent, Name: "idle"}},
		Tasks:   []flow.Task{{Title: "First", Agent: 0}, {Title: "Second", Agent: 1}, {Title: "Apart", Agent: 2}},
		Sources: []flow.Source{
			{Kind: handoff.Goal, Name: "goal", Task: -1},
			{Kind: handoff.Memory, Name: "memory of the caller", Task: -1},
			{Kind: handoff.Input, Name: "claim", Task: -1, Names: named},
			{Kind: handoff.Dependency, Name: "First", Task: 0},
			{Kind: handoff.Dependency, Name: "Second", Task: 1, Names: func(string) flow.Answer { return flow.No }},
		},
		Edges: []flow.Edge{
			{Source: 1, Task: 0, Delivers: pick.Everything()}, {Source: 3, Task: 1, Delivers: pick.Everything()},
			{Source: 2, Task: 2, Delivers: except("ssn")}, {Source: 0, Task: 2, Delivers: pick.Everything()},
		},
	}
	const unknown = "a text without a schema may contain it: "
	more := `; "never derives into" covers texts whose writers read it`
	for give, want := range map[string]string{
		"ssn never reaches first":               unknown + `first receives memory "memory of the caller"` + more,
		"ssn never derives into first":          unknown + `first gets text derived from memory "memory of the caller"`,
		"ssn never reaches second":              unknown + `second receives result of "First"` + more,
		"ssn never derives into second":         unknown + `second gets text derived from memory "memory of the caller"`,
		"ssn never reaches apart":               "", // a structured input without it, and the goal, which is no JSON of anybody's
		"ssn never reaches idle":                "",
		"ssn never derives into idle":           "",
		"input claim never derives into second": "", // a whole input, which is where it is
	} {
		a, err := flow.ParseAssertion(give)
		require.NoError(t, err)
		got, err := g.Table().Check(a)
		require.NoError(t, err)
		require.True(t, got.Holds, give)
		require.Equal(t, want, got.Why, give)
	}
}
