package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const familyTeam = `
name: family
model: m
offline: script.yaml
agents:
  - {name: lead, systemPrompt: Lead., spawn: {max: 6, depth: 2}}
tasks:
  - {title: Report, assignee: lead, description: Report.}
`

// The child that is asked for first answers last, and one has a child of its own.
const familyScript = `
replies:
  - task: Report
    toolCalls:
      - {name: spawn_agent, arguments: {goal: Find apples}}
      - {name: spawn_agent, arguments: {goal: Find pears}}
      - {name: spawn_agent, arguments: {goal: Find plums}}
  - {task: Report, text: '{{ toolResult "spawn_agent" 1 }}, {{ toolResult "spawn_agent" 2 }}, {{ toolResult "spawn_agent" 3 }}'}
  - {goal: "taste\n", text: sweet}
  - {goal: apples, delay: 100ms, text: red}
  - {goal: find pears, toolCalls: [{name: spawn_agent, arguments: {goal: "Taste\n{{ goal }}"}}]}
  - {goal: pears, text: 'green and {{ toolResult "spawn_agent" }}'}
  - {task: Goal, text: 'no {{ goal }}'}
`

// A recording gives each child the answer that it had, and a replay of a run with children equals it.
func TestRecordedChildren(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": familyTeam, "script.yaml": familyScript})
	run := func(args ...string) outcome {
		t.Helper()
		got := call{bare: true, dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%v: %+v", args, got)
		return got
	}
	first := run("run", "--offline", "--record", "rec.yaml")
	require.Equal(t, "red, green and sweet, no Find plums\n", first.stdout)
	require.NotContains(t, first.stderr, "warning")
	want := run("show", "--usage").stdout
	again := run("run", "--offline", "--script", "rec.yaml")
	require.Equal(t, first.stdout, again.stdout)
	require.NotContains(t, again.stderr, "warning")
	require.NotContains(t, again.stderr, "OFFLINE")
	own := regexp.MustCompile(`run [0-9a-f-]+|[0-9.]+s`)
	require.Equal(t, own.ReplaceAllString(want, ""), own.ReplaceAllString(run("show", "--usage").stdout, ""), "the same tokens, so the same answers")

	got := run("replay")
	require.Equal(t, first.stdout, got.stdout)
	require.Contains(t, got.stderr, "replayed 1 of 1 prompt, equal to the byte")
	require.Contains(t, got.stderr, "6 prompts after calls of tools not repeated")
}

// The first turn of a child that calls tools has the model call of that turn.
func TestShowNamesTheModelCallsOfChildren(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": familyTeam, "script.yaml": familyScript})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	shown := object(t, call{dir: dir, args: []string{"show", "Report", "-o", "json"}}.run(t).stdout)
	finish, requests := map[string]any{}, map[any]bool{}
	for _, x := range shown["exchanges"].([]any) {
		e := x.(map[string]any)
		part, _ := e["part"].(string)
		info := e["call"].(map[string]any)
		finish[part] = info["finishReason"]
		require.False(t, requests[info["requestId"]], "%s has the call of another prompt", part)
		requests[info["requestId"]] = true
	}
	require.Equal(t, map[string]any{
		"": "tool_calls", "/turn/2": "stop", "/child/call_1_1": "stop", "/child/call_1_3": "stop",
		"/child/call_1_2": "tool_calls", "/child/call_1_2/child/call_1_1": "stop", "/child/call_1_2/turn/2": "stop",
	}, finish)
}

// show lists the children of a task with their goals and what their parent got, also a child of a child.
func TestShowListsChildren(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": familyTeam, "script.yaml": familyScript})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	type child struct{ Part, Agent, Status, Goal, Result, Label string }
	var shown struct {
		ChildCount struct{ Working, Ended int }
		Children   []child
	}
	require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"show", "Report", "-o", "json"}}.run(t).stdout), &shown))
	require.Equal(t, 4, shown.ChildCount.Ended)
	require.Zero(t, shown.ChildCount.Working)
	require.ElementsMatch(t, []child{
		{"/child/call_1_1", "lead", "complete", "Find apples", "red", "internal"},
		{"/child/call_1_2", "lead", "complete", "Find pears", "green and sweet", "internal"},
		{"/child/call_1_3", "lead", "complete", "Find plums", "no Find plums", "internal"},
		{"/child/call_1_2/child/call_1_1", "lead", "complete", "Taste\nFind pears", "sweet", "internal"},
	}, shown.Children)
	text := call{dir: dir, args: []string{"show", "Report"}}.run(t).stdout
	require.Regexp(t, `child call_1_2 · lead · complete · .*\n  goal\n +│ Find pears\n  result\n +│ green and sweet\n`, text)
}

// A reply for a goal that no child can have is reported.
func TestUnusedGoalsAreReported(t *testing.T) {
	t.Parallel()
	alone := strings.Replace(familyTeam, ", spawn: {max: 6, depth: 2}", "", 1)
	for name, tt := range map[string]struct{ team, script, want string }{
		"misspelled":      {familyTeam, familyScript + "  - {goal: Find aples, text: x}\n", ""}, // a goal is a template
		"no child":        {alone, "replies: [{goal: a, text: x}]", "script.yaml:1:18: warning: no agent of the spec has spawn, and no edge has delegate, so this reply is never used; "},
		"no child of any": {alone, "replies: [{task: Goal, text: x}]", `there is no task "Goal", so this reply is never used; `},
		"every child":     {familyTeam, "replies: [{task: Goal, text: x}]", ""},
		"another goal":    {familyTeam, "replies: [{goal: a, text: x}]", `no call in the script has a goal with "a", so this reply is never used; write a piece of the goal of a call of spawn_agent or delegate_to_agent`},
		"nearly a goal":   {familyTeam, "replies: [{goal: Find aples, text: x}, {task: Other, toolCalls: [{name: spawn_agent, arguments: {goal: Find apples}}]}]", `did you mean "Find apples"?`},
		"the title of a goal": {familyTeam, "replies: [{task: apples, text: x}, {task: Report, turn: 7, toolCalls: [{name: spawn_agent, arguments: {goal: Find apples}}]}]",
			`script.yaml:1:18: warning: there is no task "apples", so this reply is never used; write goal: in place of task: for a child`},
		"calls in a body": {familyTeam, `replies: [{goal: a, text: x}, {task: Report, turn: 7, body: '{"name": "spawn_agent"}'}]`, ""},
	} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": tt.team, "script.yaml": tt.script})
		got := call{bare: true, dir: dir, args: []string{"run", "--offline", "--no-journal"}}.run(t)
		if tt.want == "" {
			require.NotContains(t, got.stderr, "never used", name)
		} else {
			require.Contains(t, got.stderr, tt.want, name)
		}
	}
}

// guideFiles returns the spec and the script of a guide, and the output that it shows.
func guideFiles(t *testing.T, name string) (dir, output string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/how-to", name))
	require.NoError(t, err)
	_, part, ok := strings.Cut(string(text), "## Try it without a model\n")
	require.True(t, ok)
	part, _, _ = strings.Cut(part, "\n## ")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(part, -1)
	require.Len(t, blocks, 2)
	_, output, ok = strings.Cut(part, "$ runteam run team.yaml --offline\n")
	require.True(t, ok)
	output, _, _ = strings.Cut(output, "```")
	output, _, _ = strings.Cut(output, "$ ")
	return clitest.Folder(t, map[string]string{"team.yaml": blocks[0][1], "script.yaml": blocks[1][1]}), output
}

// The guides have specs and scripts that print what they show, also from a recording.
func TestGuidesToChildrenAndReplies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"spawn-agents.md", "wait-for-a-reply.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, want := guideFiles(t, name)
			for _, args := range [][]string{{"--record", "rec.yaml"}, {"--script", "rec.yaml"}} {
				got := call{bare: true, dir: dir, args: append([]string{"run", "team.yaml", "--offline"}, args...)}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got.stdout))
				require.NotContains(t, got.stderr, "warning")
				recording, err := os.ReadFile(filepath.Join(dir, "rec.yaml"))
				require.NoError(t, err)
				slower := regexp.MustCompile(`delay: (\d+)ms`).ReplaceAll(recording, []byte("delay: ${1}0ms")) // for a machine with other work
				require.NoError(t, os.WriteFile(filepath.Join(dir, "rec.yaml"), slower, 0o600))
			}
			got := call{dir: dir, args: []string{"replay"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Contains(t, got.stderr, "equal to the byte")
		})
	}
}

// If the message of a recorded reply is not there, the task fails and says which reply it was.
func TestRecordedReplyWithoutItsMessage(t *testing.T) {
	t.Parallel()
	dir, _ := guideFiles(t, "wait-for-a-reply.md")
	run := func(args ...string) outcome {
		return call{bare: true, dir: dir, args: append([]string{"run", "team.yaml", "--offline"}, args...)}.run(t)
	}
	require.Equal(t, exit.StatusOK, run("--record", "rec.yaml").status)
	path := filepath.Join(dir, "rec.yaml")
	text := clitest.Contents(t, path)
	require.Regexp(t, `(?s)task: "Layout"\n    delay: [0-9.]+m?s\n`, text)
	text = strings.ReplaceAll(text, `task: "Report"`, `task: "Other"`) // the reporter asks nothing
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	got := run("--script", "rec.yaml")
	require.NotEqual(t, exit.StatusOK, got.status)
	require.Regexp(t, `failed +Advise .*rec\.yaml:\d+:\d+: .* no message of "reporter"`, got.stderr)
}
