package cli

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// loopSpec has a loop in which a person accepts what a command writes, and a task for each item of
// what the person asks for.
const loopSpec = `
name: loop
agents:
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}}
tasks:
  - title: Letter
    repeat:
      maxRounds: 3
      until: {task: Decide, path: /choice, equals: send}
      output: Draft
      tasks:
        - {title: Draft, assignee: writer, description: Write the letter., dependsOn: [{task: Decide, round: previous, need: [/note], optional: true}]}
        - title: Decide
          assignee: editor
          description: May this letter be sent?
          dependsOn: [Draft]
          outputSchema:
            type: object
            properties: {choice: {enum: [send, rewrite]}, note: {type: string}}
            required: [choice]
  - title: Plan
    value: {to: [Ann, Bob]}
    outputSchema: {type: object, properties: {to: {type: array, items: {type: string}}}, required: [to]}
  - {title: Send, assignee: writer, description: Send it., dependsOn: [Letter], forEach: {task: Plan, path: /to, as: reader, maxItems: 5}}
`

// A run with a loop is suspended in each round, answered and resumed, and then replayed and shown.
func TestALoopIsResumedReplayedAndShown(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": loopSpec})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	got := at("run")
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.NotContains(t, got.stderr, "Draft#2")
	require.Contains(t, at("questions").stdout, `"Decide#1" for editor`)
	run := shortIDIn(t, got.stderr)
	got = at("answer", run, "Decide#1", "--set", "choice=rewrite", "--set", "note=Be brief.")
	require.Zero(t, got.status, got.stderr)
	got = at("resume", run)
	require.Equal(t, exit.StatusWaiting, got.status, got.stderr)
	require.Contains(t, at("show", "Draft#2").stdout, "Be brief.")
	require.Contains(t, at("explain", "Draft#2").stdout, "result of Decide#1 from editor, internal, dependsOn (team.yaml:13), narrowed to /note")
	got = at("answer", run, "Decide#2", "--set", "choice=send")
	require.Zero(t, got.status, got.stderr)
	got = at("resume", run, "--progress", "plain")
	require.Zero(t, got.status, got.stderr)
	require.NotContains(t, got.stderr, "#3")
	require.NotContains(t, got.stderr, "Send[3]")
	require.Contains(t, got.stderr, "8 of 8 tasks completed")

	shown := at("show").stdout
	require.Contains(t, shown, "tasks 8 of 8 completed")
	require.NotContains(t, shown, "#3")
	require.NotContains(t, shown, "# Letter\n", "its result is shown below Draft#2")
	require.Contains(t, at("show", "Send[2]").stdout, "Bob")
	require.Regexp(t, `(?m)^not needed +Send\[3\] .*there is no such round or item$`, at("show", "Send[3]").stdout)
	require.Contains(t, at("show", "Draft#3", "-o", "json").stdout, `"status":"not_needed"`)
	require.Contains(t, at("explain", "Send[2]").stdout, "result of Plan from computed, internal, forEach (team.yaml:")
	require.Contains(t, at("replay").stderr, "equal to the byte")
	got = at("replay", "--without", "Decide#1", "--offline")
	require.NotZero(t, got.status)
	require.Contains(t, got.stderr, `without "Decide#1" it is not known whether "Draft#2" runs`)
}

// A task that is written out in rounds has no prompt of its own, and explain names what has them.
func TestExplainNamesTheRoundsOfATask(t *testing.T) {
	t.Parallel()
	const spec = `
name: rounds
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: writer}, {name: judge}]
tasks:
  - {title: Answer, assignee: writer, description: Answer., verify: {judges: [judge], maxRounds: 3}}
  - title: Letter
    repeat:
      maxRounds: 2
      until: {task: Check, path: /ok, equals: true}
      output: Draft
      tasks:
        - {title: Draft, assignee: writer, description: Write.}
        - {title: Check, value: {ok: true}, outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
`
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec})
	got := offlineRun(t, call{dir: dir}, "--trace", "t.jsonl")
	require.NotZero(t, got.status, "the judge rejects what the script says")
	for args, want := range map[[2]string]string{
		{"", "Answer"}:        "Answer: no prompt was recorded; the task is failed\nIts rounds have the prompts: Answer#1, Answer#2, Answer#3\n",
		{"", "Letter"}:        "Letter: no prompt was recorded; the task is completed\nIts rounds have the prompts: Draft#1\n",
		{"t.jsonl", "Letter"}: "Its rounds have the prompts: Draft#1\n",
	} {
		shown := call{dir: dir, args: append([]string{"explain"}, slices.DeleteFunc(args[:], func(arg string) bool { return arg == "" })...)}.run(t)
		require.Contains(t, shown.stdout, want, shown.stderr)
	}
	require.Contains(t, call{dir: dir, args: []string{"explain", "Letter", "-o", "json"}}.run(t).stdout, `"rounds":["Draft#1"]`)
	require.NotContains(t, call{dir: dir, args: []string{"explain", "Draft#1", "-o", "json"}}.run(t).stdout, `"rounds":`)
}

func TestLoopsOfPlans(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": loopSpec})
	at := func(args ...string) string {
		got := call{dir: dir, args: args}.run(t)
		require.Zero(t, got.status, got.stderr)
		return got.stdout
	}
	plan := at("plan")
	require.Contains(t, plan, "5 tasks that run at most 12 times, 2 agents")
	require.Contains(t, plan, ". Draft ×≤3\n")
	require.Contains(t, plan, ". Letter ×≤3\n   repeats until /choice of \"Decide\" is \"send\"; its last result at internal\n")
	require.Contains(t, plan, ". Send ×≤5, for each item of /to of Plan\n")
	require.Contains(t, at("plan", "-o", "mermaid"), "last round")
	require.Contains(t, at("plan", "-o", "dot"), "next round")
	require.Contains(t, at("plan", "-o", "json"), `"forEach":"/to of Plan"`)
}

// A loop in a list runs as often as both bounds say, and what a task reads for its own condition and
// for that of its loop is one line.
func TestPlansOfLoopsInLists(t *testing.T) {
	t.Parallel()
	const spec = `
name: nested
agents: [{name: writer, backend: {kind: process, command: cat}}]
tasks:
  - {title: Plan, value: {to: [Ann]}, outputSchema: {type: object, properties: {to: {type: array, items: {type: string}, maxItems: 4}}, required: [to]}}
  - title: Letters
    forEach:
      task: Plan
      path: /to
      output: Letter
      tasks:
        - title: Letter
          repeat:
            maxRounds: 3
            until: {task: Check, path: /ok, equals: true}
            output: Check
            tasks:
              - {title: Check, value: {ok: true}, outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
              - {title: Note, assignee: writer, description: Note it., when: {task: Check, path: /ok, equals: false}}
              - {title: Praise, assignee: writer, description: Praise it., when: {task: Check, path: /ok, equals: true}}
`
	got := call{dir: clitest.Folder(t, map[string]string{"team.yaml": spec}), args: []string{"plan"}}.run(t)
	require.Zero(t, got.status, got.stderr)
	require.Contains(t, got.stdout, ". Letter ×≤12\n")
	require.Contains(t, got.stdout, ". Note ×≤12, for each item of /to of Plan\n")
	_, note, _ := strings.Cut(got.stdout, ". Note ×≤12")
	note, _, _ = strings.Cut(note, "\n\n")
	require.Equal(t, 1, strings.Count(note, "/ok\n"), note)
	require.Contains(t, got.stdout, "\nmodel calls: none; not counted: calls of writer\n")
}

// A plan says whether a loop can end with LOOP_STUCK, and why not.
func TestPlansSayWhetherRoundsAreCompared(t *testing.T) {
	t.Parallel()
	const spec = `
name: loop
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: writer, temperature: 0}]
tasks:
  - title: Loop
    repeat:
      maxRounds: 3
      until: {task: Write, path: /ok, equals: true}
      output: Write
      tasks:
        - title: Write
          assignee: writer
          description: Write.
          dependsOn: [{task: Write, round: previous, optional: true}]
          outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}
`
	for _, tt := range []struct{ old, fresh, compared, why string }{
		{"", "", "true", ""},
		{"maxRounds: 3", "maxRounds: 2", "false", "the third round is the first that could repeat one"},
		{"output: Write\n", "output: Write\n      onRepeat: continue\n", "false", "onRepeat is continue"},
		{", temperature: 0", "", "false", `"writer" may answer equal prompts differently`},
	} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(spec, tt.old, tt.fresh, 1)})
		got := call{dir: dir, args: []string{"plan", "-o", "json"}}.run(t)
		require.Zero(t, got.status, got.stderr)
		var doc struct {
			Tasks []struct {
				Loop           bool
				RoundsCompared *bool
				NotCompared    string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc))
		for _, task := range doc.Tasks {
			require.Equal(t, task.Loop, task.RoundsCompared != nil)
			if task.Loop {
				require.Equal(t, tt.compared, strconv.FormatBool(*task.RoundsCompared))
				require.Contains(t, task.NotCompared, tt.why)
			}
		}
	}
}

// TestShowFoldsALongList checks that items of a list have one row from eleven on.
func TestShowFoldsALongList(t *testing.T) {
	t.Parallel()
	for items, folded := range map[string]bool{"1, 2, 3, 4, 5, 6, 7, 8, 9, 10": false, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11": true} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": `
name: list
agents: [{name: a, backend: {kind: process, command: cat}}]
tasks:
  - title: Plan
    value: {to: [` + items + `]}
    outputSchema: {type: object, properties: {to: {type: array, items: {type: integer}}}, required: [to]}
  - {title: Send, template: "sent", forEach: {task: Plan, path: /to, maxItems: 20}}
`})
		at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
		got := at("run")
		require.Zero(t, got.status, got.stderr)
		shown := at("show").stdout
		if folded {
			require.Regexp(t, `(?m)^completed +Send ×11 +computed .* 11 completed$`, shown)
			require.Contains(t, shown, "# Send ×11\n\nOne result: runteam show "+shortIDIn(t, got.stderr)+" 'Send[1]'\n")
			require.NotRegexp(t, `(?m)^completed +Send\[`, shown)
		} else {
			require.Regexp(t, `(?m)^completed +Send\[10\]`, shown)
			require.NotContains(t, shown, "×")
		}
		require.Contains(t, at("show", "-o", "json").stdout, `"Send[10]"`)
	}
}

// TestPlanShowsRounds checks that a plan tells what a task reads of the round before from what it
// reads of the same round, and that drawings have one arrow for both a result and a condition.
func TestPlanShowsRounds(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": loopSpec})
	at := func(args ...string) string { return call{dir: dir, args: args}.run(t).stdout }
	require.Regexp(t, `reads +result +Decide +from editor +internal +previous round; optional; parts by task: /note`, at("plan"))
	require.Contains(t, at("plan", "-o", "json"), `"round":"previous"`)
	dot := at("plan", "-o", "dot")
	require.Contains(t, dot, `label="previous round\nparts by task: /note"`)
	require.Equal(t, 1, strings.Count(dot, "next round"), "only of the task that reads nothing of the round before")
	require.Regexp(t, `label="for each\\nparts by task: /to/\*,`, dot)
}

// A list of tasks with a condition says for each item that there is why nothing ran.
func TestListsOfTasksThatAreNotNeeded(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: lists
agents: [{name: a, backend: {kind: process, command: cat}}]
tasks:
  - {title: Plan, value: {to: [1, 2], send: false}, outputSchema: {type: object, properties: {to: {type: array, items: {type: integer}}, send: {type: boolean}}, required: [to, send]}}
  - title: All
    when: {task: Plan, path: /send, equals: true}
    forEach:
      task: Plan
      path: /to
      maxItems: 4
      output: Send
      tasks:
        - {title: Send, template: "sent"}
        - {title: Log, template: "logged", dependsOn: [Send]}
`})
	at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	require.Equal(t, 2, strings.Count(at("plan").stdout, "\n   when /send of \"Plan\" is true\n"))
	got := at("run", "--progress", "plain")
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Contains(t, got.stderr, `not needed Send[2] (computed): it runs when /send of "Plan" is true`)
	require.Contains(t, got.stderr, `not needed Log[2] (computed): "Send[2]" was not needed`)
	require.NotContains(t, got.stderr, "[3]", "there is no such item")
	require.Contains(t, got.stderr, "1 of 5 tasks completed, 4 not needed")
}

// A loop for each item has a line for each item that there is, and one name in a plan.
func TestLoopsOfItems(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: loops
model: m
agents: [{name: a}]
inputs: {leads: {text: '[1, 2]'}}
tasks:
  - title: Per lead
    forEach:
      input: leads
      maxItems: 4
      output: Draft
      tasks:
        - title: Draft
          repeat:
            maxRounds: 2
            until: {task: Check, path: /ok, equals: true}
            output: Write
            tasks:
              - {title: Write, assignee: a, description: d}
              - {title: Check, value: {ok: true}, dependsOn: [Write], outputSchema: {type: object, required: [ok], properties: {ok: {type: boolean}}}}
`})
	require.Contains(t, call{dir: dir, args: []string{"plan"}}.run(t).stdout, "\nanswer: Draft\n")
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.NotContains(t, got.stderr, "not needed")
	require.Contains(t, got.stderr, "completed Draft[2]")
}
