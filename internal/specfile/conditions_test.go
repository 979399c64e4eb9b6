package specfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// routed is a spec with a router. Further tasks begin in line 6.
const routed = `agents: [{name: router}, {name: worker}, {name: high, accepts: confidential}]
tasks:
- {title: Route, key: r, assignee: router, description: d, outputSchema: {type: object, required: [team, n], properties:
   {team: {enum: [billing, sales, other]}, n: {type: integer, minimum: 0, maximum: 9}, ok: {type: boolean}, why: {type: string}, sub: {type: object, properties: {x: {enum: [1, null]}}}}}}
- {title: Free, assignee: router, description: d}
%s`

// work writes a task that is done on a condition.
func work(title, rest string) string {
	return fmt.Sprintf("- {title: %s, assignee: worker, description: do, %s}\n", title, rest)
}

func TestConditionsOfSpecs(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, when, want string }{
		{"a text", "{task: Route, path: /team, equals: billing}", `{"task":"Route","path":"/team","equals":"billing"}`},
		{"a key", "{task: r, path: /team, equals: billing}", `{"task":"r","path":"/team","equals":"billing"}`},
		{"null", "{task: Route, path: /sub/x, equals: null}", `{"task":"Route","path":"/sub/x","equals":null}`},
		{"a number", "{task: Route, path: /n, equals: 0x3}", `{"task":"Route","path":"/n","equals":3}`},
		{"a boolean", "{task: Route, path: /ok, equals: true}", `{"task":"Route","path":"/ok","equals":true}`},
		{"several values", "{task: Route, path: /team, in: [billing, sales]}", `{"task":"Route","path":"/team","in":["billing","sales"]}`},
		{"a range", "{task: Route, path: /n, gte: 2, lte: 4.5}", `[{"task":"Route","path":"/n","gte":2},{"task":"Route","path":"/n","lte":4.5}]`},
		{"a member", "{task: Route, path: /ok, exists: true}", `{"task":"Route","path":"/ok","exists":true}`},
		{"no member", "{task: Route, path: /ok, exists: false}", `{"not":{"task":"Route","path":"/ok","exists":true}}`},
		{"a list", "[{task: Route, path: /n, gte: 2}, {task: Route, path: /ok, equals: true}]", `[{"task":"Route","path":"/n","gte":2},{"task":"Route","path":"/ok","equals":true}]`},
		{"any", "{any: [{task: Route, path: /n, gte: 2}, [{task: Route, path: /ok, equals: true}]]}", `{"any":[{"task":"Route","path":"/n","gte":2},[{"task":"Route","path":"/ok","equals":true}]]}`},
		{"not", "{not: {task: Route, path: /n, gte: 2}}", `{"not":{"task":"Route","path":"/n","gte":2}}`},
		{"any text", "{task: Route, path: /why, exists: true}", `{"task":"Route","path":"/why","exists":true}`},
		{"not a list", "{not: [{task: Route, path: /n, gte: 2}]}", `{"not":[{"task":"Route","path":"/n","gte":2}]}`},
		{"all keys", "{task: Route, path: /n, lte: 4, not: {task: Route, path: /n, equals: 3}}", `[{"task":"Route","path":"/n","lte":4},{"not":{"task":"Route","path":"/n","equals":3}}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := load(t, fmt.Sprintf(routed, work("A", "when: "+tt.when)), specfile.Options{})
			require.NoError(t, err)
			got, err := json.Marshal(f.Tasks[2].When)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(got))
			var again task.Condition
			require.NoError(t, json.Unmarshal(got, &again))
			require.Equal(t, *f.Tasks[2].When, again, "JSON says the same as YAML")
			require.Equal(t, f.Tasks, saved(t, f, f.Tasks), "and so does a saved plan")
		})
	}
}

// saved returns tasks as a saved plan has them.
func saved(t require.TestingT, f *specfile.File, tasks []task.Spec) []task.Spec {
	data, _, err := f.WithPlan(engine.Goal{}, tasks, f.Dir)
	require.NoError(t, err)
	again, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
	require.NoError(t, err, string(data))
	for i := range again.Tasks {
		again.Tasks[i].Source, again.Tasks[i].OutputSchema = tasks[i].Source, tasks[i].OutputSchema
	}
	return again.Tasks
}

func TestCasesAndAlternativesOfSpecs(t *testing.T) {
	t.Parallel()
	f, err := load(t, fmt.Sprintf(routed, work("A", "when: {task: Route, path: /team, equals: billing}")+work("B", "when: {task: Route, path: /team, equals: sales}")+
		work("C", "when: else")+work("D", "dependsOn: [{oneOf: [A, B, C], as: output, optional: true, maxContextBytes: 100}, Route]")), specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, task.Otherwise(), f.Tasks[4].When)
	require.Equal(t, []task.Ref{{OneOf: []string{"A", "B", "C"}, As: task.Output, Optional: true, MaxContextBytes: 100}, {Task: "Route"}}, f.Tasks[5].DependsOn)
	require.Equal(t, f.Tasks, saved(t, f, f.Tasks))
}

func TestBadConditionsOfSpecs(t *testing.T) {
	t.Parallel()
	a := func(when string) string { return work("A", "when: "+when) }
	tests := []struct {
		name, tasks string
		want        []string
	}{
		{"a word", a("billing"), []string{`6:55: task "A": when: unknown word "billing"; write {task: Triage, path: /team, equals: billing}, a list of conditions that must all hold, or else`}},
		{"true", a("true"), []string{`6:55: task "A": when: true where a condition belongs; write {task: Triage, path: /team, equals: billing}, a list of conditions that must all hold, or else`}},
		{"an empty list", a("[]"), []string{`6:55: task "A": when: the list is empty; name something, or leave the key out`}},
		{"an empty mapping", a("{}"), []string{`6:55: task "A": when: the condition compares nothing; write equals, in, gte, lte or exists`}},
		{"a list of words", a("[else, 5]"), []string{`6:56: task "A": when[0]: else beside other conditions; write else in place of the whole condition of a task`, `6:62: task "A": when[1]: the number 5 where a condition belongs; write {task: Triage, path: /team, equals: billing}`}},
		{"not else", a("{not: else}"), []string{`6:61: task "A": not: the text "else" where a condition belongs; write {task: Triage, path: /team, equals: billing}, or a list of conditions that must all hold`}},
		{"no comparison", a("{task: Route, path: /team}"), []string{`6:55: task "A": when: the condition compares nothing; write equals, in, gte, lte or exists`}},
		{"no path", a("{any: [{task: Route, equals: billing}]}"), []string{`6:62: task "A": when: path: it is missing; write path: /score`}},
		{"a misspelled path", a("{task: Route, pth: /team, equals: billing}"), []string{`6:69: task "A": unknown key "pth" in a condition; did you mean path?`}},
		{"another word for a key", a("{task: Route, path: /team, eq: billing}"), []string{`6:82: task "A": unknown key "eq" in a condition; did you mean equals?`}},
		{"a list of values", a("{task: Route, path: /team, equals: [billing]}"), []string{`6:90: task "A": equals: a list where a text, a number, true, false or null belongs; write in for several values`}},
		{"one of values", a("{task: Route, path: /team, in: billing}"), []string{`6:86: task "A": in: the text "billing" where a list of values belongs; write [a, b], or equals for one value`}},
		{"a list in a list", a("{task: Route, path: /team, in: [[billing]]}"), []string{`6:87: task "A": in[0]: a list where a value belongs; write texts, numbers, true, false and null`}},
		{"a number in quotes", a("{task: Route, path: /n, gte: \"5\"}"), []string{`6:84: task "A": gte: the text "5" where a number belongs; write a number such as 0.8, without quotes`}},

		{"a list of paths", a("{task: Route, path: /sub/*, equals: 1}"), []string{`6:75: task "A": when: write the path of one value, such as /team; write a condition such as {task: Triage, path: /team, equals: billing}`}},
		{"an unknown task", a("{any: [{task: Rout, path: /team, equals: billing}]}"), []string{`6:69: task "A": when: no task "Rout"; did you mean "Route"?`}},
		{"itself", a("[{task: Route, path: /n, gte: 2}, {not: {task: a, path: /team, exists: true}}]"), []string{`6:102: task "A": when: it reads the result of the task itself; name a task before it`}},
		{"an unknown value", a("{task: Route, path: /team, in: [billing, biling]}"), []string{`6:96: task "A": /team of the result of "Route" is never "biling"; did you mean "billing"?`}},
		{"another type", a("{task: Route, path: /ok, equals: maybe}"), []string{`6:88: task "A": /ok of the result of "Route" is never "maybe"; write one of false, true`}},
		{"an unbounded path", a("{task: Route, path: /why, equals: x}"), []string{`6:75: task "A": the result of "Route": /why is not bounded: /properties/why allows any text there: write "enum", or "pattern" such as "^[A-Z]{2}-[0-9]{1,6}$"; `}},
		{"an unknown path", a("{task: Route, path: /taem, equals: x}"), []string{`6:75: task "A": the outputSchema of "Route" has no /taem; did you mean "/team"?`}},
		{"an unbounded path of two tasks", a("{task: Route, path: /why, equals: x}") + work("B", "when: {task: Route, path: /why, equals: y}"), []string{`6:75: task "A": the result of "Route": /why is not bounded: /properties/why allows any text there: write "enum", or "pattern" such as "^[A-Z]{2}-[0-9]{1,6}$"; `}},
		{"an unknown comparison", a("{Route.team: billing}"), []string{`6:56: task "A": unknown key "Route.team" in a condition; known here: task, path, equals, in, gte, lte, exists, any, not`}},
		{"a path like no other", a("{task: Route, path: /category, equals: x}"), []string{`6:75: task "A": the outputSchema of "Route" has no /category; write one of /n, /ok, /sub, /team, /why, or add it under "properties"`}},
		{"free text", a("{not: {task: Free, path: /x, equals: 1}}"), []string{`6:80: task "A": the result of "Free" has no outputSchema, so nothing bounds /x; give that task an outputSchema in which this is an enum, a boolean or a number`}},

		{"a missing case", a("{task: Route, path: /team, equals: billing}") + work("B", "when: {task: Route, path: /team, equals: sales}"), []string{
			`6:55: task "A": no task runs if /team of the result of "Route" is "other"; give a task this case, or one with when: else`,
		}},
		{"missing numbers", a("{task: Route, path: /n, lte: 3}") + work("B", "when: {task: Route, path: /n, gte: 5}"), []string{
			`6:55: task "A": no task runs if /n of the result of "Route" is 4; give a task this case, or one with when: else`,
		}},
		{"no value", a("{task: Route, path: /ok, equals: true}") + work("B", "when: {task: Route, path: /ok, equals: false}"), []string{
			`6:55: task "A": no task runs if /ok of the result of "Route" is no value; give a task this case, or one with when: else`,
		}},
		{"else alone", a("else"), []string{`6:55: task "A": when: it is not clear which values else takes; no other task compares a value; write the condition in full, such as {not: {task: Triage, path: /team, in: [billing, sales]}}`}},
		{"else beside several values", a("{task: Route, path: /ok, equals: true}") + work("B", "when: {task: Route, path: /n, gte: 2}") + work("C", "when: else"), []string{
			`8:55: task "C": when: it is not clear which values else takes; other tasks compare /n of "Route" and /ok of "Route"; write the condition in full, such as {not: {task: Triage, path: /team, in: [billing, sales]}}`,
		}},
		{"else of an unknown task", a("{task: Rout, path: /team, equals: billing}") + work("B", "when: else"), []string{`6:62: task "A": when: no task "Rout"; did you mean "Route"?`}},

		{"no task of a dependency", work("A", "dependsOn: [{as: output}]"), []string{`6:61: task "A": dependsOn[0]: task: it is missing; write {task: …}`}},
		{"one alternative", work("A", "dependsOn: [{oneOf: [Route]}]"), []string{`6:69: task "A": oneOf: there is one alternative; write task: "Route"`}},
		{"no alternative", work("A", "dependsOn: [{oneOf: []}]"), []string{`6:69: task "A": oneOf: the list is empty; name something, or leave the key out`}},
		{"an empty task and oneOf", work("A", "dependsOn: [{task: '', oneOf: [Ask, Tell]}]") + work("Ask", "when: {task: Route, path: /n, lte: 5}") + work("Tell", "when: else"), []string{`6:61: task "A": dependsOn[0]: task is empty; remove task`}},
		{"task and oneOf", work("A", "dependsOn: [{task: Free, oneOf: [Free, Route]}]"), []string{`6:61: task "A": dependsOn[0]: it has task and oneOf; write one of them`}},
		{"an unknown alternative", work("A", "dependsOn: [{oneOf: [Free, Rout]}]"), []string{`6:76: task "A": dependsOn[0]: oneOf: no task "Rout"; did you mean "Route"?`}},
		{"alternatives that both run", a("{task: Route, path: /team, in: [billing, sales]}") + work("B", "when: {task: Route, path: /team, in: [sales, other]}") + work("C", "dependsOn: [Route, {oneOf: [A, B]}]"), []string{
			`8:77: task "C": "A" and "B" run if /team is "sales", and only one of them is granted; make their conditions exclude each other, or depend on each with optional: true`,
		}},
		{"alternatives that run in any case", a("else") + work("B", "when: {task: Route, path: /team, equals: sales}") + work("C", "dependsOn: [Free]") + work("D", "dependsOn: [{oneOf: [A, C]}]"), []string{
			`9:73: task "D": "C" runs in any case, and only one of the alternatives is granted; give it a condition such as when: else, or depend on each with optional: true`,
		}},
		{"alternatives after cases", a("else") + work("B", "when: {task: Route, path: /team, equals: sales}") + work("C", "dependsOn: [A]") + work("D", "dependsOn: [{oneOf: [B, C]}]"), nil},
		{"a number of texts", a("{task: Route, path: /team, lte: 4}"), []string{`6:87: task "A": /team of the result of "Route" is never a number; write one of "billing", "other", "sales" with equals or in`}},
		{"numbers out of range", a("{task: Route, path: /n, gte: 9.5}"), []string{`6:55: task "A": its condition never holds: the outputSchema allows no such value for /n of the result of "Route"; correct the condition, or remove the task`}},
		{"two values at once", a("[{task: Route, path: /team, equals: sales}, {task: Route, path: /team, equals: other}]"), []string{`6:55: task "A": its condition never holds: the outputSchema allows no such value for /team of the result of "Route"; correct the condition, or remove the task`}},
		{"no value of a required member", a("{task: Route, path: /team, exists: false}"), []string{`6:55: task "A": its condition never holds: the outputSchema allows no such value for /team of the result of "Route"; correct the condition, or remove the task`}},
		{"a whole number between fractions", a("{task: Route, path: /n, lte: 1.3}") + work("B", "when: {task: Route, path: /n, gte: 2.9}"), []string{
			`6:55: task "A": no task runs if /n of the result of "Route" is 2; give a task this case, or one with when: else`,
		}},
		{"a cycle", "- {title: A, assignee: worker, description: d, dependsOn: [B], outputSchema: {type: object, properties: {x: {type: boolean}}}}\n" + work("B", "when: {task: A, path: /x, equals: true}"), []string{
			`6:59: task "A": dependency cycle: A -> B -> A; remove one of these dependencies`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, saidOf(t, fmt.Sprintf(routed, tt.tasks)))
		})
	}
}

// The condition of tasks for the items of a list is a case like that of a task.
func TestListsOfTasksAreCases(t *testing.T) {
	t.Parallel()
	list := func(title, team string) string {
		return fmt.Sprintf("- title: %[1]s\n  when: {task: Route, path: /team, equals: %[2]s}\n  forEach: {input: %[1]s, maxItems: 2, output: Do %[1]s, tasks: [{title: Do %[1]s, assignee: worker, description: d, uses: [item]}, {title: Also %[1]s, assignee: worker, description: d}]}\n", title, team)
	}
	spec := "inputs: {A: {text: '[1,2]'}, B: {text: '[1]'}}\n" + routed
	require.Empty(t, saidOf(t, fmt.Sprintf(spec, list("A", "billing")+list("B", "sales")+work("C", "when: {task: Route, path: /team, equals: other}"))))
	require.Empty(t, saidOf(t, fmt.Sprintf(spec, list("A", "billing")+list("B", "sales")+work("C", "when: else"))))
	require.Equal(t, []string{`8:9: task "Do A": no task runs if /team of the result of "Route" is "other"; give a task this case, or one with when: else`},
		saidOf(t, fmt.Sprintf(spec, list("A", "billing")+list("B", "sales"))))
	require.Equal(t, []string{`8:44: task "Do A": /team of the result of "Route" is never "biling"; did you mean "billing"?`},
		saidOf(t, fmt.Sprintf(spec, list("A", "biling")+list("B", "sales"))))
}

// An else that no value is left for is a warning: the schema may get another value.
func TestElseThatTakesNothing(t *testing.T) {
	t.Parallel()
	f, err := load(t, fmt.Sprintf(routed, work("A", "when: {task: Route, path: /team, in: [billing, sales, other]}")+work("B", "when: else")), specfile.Options{})
	require.NoError(t, err)
	tm, err := f.Build(idle)
	require.NoError(t, err)
	p, err := tm.Plan(f.Tasks, &f.Run)
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	require.Equal(t, "/tasks/3/when", p.Warnings[0].Pointer)
	require.Equal(t, `task "B": it never runs: other tasks take all values of /team of the result of "Route"`, p.Warnings[0].Error())
}

// TestConditionsThatTellTooMuch checks conditions on what the reader, or who sees the status of
// tasks, may not know.
func TestConditionsThatTellTooMuch(t *testing.T) {
	t.Parallel()
	const secretive = `agents: [{name: router, accepts: confidential}, {name: worker}, {name: high, accepts: confidential}]
tasks:
- {title: Route, assignee: router, classification: confidential, description: d, outputSchema: {type: object, required: [team], properties: {team: {enum: [a, b]}}}}
- {title: A, assignee: %s, description: d, when: {task: Route, path: /team, equals: a}}
%s`
	tests := []struct {
		name, assignee, rest, want string
	}{
		{"above the reader", "worker", "", `4:54: task "A": the context is confidential, and "worker" accepts internal (by the condition on "Route", confidential by its own classification); remove the confidential context, declassify the parts that it needs, or set accepts: confidential on agent "worker"`},
		{"the reader may", "high", "", ""},
		{"blocked", "high", "policy: {rules: [{from: router, to: high, mode: scoped, block: [/team]}]}\n",
			`4:72: task "A": /team of the result of "Route" is not delivered to "high", by the rules for the two; allow the path in a rule for the pair, or compare another value`},
		{"minimal", "high", "policy: {rules: [{from: router, to: high, mode: minimal}]}\n",
			`4:72: task "A": /team of the result of "Route" is not delivered to "high", by the rules for the two; allow the path in a rule for the pair, or compare another value`},
		{"summarized", "high", "policy: {rules: [{from: router, to: high, translate: {summarize: {maxTokens: 50}}}]}\n",
			`4:72: task "A": /team of the result of "Route" is not delivered to "high", by the rules for the two; allow the path in a rule for the pair, or compare another value`},
		{"nothing in common", "high", "policy: {rules: [{from: router, to: high, mode: scoped, allow: [/other]}]}\n",
			`4:72: task "A": /team of the result of "Route" is not delivered to "high", by the rules for the two; allow the path in a rule for the pair, or compare another value`},
		{"allowed", "high", "policy: {rules: [{from: router, to: high, mode: scoped, allow: [/team]}]}\n", ""},
		{"declassified", "worker", "policy: {declassify: [{name: d, from: router, to: worker, paths: [/team], lowerTo: internal, reason: r}]}\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(saidOf(t, fmt.Sprintf(secretive, tt.assignee, tt.rest)), "\n")
			require.Equal(t, tt.want, got)
		})
	}
}

// TestAnySavedConditionIsTheSame writes conditions of Go programs as specs and reads them.
func TestAnySavedConditionIsTheSame(t *testing.T) {
	t.Parallel()
	f, err := load(t, fmt.Sprintf(routed, ""), specfile.Options{})
	require.NoError(t, err)
	var draw func(t *rapid.T, depth int) *task.Condition
	draw = func(t *rapid.T, depth int) *task.Condition {
		some := func() (all []*task.Condition) {
			for range rapid.IntRange(1, 3).Draw(t, "conditions") {
				all = append(all, draw(t, depth+1))
			}
			return all
		}
		value := rapid.SampledFrom([]any{"billing", "", "a: b", "5", 5, -2.25, true, nil})
		switch kind := rapid.IntRange(depth*2, 7).Draw(t, "kind"); {
		case kind < 2:
			return task.All(some()...)
		case kind == 2:
			return task.Any(some()...)
		case kind == 3:
			return task.Not(draw(t, depth+1))
		case kind == 4:
			return task.AtLeast("Route", "/n", 0.5)
		case kind == 5:
			return task.Exists("Route", "/ok")
		case kind == 6:
			return task.In("Route", "/team", value.Draw(t, "value"), value.Draw(t, "value"))
		}
		return task.Equals("Route", "/team", value.Draw(t, "value"))
	}
	rapid.Check(t, func(t *rapid.T) {
		when := draw(t, 0)
		tasks := append(append([]task.Spec{}, f.Tasks...), task.Spec{Title: "A", Description: "d", RetryDelay: 0, When: when})
		require.Equal(t, when, saved(t, f, tasks)[2].When)
	})
}

func TestConditionsThatNoSpecHas(t *testing.T) {
	t.Parallel()
	f, err := load(t, fmt.Sprintf(routed, ""), specfile.Options{})
	require.NoError(t, err)
	for _, when := range []*task.Condition{task.Equals("Route", "/n", func() {}), {Op: condition.AtLeast}} {
		_, _, err := f.WithPlan(engine.Goal{}, []task.Spec{{Title: "A", Description: "d", When: when}}, f.Dir)
		bad, ok := errors.AsType[*specfile.Error](err)
		require.True(t, ok, "%v", err)
		require.Contains(t, bad.Problems[0].Message, "the plan: ")
	}
}
