package gate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// Requirement: G53.
func TestNamesOfRulesAreOneCleanLine(t *testing.T) {
	t.Parallel()
	p := exactly(handoff.PairRule{ID: "x\ny\x1b[2J", Mode: handoff.Full})
	_, err := gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer"}})
	require.ErrorContains(t, err, "its name: not one clean line")
}

// What an agent said when it failed is a text, though it be JSON.
//
// Requirement: G6.
func TestErrorTextHasNoParts(t *testing.T) {
	t.Parallel()
	source := gate.Source{Kind: handoff.Fault, Name: "t-up"}
	g := gate.WholeOf(source, "")
	g.Terms = rulebook(t, exactly(handoff.PairRule{Allow: []task.Path{"/notes"}})).Between("analyst", "writer")
	o := offer(t, envelope.Text(`{"notes":"CANARY"}`))
	o.Source = source
	requireWithheld(t, granted(t, []gate.Grant{g}), o, "analyst→writer", gate.ReasonRule, gate.CodeWithheld)
}
