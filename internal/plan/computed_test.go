package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestPlansShowTasksWithoutAnAgent(t *testing.T) {
	t.Parallel()
	p, err := newTeam(t, member("writer")).plan([]task.Spec{
		{Title: "Hello", Value: json.RawMessage(`"hello"`), Classification: label.Public}, {Title: "Letter", Template: "{{.results.Hello}}", DependsOn: task.On("Hello")},
	}, nil)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"assignee":"computed","computed":"value"`)
	require.Contains(t, string(raw), `"computed":"template"`)
	specs := p.Specs()
	require.Empty(t, specs[0].Assignee)
	_, err = newTeam(t, member("writer")).plan(specs, nil)
	require.NoError(t, err)
}

func TestTemplatesAreCheckedBeforeARun(t *testing.T) {
	t.Parallel()
	read := task.Spec{Title: "Read claim", Key: "read", Description: "Read."}
	letter := func(text string) []task.Spec {
		return []task.Spec{read, {Title: "Letter", Template: text, DependsOn: task.On("read"), Uses: []task.Use{{Name: "claim"}}}, {Title: "Score", Description: "Score."}}
	}
	tests := map[string]struct {
		give []task.Spec
		want string
	}{
		"syntax":            {letter("Dear\n{{.inputs.claim"), `task "Letter": template: unclosed action (line 2): correct it`},
		"a function":        {letter(`{{env "HOME"}}`), `template: function "env" not defined (line 1)`},
		"an unknown name":   {letter("{{.result.read}}"), `template: unknown name ".result" (line 1): write .inputs.NAME or .results.NAME`},
		"not granted":       {letter("\n{{.results.Score}}"), `template: the task is not granted the result of "Score" (line 2): add "Score" to dependsOn`},
		"an unknown task":   {letter(`{{index .results "Check"}}`), `template: there is no task "Check" (line 1)`},
		"a misspelled key":  {letter(`{{.results.reed}}`), `template: there is no task "reed" (line 1): did you mean "read"?`},
		"an input":          {letter(`{{.inputs.policy}}`), `template: the task is not granted input "policy" (line 1): add "policy" to uses`},
		"an empty template": {letter(" "), `task "Letter": template: it is empty`},
		"a mismatch":        {[]task.Spec{{Title: "Limits", Value: json.RawMessage("5"), OutputSchema: json.RawMessage(`{"type":"object"}`)}}, `task "Limits": value: `},
		"a value too large": {[]task.Spec{{Title: "Limits", Value: json.RawMessage(`["` + strings.Repeat("x", 3<<20) + `"]`)}}, "value: it is larger than a result may be"},
		"two equal members": {[]task.Spec{{Title: "Limits", Value: json.RawMessage(`{"a":1,"a":2}`)}}, "value: not one strict JSON value"},
		"a path it has not": {[]task.Spec{{Title: "Limits", Value: json.RawMessage(`{"max":5}`)}, {Title: "Write", Description: "Write.", DependsOn: []task.Ref{{Task: "Limits", Need: []task.Path{"/min"}}}}}, `can have nothing at "/min"`},
		"a text as a value": {[]task.Spec{{Title: "Hello", Value: json.RawMessage(`"hello"`)}, {Title: "Write", Description: "Write.", DependsOn: []task.Ref{{Task: "Hello", As: task.Structured}}}}, "no structured result to deliver"},
		"an assignee":       {[]task.Spec{{Title: "Write", Description: "Write.", Assignee: "computed"}, {Title: "Hello", Value: json.RawMessage(`1`)}}, `unknown agent "computed"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newTeam(t, member("writer")).plan(tt.give, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "a dent"}}})
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "Computed", Agent: unused}}})
	require.ErrorContains(t, err, "reserved name Computed")
}
