package main

import (
	"regexp"
	"testing"

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

// run, runs and show count the tasks alike, and tell those that failed from those
// that were cancelled and those that never ran.
func TestOutcomesAreCountedAlike(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"team.yaml": everyEnd, "script.yaml": "replies: [{task: Bad, status: 400}, {task: Slow, delay: 1m, text: late}, {text: good}]"})
	want := map[string]any{"completed": 1.0, "failed": 1.0, "cancelled": 1.0, "notRun": 2.0}
	got := call{dir: dir, args: []string{"run", "--offline", "--timeout", "1s", "-o", "json"}}.run(t)
	require.Equal(t, statusFailed, got.status, "%+v", got)
	require.Contains(t, got.stderr, "runteam: 1 of 5 tasks done, 1 failed, 1 cancelled, 2 not run in ")
	require.Equal(t, want, object(t, got.stdout)["outcomes"])

	require.Regexp(t, ` 1 of 5 done, 1 failed, 1 cancelled, 2 not run  `, call{dir: dir, args: []string{"runs"}}.run(t).stdout)
	list := listRuns(t, call{dir: dir})
	require.Equal(t, [4]int{1, 1, 1, 2}, [4]int{list[0].Outcomes.Completed, list[0].Outcomes.Failed, list[0].Outcomes.Cancelled, list[0].Outcomes.NotRun})
	require.Len(t, list[0].Tasks, 3, "the statuses stay as they were")

	shown := call{dir: dir, args: []string{"show"}}.run(t).stdout
	require.Contains(t, shown, "\ntasks 1 of 5 done, 1 failed, 1 cancelled, 2 not run\n")
	for title, outcome := range map[string]string{"Good": "completed", "Bad": "failed", "Hit": "not run", "Slow": "cancelled", "After": "not run"} {
		require.Regexp(t, regexp.MustCompile(`(?m)^`+outcome+` +`+title+` +solo`), shown)
	}
	require.Equal(t, want, object(t, call{dir: dir, args: []string{"show", "-o", "json"}}.run(t).stdout)["outcomes"])
}
