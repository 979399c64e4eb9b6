package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// loweredSpec has a declassifier that a person must approve, for a task that needs the value.
const loweredSpec = `
name: letters
inputs: {claim: {text: A claim., classification: confidential}}
policy:
  default: full
  declassify: [{name: score-out, from: scorer, to: writer, paths: [/score], lowerTo: internal, reason: a number, approve: editor}]
agents:
  - {name: scorer, backend: {kind: process, command: echo, args: ['{"score": 7}'], input: none}, accepts: confidential}
  - {name: writer, backend: {kind: process, command: cat}}
  - {name: editor, backend: {kind: person}, accepts: confidential}
tasks:
  - {title: Score, assignee: scorer, uses: [claim], description: How high?, outputSchema: {type: object, properties: {score: {type: integer, minimum: 0, maximum: 9}}, required: [score]}}
  - {title: Write, assignee: writer, dependsOn: [Score], description: Write it.}
`

// No command suggests to resume a run that failed because a person refused something, unless something
// else failed, too.
func TestRefusedRunsAreListedAsSuch(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(loweredSpec, "agents:\n", "agents:\n  - {name: breaker, backend: {kind: process, command: \"false\"}}\n", 1) +
		"  - {title: Break, assignee: breaker, description: Fail.}\n"
	for _, tt := range []struct {
		name, spec string
		refused    bool
	}{{"a plan", "", true}, {"a declassifier", loweredSpec, true}, {"a declassifier, and a failure", broken, false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": tt.spec})
			at := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
			if tt.spec == "" {
				_, at, _ = waitingPlan(t)
			} else {
				require.Equal(t, exit.StatusWaiting, at("run").status)
			}
			q := openQuestions(t, at)[0]
			require.Contains(t, at("show").stdout, "to answer: runteam questions")
			require.Zero(t, at("answer", q.RunID, strings.Fields(q.AnswerCommand)[3], "--question", q.ID, "--set", "decision=no").status)
			got := at("resume", q.RunID)
			require.Equal(t, exit.StatusFailed, got.status, got.stderr)
			require.Equal(t, !tt.refused, strings.Contains(got.stderr, "runteam resume"), got.stderr)
			for _, command := range []string{"runs", "show"} {
				text := at(command).stdout
				require.Equal(t, tt.refused, strings.Contains(text, "refused by a person, which resuming does not change: start a new run\n"), text)
				require.Equal(t, !tt.refused, strings.Contains(text, "runteam resume"), text)
			}
			got = at("answer", q.RunID, strings.Fields(q.AnswerCommand)[3], "--question", q.ID, "--set", "decision=yes")
			require.Equal(t, exit.StatusUsage, got.status)
			require.NotContains(t, got.stderr, "resume")
		})
	}
}
