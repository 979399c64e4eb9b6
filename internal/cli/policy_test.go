package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const governedRelay = `name: governed
model: test-model
agents: [{name: reader}, {name: writer}]
tasks:
  - {title: First, assignee: reader, description: one}
  - {title: Second, assignee: writer, dependsOn: [First], description: two}
policy:
  rules: [{from: writer, to: reader, block: [ssn]}]
`

// Another process replaces the policy of a run that works, and reads it.
func TestThePolicyOfARunIsReplaced(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "Second")
	narrow := "policy:\n  rules:\n    - {name: nothing, from: reader, to: writer, mode: minimal, note: too much was said}\n"
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":   governedRelay,
		"narrow.yaml": narrow + "    - {from: writer, to: reader, block: [ssn]}\n", "wide.yaml": narrow,
		"asserts.yaml": narrow + "    - {from: writer, to: reader, block: [ssn]}\n  assert: [task Second never reaches user]\n",
		"wrong.yaml":   "policy:\n  rules:\n    - {from: reader, to: wirter, mode: minimal}\n    - {from: writer, to: reader, block: [ssn]}\n", "none.yaml": "agents: [{name: a}]\n",
		"several.yaml": "policy:\n  rules:\n    - {from: reader, to: wirter, mode: minimal}\n    - {from: writer, mode: 3}\n",
	})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	send := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	_, id, _ := strings.Cut(send("runs", "-o", "json").stdout, `"runId":"`)
	id = id[:8]

	got := send("policy", id, "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	before := object(t, got.stdout)["digest"].(string)
	require.Len(t, before, 64)
	require.Contains(t, got.stdout, `"rules":[{"from":"writer","to":"reader"`)
	got = send("policy", id)
	require.Regexp(t, `^policy [0-9a-f]{64}\nwriter→reader: full, block ssn  \(writer→reader team.yaml:8\)\n$`, got.stdout)

	got = send("policy", id, "wrong.yaml")
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, `wrong.yaml:3:`)
	require.Contains(t, got.stderr, `unknown agent "wirter"`)
	require.Contains(t, got.stderr, "did you mean")
	got = send("policy", id, "several.yaml")
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Regexp(t, `(?s)several\.yaml:3:.*unknown agent "wirter".*several\.yaml:4:.*to: it is missing.*hint: write to: writer, the name of another agent.*3 problems`, got.stderr)
	got = send("policy", id, "wide.yaml")
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "writer→reader: everything in place of everything except ssn")
	require.Contains(t, got.stderr, "start the run with --allow-widening")
	got = send("policy", id, "narrow.yaml", "--replaces", strings.Repeat("0", 64))
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "has changed since it was read; its digest is now "+before)

	got = send("policy", id, "narrow.yaml", "--by", "ann", "--reason", "too much")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "run "+id+": ann replaced the policy: too much\n", got.stdout)
	got = send("policy", id, "narrow.yaml")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "run "+id+": nothing changed, since the run has this policy already\n", got.stdout)
	require.Equal(t, true, object(t, send("policy", id, "narrow.yaml", "-o", "json").stdout)["unchanged"])
	got = send("policy", id, "asserts.yaml")
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "asserts.yaml:5:")
	require.Contains(t, got.stderr, "task Second never reaches user")
	require.Equal(t, "Second", <-server.blockedCalls, "it begins again")
	got = send("policy", id)
	require.Regexp(t, `\nreader→writer: minimal  \(nothing narrow.yaml:3: too much was said\)\n`, got.stdout)

	require.Regexp(t, `\nhistory\n\S+ \S+  `+before[:12]+`  the run began with it\n\S+ \S+  [0-9a-f]{12}  sent by ann: too much\n  reader→writer: minimal \(was full\)\n$`, got.stdout)
	require.Contains(t, send("policy", id, "-o", "json").stdout, `"note":"too much was said"`)
	require.Contains(t, send("policy", id, "-o", "json").stdout, `"by":"ann","reason":"too much","changes":["reader→writer: minimal (was full)"]`)

	got = send("plan", "--run", id)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `result +First +internal += · `, got.stdout, "by the new policy, the writer gets nothing")
	require.NotContains(t, got.stdout, before[:12])
	got = send("plan", "--run", id, "--from", "First", "-o", "json")
	require.Contains(t, got.stdout, `"policyDigest":`)
	require.Contains(t, got.stdout, `"runId":"`+id)
	require.Contains(t, send("plan", "--run", id, "-o", "mermaid").stdout, "flowchart")
	for want, args := range map[string][]string{
		"leave out team.yaml":                {"plan", "team.yaml", "--run", id},
		"--chat is for a spec":               {"plan", "--run", id, "--chat"},
		"--journal FILE is for a stored run": {"plan", "--journal", "x"},
		"--run is empty":                     {"plan", "--run", ""},
		`unknown run "zz"`:                   {"plan", "--run", "zz"},
		`"nobody": no reader has this name`:  {"plan", "--run", id, "--to", "nobody"},
	} {
		got := send(args...)
		require.NotEqual(t, exit.StatusOK, got.status, "%v", args)
		require.Contains(t, got.stderr, want)
	}

	require.Equal(t, exit.StatusOK, send("cancel", id, "Second").status)
	j := stored(t, dir)
	require.Eventually(t, func() bool {
		found, err := j.Find(t.Context(), id)
		return err == nil && found.Holder == nil
	}, 20*time.Second, 20*time.Millisecond)
	_ = running.Wait()
	require.Contains(t, send("show").stdout, " ann replaced the policy: too much\n")
	commands := object(t, send("show", "-o", "json").stdout)["commands"].([]any)
	require.Len(t, commands, 2, "the policy, once, and the cancel")
	require.NotEqual(t, before, commands[0].(map[string]any)["digest"])
	require.Contains(t, commands[0].(map[string]any)["policy"], "rules")
	require.Equal(t, exit.StatusOK, send("audit", "verify").status)
	got = send("policy", id, "narrow.yaml")
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "run "+id+" is not running")
}

// What is wrong with the command is said before the run gets it.
func TestPoliciesThatAreNotSent(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": governedRelay, "text.yaml": "hello\n", "empty.yaml": "", "none.yaml": "agents: [{name: a}]\n", "bad.yaml": "policy: {rules: [{form: a, to: b}]}\n",
		"pattern.yaml": "policy: {redact: {patterns: [{name: p, regexp: '('}]}}\n"})
	require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run", "--offline"}}.run(t).status)
	_, id, _ := strings.Cut(call{dir: dir, args: []string{"runs", "-o", "json"}}.run(t).stdout, `"runId":"`)
	id = id[:8]
	large := filepath.Join(dir, "large.json")
	require.NoError(t, os.WriteFile(large, []byte(`{"policy":{"rules":[{"from":"reader","to":"writer","name":"`+strings.Repeat("x", 10<<20)+`"}]}}`), 0o600))
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"policy"}, exit.StatusUsage, "runteam policy needs a RUN: write runteam policy RUN [FILE]\n"},
		{[]string{"policy", id, "--by", "ann"}, exit.StatusUsage, "name its FILE"},
		{[]string{"policy", id, "none.yaml"}, exit.StatusUsage, "none.yaml: there is no policy"},
		{[]string{"policy", id, "bad.yaml"}, exit.StatusUsage, `unknown key "form" in a rule`},
		{[]string{"policy", id, "bad.yaml"}, exit.StatusUsage, "runteam: 1 problem; the policy was not replaced\n"},
		{[]string{"policy", id, "text.yaml"}, exit.StatusUsage, `the text "hello" where the key policy belongs`},
		{[]string{"policy", id, "empty.yaml"}, exit.StatusUsage, "empty.yaml: cannot read: it is empty\n  hint: write policy: …\n"},
		{[]string{"policy", id, "pattern.yaml"}, exit.StatusUsage, "missing closing )"},
		{[]string{"policy", id, "large.json"}, exit.StatusUsage, "large"},
		{[]string{"policy", id, "missing.yaml"}, exit.StatusUsage, "missing.yaml: it does not exist\n  hint: name a spec file, or a file with the key policy\n"},
		{[]string{"policy", "f00d"}, exit.StatusUsage, `unknown run "f00d"`},
	} {
		got := call{dir: dir, args: tt.args}.run(t)
		require.Equal(t, tt.status, got.status, "%v: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want, "%v", tt.args)
	}
}
