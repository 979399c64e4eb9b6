package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// That a script answers otherwise is said, since all of it is asked again.
func TestChangedScriptIsSaid(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"team.yaml": one, "s.yaml": "replies: [{text: one}]", "other.yaml": "replies: [{text: two}]"})
	run := func(args string) string {
		t.Helper()
		got := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, statusOK, got.status, "%s: %+v", args, got)
		return got.stderr
	}
	put := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(text), 0o600))
	}
	run("run --offline --script s.yaml")
	put("# why not\nreplies:\n- text: one\n")
	require.NotContains(t, run("resume"), "has changed")
	require.Contains(t, run("run --reuse --offline --script s.yaml"), "1 task reused")
	put("replies: [{text: another}]")
	require.Contains(t, run("resume"), "resume:  s.yaml has changed since: what it answers is asked again\n")
	require.NotContains(t, run("resume"), "has changed")
	put("replies: [{text: a third}]")
	got := run("run --reuse --offline --script s.yaml")
	require.Contains(t, got, "reuse:   s.yaml has changed since: what it answers is asked again\n")
	require.NotContains(t, got, "reused")
	require.NotContains(t, run("run --reuse --offline --script s.yaml"), "has changed")
	require.Contains(t, run("resume --script other.yaml"), "resume:  another script answers than before: what it answers is asked again\n")
}
