package specfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// looped is a spec with a loop, in lines 7 to 14, and a task for each item of a list.
const looped = `agents: [{name: writer}, {name: editor}]
inputs: {brief: {text: A brief.}}
schemas: {verdict: {type: object, required: [valid], properties: {valid: {type: boolean}, notes: {type: string}, points: {type: array, items: {type: string}}}}}
params: {who: all}
taskDefaults: {maxRetries: 2, assignee: writer}
tasks:
- title: Draft
  repeat:
    maxRounds: 3
    until: {task: Check, path: /valid, equals: true}
    output: Write
    tasks:
    - {title: Write, description: "Write for ${params.who}.", uses: [brief], dependsOn: [{task: Check, round: previous, need: [/notes], optional: true}]}
    - {title: Check, key: check, assignee: editor, description: Check., dependsOn: [Write], outputSchema: verdict}
- {title: Judge, description: Judge., dependsOn: [Draft], outputSchema: verdict}
- {title: Fix, description: Fix the point., forEach: {task: Judge, path: /points, as: point, maxItems: 5, onOverflow: first}}
- {title: Report, description: Report., dependsOn: [{each: Fix, optional: true}]}
`

func TestLoopsAndListsOfSpecs(t *testing.T) {
	t.Parallel()
	f, err := load(t, looped, specfile.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Warnings, "inputs and parameters of loops are used")
	loop := f.Tasks[0].Repeat
	require.Equal(t, task.Equals("Check", "/valid", true), loop.Until)
	require.Equal(t, "Write", loop.Output)
	require.Equal(t, 3, loop.MaxRounds)
	require.Len(t, loop.Tasks, 2)
	require.Equal(t, "Write for all.", loop.Tasks[0].Description)
	require.Equal(t, "writer", loop.Tasks[0].Assignee, "defaults count in loops")
	require.Empty(t, f.Tasks[0].Assignee, "and not for a loop")
	require.Equal(t, []task.Ref{{Task: "Check", Round: task.Previous, Need: []task.Path{"/notes"}, Optional: true}}, loop.Tasks[0].DependsOn)
	require.Equal(t, &task.ForEach{Task: "Judge", Path: "/points", As: "point", MaxItems: 5, OnOverflow: "first"}, f.Tasks[2].ForEach)
	require.Equal(t, []task.Ref{{Each: "Fix", Optional: true}}, f.Tasks[3].DependsOn)

	data, _, err := f.WithPlan(engine.Goal{}, f.Tasks, f.Dir)
	require.NoError(t, err)
	again, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
	require.NoError(t, err, string(data))
	twice, _, err := again.WithPlan(engine.Goal{}, again.Tasks, f.Dir)
	require.NoError(t, err)
	require.Equal(t, string(data), string(twice), "a saved plan says the same")
	require.Equal(t, loop.Until, again.Tasks[0].Repeat.Until)
	require.Contains(t, string(data), "${params.who}")
}

func TestBadLoopsAndListsOfSpecs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, fresh string
		want             []string
	}{
		{"an assignee", "- title: Draft\n", "- title: Draft\n  assignee: writer\n", []string{`8:3: task "Draft": assignee: a loop does not have it; write it in the tasks of the loop`}},
		{"rounds", "maxRounds: 3", "maxRounds: 0", []string{`9:16: task "Draft": maxRounds: the number 0 where a whole number from 1 to 100 belongs; write a number such as 4, without quotes`}},
		{"no output", "    output: Write\n", "", []string{`9:5: task "Draft": repeat: output: it is missing; write output: Draft, or the title of another task`}},
		{"an unknown output", "output: Write", "output: Wrote", []string{`11:13: task "Draft": the loop has no task "Wrote"; did you mean "Write"?`}},
		{"a task that the loop lacks", "until: {task: Check", "until: {task: Judge", []string{`10:12: task "Draft": the loop has no task "Judge"; compare the result of a task of the loop`}},
		{"a value that is unknown", "equals: true}\n", "equals: maybe}\n", []string{`10:12: task "Draft": /valid of the result of "Check" is never "maybe"; write one of false, true`}},
		{"else", "until: {task: Check, path: /valid, equals: true}", "until: else", []string{`10:12: task "Draft": until: the text "else" where a condition belongs; write {task: Triage, path: /team, equals: billing}, or a list of conditions that must all hold`}},
		{"an unknown task", "dependsOn: [Write]", "dependsOn: [Wrote]", []string{`14:85: task "Check": dependsOn[0]: no task "Wrote"; did you mean "Write"?`}},
		{"a task of a loop outside of it", "dependsOn: [Draft]", "dependsOn: [Write]", []string{`15:51: task "Judge": dependsOn[0]: no task "Write"; it is a task of the loop "Draft", and only the loop has a result outside; name the loop`}},
		{"an unknown input", "uses: [brief]", "uses: [breif]", []string{`13:70: task "Write": unknown input "breif"; did you mean "brief"?`}},
		{"an unknown agent", "assignee: editor", "assignee: edtior", []string{`14:44: task "Check": unknown agent "edtior"; did you mean "editor"?`}},
		{"an unknown key", "key: check", "kee: check", []string{`14:22: task "Check": unknown key "kee" in a task; did you mean key?`}},
		{"another word for a round", "round: previous", "round: next", []string{`13:111: task "Write": round: the text "next" where the word previous belongs; write previous, or leave the key out`}},
		{"a result of the same round", "round: previous, ", "", []string{`13:89: task "Write": dependency cycle: Write -> Check -> Write; remove one of these dependencies, or read the result of the round before: {task: Check, round: previous, optional: true}`}},
		{"an end without a task", "until: {task: Check, path", "until: {path", []string{`10:12: task "Draft": until: task: it is missing; write task: Draft, or the title of another task`}},
		{"another word for the source of a list", "forEach: {task: Judge, path: /points", "forEach: {in: Judge", []string{`16:55: task "Fix": unknown key "in" in forEach; did you mean input?`}},
		{"a path without a slash", "path: /points", "path: points", []string{`16:74: task "Fix": path "points" does not begin with a slash; did you mean "/points"?`}},
		{"a round that is required", ", optional: true}]}\n    - ", "}]}\n    - ", []string{`13:90: task "Write": the first round has no previous one; write optional: true`}},
		{"no previous round", "dependsOn: [Draft]", "dependsOn: [{task: Draft, round: previous, optional: true}]", []string{`15:72: task "Judge": the task is not in a loop, so it has no previous round; remove round`}},
		{"a loop and a list", "- title: Draft\n", "- title: Draft\n  forEach: {task: Judge, path: /points, maxItems: 5}\n", []string{`8:3: task "Draft": forEach: a loop does not have it; write it in the tasks of the loop`}},
		{"a list that is not there", "path: /points", "path: /notes/x", []string{`16:74: task "Fix": the result of "Judge" has no list at /notes/x; write the path of an array of its outputSchema`}},
		{"an unknown list", "task: Judge, path", "task: Juge, path", []string{`16:61: task "Fix": no task "Juge"; did you mean "Judge"?`}},
		{"too many items", "maxItems: 5", "maxItems: 50000", []string{`16:104: task "Fix": maxItems: the number 50000 where a whole number from 1 to 10000 belongs; write a number such as 20, without quotes`}},
		{"each of a task that runs once", "each: Fix", "each: Judge", []string{`17:60: task "Report": "Judge" runs once; write task instead of each`}},
		{"each and task", "each: Fix", "each: Fix, task: Judge", []string{`17:60: task "Report": each is beside task, oneOf or round; write one of them`}},
		{"reported with others", "agents: [{name: writer}", "nonsense: 1\nagents: [{name: Writer}", []string{
			`1:1: unknown key "nonsense" in the file; known here: name, model, provider, baseURL, apiKey, headers, maxConcurrency, timeoutMs, maxTokenBudget, offline and 32 more`,
			`6:41: task "Write": unknown agent "writer"; did you mean "Writer"?`, `6:41: task "Judge": unknown agent "writer"; did you mean "Writer"?`,
			`6:41: task "Fix": unknown agent "writer"; did you mean "Writer"?`, `6:41: task "Report": unknown agent "writer"; did you mean "Writer"?`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, looped, tt.old)
			got := saidOf(t, strings.Replace(looped, tt.old, tt.fresh, 1))
			require.Equal(t, tt.want, got)
		})
	}
}

// A loop and a list of tasks take onFailure from taskDefaults too, and a saved plan says it.
func TestOnFailureOfLoopsAndLists(t *testing.T) {
	t.Parallel()
	const list = `{title: Each, forEach: {input: items, maxItems: 2, output: Find, tasks: [{title: Find, description: Find it., uses: [item], onFailure: fail}]}}`
	for _, tt := range []struct{ give, loop, list string }{
		{looped, "", ""},
		{strings.Replace(looped, "- title: Draft", "- title: Draft\n  onFailure: continue", 1), "continue", ""},
		{strings.Replace(looped, "taskDefaults: {", "taskDefaults: {onFailure: continue, ", 1), "continue", "continue"},
	} {
		f, err := load(t, strings.Replace(tt.give, "inputs: {", "inputs: {items: {text: '[1, 2]'}, ", 1)+"- "+list+"\n", specfile.Options{})
		require.NoError(t, err)
		require.Equal(t, tt.loop, f.Tasks[0].OnFailure)
		require.Equal(t, tt.list, f.Tasks[4].OnFailure)
		require.Equal(t, "fail", f.Tasks[4].ForEach.Tasks[0].OnFailure)
		data, _, err := f.WithPlan(engine.Goal{}, f.Tasks, f.Dir)
		require.NoError(t, err)
		again, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
		require.NoError(t, err, string(data))
		require.Equal(t, tt.loop, again.Tasks[0].OnFailure)
		require.Equal(t, tt.list, again.Tasks[4].OnFailure)
	}
}
