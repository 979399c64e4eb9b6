package cli

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/journal"
	"github.com/stretchr/testify/require"
)

// clerkTeam is a team with a price for each token, whose user sees something with a label.
func clerkTeam(name, label, price string) string {
	return strings.NewReplacer("NAME", name, "LABEL", label, "PRICE", price).Replace(`
name: NAME
model: m
offline: script.yaml
prices: PRICE
inputs: {note: {text: n, classification: LABEL}}
agents: [{name: clerk, accepts: confidential, systemPrompt: You file.}]
tasks: [{title: File, assignee: clerk, uses: [note], description: File it.}]
`)
}

// filterFolder returns a folder with a journal of three runs, the oldest first: claims, letters and failing.
func filterFolder(t *testing.T) string {
	t.Helper()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":    clerkTeam("Claims desk", "internal", "{m: {input: 10000, output: 10000}}"),
		"letters.yaml": clerkTeam("Letters", "confidential", "{m: {input: 1000000, output: 1000000}}"),
		"failing.yaml": clerkTeam("Failing", "internal", "{}"),
		"script.yaml":  "replies:\n  - {task: File, text: Filed.}\n", "none.yaml": "replies:\n  - {task: File, toolCalls: [{name: nothing, arguments: {}}]}\n",
	})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}, "team.yaml").status)
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}, "letters.yaml").status)
	require.NotEqual(t, exit.StatusOK, offlineRun(t, call{dir: dir}, "failing.yaml", "--script", "none.yaml").status)
	return dir
}

type listedName struct{ Name, RunID string }

func namesOf(list []listedName) (names []string) {
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

// The command and the API find the same runs by the same words.
func TestRunsAreFiltered(t *testing.T) {
	t.Parallel()
	dir := filterFolder(t)
	s := serveHere(t, call{dir: dir})
	var all []listedName
	require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"runs", "-o", "json"}}.run(t).stdout), &all))
	require.Equal(t, []string{"Failing", "Letters", "Claims desk"}, namesOf(all))
	tests := []struct {
		name string
		give map[string]string
		want []string
	}{
		{"a word of the name", map[string]string{"search": "DESK"}, []string{"Claims desk"}},
		{"all words", map[string]string{"search": "desk letters"}, nil},
		{"words of different places", map[string]string{"search": "claims " + all[2].RunID[:8]}, []string{"Claims desk"}},
		{"the path of the spec", map[string]string{"search": "letters.yaml"}, []string{"Letters"}},
		{"a status", map[string]string{"status": "ok"}, []string{"Letters", "Claims desk"}},
		{"several statuses", map[string]string{"status": "error,interrupted"}, []string{"Failing"}},
		{"a spec by its name", map[string]string{"spec": "claims desk"}, []string{"Claims desk"}},
		{"a spec by its file", map[string]string{"spec": "team.yaml"}, []string{"Claims desk"}},
		{"a spec by its file without extension", map[string]string{"spec": "./letters"}, []string{"Letters"}},
		{"a part of a file name", map[string]string{"spec": "eam.yaml"}, nil},
		{"since", map[string]string{"since": "1h"}, []string{"Failing", "Letters", "Claims desk"}},
		{"until", map[string]string{"until": "2020-01-01"}, nil},
		{"a time", map[string]string{"since": "2099-01-01T00:00:00Z"}, nil},
		{"cost from", map[string]string{"min-cost": "5"}, []string{"Letters"}},
		{"cost to", map[string]string{"max-cost": "5"}, []string{"Failing", "Claims desk"}},
		{"all of them", map[string]string{"search": "desk", "status": "ok", "max-cost": "$5"}, []string{"Claims desk"}},
		{"a page", map[string]string{"limit": "1", "before": all[0].RunID}, []string{"Letters"}},
	}
	for _, tt := range tests {
		args, query := []string{"runs", "-o", "json"}, url.Values{}
		for name, value := range tt.give {
			args = append(args, "--"+name, value)
			query.Set(name, value)
		}
		var got []listedName
		require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: args}.run(t).stdout), &got), tt.name)
		require.Equal(t, tt.want, namesOf(got), tt.name)
		var page struct{ Runs []listedName }
		require.NoError(t, json.Unmarshal([]byte(s.get("/runs?"+query.Encode())), &page), tt.name)
		require.Equal(t, tt.want, namesOf(page.Runs), tt.name)
	}
	got := call{dir: dir, args: []string{"runs", "--status", "fine"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, `--status "fine": write ok, error, running`)
	got = call{dir: dir, args: []string{"runs", "--limit", "1"}}.run(t)
	require.Contains(t, got.stderr, "more runs follow: add --before "+all[0].RunID[:8])
}

// A filter says nothing of runs that are not there for the viewer.
func TestFiltersDoNotFindWhatTheViewerMayNotSee(t *testing.T) {
	t.Parallel()
	dir := filterFolder(t)
	s := serveHere(t, call{dir: dir, args: []string{"--accepts", "internal"}})
	require.Contains(t, s.get("/runs"), "Claims desk")
	for _, query := range []string{"search=letters", "spec=letters", "status=ok&search=letters.yaml", "min-cost=5"} {
		require.JSONEq(t, `{"runs":[],"more":false}`, s.get("/runs?"+query), query)
	}
}

// TestAFailedSearchIsForgotten checks that a search which could not read the journal leaves later ones as they would be.
func TestAFailedSearchIsForgotten(t *testing.T) {
	t.Parallel()
	dir := filterFolder(t)
	open := func() *journal.Journal {
		j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{ReadOnly: true})
		require.NoError(t, err)
		return j
	}
	j, closed := open(), open()
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	require.NoError(t, closed.Close())
	list, err := j.Runs(t.Context())
	require.NoError(t, err)
	for _, term := range []string{"search", "spec"} {
		f, err := history.ParseRunFilter(func(of string) string { return map[string]string{term: "letters.yaml"}[of] }, func(of string) string { return of }, time.Now())
		require.NoError(t, err)
		finder := &history.RunFinder{Journal: closed, Now: time.Now}
		_, err = finder.Find(t.Context(), list, &f, len(list), time.Time{})
		require.Error(t, err)
		finder.Journal = j
		found, err := finder.Find(t.Context(), list, &f, len(list), time.Time{})
		require.NoError(t, err)
		require.Len(t, found.Runs, 1, term)
	}
}
