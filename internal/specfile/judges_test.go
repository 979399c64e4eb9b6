package specfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// judged is a spec with judges, in lines 6 to 9.
const judged = `agents: [{name: writer, accepts: confidential}, {name: editor, accepts: confidential}, {name: lawyer, tools: [glob, grep]}]
inputs: {brief: {text: A brief.}, style: {text: Be short.}}
tasks:
- {title: Read, assignee: editor, description: Read., uses: [brief], classification: confidential}
- {title: Write, assignee: writer, description: Write.,
  verify: {judges: [editor, {agent: lawyer, lens: tone,
    uses: [style], tools: [glob],
    dependsOn: [{task: Plan, need: [/notes]}]}],
    mode: lens, quorum: 2, maxRounds: 3, onDissent: revise}}
- {title: Plan, assignee: editor, description: Plan., outputSchema: {type: object, properties: {notes: {type: string}}, additionalProperties: false}}
assert:
- input brief never reaches lawyer
- 'task "Write: judge editor" never reaches lawyer'
`

func TestJudgesOfSpecs(t *testing.T) {
	t.Parallel()
	f, err := load(t, strings.Replace(judged, "[editor, {agent", "[{agent: editor, uses: [], dependsOn: []}, {agent", 1), specfile.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Warnings, "an input that only a judge uses is used")
	verify := &task.Verify{Mode: "lens", Quorum: 2, MaxRounds: 3, OnDissent: "revise", Judges: []task.Judge{
		{Agent: "editor"},
		{Agent: "lawyer", Lens: "tone", Uses: []task.Use{{Name: "style"}}, Tools: []string{"glob"}, DependsOn: []task.Ref{{Task: "Plan", Need: []task.Path{"/notes"}}}},
	}}
	require.Equal(t, verify, f.Tasks[1].Verify)
	data, _, err := f.WithPlan(engine.Goal{}, f.Tasks, f.Dir)
	require.NoError(t, err)
	again, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
	require.NoError(t, err, string(data))
	require.Equal(t, verify, again.Tasks[1].Verify, "a saved plan says the same")
}

func TestBadJudgesOfSpecs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, fresh string
		want             []string
	}{
		{"an unknown judge", "[editor, {", "[edtior, {", []string{
			`6:21: task "Write: judge edtior": unknown agent "edtior"; did you mean "editor"?`, `13:3: assertion "task \"Write: judge editor\" never reaches lawyer": no task "Write: judge editor"; did you mean "Write: judge edtior"?`,
		}},
		{"an unknown judge with more", "agent: lawyer", "agent: layer", []string{`6:29: task "Write: judge layer": unknown agent "layer"; did you mean "lawyer"?`}},
		{"a tool that its agent does not have", "tools: [glob]", "tools: [bash]", []string{`7:28: task "Write": tools: agent "lawyer" does not have the tool "bash"; add it to tools of the agent, or remove it here`}},
		{"a tool of the runtime", "tools: [glob]", "tools: [spawn_agent]", []string{`7:28: task "Write: judge lawyer": agent "lawyer" does not have the tool "spawn_agent"; set spawn of the agent, or remove it here`}},
		{"no judges", "[editor, {agent: lawyer, lens: tone,\n    uses: [style], tools: [glob],\n    dependsOn: [{task: Plan, need: [/notes]}]}]", "[]", []string{`6:20: task "Write": judges: the list is empty; name something, or leave the key out`}},
		{"a model", "[editor, {", "[{name: editor, model: m}, {", []string{
			`6:22: task "Write": unknown key "name" in a judge; did you mean agent?`, `6:36: task "Write": unknown key "model" in a judge; model is a key of the file, the coordinator, an agent or an entry of fallback`,
		}},
		{"a quorum of nobody", "quorum: 2", "quorum: 0", []string{`9:25: task "Write": quorum: the number 0 where a whole number of at least 1 belongs; write a number such as 4, without quotes, or leave the key out`}},
		{"a quorum of too many", "quorum: 2", "quorum: 3", []string{`9:25: task "Write": verify: quorum is 3 of 2 judges; write how many must accept, from 1 to 2`}},
		{"rounds after the only one", "onDissent: revise", "onDissent: reject", []string{`9:39: task "Write": verify: no effect with onDissent: reject, which ends after one round; remove it, or write onDissent: revise`}},
		{"a lens to refute", "mode: lens", "mode: refute", []string{`6:51: task "Write": verify: judges[1]: lens: no effect in mode refute; remove it, or write mode: lens`}},
		{"an unknown mode", "mode: lens", "mode: lense", []string{`9:11: task "Write": mode: unknown word "lense"; did you mean lens? known are refute, lens`}},
		{"an unknown input", "uses: [style]", "uses: [stile]", []string{`7:12: task "Write: judge lawyer": unknown input "stile"; did you mean "style"?`}},
		{"an unknown task", "task: Plan", "task: Plann", []string{`8:17: task "Write: judge lawyer": dependsOn[0]: no task "Plann"; did you mean "Plan"?`}},
		{"a part that the result lacks", "need: [/notes]", "need: [/nodes]", []string{`8:37: task "Write: judge lawyer": the result of "Plan" can have nothing at "/nodes"; did you mean "/notes"?`}},
		{"a judge below the label", "description: Write.", "description: Write., dependsOn: [Read]", []string{
			`8:16: task "Write: judge lawyer": 3 tasks receive context that their agents may not read (through "Write", through "Read", confidential by its own classification): "lawyer" accepts internal ("Write: judge lawyer", "Write: judge lawyer", "Write: judge lawyer"); remove the confidential context; or declassify the parts that they need; or set accepts: confidential on agent "lawyer"`,
		}},
		{"a judge whom an assertion does not know", `"Write: judge editor"`, `"Write: judge edtior"`, []string{
			`13:3: assertion "task \"Write: judge edtior\" never reaches lawyer": no task "Write: judge edtior"; did you mean "Write: judge editor"?`,
		}},
		{"judges of a loop", "description: Write.,", "repeat: {maxRounds: 2, until: {task: A, path: /x, exists: true}, output: A, tasks: [{title: A, description: d}]},", []string{
			`5:18: task "Write": assignee: a loop does not have it; write it in the tasks of the loop`, `6:3: task "Write": verify: a loop does not have it; write it in the tasks of the loop`,
			`13:3: assertion "task \"Write: judge editor\" never reaches lawyer": no task "Write: judge editor"; write one of Read, Write, A, Plan`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, judged, tt.old)
			require.Equal(t, tt.want, saidOf(t, strings.Replace(judged, tt.old, tt.fresh, 1)))
		})
	}
}

// What follows for judges from a problem of their task is no problem of its own, and a message names
// each task once.
func TestJudgesOfAWrongTask(t *testing.T) {
	t.Parallel()
	const agents = "agents: [{name: a}, {name: b}]\ntasks:\n"
	judged := func(title, more string) string {
		return "  - {title: " + title + ", assignee: a, description: x, verify: {judges: [a, b]}" + more + "}\n"
	}
	tests := []struct {
		name, give string
		want       []string
	}{
		{"equal titles", judged("Score", "") + judged("Other", "") + judged("score", ""), []string{
			`5:13: task "score": title: task 1 has the title "Score" too; give each task its own title; titles are not case-sensitive`}},
		{"the title of a judge", judged("Score", "") + "  - {title: 'Score: judge b#1', assignee: a, description: x}\n", []string{
			`4:13: task "Score: judge b#1": title: it is that of one of the rounds or items of task 1; give each task its own title; titles are not case-sensitive`}},
		{"a cycle", judged("Score", ", dependsOn: [Other]") + judged("Other", ", dependsOn: [Score]"), []string{
			`3:86: task "Score": dependency cycle: Score -> Other -> Score; remove one of these dependencies`}},
		{"a task that depends on itself", judged("Score", ", dependsOn: [Score]"), []string{
			`3:86: task "Score": dependency cycle: Score -> Score; remove one of these dependencies`}},
		{"judges without an agent", "  - {title: Score, assignee: a, description: x, verify: {judges: [{assignee: b}]}}\n", []string{
			`3:68: task "Score": unknown key "assignee" in a judge; did you mean agent?`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, saidOf(t, agents+tt.give))
		})
	}
}
