package cli

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

const auditTestKey = "a key that is only for tests"

// recorded writes a record of three decisions, one of which withholds context.
func recorded(t *testing.T, o audit.Options) (string, audit.Head) {
	t.Helper()
	var b strings.Builder
	c, err := audit.New(&b, o)
	require.NoError(t, err)
	const beside = "{\"event\":{\"type\":\"task_start\"}}\n"
	b.WriteString(beside)
	require.NoError(t, c.Beside([]byte(beside)))
	ok := event.Handoff{From: "a", To: "b", Ruling: event.Ruling{Verdict: gate.Passed, Rule: "POLICY-DEFAULT"}}
	require.NoError(t, c.Append(ok, event.Handoff{From: "a", To: "c", Ruling: event.Ruling{Verdict: gate.Withheld, Rule: "CLEARANCE"}}, ok))
	head, err := c.Close(time.Unix(0, 0))
	require.NoError(t, err)
	return b.String(), head
}

// Requirement: G45.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	text, head := recorded(t, audit.Options{Run: "one"})
	second, last := recorded(t, audit.Options{Run: "two", Previous: head})
	keyed, keyedHead := recorded(t, audit.Options{Run: "one", Key: []byte(auditTestKey)})
	lines := strings.SplitAfter(text, "\n")
	dir := clitest.Folder(t, map[string]string{
		"trace": text, "both": text + second, "second": second, "keyed": keyed, "empty": "", "key": auditTestKey + "\n", "windows": auditTestKey + "\r\n",
		"edited": strings.Replace(text, `"verdict":"held"`, `"verdict":"passed"`, 1), "event": strings.Replace(text, "task_start", "task_ready", 1), "longer": text + "{}\n", "cut": strings.Join(lines[:5], ""),
		"torn": text[:len(text)-9], "binary": "\x7fELF\x00\n",
	})
	counts := ", 1 held, head "
	tests := []struct {
		name   string
		args   string
		env    string
		status int
		want   string // of the sentence, from its beginning
	}{
		{"verified", "trace --head " + head.String(), "", exit.StatusOK, "verified: run one, all 6 lines, 3 decisions" + counts + head.String() + "\n"},
		{"consistent", "trace", "", exit.StatusOK, "consistent, not anchored: run one, all 6 lines, 3 decisions" + counts + head.String() + "\n"},
		{"standard input", "-", "", exit.StatusOK, "consistent, not anchored: run one, all 6 lines, 3 decisions"},
		{"two runs", "both --head " + last.String(), "", exit.StatusOK, "verified: run two, all 12 lines, 6 decisions in 2 chains, 2 held, head " + last.String() + "\n"},
		{"the second alone", "second --head " + last.String(), "", exit.StatusOK, "verified: run two, all 6 lines, 3 decisions" + counts + last.String() + "; it continues the record with head " + head.String() + "\n"},
		{"an older head", "both --head " + head.String(), "", exit.StatusFailed, "broken at line 12: the given head is that of line 6"},
		{"edited", "edited --head " + head.String(), "", exit.StatusFailed, "broken at line 4: its digest does not match"},
		{"edited beside", "event --head " + head.String(), "", exit.StatusFailed, "broken at line 2: it is not the line that line 3 covers: it was altered\n"},
		{"added at the end", "longer", "", exit.StatusFailed, "broken at line 7: it follows the closing line and nothing covers it"},
		{"cut", "cut", "", exit.StatusFailed, "open: run one, up to line 5, 3 decisions, 1 held, head "},
		{"cut, with the head", "cut --head " + head.String(), "", exit.StatusFailed, "broken at line 5: it does not end with the given head"},
		{"torn", "torn", "", exit.StatusFailed, "open: run one, up to line 5, 3 decisions"},
		{"nothing", "empty", "", exit.StatusFailed, "open: there is no record of decisions in it\n"},
		{"nothing, with a head", "empty --head " + head.String(), "", exit.StatusFailed, "broken: there is no record of decisions in it\n"},
		{"another file", "binary", "", exit.StatusFailed, "broken at line 1: it is not a JSON object\n"},
		{"a key in a file", "keyed --key-file key --head " + keyedHead.String(), "", exit.StatusOK, "verified: run one, all 6 lines, 3 decisions"},
		{"a key in a file of Windows", "keyed --key-file windows", "", exit.StatusOK, "consistent, not anchored: "},
		{"a key of the environment", "keyed", auditTestKey, exit.StatusOK, "consistent, not anchored: "},
		{"the file goes before the environment", "keyed --key-file key", "another key, also long enough", exit.StatusOK, "consistent, not anchored: "},
		{"another key", "keyed", "another key, also long enough", exit.StatusFailed, "broken at line 1: its digest does not match: it was altered, or written with another key\n"},
		{"a key too many", "trace", auditTestKey, exit.StatusFailed, "broken at line 1: it was written without a key, and one was given\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := call{args: []string{"audit", "verify"}, stdin: text, env: map[string]string{journals.EnvAuditKey: tt.env}}
			for arg := range strings.FieldsSeq(tt.args) {
				if slices.Contains(clitest.Listing(t, dir), arg) {
					arg = filepath.Join(dir, arg)
				}
				c.args = append(c.args, arg)
			}
			got := c.run(t)
			require.Equal(t, tt.status, got.status, "%+v", got)
			require.Empty(t, got.stderr)
			require.True(t, strings.HasPrefix(got.stdout, tt.want), "%s", got.stdout)
			require.Equal(t, 1, strings.Count(got.stdout, "\n"))

			c.args = append(c.args, "-o", "json")
			got = c.run(t)
			require.Equal(t, tt.status, got.status, "%+v", got)
			require.Empty(t, got.stderr)
			report := object(t, got.stdout)
			require.True(t, strings.HasPrefix(tt.want, report["status"].(string)), "%v", report)
			require.Equal(t, tt.status != exit.StatusOK, report["why"] != nil)
		})
	}
}

// An attacker who can write the journal and has no key puts the rows of one run
// under the ID of another.
//
// Requirement: G45.
func TestAuditVerifyFindsTheRecordOfAnotherRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{AuditKey: []byte(auditTestKey)})
	for _, id := range []string{"aaaaaaaa-1", "bbbbbbbb-2"} {
		w := beginRun(t, j, id, "n", "One")
		w.exchange("One", "m", 1, w.withText("said in "+id, label.Public, 0))
		w.end("ok", completed("One"))
	}
	require.NoError(t, j.Close())
	verify := func(run string, more ...string) outcome {
		return call{dir: dir, args: append([]string{"audit", "verify", run}, more...), env: map[string]string{journals.EnvAuditKey: auditTestKey}}.run(t)
	}
	got := verify("aaaaaaaa")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "consistent, not anchored: run aaaaaaaa-1, all ")
	require.Equal(t, "aaaaaaaa-1", object(t, verify("aaaa", "-o", "json").stdout)["run"])

	db, err := sql.Open("sqlite", filepath.Join(dir, journals.FolderName, journals.FileName))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "delete from batches where run = 1; update batches set run = 1 where run = 2")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	got = verify("aaaaaaaa")
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, ` of the record of run aaaaaaaa-1: it opens the record of run "bbbbbbbb-2", not of run "aaaaaaaa-1"`)
	require.Equal(t, "broken", object(t, verify("aaaa", "-o", "json").stdout)["status"])
}

// Requirement: G45.
func TestAuditVerifyInJSON(t *testing.T) {
	t.Parallel()
	text, head := recorded(t, audit.Options{Run: "one"})
	got := call{args: []string{"audit", "verify", "-", "-o", "json", "--head", head.String()}, stdin: text}.run(t)
	require.Equal(t, map[string]any{"status": "verified", "run": "one", "runs": 1.0, "covered": 6.0, "decisions": 3.0, "held": 1.0, "head": head.String(), "keyed": false}, object(t, got.stdout))
}

func TestAuditVerifyUsageErrors(t *testing.T) {
	t.Parallel()
	text, head := recorded(t, audit.Options{Key: []byte(auditTestKey)})
	dir := clitest.Folder(t, map[string]string{"keyed": text, "short": "123456789012345\n", "none": ""})
	for _, tt := range []struct {
		args []string
		kind string
		want string
	}{
		{[]string{"audit", "verifi"}, "usage", "write runteam audit verify [RUN|FILE]"},
		{[]string{"audit", "verify"}, "io", "there is no journal"},
		{[]string{"audit", "verify", "a", "b"}, "usage", "takes one RUN or FILE, not 2"},
		{[]string{"audit", "verify", "keyed"}, "usage", "keyed: the record was written with a key: give --key-file FILE or set RUNTEAM_AUDIT_KEY"},
		{[]string{"audit", "verify", "keyed", "--head", ""}, "usage", "--head is empty"},
		{[]string{"audit", "verify", "keyed", "--head", "abc"}, "usage", `--head "abc" is no head: a head has 64 hexadecimal digits`},
		{[]string{"audit", "verify", "keyed", "--head", head.String()[:64]}, "usage", "a colon and a number of lines"},
		{[]string{"audit", "verify", "keyed", "--key-file", ""}, "usage", "--key-file is empty"},
		{[]string{"audit", "verify", "keyed", "--key-file", "short"}, "usage", "--key-file short: the key has 15 bytes: a key has 16 or more"},
		{[]string{"audit", "verify", "keyed", "--key-file", "none"}, "usage", "--key-file none: the key has 0 bytes"},
		{[]string{"audit", "verify", "keyed", "--key-file", "missing"}, "io", "--key-file missing: no such file"},
		{[]string{"audit", "verify", "missing"}, "io", "missing: no such file, and no such run: there is no journal"},
		{[]string{"audit", "verify", "."}, "io", ".: read line 1: "},
		{[]string{"audit", "verify", "keyed", "--hed", "x"}, "usage", "did you mean --head?"},
	} {
		got := call{dir: dir, args: tt.args}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, tt.want)
		require.Equal(t, 1, strings.Count(got.stderr, "\n"))
		got = call{dir: dir, args: append(tt.args, "-o", "json")}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Empty(t, got.stderr)
		require.Equal(t, tt.kind, object(t, got.stdout)["error"].(map[string]any)["kind"])
	}
	got := call{dir: dir, args: []string{"audit", "verify", "keyed"}, env: map[string]string{journals.EnvAuditKey: "short"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "RUNTEAM_AUDIT_KEY: the key has 5 bytes")
}

func TestAuditHelpNamesVerify(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"audit"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status)
	require.Contains(t, got.stdout, "verify")
	require.Contains(t, completions(t, "audit", ""), "verify")
	require.Contains(t, completions(t, "audit", "verify", "--"), "--key-file")
}

// endless is a file without an end. It reports when a command has read much of it.
type endless struct {
	left    int // bytes until much was read
	reading chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for ; n+3 <= len(p); n += 3 {
		copy(p[n:], "{}\n")
	}
	if e.left > 0 && e.left <= n {
		close(e.reading)
	}
	e.left -= n
	return n, nil
}

func TestAuditVerifyEndsWithASignal(t *testing.T) {
	t.Parallel()
	cmd := call{args: []string{"audit", "verify", "-"}}.command(t)
	file := &endless{left: 1 << 20, reading: make(chan struct{})}
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, &stdout, &stderr
	require.NoError(t, cmd.Start())
	<-file.reading
	require.NoError(t, cmd.Process.Signal(interrupt))
	require.Equal(t, exit.StatusSIGINT, statusAfter(t, cmd.Wait()))
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "interrupted")
}
