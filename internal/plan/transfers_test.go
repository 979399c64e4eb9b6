package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/tool"
)

// transferring returns edges along which conversations may be transferred, as [edges] writes them.
func transferring(list ...string) []handoff.Edge {
	all := edges(list...)
	for i := range all {
		all[i].Transfer = true
	}
	return all
}

func TestEdgesThatTransferNothing(t *testing.T) {
	t.Parallel()
	ann := plan.Member{Name: "ann", Agent: person.New(unused)}
	own := member("c")
	own.Tools = []*tool.Tool{newTool(t, "transfer_to_b", tool.Options{Effect: tool.None})}
	for name, tt := range map[string]struct {
		edge handoff.Edge
		want string
	}{
		"to a person":   {handoff.Edge{From: "a", To: "ann", Transfer: true}, `"ann" is a person, to whom no agent transfers its conversation`},
		"from a person": {handoff.Edge{From: "ann", To: "a", Transfer: true}, `"ann" is a person, who sends no handoffs`},
		"to itself":     {handoff.Edge{From: "a", To: "a", Transfer: true}, `"a" is connected to itself`},
		"to nobody":     {handoff.Edge{From: "a", To: "d", Transfer: true}, `unknown agent "d"`},
		"one name":      {handoff.Edge{From: "c", To: "b", Transfer: true}, `agent "c" would have two tools "transfer_to_b"`},
	} {
		_, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), member("b"), own, ann}, Edges: []handoff.Edge{tt.edge}})
		require.ErrorContains(t, err, tt.want, name)
	}
	_, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), member("b.1"), member("b 1")}, Edges: transferring("a>b.1", "a>b 1")})
	require.ErrorContains(t, err, "rename one of the two agents")
}
