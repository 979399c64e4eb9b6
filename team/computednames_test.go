package team_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

// TestNamesInTemplates checks by which names a template reads results of branches, lists and loops,
// and that it does not read what only its condition reads.
func TestNamesInTemplates(t *testing.T) {
	t.Parallel()
	value := func(title, v string) task.Spec { return task.Spec{Title: title, Value: json.RawMessage(v)} }
	bounded := func(title, v, schema string) task.Spec {
		return task.Spec{Title: title, Value: json.RawMessage(v), OutputSchema: json.RawMessage(schema)}
	}
	route := bounded("Route", `{"team":"billing","note":"n"}`, `{"type":"object","properties":{"team":{"enum":["billing","sales"]},"note":{"type":"string"}},"required":["team"]}`)
	when := func(team string) *task.Condition { return task.Equals("Route", "/team", team) }
	cases := []task.Spec{route, {Title: "Billing", Key: "bill", Value: json.RawMessage(`"paid"`), When: when("billing")}, {Title: "Sales", Value: json.RawMessage(`"sold"`), When: when("sales")}}
	words := value("Words", `{"words":["a","b"]}`)
	forEach := &task.ForEach{Task: "Words", Path: "/words", MaxItems: 3, As: "word"}

	tests := map[string]struct {
		tasks    []task.Spec
		template task.Spec
		want     string
		problem  string
	}{
		"alternatives": {
			tasks:    cases,
			template: task.Spec{DependsOn: []task.Ref{{OneOf: []string{"Billing", "Sales"}}}, Template: `{{.results.Billing}}{{.results.bill}}<{{.results.Sales}}>`},
			want:     "paidpaid<>",
		},
		"the first alternative does not run": {
			tasks:    cases,
			template: task.Spec{DependsOn: []task.Ref{{OneOf: []string{"Sales", "Billing"}}}, Template: `{{with .results.Sales}}{{.}}{{else}}none{{end}} {{.results.Billing}}`},
			want:     "none paid",
		},
		"a condition on another task": {
			tasks:    append(cases[:1:1], value("Read", `"text"`)),
			template: task.Spec{When: when("billing"), DependsOn: task.On("Read"), Template: `{{.results.Read}}`},
			want:     "text",
		},
		"a condition on the same task": {
			tasks:    cases[:1],
			template: task.Spec{When: when("billing"), DependsOn: []task.Ref{{Task: "Route", As: task.Structured, Need: []task.Path{"/note"}}}, Template: `{{.results.Route.note}}{{range $k, $v := .results.Route}}<{{$k}}>{{end}}`},
			want:     "n<note>",
		},
		"only its condition reads the task": {
			tasks:    cases[:1],
			template: task.Spec{When: when("billing"), Template: `{{.results.Route}}`},
			problem:  `the task is not granted the result of "Route"`,
		},
		"a list of instances": {
			tasks:    []task.Spec{words, {Title: "Greet", Key: "greet", ForEach: forEach, Template: "hello {{.results.word}}"}},
			template: task.Spec{DependsOn: []task.Ref{{Each: "Greet"}}, Template: `{{range .results.Greet}}<{{.}}>{{end}}{{len .results.greet}}`},
			want:     "<hello a><hello b>2",
		},
		"an empty list": {
			tasks:    []task.Spec{{Title: "Words", Template: `{"words":[]}`, OutputSchema: json.RawMessage(`{"type":"object","properties":{"words":{"type":"array","items":{"type":"string"}}},"required":["words"]}`)}, {Title: "Greet", ForEach: forEach, Template: "hello {{.results.word}}"}},
			template: task.Spec{DependsOn: []task.Ref{{Each: "Greet", Optional: true}}, Template: `{{len .results.Greet}} greetings`},
			want:     "0 greetings",
		},
		"an item beside the whole result": {
			tasks:    []task.Spec{words, {Title: "Greet", ForEach: forEach, DependsOn: []task.Ref{{Task: "Words", As: task.Structured}}, Template: "{{.results.word}}"}},
			template: task.Spec{DependsOn: []task.Ref{{Each: "Greet"}}, Template: `{{index .results.Greet 1}}`},
			problem:  `dependsOn[0]: "Words" has the list, of which the task gets one item`,
		},
		"a loop": {
			tasks: []task.Spec{{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Output: "Write", Until: task.Equals("Check", "/valid", true), Tasks: []task.Spec{
				{Title: "Write", Key: "draft", DependsOn: []task.Ref{{Task: "draft", Round: task.Previous, Optional: true}}, Template: "x{{with .results.draft}}{{.}}{{end}}"},
				{Title: "Check", DependsOn: task.On("draft"), Template: `{"valid": {{and (eq .results.Write "xx") (eq .results.draft "xx")}}}`, OutputSchema: json.RawMessage(`{"type":"object","properties":{"valid":{"type":"boolean"}},"required":["valid"]}`)},
			}}}},
			template: task.Spec{DependsOn: task.On("Loop"), Template: "{{.results.Loop}}"},
			want:     "xx",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.template.Title = "Letter"
			res, err := writerTeam(t, nil).RunTasks(t.Context(), append(tt.tasks[:len(tt.tasks):len(tt.tasks)], tt.template), nil)
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			letter, _ := res.Task("Letter")
			require.Equal(t, tt.want, letter.Result)
		})
	}
}
