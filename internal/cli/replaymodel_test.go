package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/scripted"
)

// A prompt that is repeated is the same although a script, or another model, would answer it now. So
// its answer is that of the run, and no later run takes it for one of the script.
func TestReplayWithoutKnowsPromptsWhateverAnswers(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
name: letters
model: m
offline: script.yaml
agents: [{name: writer}, {name: editor, backend: {kind: person}}]
tasks:
  - {title: Gossip, assignee: writer, description: Find some.}
  - {title: Facts, assignee: writer, description: Find them.}
  - {title: Choose, assignee: editor, description: Which one?, dependsOn: [Facts]}
  - {title: Write, assignee: writer, description: Write it., dependsOn: [Choose, {task: Gossip, optional: true}]}
  - {title: Close, assignee: writer, description: End it., dependsOn: [Choose]}
`, "model.yaml": "replies: [{task: Gossip, text: g}, {task: Facts, text: f}, {task: Write, text: w}, {task: Close, text: c}]", "script.yaml": "replies: [{text: scripted}]"})
	script, err := scripted.ReadFile("", filepath.Join(dir, "model.yaml"))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	at := func(args ...string) outcome {
		return call{dir: dir, env: map[string]string{"OPENAI_BASE_URL": server.URL()}, args: append(args, "--progress", "none")}.run(t)
	}
	require.Equal(t, exit.StatusWaiting, at("run").status)
	run := listRuns(t, call{dir: dir})[0].Run
	answered := call{dir: dir, args: []string{"answer", run, "Choose", "the first"}}.run(t)
	require.Zero(t, answered.status, answered.stderr)
	require.Zero(t, at("resume", run).status)
	for _, how := range []string{"", "--model=other"} {
		got := call{dir: dir, env: map[string]string{"OPENAI_BASE_URL": server.URL()}, args: strings.Fields("replay " + run + " -o json --without Gossip " + how)}.run(t)
		require.Zero(t, got.status, got.stderr)
		var d replay.ComparedRuns
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &d))
		for _, c := range d.Tasks {
			want := map[string]string{"Gossip": "none", "Write": replay.Changed}[c.Title]
			if want == "" {
				want = replay.Same
			}
			require.Equal(t, want, c.Prompt, "%s %s", c.Title, how)
		}
		require.Contains(t, d.Verdict, "1 of 4 prompts")
		again := call{dir: dir, args: []string{"replay", d.After.Run}}.run(t)
		require.Zero(t, again.status, again.stderr)
	}
	got := at("run", "--offline", "--reuse", "-o", "json")
	require.Zero(t, got.status, got.stderr)
	require.NotContains(t, got.stdout, `"result":"f"`)
	require.Contains(t, got.stdout, `"result":"scripted"`)
}
