package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
  - {goal: find pears, toolCalls: [{name: spawn_agent, arguments: {goal: "Taste\nFind pears"}}]}
  - {goal: pears, text: 'green and {{ toolResult "spawn_agent" }}'}
  - {task: Goal, text: none}
`

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
	return clitest.Folder(t, map[string]string{"team.yaml": blocks[0][1], "script.yaml": slowed(t, blocks[1][1], 2)}), output
}

// slowed returns a script with all delays so many times as long. Then they keep their order on a machine with other work.
func slowed(t *testing.T, script string, times time.Duration) string {
	t.Helper()
	return regexp.MustCompile(`delay: [0-9.]+m?s`).ReplaceAllStringFunc(script, func(delay string) string {
		d, err := time.ParseDuration(strings.TrimPrefix(delay, "delay: "))
		require.NoError(t, err)
		return "delay: " + (times * d).String()
	})
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
				require.NoError(t, os.WriteFile(filepath.Join(dir, "rec.yaml"), []byte(slowed(t, string(recording), 10)), 0o600))
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
