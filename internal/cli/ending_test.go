package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
)

// endOf returns the part of stderr after the progress of a run, without times and IDs.
func endOf(t *testing.T, stderr string) string {
	t.Helper()
	at := regexp.MustCompile(`(?m)^\d+ of \d+ tasks? completed`).FindStringIndex(stderr)
	require.NotNil(t, at, "%s", stderr)
	text := regexp.MustCompile(` in \d+\.\ds`).ReplaceAllString(stderr[at[0]:], " in 1.1s")
	text = regexp.MustCompile(`have sent 2[34]\d KB`).ReplaceAllString(text, "have sent 236 KB") // depends on which tasks had ended when others started
	return regexp.MustCompile(`\b[0-9a-f]{8}\b`).ReplaceAllString(text, "d9a62d24")
}

// requireScreen checks that a text fits on a terminal of 24 lines and 80 columns.
func requireScreen(t *testing.T, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	require.LessOrEqual(t, len(lines), 24, "%s", text)
	for _, line := range lines {
		require.LessOrEqual(t, terminal.Width(line), 80, "%s", line)
	}
}

func TestEndOfARunShowsWithheldContext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "claims")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/claims")))
	got := call{dir: dir, args: []string{"run", "team.yaml", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	text := endOf(t, got.stderr)
	requireScreen(t, text)
	clitest.RequireGolden(t, "testdata/claims-end.golden", text)

	for _, printed := range regexp.MustCompile(`(?m)^  (runteam .*)$`).FindAllStringSubmatch(got.stderr, -1) {
		require.Equal(t, exit.StatusOK, call{dir: dir, args: typed(t, printed[1])}.run(t).status, "%s", printed[1])
	}

	none := call{dir: dir, args: []string{"run", "team.yaml", "--offline", "--no-journal"}}.run(t)
	require.NotContains(t, none.stderr, "is saved in")
	require.NotContains(t, none.stderr, "Next:")
	require.Contains(t, none.stderr, "What the agents did not see")

	quiet := call{dir: dir, args: []string{"run", "team.yaml", "--offline", "--progress", "none"}}.run(t)
	require.Empty(t, quiet.stderr)
	require.Equal(t, got.stdout, quiet.stdout, "the whole answer")
}

// The report of a run has the counts that show and the document of the stored run have.
func TestEndOfARunCountsAsShowDoes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"guard", "judges", "lead-scoring"} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/patterns/"+name)))
		got := call{dir: dir, args: []string{"run", "team.yaml", "--offline"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		report := got.stderr[regexp.MustCompile(`(?m)^\d+ of \d+ .* completed`).FindStringIndex(got.stderr)[0]:]
		counts, _, _ := strings.Cut(report, " in ")
		require.Contains(t, call{dir: dir, args: []string{"show"}}.run(t).stdout, "\n"+counts+"\n")
		var r view.Run
		require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"show", "-o", "json"}}.run(t).stdout), &r))
		require.Contains(t, report, format.Tokens(r.Usage, "; ")+" (scripted)\n")
		require.Equal(t, r.Withheld > 0, strings.Contains(report, format.Plural(r.Withheld, "value")+" withheld"), "%s", report)
		require.Equal(t, r.Redacted > 0, strings.Contains(report, format.Number(r.Redacted)+" redacted"), "%s", report)
		require.Equal(t, r.Saved > 0, strings.Contains(report, format.Plural(r.Saved, "token")+" of context"), "%s", report)
	}
}

// show has the answer of a run as the run printed it: also if one of several results is missing, and if it is that of a
// loop, which is the result of its last round.
func TestShowHasTheAnswerThatTheRunPrinted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"failure": "# Note to the branches\n", "patterns/lead-scoring": "Does Tuesday suit you?"} {
		dir := filepath.Join(t.TempDir(), filepath.Base(name))
		require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/"+name)))
		var printed, shown struct{ Output string }
		require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"run", "team.yaml", "--offline", "-o", "json"}}.run(t).stdout), &printed))
		require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"show", "-o", "json"}}.run(t).stdout), &shown))
		require.Equal(t, printed, shown)
		require.Contains(t, printed.Output, want)
	}
}

func TestALoopHasTheResultOfItsLastRound(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/patterns/lead-scoring")))
	require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run", "team.yaml", "--offline"}}.run(t).status)
	var loop, round view.Task
	require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"show", "Mails", "-o", "json"}}.run(t).stdout), &loop))
	require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"show", "Write#2", "-o", "json"}}.run(t).stdout), &round))
	require.NotEmpty(t, loop.Result)
	require.Equal(t, []any{round.Result, round.Label}, []any{loop.Result, loop.Label})
	require.Zero(t, loop.Attempts)
	require.Contains(t, call{dir: dir, args: []string{"explain", "Mails"}}.run(t).stdout, "Its rounds have the prompts: Write#1, Write#2\n")
}

// A resumed run whose tasks had all completed reports what their agents did not see. Once the rules
// change, the new attempt counts.
func TestEndOfAResumedRunShowsWithheldContext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "complaint")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/complaint")))
	context := func(stderr string) string {
		_, text, found := strings.Cut(stderr, "\nWhat the agents did not see")
		require.True(t, found, "%s", stderr)
		text, _, found = strings.Cut(text, "would have sent")
		require.True(t, found, "%s", stderr)
		return text
	}
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	want := context(got.stderr)
	require.Regexp(t, `(?m)^  clerk +/customer +input complaint +\d+$`, want)
	span := func() []any {
		doc := object(t, call{dir: dir, args: []string{"show", "-o", "json"}}.run(t).stdout)
		return []any{doc["endedAt"], doc["tookMs"]}
	}
	before := span()
	for range 2 {
		got = call{dir: dir, args: []string{"resume"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, want, context(got.stderr))
		require.Equal(t, before, span(), "nothing was done")
	}

	edit(t, filepath.Join(dir, "team.yaml"), "block: [customer]", "block: [order]")
	edit(t, filepath.Join(dir, "team.yaml"), "  assert: [input complaint/customer never reaches clerk]\n", "")
	got = call{dir: dir, args: []string{"resume"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?m)^  clerk +/order +input complaint +\d+$`, context(got.stderr))
	require.NotContains(t, context(got.stderr), "/customer")
	require.NotEqual(t, before[0], span()[0])
}

// Names that are wider than their columns are cut, and a long title is not in a command.
func TestEndOfARunWithLongNames(t *testing.T) {
	t.Parallel()
	title := strings.Repeat("very long title ", 9) + "end"
	agent := "reader " + strings.Repeat("of many names ", 4)
	spec := "name: long\nmodel: m\nagents: [{name: maker, outputSchema: {type: object, properties: {" + strings.Repeat("a", 60) + ": {type: string}, b: {type: string}}}}, {name: " + strings.TrimSpace(agent) + "}]\n" +
		"tasks:\n  - {title: " + title + ", assignee: maker, description: Make.}\n  - {title: Read, assignee: " + strings.TrimSpace(agent) + ", description: Read., dependsOn: [{task: " + title + ", need: [/b]}]}\n" +
		"  - {title: " + title + " again, assignee: " + strings.TrimSpace(agent) + ", description: Read., dependsOn: [{task: " + title + ", need: [/b]}, Read]}\n"
	script := `replies: [{task: "` + title + `", text: '{"` + strings.Repeat("a", 60) + `": "x", "b": "y"}'}, {text: fine}]`
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "script.yaml": script})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	text := endOf(t, got.stderr)
	requireScreen(t, text)
	require.Regexp(t, `\n  reader of many …  /a+…  very long title very long…     6\n`, text)
	require.Contains(t, text, "\n  runteam replay --without Read\n")
}

func TestSuggestedCommandsRepeatTheInvocation(t *testing.T) {
	t.Parallel()
	require.Equal(t, "runteam", invokedAs("runteam"))
	require.Equal(t, "./bin/runteam", invokedAs("./bin/runteam"))
	require.Equal(t, "go run github.com/runteam/runteam/cmd/runteam", invokedAs("/tmp/go-build17/b001/exe/runteam"))
}

// What agents were not given is one number: in the result of a run, at its end, in its documents, and over its prompts.
func TestWithheldIsOneNumber(t *testing.T) {
	t.Parallel()
	for example, want := range map[string]int{"claims": 25, "support-ticket": 8, "patterns/evaluator-optimizer": 1, "coding-team": 1} {
		dir := copyOf(t, "../../examples/"+example)
		got := offlineRun(t, call{dir: dir}, "-o", "json", "--progress", "plain")
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		var ran struct {
			Context struct{ Withheld int }
		}
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &ran))
		require.Equal(t, want, ran.Context.Withheld, example)
		if want > 0 {
			require.Contains(t, got.stderr, format.Plural(want, "value")+" withheld")
		}
		docs := documentsIn(t, dir)
		k := docs.load("")
		require.Equal(t, want, view.Of(k).Withheld, example)
		over := 0
		for i := range k.Trace.Prompts {
			for _, s := range k.Trace.Prompts[i].Receipt.Sources {
				if s.Decision != nil {
					over += s.Decision.WithheldParts()
				}
			}
		}
		require.Equal(t, want, over, example)
	}
}
