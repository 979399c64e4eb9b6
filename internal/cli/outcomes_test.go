package cli

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A run in which tasks end in every way.
const everyEnd = `name: ends
agents: [{name: solo, model: m}]
offline: script.yaml
tasks:
- {title: Good, description: Do., assignee: solo}
- {title: Bad, description: Do., assignee: solo}
- {title: Hit, description: Do., assignee: solo, dependsOn: [Bad]}
- {title: Slow, description: Do., assignee: solo}
- {title: After, description: Do., assignee: solo, dependsOn: [Slow]}
`

// run, runs and show count tasks the same way, and distinguish those that failed from those
// that were cancelled and those that never ran; progress uses the same words.
func TestCommandsCountOutcomesTheSame(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": everyEnd, "script.yaml": "replies: [{task: Bad, status: 400}, {task: Slow, delay: 1m, text: late}, {text: good}]"})
	want := map[string]any{"completed": 1.0, "failed": 1.0, "cancelled": 1.0, "notRun": 2.0}
	got := call{dir: dir, args: []string{"run", "--offline", "--timeout", "3s", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "1 of 5 tasks completed, 1 failed, 1 cancelled, 2 skipped in ")
	require.Equal(t, want, object(t, got.stdout)["outcomes"])
	for title, outcome := range map[string]string{"Good": "completed", "Bad": "failed", "Hit": "skipped", "Slow": "cancelled", "After": "skipped"} {
		require.Regexp(t, `(?m)^ +\d\.\ds  `+outcome+` +`+title+` \(solo\)`, got.stderr)
	}

	require.Regexp(t, ` 1 of 5 completed, 1 failed, 1 cancelled, 2 skipped  `, call{dir: dir, args: []string{"runs"}}.run(t).stdout)
	list := listRuns(t, call{dir: dir})
	require.Equal(t, [4]int{1, 1, 1, 2}, [4]int{list[0].Outcomes.Completed, list[0].Outcomes.Failed, list[0].Outcomes.Cancelled, list[0].Outcomes.NotRun})
	require.Len(t, list[0].Tasks, 3, "the statuses are unchanged")

	shown := call{dir: dir, args: []string{"show"}}.run(t).stdout
	require.Contains(t, shown, "\ntasks 1 of 5 completed, 1 failed, 1 cancelled, 2 skipped\n")
	for title, outcome := range map[string]string{"Good": "completed", "Bad": "failed", "Hit": "skipped", "Slow": "cancelled", "After": "skipped"} {
		require.Regexp(t, regexp.MustCompile(`(?m)^`+outcome+` +`+title+` +solo`), shown)
	}
	require.Equal(t, want, object(t, call{dir: dir, args: []string{"show", "-o", "json"}}.run(t).stdout)["outcomes"])
}

// A time limit ends a run with the same status before the first call, and while
// no model has answered.
func TestTimeLimitOfARunHasOneStatus(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	for _, limit := range []string{"1ns", "300ms"} {
		got := call{args: []string{"run", "-", "--timeout", limit, "-o", "json"}, stdin: one, env: server.env()}.run(t)
		require.Equal(t, exit.StatusFailed, got.status, "%s: %+v", limit, got)
		require.Equal(t, "timeout", object(t, got.stdout)["status"])
	}
}

// Tokens and sizes of what the caller may not see are marked as rounded in
// progress, as they are in the summary and in show.
func TestRoundedNumbersAreMarked(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: marks
agents: [{name: solo, model: m, accepts: secret}]
endpoints: {"https://api.openai.com/v1": {accepts: secret}}
offline: script.yaml
tasks: [{title: Hidden, description: Do., assignee: solo, classification: secret}, {title: Seen, description: Do., assignee: solo}]
`, "script.yaml": "replies: [{text: good}]"})
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Regexp(t, `completed Hidden \(solo\) in \d\.\ds, ~\d+ tokens in, \d+ out\n`, got.stderr)
	require.Regexp(t, `2 of 2 tasks completed in \d\.\ds; ~\d+ tokens in, \d+ out \(scripted\)\n`, got.stderr)
	require.Regexp(t, `Sent ~\S+ KB of context; sharing everything would have sent ~\S+ KB`, got.stderr)
	require.Regexp(t, `took \d\.\ds, ~\d+ tokens in`, call{dir: dir, args: []string{"show"}}.run(t).stdout)
}
