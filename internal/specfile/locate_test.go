package specfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

const located = `agentDefaults:
  accepts: confidential
taskDefaults: {timeoutMs: 5, dependencyPayload: both}
inputs:
  claim:
    text: t
    classification: public
  "a/b": {text: t}
endpoints:
  http://localhost/v1: {accepts: secret}
output: B
agents:
  - {name: a, produces: internal}
  - name: b
    accepts: secret
tasks:
  - title: A
    description: |
      one
        two
  - title: B
    description: |-

      Ü one
      two
    dependsOn: [A, {task: A, as: structured}]
    uses: [claim, {name: claim}]
    metadata: {k/y: 1}
`

func TestPointersHavePlaces(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(located)})
	require.NoError(t, err)
	for _, tt := range []struct {
		pointer string
		line    int // in a text
		want    string
	}{
		{"/agents/1/accepts", 0, "15:14"},
		{"/agents/0/accepts", 0, "2:12"}, // where the default is
		{"/agents/0/produces", 0, "13:25"},
		{"/agents/0/name", 0, "13:12"},
		{"/agents/0/maxTurns", 0, "13:5"}, // nowhere: the agent
		{"/agents/1", 0, "14:5"},
		{"/agents/7", 0, "13:3"},
		{"/agents", 0, "13:3"},
		{"/tasks/1/timeoutMs", 0, "3:27"},
		{"/tasks/1/dependsOn/0", 0, "26:17"},
		{"/tasks/1/dependsOn/1", 0, "26:20"},
		{"/tasks/1/dependsOn/0/as", 0, "3:49"}, // dependencyPayload
		{"/tasks/1/dependsOn/1/as", 0, "26:34"},
		{"/tasks/1/dependsOn/5", 0, "26:16"},
		{"/tasks/1/uses/1/name", 0, "27:26"},
		{"/tasks/1/uses/0/name", 0, "27:12"},
		{"/tasks/1/metadata/k~1y", 0, "28:21"},
		{"/tasks/0/description", 0, "18:18"},
		{"/tasks/0/description", 2, "20:9"},
		{"/tasks/1/description", 2, "24:7"},
		{"/tasks/1/description", 3, "25:7"},
		{"/tasks/1/description", 99, "25:10"},
		{"/tasks/9/title", 0, "17:3"},
		{"/inputs/claim", 0, "5:3"},
		{"/inputs/claim/classification", 0, "7:21"},
		{"/inputs/0/text", 0, "6:11"},
		{"/inputs/a~1b", 0, "8:3"},
		{"/inputs/none", 0, "5:3"},
		{"/endpoints/http:~1~1localhost~1v1/accepts", 0, "10:34"},
		{"/output", 0, "11:9"},
		{"/userAccepts", 0, "1:1"},
		{"", 0, "1:1"},
	} {
		err := f.Locate(task.Problems{{Pointer: tt.pointer, Line: tt.line, Message: "m"}})
		bad, ok := errors.AsType[*specfile.Error](err)
		require.True(t, ok)
		require.Equal(t, tt.want, fmt.Sprintf("%d:%d", bad.Problems[0].Line, bad.Problems[0].Column), "%s %d", tt.pointer, tt.line)
		if tt.line == 0 {
			at := f.Place(tt.pointer)
			require.Equal(t, tt.want, fmt.Sprintf("%d:%d", at.Line, at.Column))
			require.Equal(t, "-", at.File)
		}
	}
}

func TestLocateKeepsOtherErrors(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(located)})
	require.NoError(t, err)
	require.NoError(t, f.Locate(nil))
	other := errors.New("other")
	require.Equal(t, other, f.Locate(other))
	one := f.Locate(fmt.Errorf("wrapped: %w", task.Problem{Pointer: "/output", Subject: "team", Message: "m", Hint: "h", Err: task.ErrUnknown}))
	require.ErrorIs(t, one, task.ErrUnknown)
	require.Equal(t, "-:11:9: team: m\n  10 |   http://localhost/v1: {accepts: secret}\n> 11 | output: B\n     |         ^\n  12 | agents:\n  hint: h", one.Error())
	var as task.Problem
	require.ErrorAs(t, one, &as)
	require.Equal(t, "/output", as.Pointer)
}

func TestBuildConnectsEachAgent(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader("agents: [{name: a, model: m}, {name: b}, {name: c}]")})
	require.NoError(t, err)
	var seen []string
	tm, err := f.Build(func(a specfile.Agent) (engine.Agent, error) {
		seen = append(seen, a.Member.Name+a.Model)
		return idle(a)
	})
	require.NoError(t, err)
	require.NotNil(t, tm)
	require.Equal(t, []string{"am", "b", "c"}, seen)

	_, err = f.Build(func(a specfile.Agent) (engine.Agent, error) {
		if a.Member.Name == "a" {
			return idle(a)
		}
		return nil, errors.New("no key")
	})
	require.EqualError(t, err, `agent "b": no key`, "the same reason once")

	f, err = specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader("tasks: []\n")})
	require.NoError(t, err)
	_, err = f.Build(idle)
	require.Equal(t, []string{"1:1: a team needs at least one agent"}, messages(t, err))
	require.ErrorIs(t, err, plan.ErrNoAgents)
}
