package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/synth"
)

// A goal over the wire: what an endpoint receives is the coordinator twice, the
// workers in the order of their dependencies, and in each worker's prompt its
// own context and nothing else.
func TestGoalOverTheWire(t *testing.T) {
	t.Parallel()
	script, err := scripted.Parse("script.yaml", []byte(`
replies:
  - coordinator: plan
    text: |-
      [{"title": "Read", "description": "Read the log.", "assignee": "reader", "uses": ["log"]},
       {"title": "Guess", "description": "Guess the weather.", "assignee": "guesser"},
       {"title": "Tell", "description": "Tell what happened.", "assignee": "teller", "dependsOn": ["Read"]}]
  - {task: Read, text: 'stopped at {{ input "log" | match "\\d\\d:\\d\\d" }}'}
  - {task: Guess, text: rain}
  - {task: Tell, text: 'It {{ dependency "Read" }}.'}
  - {coordinator: synthesis, text: '{{ match "It stopped at [0-9:]+." .Prompt }} {{ match "rain" .Prompt }}'}
`))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{Keep: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	model := func(name string) llm.Model {
		m, err := openai.New(openai.Config{Model: name, BaseURL: server.URL()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	worker := func(name string) engine.Member {
		return engine.Member{Name: name, Agent: agent.New(model("small"), agent.Options{}), SystemPrompt: "You are the " + name + ". Canary " + name + "."}
	}
	tm, err := engine.New(engine.Config{
		Agents:      []engine.Member{worker("reader"), worker("guesser"), worker("teller")},
		Coordinator: &engine.Coordinator{Agent: agent.New(model("large"), agent.Options{}), MayGrant: synth.Grants{Inputs: true}},
	})
	require.NoError(t, err)
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Say why the pump stopped."}, &engine.RunOptions{
		MaxConcurrency: 1, Inputs: []engine.Input{{Name: "log", Text: "09:12 canary-log"}},
	})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, "It stopped at 09:12. rain", res.Output)

	asked := server.Requests()
	require.Len(t, asked, 5)
	var order []string
	for _, r := range asked {
		require.Len(t, r.Messages, 1)
		title, _, _ := strings.Cut(r.Messages[0].Text, "\n")
		order = append(order, r.Model+" "+title)
	}
	require.Equal(t, []string{
		"large Plan tasks that reach the goal below, for these agents: reader, guesser, teller.",
		"small # Task: Read", "small # Task: Guess", "small # Task: Tell",
		"large ## Original Goal",
	}, order)
	whole := func(i int) string { return asked[i].System + "\n" + asked[i].Messages[0].Text }
	never := func(i int, words ...string) {
		for _, w := range words {
			require.NotContains(t, whole(i), w, order[i])
		}
	}
	never(0, "canary-log", "09:12", "rain")
	never(1, "pump", "Guess", "Tell", "Canary guesser", "Canary teller", "rain")
	never(2, "pump", "Read", "Tell", "canary-log", "stopped", "Canary reader", "## ")
	never(3, "pump", "Guess", "canary-log", "rain", "Canary reader", "Canary guesser")
	never(4, "canary-log")
	require.Contains(t, whole(1), "canary-log")
	require.Contains(t, whole(3), "stopped at 09:12")
}
