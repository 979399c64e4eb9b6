package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// requireNoBadge checks that the export of the newest run has no text that the pattern badge matches.
func requireNoBadge(t *testing.T, dir string) {
	t.Helper()
	text, err := json.Marshal(collected(t, dir, nil))
	require.NoError(t, err)
	require.NotContains(t, string(text), "badge-1234")
	require.Contains(t, string(text), "[REDACTED:badge]")
}

// A run without anything confidential is redacted too.
func TestExportsAreRedactedByThePolicy(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
model: m
agents: [{name: open}]
policy: {redact: {patterns: [{name: badge, regexp: 'badge-[0-9]{4}'}]}}
tasks: [{title: Say badge-1234, assignee: open, description: Say it., classification: public}]
`})
	got := offlineRun(t, call{dir: dir})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	requireNoBadge(t, dir)
}

// The policy of a goal counts, whether its coordinator has made a plan or not.
func TestExportsOfGoalsAreRedactedByThePolicy(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
model: m
coordinator: {}
goal: Find badge-1234.
agents: [{name: open, capabilities: [say]}]
policy: {redact: {patterns: [{name: badge, regexp: 'badge-[0-9]{4}'}]}}
`})
	got := offlineRun(t, call{dir: dir})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	requireNoBadge(t, dir)
}

// A policy that came while the run worked counts, and so does each that it had before.
func TestExportsAreRedactedByEveryPolicyOfTheRun(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "Second")
	patterns := "policy:\n  redact: {patterns: [{name: badge, regexp: 'badge-[0-9]{4}'}]}\n"
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: governed
model: test-model
agents: [{name: reader}, {name: writer}]
tasks:
  - {title: First, assignee: reader, description: Say badge-1234.}
  - {title: Second, assignee: writer, dependsOn: [First], description: two}
`, "patterns.yaml": patterns})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	_, id, _ := strings.Cut(call{dir: dir, args: []string{"runs", "-o", "json"}}.run(t).stdout, `"runId":"`)
	got := call{dir: dir, args: []string{"policy", id[:8], "patterns.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NoError(t, running.Process.Kill())
	_ = running.Wait()
	requireNoBadge(t, dir)
}

// A policy is part of the spec, which is internal: no run that has one is there for the public.
func TestPoliciesAreInternal(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.ReplaceAll(governedRelay, "description:", "classification: public, description:")})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	for accepts, want := range map[string]int{"public": 404, "internal": 200} {
		s := serveHere(t, call{dir: dir, args: []string{"--accepts", accepts}})
		for _, path := range []string{"", "/events", "/governance/handoff-rules"} {
			status, text := s.do("GET", "/runs/"+newestRun(t, dir)+path, "")
			require.Equal(t, want, status, "%s: %s", path, text)
		}
	}
}

// The policy of an export is redacted like the rest. If something in it is, its digest is in no document.
func TestPoliciesInExports(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		digest bool
	}{
		{"to be short", true}, {"asked by ann@canary.example", false}, {"for badge-1234", false},
	} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": `
model: m
agents: [{name: reader}, {name: writer}]
policy:
  redact: {patterns: [{name: badge, regexp: 'badge-[0-9]{4}'}]}
  rules: [{from: reader, to: writer, mode: full}]
  declassify: [{name: down, from: reader, to: writer, paths: [/ok], lowerTo: public, reason: "` + tt.reason + `"}]
tasks:
  - {title: One, assignee: reader, description: d, outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
  - {title: Two, assignee: writer, dependsOn: [One], description: d}
`})
		got := offlineRun(t, call{dir: dir})
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		digest := object(t, call{dir: dir, args: []string{"policy", newestRun(t, dir), "-o", "json"}}.run(t).stdout)["digest"].(string)
		run := collected(t, dir, nil)
		text, err := json.Marshal(run)
		require.NoError(t, err)
		require.Equal(t, tt.digest, strings.Contains(string(text), digest), tt)
		for _, never := range []string{"canary.example", "badge-1234"} {
			require.NotContains(t, string(text), never)
		}
		policy := string(run.Documents["/runs/"+run.Run+"/governance/handoff-rules"])
		require.Contains(t, policy, `"line":"team.yaml:6"`)
		require.NotContains(t, policy, dir)
	}
}
