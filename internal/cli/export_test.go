package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/export"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/internal/markdown"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// exportedSpec has a value of each label, personal data and a pattern of its own. The text of a task that
// reads a secret is secret.
const exportedSpec = `
name: exported
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: open, accepts: secret}]
inputs:
  pin: {text: "The pin is canary-secret.", classification: secret}
  plan: {text: "The plan is canary-confidential.", classification: confidential}
  note: {text: "Ask ann@canary.example, who has badge-1234, about it. Pay DE89 3704 0044 0532 0130 00."}
policy:
  rules: [{from: user, to: open, mode: full}, {from: open, to: open, mode: full}]
  redact: {patterns: [{name: badge, regexp: 'badge-[0-9]{4}'}]}
tasks:
  - {title: Hidden, assignee: open, uses: [pin], description: Say the pin.}
  - {title: Closed, assignee: open, uses: [plan], description: Say the plan.}
  - {title: Mail bob@canary.example, assignee: open, uses: [note], description: Say the note.}
  - {title: Last, assignee: open, dependsOn: [Closed, Hidden], description: Sum up.}
`

const exportedScript = `
replies:
  - {task: Hidden, text: 'It is canary-secret.'}
  - {task: Closed, text: 'It is canary-confidential.'}
  - {task: Mail bob@canary.example, text: 'Ask ann@canary.example with badge-1234.'}
  - {task: Last, text: 'Both: canary-secret, canary-confidential.'}
`

// collected returns the documents of an export of the newest run in a folder.
func collected(t *testing.T, dir string, env map[string]string) *page.ExportDocument {
	t.Helper()
	docs := documentsIn(t, dir)
	docs.con.LookupEnv = func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	j, _, err := journals.Open(docs.con, docs.flags, journals.ToRead)
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // nothing was written
	found, err := journals.Find(t.Context(), j, "")
	require.NoError(t, err)
	level, err := j.Label(t.Context(), found.Run)
	require.NoError(t, err)
	run, err := export.Collect(t.Context(), docs.con, docs.flags, j, found, level)
	require.NoError(t, err)
	return run
}

func TestExportsHaveNothingThatIsWithheld(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": exportedSpec, "script.yaml": exportedScript})
	env := map[string]string{journals.EnvJournalKey: journalTestKey}
	got := offlineRun(t, call{dir: dir, env: env}, "--script", "script.yaml")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	run := collected(t, dir, env)
	require.Equal(t, label.Confidential, run.Accepts)
	text, err := json.Marshal(run)
	require.NoError(t, err)
	all := string(text)
	for _, never := range []string{"canary-secret", "ann@", "bob@", "DE89", "badge-1234", `"sha256"`, `"fingerprint"`, `"bytesBefore"`, `"contextBeforeScoping"`, dir} {
		require.NotContains(t, all, never)
	}
	require.Contains(t, all, "canary-confidential")
	require.NotRegexp(t, regexp.MustCompile(`\[/?envelope [0-9a-f]{4}`), all)
	require.NotNil(t, run.Documents["/runs/"+run.Run+"/flow"])
	require.Contains(t, all, "[withheld: secret]")
	require.Contains(t, all, "[REDACTED:badge]")
	requireNoTokens(t, run, "Hidden", "Last")
}

// requireNoTokens checks that nothing says how many tokens these tasks used, or all together.
func requireNoTokens(t *testing.T, run *page.ExportDocument, titles ...string) {
	t.Helper()
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(path, one)
			}
		case map[string]any:
			title, _ := v["title"].(string)
			_, exact := v["input_tokens"]
			_, usage := v["tokenUsage"]
			require.False(t, slices.Contains(titles, title) && (exact || usage), "%s: %v", path, v)
			require.NotContains(t, v, "totalTokenUsage", path)
			for _, one := range v {
				walk(path, one)
			}
		}
	}
	for path, text := range run.Documents {
		var v any
		require.NoError(t, json.Unmarshal(text, &v))
		walk(path, v)
	}
}

// The graph of a title that is redacted does not depend on what it was.
func TestExportsHaveEqualGraphsOfRedactedTitles(t *testing.T) {
	t.Parallel()
	graphs := map[string]bool{}
	for _, name := range []string{"a@b.example", "a-much-longer-name@canary.example"} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: solo}]\nmodel: m\ntasks: [{title: Mail " + name + ", assignee: solo, description: d}]\n"})
		require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
		run := collected(t, dir, nil)
		graph := string(run.Documents["/runs/"+run.Run+"/graph"])
		require.Contains(t, graph, "Mail [REDACTED:email]")
		graphs[regexp.MustCompile(`"id":"[^"]*"`).ReplaceAllString(graph, "")] = true
	}
	require.Len(t, graphs, 1)
}

// An export has a document for each view of the page, and its prompts are whole: each piece begins where the one
// before ends.
func TestExportsHaveEveryDocument(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"claims", "patterns/orchestrator-workers", "contract-review"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := runOf(t, example)
			run := collected(t, dir, nil)
			k := documentsIn(t, dir).load("")
			want := []string{"", "/usage", "/receipts", "/events", "/graph", "/artifacts", "/blocks", "/questions", "/flow", "/governance/handoff-rules"}
			for _, task := range k.Tasks {
				id := strings.ReplaceAll(string(task.ID), "/", "%2F")
				want = append(want, "/tasks/"+id, "/handoffs?task="+id)
				var shown struct{ Result string }
				require.NoError(t, json.Unmarshal(run.Documents["/runs/"+k.Run+"/tasks/"+id], &shown))
				if len(markdown.Blocks(shown.Result)) > 0 {
					want = append(want, "/tasks/"+id+"/blocks")
				}
			}
			for i := range want {
				want[i] = "/runs/" + k.Run + want[i]
			}
			var got []string
			for path := range run.Documents {
				got = append(got, path)
			}
			require.ElementsMatch(t, want, got)
			var receipts struct {
				Prompts []struct {
					Bytes        int
					System, Text []struct {
						Start, End int
						Words      string
					}
				}
			}
			require.NoError(t, json.Unmarshal(run.Documents["/runs/"+k.Run+"/receipts"], &receipts))
			require.Len(t, receipts.Prompts, len(k.Trace.Prompts))
			for _, p := range receipts.Prompts {
				size := 0
				for _, pieces := range [][]struct {
					Start, End int
					Words      string
				}{p.System, p.Text} {
					at := 0
					for _, piece := range pieces {
						require.Equal(t, at, piece.Start)
						require.Len(t, piece.Words, piece.End-piece.Start)
						at = piece.End
					}
					size += at
				}
				require.Equal(t, size, p.Bytes)
			}
		})
	}
}

func TestExportWritesOneFile(t *testing.T) {
	t.Parallel()
	dir := runOf(t, "claims")
	export := func(args ...string) outcome { return call{dir: dir, args: append([]string{"export"}, args...)}.run(t) }
	got := export("--html", "run.html")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	run := listRuns(t, call{dir: dir})[0].Run
	require.Regexp(t, `^run `+run+`, confidential: \d+ KB in run\.html\n$`, got.stdout)
	text := clitest.Contents(t, filepath.Join(dir, "run.html"))
	require.True(t, strings.HasPrefix(text, "<!doctype html>"))
	_, rest, found := strings.Cut(text, `<script type="application/json" id="runteam-export">`)
	require.True(t, found)
	embedded, _, found := strings.Cut(rest, "</script>")
	require.True(t, found)
	var doc page.ExportDocument
	require.NoError(t, json.Unmarshal([]byte(embedded), &doc))
	require.Equal(t, []string{run, "confidential"}, []string{doc.Run, doc.Accepts.String()})
	want := collected(t, dir, nil)
	require.Equal(t, len(want.Documents), len(doc.Documents))
	for path, one := range want.Documents {
		require.JSONEq(t, string(one), string(doc.Documents[path]), path)
	}
	require.NotContains(t, text, "IE30 TEST", "an IBAN of a result")

	got = export("--html", "run.html")
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "it exists: add --force to replace it")
	got = export(run[:8], "--html", "run.html", "--force", "--accepts", "internal")
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "run "+run[:8]+" is confidential, and --accepts internal leaves out all of it: write --accepts confidential")
	got = export(run[:8], "--html", "run.html", "--force", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "confidential", object(t, got.stdout)["label"])
	info, err := os.Stat(filepath.Join(dir, "run.html"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	dir := runOf(t, "claims")
	for _, tt := range []struct{ args, want string }{
		{"", "export needs the name of the file: add --html FILE"},
		{"--html x.html --accepts secret", "--accepts secret: no export has secret values"},
		{"--html x.html --accepts internl", `did you mean internal?`},
		{"--html .", "name a file"},
		{"--html .runteam/runs.db --force", "this is a file of the journal"},
		{"nosuchrun --html x.html", `unknown run "nosuchrun"`},
		{"a b --html x.html", "one RUN"},
	} {
		got := call{dir: dir, args: append([]string{"export"}, strings.Fields(tt.args)...)}.run(t)
		require.Contains(t, []int{exit.StatusUsage}, got.status, "%s: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want, tt.args)
	}
	_, err := os.Stat(filepath.Join(dir, "x.html"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// An export says which fields the gate left out, without their sizes, and has the tasks in each loop and list.
func TestExportsNameFieldsAndUnfold(t *testing.T) {
	t.Parallel()
	run := collected(t, runOf(t, "patterns/evaluator-optimizer"), nil)
	require.Contains(t, string(run.Documents["/runs/"+run.Run+"/graph"]), `"title":"Check#2"`)

	run = collected(t, runOf(t, "claims"), nil)
	excluded := 0
	for path, text := range run.Documents {
		if !strings.Contains(path, "/handoffs?") {
			continue
		}
		var d struct {
			Handoffs []struct {
				After map[string]any `json:"contextAfterScoping"`
			}
		}
		require.NoError(t, json.Unmarshal(text, &d))
		for _, h := range d.Handoffs {
			for name, list := range h.After {
				require.Contains(t, []string{"fieldsIncluded", "fieldsExcluded"}, name)
				require.NotRegexp(t, `/\d+(/| |\])`, fmt.Sprint(list), "the place of an element says how many there are")
			}
			if h.After["fieldsExcluded"] != nil {
				excluded++
			}
		}
	}
	require.NotZero(t, excluded)
}
