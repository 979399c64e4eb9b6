package plan_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

var (
	price = []task.Spec{{Title: "Price", Description: "Convert the price.", Assignee: "clerk", Uses: []task.Use{{Name: "claim"}}}}
	claim = []plan.Input{{Name: "claim", Text: "canary price 100 EUR", Classification: label.Confidential}}
)

func ratesTool() *tool.Tool {
	return &tool.Tool{
		Name: "rates", Description: "Rates of a currency in a year.",
		Parameters: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": [], "properties": {
			"currency": {"enum": ["EUR", "USD", "JPY"]}, "year": {"type": "integer", "minimum": 2000, "maximum": 2100}, "note": {"type": "string"}}}`),
		Run:     func(context.Context, tool.Call) (tool.Result, error) { panic("a plan called a tool") },
		Options: tool.Options{Effect: tool.None},
	}
}

// lowers returns an entry that lowers arguments of the tool rates.
func lowers(paths ...task.Path) *handoff.Policy {
	return &handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "rates-only", From: "clerk", To: "tool:rates", Reason: "bounded"}, Paths: paths, LowerTo: label.Internal}}}
}

// confidential returns a team whose clerk reads a confidential input and has a tool.
func confidential(t testing.TB, f *tool.Tool, p *handoff.Policy) roster {
	t.Helper()
	return governed(t, p, plan.Member{Name: "clerk", Agent: asksModel, Accepts: label.Confidential, Tools: []*tool.Tool{f}})
}

// All calls together may carry only a little, and each attempt makes its own.
func TestDeclassifiedArgumentsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	f := ratesTool()
	f.Parameters = json.RawMessage(strings.Replace(string(f.Parameters), `{"type": "string"}`, `{"type": "string", "pattern": "^[0-9]{32}$"}`, 1))
	r := confidential(t, f, lowers("/note"))
	for retries, want := range map[int]string{0: "", 9: "at most 1024 are allowed"} {
		tasks := []task.Spec{price[0]}
		tasks[0].MaxRetries = retries
		p, err := r.plan(tasks, &plan.Options{Inputs: claim, UserAccepts: new(label.Confidential)})
		if want == "" {
			require.NoError(t, err)
			require.Contains(t, task.Problems(p.Warnings).Error(), "can carry 224 bytes of input \"claim\" below its label")
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestPlanShowsWhatADeclassifierDeliversToATool(t *testing.T) {
	t.Parallel()
	r := confidential(t, ratesTool(), lowers("/currency", "/year"))
	for _, tt := range []struct {
		text  string
		holds bool
	}{
		{"input claim never reaches tool:rates", true},
		{"input claim never derives into tool:rates", false},
		{`task Price never reaches tool:rates`, true},
		{`task Price never derives into tool:rates`, false},
	} {
		p, err := r.plan(price, &plan.Options{Inputs: claim, UserAccepts: new(label.Confidential), Assert: asserting(t, tt.text)})
		require.NoError(t, err)
		require.Equal(t, tt.holds, p.Broken().Err() == nil, "%s: %v", tt.text, p.Broken().Err())
		if !tt.holds {
			require.ErrorContains(t, p.Broken().Err(), "declassified by rates-only")
		}
		text, err := json.Marshal(p)
		require.NoError(t, err)
		require.Contains(t, string(text), `"lowered":[{"by":"rates-only","from":"clerk","result":"arguments of Price","to":"tool:rates","label":"confidential","lowerTo":"internal",`+
			`"paths":[{"path":"/currency","bytes":16},{"path":"/year","bytes":16}],"bytes":32}]`)
		require.Contains(t, string(text), `"disclosed":[{"producer":"clerk","of":"input \"claim\"","results":["arguments of Price"],"bytes":32}]`)
	}
}
