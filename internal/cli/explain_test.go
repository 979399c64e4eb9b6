package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/stretchr/testify/require"
)

// claims is the trace of a run of four tasks. The tests of package trace write it.
const claims = "../trace/testdata/claims.jsonl"

// explainHere runs explain in this process.
func explainHere(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	con, out, errs := clitest.Console(t, append([]string{"explain"}, args...)...)
	con.Stdin, con.WorkDir = strings.NewReader(stdin), "" // claims starts from here
	root := root(con)
	if found, _, err := root.Find(con.Args[:1]); err != nil || found == root {
		root.AddCommand(explain.Command(con))
	}
	root.SetArgs(con.Args)
	status = con.Report(root.Execute())
	return status, out.String(), errs.String()
}

func TestExplainShowsEachPromptByItsSources(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
	}{
		{"explain.txt", nil},
		{"explain-task.txt", []string{"score"}},
		{"explain-withheld.txt", []string{"Write letter"}},
		{"explain-contains.txt", []string{"--contains", "Nobody was at home"}},
		{"explain-contains-task.txt", []string{"Score fraud", "--contains", "policy  4417"}},
		{"explain-nowhere.txt", []string{"--contains", "no such words"}},
		{"explain.json", []string{"score", "-o", "json", "--pretty"}},
		{"explain-contains.json", []string{"--contains", "The risk is 0.2", "-o", "json", "--pretty"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := explainHere(t, "", append([]string{claims}, tt.args...)...)
			require.Equal(t, exit.StatusOK, status, stderr)
			require.Empty(t, stderr)
			clitest.RequireGolden(t, "testdata/"+tt.name, stdout)
		})
	}
}

// The ranges of a prompt cover it without a gap, in JSON and in text.
func TestExplainTilesThePrompt(t *testing.T) {
	t.Parallel()
	_, stdout, _ := explainHere(t, "", claims, "-o", "json")
	var x explain.Document
	require.NoError(t, json.Unmarshal([]byte(stdout), &x))
	require.Len(t, x.Prompts, 3)
	for _, p := range x.Prompts {
		total := int32(0)
		for _, pieces := range [][]explain.Piece{p.System, p.Text} {
			end := int32(0)
			for _, piece := range pieces {
				require.Equal(t, end, piece.Start)
				require.NotEmpty(t, piece.From)
				require.True(t, piece.Withheld && piece.Words == "" || len(piece.Words) == int(piece.End-piece.Start))
				end = piece.End
			}
			total += end
		}
		require.EqualValues(t, p.Bytes, total)
	}
}

// Text above the clearance of the reader is shown by its source, label, rule and length.
//
// Requirement: G50.
func TestExplainShowsNoWithheldWords(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{claims}, {claims, "-o", "json"}, {claims, "score"}, {claims, "--contains", "on the list"}, {claims, "--contains", "on the list", "-o", "json"}} {
		status, stdout, _ := explainHere(t, "", args...)
		require.Equal(t, exit.StatusOK, status)
		require.NotContains(t, stdout, "CANARY")
	}
	_, stdout, _ := explainHere(t, "", claims, "score")
	require.Contains(t, stdout, "result of Check the blacklist from security, confidential, dependsOn (team.yaml:24)")
	require.Contains(t, stdout, "[not shown]")
	_, stdout, _ = explainHere(t, "", claims, "--contains", "on the list")
	require.Contains(t, stdout, "occurs in nothing that may be shown")
	require.Contains(t, stdout, "not searched: 2 pieces, which you may not see")
}

// A trace in which a withheld piece has a text is refused, so that no output can show it.
//
// Requirement: G50.
func TestExplainRefusesWithheldWords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(claims)
	require.NoError(t, err)
	require.Contains(t, string(text), `"withheld":true`)
	leaky := strings.Replace(string(text), `"withheld":true`, `"withheld":true,"words":"CANARY"`, 1)
	status, stdout, stderr := explainHere(t, leaky, "-")
	require.Equal(t, exit.StatusUsage, status)
	require.Empty(t, stdout)
	require.NotContains(t, stderr, "CANARY")
	require.Contains(t, stderr, "runteam: -: line ")
}

// Text of agents cannot deceive the reader of a terminal or look like the frame.
//
// Requirement: G53.
func TestExplainEscapesAgentText(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(claims)
	require.NoError(t, err)
	const good = "Nobody was at home."
	const evil = "\x1b[2J\u202e\u2028\r\nhome ok" // as long
	quoted, err := json.Marshal(evil)
	require.NoError(t, err)
	require.Len(t, evil, len(good))
	hostile := strings.ReplaceAll(string(text), good, strings.Trim(string(quoted), `"`))
	for _, args := range [][]string{{"-"}, {"-", "-o", "json"}, {"-", "--contains", "\x1b[2J"}} {
		status, stdout, stderr := explainHere(t, hostile, args...)
		require.Equal(t, exit.StatusOK, status, stderr)
		for _, r := range stdout {
			require.True(t, r == '\n' || !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Cf, r) && r != '\u2028', "%q", r)
		}
	}
	_, stdout, _ := explainHere(t, hostile, "-")
	require.Contains(t, stdout, `│   burst pipe. \x1b[2J\u202e\u2028\r`+"\n                 │ home ok")
}

func TestExplainRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := []struct {
		name  string
		stdin string
		args  []string
		want  string
	}{
		{"too much", "", []string{"a", "b", "c"}, "takes a RUN or FILE and a TASK (quote a title of several words), not 3"},
		{"a file that is not there", "", []string{filepath.Join(dir, "none")}, "none: there is no such file, and no run with this ID"},
		{"no run either", "", []string{"0195c3a1", "--journal", filepath.Join(dir, "none.db")}, "0195c3a1: no such file, and no such run: --journal"},
		{"a folder", "", []string{dir}, "is a directory"},
		{"another file", "agents: []\n", []string{"-"}, "-: line 1: it is not a JSON object"},
		{"a newer version", `{"trace":{"version":2}}` + "\n", []string{"-"}, "written by a newer runteam"},
		{"an unknown task", "", []string{claims, "Score frauds"}, `unknown task "Score frauds"; did you mean "Score fraud"?`},
		{"an empty task", "", []string{claims, ""}, "TASK is empty"},
		{"an empty text", "", []string{claims, "--contains", " "}, "--contains is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := explainHere(t, tt.stdin, tt.args...)
			require.Equal(t, exit.StatusUsage, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
		})
	}
}

func TestExplainReportsAnIncompleteTrace(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(claims)
	require.NoError(t, err)
	result := bytes.LastIndex(text, []byte(`{"result"`))
	_, stdout, _ := explainHere(t, string(text[:result]), "-")
	require.Contains(t, stdout, "3 prompts, 5 decisions; the trace ends before the end of the run\n")
	_, stdout, _ = explainHere(t, string(text[:result+9]), "-")
	require.Contains(t, stdout, "; the trace ends in the middle of a line\n")
	_, stdout, _ = explainHere(t, string(text[:bytes.IndexByte(text, '\n')+1]), "-", "Score fraud")
	require.Contains(t, stdout, "\nScore fraud: no prompt was recorded\n")
}

// A value that was declassified for one reader stays withheld from a caller below its label, and
// explain can read the trace of such a run.
//
// Requirement: G50.
func TestExplainOfALoweredResult(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml": `
name: vault
model: m
offline: script.yaml
inputs:
  file: {text: '{"name": "CANARY Smith", "score": 7}', classification: secret}
agents:
  - {name: vault, accepts: secret, baseURL: "http://localhost:11434/v1"}
  - {name: clerk, accepts: internal}
tasks:
  - title: Rate
    assignee: vault
    uses: [file]
    description: Rate it.
    outputSchema: {type: object, additionalProperties: false, required: [score, note], properties: {score: {type: integer, minimum: 0, maximum: 9}, note: {type: string}}}
  - {title: Answer, assignee: clerk, dependsOn: [Rate], description: Answer it.}
policy:
  rules:
    - {from: user, to: vault, mode: full}
    - {from: vault, to: clerk, mode: scoped, allow: [/score]}
  declassify:
    - {name: score-for-clerk, from: vault, to: clerk, paths: [/score], lowerTo: internal, reason: one digit}
`,
		"script.yaml": `
replies:
  - {task: Rate, text: '{"score": 7, "note": "CANARY Smith"}'}
  - {task: Answer, text: It is done.}
`,
	})
	got := call{dir: dir, args: strings.Fields("run --offline --trace run.jsonl --audit-anchor head")}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	text, err := os.ReadFile(filepath.Join(dir, "run.jsonl"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "CANARY")
	require.Contains(t, string(text), "[envelope *", "the fence is masked")

	got = call{dir: dir, args: []string{"explain", "run.jsonl", "Answer"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "result of Rate from vault, internal (was secret)")
	require.Contains(t, got.stdout, "score-for-clerk")
	require.Contains(t, got.stdout, "[not shown]")
	require.Contains(t, got.stdout, "│ [envelope ****")
	require.NotContains(t, got.stdout, `"score"`)
	require.Empty(t, got.stderr)
	head, err := os.ReadFile(filepath.Join(dir, "head"))
	require.NoError(t, err)
	got = call{dir: dir, args: []string{"audit", "verify", "run.jsonl", "--head", strings.TrimSpace(string(head))}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

// explain marks the prompt of a corrective call, as show does.
func TestExplainNamesACorrectiveCall(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":   "offline: script.yaml\nagents: [{name: a}]\ntasks: [{title: Count, assignee: a, description: d, outputSchema: {type: integer}}]\n",
		"script.yaml": "replies:\n  - {task: Count, text: many, times: 1}\n  - {task: Count, text: '4'}\n",
	})
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"explain"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "\nCount · a · attempt 1 · internal")
	require.Contains(t, got.stdout, "\nCount · a · attempt 1 turn 2 · internal")
	got = call{dir: dir, args: []string{"show", "Count"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?s)attempt 1 · a .* request chatcmpl-1 .*rejected answer:.*attempt 1 turn 2 · a .* request chatcmpl-2 `, got.stdout)
}

// Without TASK, the context that was not sent with each prompt is counted: a list
// would grow with the square of the tasks.
func TestExplainCountsUnsentContext(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("model: m\noffline: script.yaml\nmaxConcurrency: 1\nagents: [{name: solo}]\ntasks:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  - {title: Task %d, description: Do it., assignee: solo}\n", i)
	}
	dir := clitest.Folder(t, map[string]string{"team.yaml": b.String(), "script.yaml": "replies: [{text: done}]"})
	run := offlineRun(t, call{dir: dir})
	require.Equal(t, exit.StatusOK, run.status, "%+v", run)
	var all, one explain.Document
	got := call{dir: dir, args: []string{"explain", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &all))
	require.Len(t, all.Prompts, 30)
	for i, p := range all.Prompts {
		require.Len(t, p.Absent.Results, min(i, explain.MaxAbsent))
		require.Equal(t, i, len(p.Absent.Results)+p.Absent.More)
	}
	last := all.Prompts[29]
	got = call{dir: dir, args: []string{"explain", last.Title, "-o", "json"}}.run(t)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &one), got.stdout)
	require.True(t, one.Partial)
	require.Len(t, one.Prompts, 1)
	require.Len(t, one.Prompts[0].Absent.Results, 29)
	last.Absent, one.Prompts[0].Absent = explain.Absent{}, explain.Absent{}
	require.Equal(t, last, one.Prompts[0])
	text := call{dir: dir, args: []string{"explain"}}.run(t).stdout
	require.Contains(t, text, " and 21 more\n")
}
