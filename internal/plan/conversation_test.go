package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
)

func TestTurnsAreChecked(t *testing.T) {
	t.Parallel()
	r := newTeam(t, member("ada"), plan.Member{Name: "ann", Agent: person.New(unused)})
	for name, tt := range map[string]struct {
		turn record.SessionTurn
		want []fault
	}{
		"fine":            {record.SessionTurn{Agent: "ada", Text: "Hello."}, nil},
		"empty":           {record.SessionTurn{Agent: "ada", Text: " \n"}, []fault{{"/message", "it is empty", task.ErrInvalid}}},
		"no text":         {record.SessionTurn{Agent: "ada", Text: "\xff"}, []fault{{"/message", "UTF-8", task.ErrInvalid}}},
		"long":            {record.SessionTurn{Agent: "ada", Text: strings.Repeat("x", gate.DefaultContextBytes+1)}, []fault{{"/message", "move long texts to inputs", brief.ErrTooLarge}}},
		"a label":         {record.SessionTurn{Agent: "ada", Text: "x", Label: 9}, []fault{{"/message", "unknown label", label.ErrUnknown}}},
		"nobody":          {record.SessionTurn{Agent: "adda", Text: "x"}, []fault{{"/agent", `unknown agent "adda": did you mean "ada"?`, plan.ErrUnknownAgent}}},
		"a person":        {record.SessionTurn{Agent: "ann", Text: "x"}, []fault{{"/agent", `"ann" is a person`, task.ErrInvalid}}},
		"no coordinator":  {record.SessionTurn{Text: "x"}, []fault{{"/agent", "this team has no coordinator: name one of its agents: ada, ann", plan.ErrNoCoordinator}}},
		"several at once": {record.SessionTurn{Agent: "bob", Label: 9}, []fault{{"/message", "it is empty", nil}, {"/message", "unknown label", nil}, {"/agent", "write one of ada, ann", nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := plan.CheckTurn(r.Roster, &tt.turn); tt.want != nil {
				requireFaults(t, found.Err(), tt.want...)
			} else {
				require.Empty(t, found)
			}
		})
	}
}

// The task of a turn says what the person said, and reads all inputs.
func TestTaskOfATurn(t *testing.T) {
	t.Parallel()
	o := &plan.Options{Inputs: []plan.Input{{Name: "one", Text: "x"}, {Name: "two", Text: "y", Classification: label.Confidential}}}
	s := plan.TurnTask(&record.SessionTurn{Turn: 3, Agent: "ada", Text: "Compare them.", Label: label.Confidential}, o.Inputs)
	p, err := newTeam(t, cleared("ada", label.Confidential)).plan([]task.Spec{s}, o)
	require.NoError(t, err)
	require.Equal(t, []any{"Turn 3", "ada", label.Confidential, 2}, []any{p.Tasks[0].Title, p.Tasks[0].Assignee, p.Tasks[0].Label, len(p.Tasks[0].Reads)})
}
