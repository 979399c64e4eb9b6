package specfile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// situated is an agent that says where its model is, and that is never asked.
type situated struct {
	engine.Agent
	url string
}

func (s situated) Endpoint() string { return s.url }

const unplanned = `inputs: {claim: {text: "{}"}}
agents: [{name: a}, {name: b}]
coordinator: {mayGrant: [inputs]}
goal: Settle it.
`

// TestAssertionsOfAGoalNameUnknownReaders checks that an assertion about who or what no
// plan can have is said before a model is asked;
// what a plan may still bring is left alone.
func TestAssertionsOfAGoalNameUnknownReaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, assertion, want string }{
		{"an input", "input clam never reaches b", `5:10: assertion "input clam never reaches b": no input "clam"; did you mean "claim"?`},
		{"a reader", "input claim never reaches bb", `5:10: assertion "input claim never reaches bb": no reader "bb"; write one of a, b, coordinator, user`},
		{"a reader of a task", "task A never derives into users", `5:10: assertion "task A never derives into users": no reader "users"; did you mean "user"?`},
		{"a reader in other letters", "input claim never reaches B", `5:10: assertion "input claim never reaches B": no reader "B"; did you mean "b"?`},
		{"a task that may be planned", "task A never reaches b", ""},
		{"a property", "notes never reaches coordinator", ""},
		{"the user", "input claim never reaches user", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := saidOf(t, unplanned+"assert: ['"+tt.assertion+"']\n")
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []string{tt.want}, got)
		})
	}
	require.Equal(t, []string{`1:1: unknown key "bogus" in the file; known here: name, model, provider, baseURL, apiKey, headers, maxConcurrency, timeoutMs, maxTokenBudget, offline and 32 more`},
		saidOf(t, "bogus: 1\n"+unplanned+"assert: [\"input claim never reaches http://localhost/v1\"]\n"), "the agents have yet to say where they are asked")
	require.Equal(t, []string{`1:17: input "claim": a text where a mapping belongs; write {text: …} or {file: x}`},
		saidOf(t, "inputs: {claim: x}\nagents: [{name: a}]\nassert: [input claim never reaches a]\n"), "an input that was not read may be the one")
	require.Equal(t, []string{`1:10: agent 1: name: it is missing; write name: writer`}, saidOf(t, "agents: [{}]\nassert: [x never reaches a]\n"), "so may an agent")
	require.Equal(t, []string{`2:9: task 1: title: it is missing; write title: Draft`},
		saidOf(t, "agents: [{name: a}]\ntasks: [{description: d}, {title: T, description: d}]\nassert: [task A never reaches a]\n"), "and a task")
}

// TestAssertionsOfFlagsNameUnknownReaders checks the same for assertions of flags, when
// the team is built: then its endpoints are known too.
func TestAssertionsOfFlagsNameUnknownReaders(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(unplanned)})
	require.NoError(t, err)
	connect := func(a specfile.Agent) (engine.Agent, error) {
		return situated{engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{}, errors.New("not meant to run")
		}), "http://" + a.Member.Name + ".example/v1"}, nil
	}
	for text, want := range map[string]string{
		"input claim never reaches http://a.example/v1/":          "",
		"input claim never reaches http://coordinator.example/v1": "",
		"input claim never reaches b":                             "",
		"input claim never reaches http://a.example/v2":           `no reader "http://a.example/v2"`,
		"input clam never reaches b":                              `no input "clam"`,
	} {
		a, err := flow.ParseAssertion(text)
		require.NoError(t, err)
		own := *f
		own.Run.Assert = []flow.Assertion{a}
		_, err = own.Build(connect)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want)
		about, ok := errors.AsType[task.Problem](err)
		require.True(t, ok)
		require.Equal(t, "/assert/0", about.Pointer, "for who brought it")
		require.ErrorIs(t, err, task.ErrUnknown)
	}
}
