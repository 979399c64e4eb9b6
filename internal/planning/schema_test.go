package planning_test

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/planning"
)

// TestPlanSchemaAllowsPlans checks that the schema allows what ParsePlan takes and
// refuses what an endpoint can be kept from writing.
func TestPlanSchemaAllowsPlans(t *testing.T) {
	t.Parallel()
	rules := planning.Rules{Agents: []string{"analyst", "writer"}, Inputs: []string{"claim"}, MayGrant: planning.Grants{Memory: true, Inputs: true, Tools: true}, Tools: map[string][]string{"analyst": {"sql"}}}
	bare := rules
	bare.MayGrant = planning.Grants{}
	tests := []struct {
		name  string
		rules planning.Rules
		plan  string
		ok    bool
	}{
		{"one task", bare, one(``), true},
		{"every key", rules, one(`"assignee": "analyst", "dependsOn": [], "uses": ["claim"], "tools": ["sql"], "memoryScope": "all", "role": "finder", "priority": "high",
			"maxRetries": 2, "retryDelayMs": 1500.5, "retryBackoff": 1.5, "requires": {"requiredCapabilities": ["law"], "requiredBackend": "process", "requiredProvider": "openai"}`), true},
		{"no agents to choose from", planning.Rules{}, one(`"assignee": "analyst"`), true},
		{"an object", bare, `{"title": "Find", "description": "Find it."}`, false},
		{"no description", bare, `[{"title": "Find"}]`, false},
		{"an unknown key", bare, one(`"deadline": "soon"`), false},
		{"an unknown agent", bare, one(`"assignee": "anlyst"`), false},
		{"an unknown input", rules, one(`"uses": ["claims"]`), false},
		{"an unknown tool", rules, one(`"tools": ["sqll"]`), false},
		{"tools that are not the plan's to grant", bare, one(`"tools": ["sql"]`), false},
		{"a grant that is not the plan's", bare, one(`"uses": ["claim"]`), false},
		{"an unknown priority", bare, one(`"priority": "urgent"`), false},
		{"half a retry", bare, one(`"maxRetries": 1.5`), false},
		{"an unknown requirement", bare, one(`"requires": {"tools": []}`), false},
	}
	for _, tt := range tests {
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal([]byte(planning.PlanSchema(tt.rules)), &s))
		resolved, err := s.Resolve(nil)
		require.NoError(t, err)
		var plan any
		require.NoError(t, json.Unmarshal([]byte(tt.plan), &plan))
		err = resolved.Validate(plan)
		require.Equal(t, tt.ok, err == nil, "%s: %v", tt.name, err)
		if tt.ok && len(tt.rules.Agents) > 0 {
			_, err := planning.ParsePlan(tt.plan, tt.rules)
			require.NoError(t, err, tt.name)
		}
	}
}
