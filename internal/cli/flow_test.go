package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/team"
)

// governed is a spec under every sort of rule, and its plan, in which its last
// assertion is broken.
func governed(t *testing.T) (*specfile.File, *team.Plan) {
	t.Helper()
	a, _, _ := here(t)
	s := &source{path: "testdata/governed"}
	file, err := s.load(t.Context(), a)
	require.NoError(t, err)
	plan, err := a.look(t.Context(), file)
	require.NoError(t, err)
	return file, plan
}

// hold takes the assertion that is broken from a governed spec.
func hold(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/governed/team.yaml")
	require.NoError(t, err)
	out := regexp.MustCompile(`(?m)^.*# it does.*\n`).ReplaceAllString(string(text), "")
	require.NotEqual(t, string(text), out)
	return out
}

// shown prints a plan in a form, and says with which status it would end.
func shown(t *testing.T, form string, q question, file *specfile.File, plan *team.Plan) (stdout, stderr string, status int) {
	t.Helper()
	a, out, complaints := here(t)
	a.settings.output = form
	require.NoError(t, a.printPlan(t.Context(), file, plan, q))
	status = a.fail(a.judged(plan, drawings[form] == nil))
	return out.String(), complaints.String(), status
}

const untrue = "input claim never derives into statistics (testdata/governed/team.yaml:63)"

func TestPlanSaysWhatAPolicyMakesOfIt(t *testing.T) {
	t.Parallel()
	file, plan := governed(t)
	for form, golden := range map[string]string{"text": "governed.golden", "dot": "governed.dot.golden", "mermaid": "governed.mermaid.golden"} {
		text, stderr, status := shown(t, form, question{}, file, plan)
		requireGolden(t, "testdata/"+golden, text)
		require.Equal(t, statusFailed, status)
		require.Contains(t, stderr, "runteam: 1 of 5 assertions broken\n")
		require.Equal(t, drawings[form] != nil, strings.Contains(stderr, "BROKEN  "+untrue+"\n"), "what stdout has no place for: %s", stderr)
	}
}

func TestPlanWhoseAssertionsHold(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"plan", "-"}, stdin: hold(t)}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	require.NotContains(t, got.stderr, "broken")
}

func TestPlanAnswersAQuestion(t *testing.T) {
	t.Parallel()
	file, plan := governed(t)
	for name, q := range map[string]question{
		"from": {from: "claim"}, "from.task": {from: "task Score the risk"}, "to": {to: "letters"}, "fromto": {from: `task "Extract the facts"`, to: "statistics"},
	} {
		text, _, status := shown(t, "text", q, file, plan)
		requireGolden(t, "testdata/governed."+name+".golden", text)
		require.Equal(t, statusFailed, status, "the assertions are held to all the same")
	}
}

// The table in the documentation is the one that is printed.
func TestDocumentedTableIsReal(t *testing.T) {
	t.Parallel()
	got := call{dir: harvestPath(t), args: []string{"plan"}}.run(t)
	_, table, ok := strings.Cut(got.stdout, "\nwho can see what\n")
	require.True(t, ok)
	docs, err := os.ReadFile("../../docs/command.md")
	require.NoError(t, err)
	require.Contains(t, string(docs), "```\nwho can see what\n"+table+"```\n")
}

func TestPlanOfExamplesForPeople(t *testing.T) {
	t.Parallel()
	got := call{dir: filepath.Join(harvestPath(t), "../../../examples/claims"), args: []string{"plan"}}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	requireGolden(t, "testdata/claims.golden", got.stdout)
}

// crowd is a spec of n agents in a row, of which each reads what the one before it wrote.
func crowd(n int) string {
	var b strings.Builder
	b.WriteString("name: crowd\nmodel: m\ninputs: {brief: {text: Go.}}\nagents:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: agent %d}\n", i+1)
	}
	b.WriteString("tasks:\n  - {title: Task 1, assignee: agent 1, uses: [brief], description: Do it.}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  - {title: Task %d, assignee: agent %[1]d, dependsOn: [Task %d], description: Do it.}\n", i+1, i)
	}
	return b.String()
}

func TestPlanOfManyAgentsHasLists(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"plan", "-"}, stdin: crowd(13)}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	requireGolden(t, "testdata/crowd.golden", got.stdout)
	require.NotContains(t, got.stdout, "│")
	got = call{args: []string{"plan", "-"}, stdin: crowd(12)}.run(t)
	require.Contains(t, got.stdout, "│")
	got = call{args: []string{"plan", "-", "--from", "brief"}, stdin: crowd(13)}.run(t)
	require.Contains(t, got.stdout, "retold  agent 13, internal ")
	require.Contains(t, got.stdout, "through Task 1 → Task 2 → Task 3\n")
}

// Long titles do not push the matrix off the screen, and wide letters do not shift it.
func TestMatrixStandsBelowItsHeads(t *testing.T) {
	t.Parallel()
	long := strings.Replace(crowd(3), "title: Task 3", "title: "+strings.Repeat("long ", 30), 1)
	got := call{args: []string{"plan", "-"}, stdin: strings.ReplaceAll(long, "brief", "指示書")}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	_, table, ok := strings.Cut(got.stdout, "\nwho can see what\n")
	require.True(t, ok)
	lines := strings.Split(strings.TrimSpace(table), "\n")[2:]
	heads, rows := lines[:5], lines[5:]
	require.Len(t, rows, 4)
	left := columns(heads[0]) - columns(strings.TrimLeft(heads[0], " "))
	require.Less(t, left, 70)
	for _, row := range rows {
		require.Equal(t, left+2*len(heads)-1, columns(row), "%q", row)
	}
}

// What programs read is the table itself, cell by cell.
func TestPlanInJSONHasTheTable(t *testing.T) {
	t.Parallel()
	file, plan := governed(t)
	table := plan.Flow()
	g := table.Graph()
	type row struct {
		Kind, Name string
		Label      label.Classification
		Reach      []flow.Reach
		Wrote      []int
		Ways       []flow.Path
	}
	type document struct {
		Flow struct {
			Readers []flow.Reader
			Sources []row
		}
		Assertions []team.Finding
	}
	read := func(q question) (d document) {
		text, _, status := shown(t, "json", q, file, plan)
		require.Equal(t, statusFailed, status)
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		return d
	}
	d := read(question{})
	require.Equal(t, g.Readers, d.Flow.Readers)
	require.Len(t, d.Flow.Sources, len(g.Sources))
	for i, r := range d.Flow.Sources {
		require.Equal(t, g.Sources[i].Name, r.Name)
		require.Equal(t, g.Sources[i].Label, r.Label)
		require.Equal(t, table.Row(i), r.Reach)
		require.Empty(t, r.Ways)
		for k := range g.Readers {
			require.Equal(t, table.Wrote(i, k), slices.Contains(r.Wrote, k))
		}
	}
	require.Len(t, d.Assertions, 5)
	for _, f := range d.Assertions {
		require.Equal(t, f.Holds, len(f.Path) == 0)
		require.Equal(t, !f.Holds, strings.HasPrefix(untrue, f.Assertion.Text))
	}

	d = read(question{from: "claim", to: "statistics"})
	require.Equal(t, []string{"statistics"}, []string{d.Flow.Readers[0].Name})
	require.Len(t, d.Flow.Sources, 1)
	require.Equal(t, []flow.Reach{flow.Retold}, d.Flow.Sources[0].Reach)
	require.Equal(t, []flow.Path{table.Via(0, 4)}, d.Flow.Sources[0].Ways)
}

func TestQuestionsThatNobodyCanAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--from", "repotr"}, `--from "repotr": no input and no task has this name; did you mean "report"?`},
		{[]string{"--to", "wrtier"}, `--to "wrtier": nobody has this name; did you mean "writer"?`},
		{[]string{"--from", ""}, "--from is empty: name an input or a task"},
		{[]string{"--to", ""}, "--to is empty: name a reader"},
		{[]string{"--from", "report", "-o", "dot"}, "--from is for text and json: dot draws the whole plan"},
		{[]string{"--assert", "x reaches writer"}, `--assert: assertion "x reaches writer": `},
		{[]string{"--assert", "nothing_such never reaches writer"}, `--assert: assertion "nothing_such never reaches writer": no input and no result can have a property "nothing_such"`},
		{[]string{"--assert", "input report never reaches nobody"}, `--assert: assertion "input report never reaches nobody": no reader "nobody"`},
	}
	for _, tt := range tests {
		got := call{dir: harvestPath(t), args: append([]string{"plan"}, tt.args...)}.run(t)
		require.Equal(t, statusUsage, got.status, "%v: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want)
		require.Empty(t, got.stdout)
	}
	both := strings.NewReplacer("Task 1", "brief").Replace(crowd(2))
	got := call{args: []string{"plan", "-", "--from", "brief"}, stdin: both}.run(t)
	require.Equal(t, statusUsage, got.status)
	require.Contains(t, got.stderr, `--from "brief" names several: write "input brief" or "task brief"`)
	for _, name := range []string{"task brief", "task BRIEF"} {
		got = call{args: []string{"plan", "-", "--from", name}, stdin: both}.run(t)
		require.Equal(t, statusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "from result brief, internal\n")
	}
}

func TestAssertionsOfFlagsDecideTheStatus(t *testing.T) {
	t.Parallel()
	dir := harvestPath(t)
	got := call{dir: dir, args: []string{"plan", "--assert", "input manual never reaches reader", "--assert", "input report never reaches writer"}}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "\nassertions\nholds   input manual never reaches reader (--assert)\nholds   input report never reaches writer (--assert)\n")
	got = call{dir: dir, args: []string{"plan", "--assert", "input manual never reaches reader", "--assert", "input report never derives into writer"}}.run(t)
	require.Equal(t, statusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, "BROKEN  input report never derives into writer (--assert)\n")
	require.Contains(t, got.stdout, `        input "report" → task "Read the yield" → task "Judge the year" → task "Write the letter" → writer`+"\n")
	require.Equal(t, "runteam: 1 of 2 assertions broken\n", got.stderr)
}

func TestCheckHoldsASpecToItsAssertions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(harvestPath(t), "governed")
	got := call{args: []string{"check", path, "--log-level", "error"}}.run(t)
	require.Equal(t, statusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, "team.yaml: broken: 5 tasks, 5 agents, 2 inputs; 5 assertions\n")
	require.Regexp(t, `^BROKEN  input claim never derives into statistics \(.*team.yaml:63\)\n        statistics is delivered .*\n        input "claim" → .* → task "Count" → statistics\nrunteam: 1 of 5 assertions broken\n$`, got.stderr)

	got = call{args: []string{"check", path, "-o", "json"}}.run(t)
	require.Equal(t, statusFailed, got.status, "%+v", got)
	c := object(t, got.stdout)
	require.Equal(t, false, c["ok"])
	require.Len(t, c["assertions"], 5)
	require.Equal(t, "runteam: 1 of 5 assertions broken\n", got.stderr)

	got = call{args: []string{"check", "-", "--log-level", "error"}, stdin: hold(t)}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "-: ok: 5 tasks, 5 agents, 2 inputs; 4 assertions\n")
	require.Empty(t, got.stderr)
}

// An assertion about what does not exist is an error where it is written, in
// either of the two lists.
func TestAssertionsAboutNothingAreLocated(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("internal_notes never reaches letters", "internal_notes never reaches lettres", "input terms never derives", "input trems never derives").Replace(hold(t))
	for _, command := range []string{"plan", "check"} {
		got := call{args: []string{command, "-", "--assert", "x never reaches y"}[:map[string]int{"plan": 4, "check": 2}[command]], stdin: text}.run(t)
		require.Equal(t, statusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, `-:62:7: assertion "input trems never derives into statistics": no input "trems"`)
		require.Contains(t, got.stderr, `-:64:5: assertion "internal_notes never reaches lettres": no reader "lettres"`)
		require.Contains(t, got.stderr, `hint: did you mean "letters"?`)
		require.Equal(t, command == "plan", strings.Contains(got.stderr, `--assert: assertion "x never reaches y": `), got.stderr)
		require.Less(t, strings.Index(got.stderr, "-:64:5"), strings.Index(got.stderr+"--assert: ", "--assert: "), "in the order of the file, then flags")
		require.Empty(t, got.stdout)
	}
}

// Asking what would happen makes no model call, in any form.
//
// Requirement: G46.
func TestPlanAsksNoModel(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	questions := [][]string{nil, {"-o", "json"}, {"-o", "dot"}, {"-o", "mermaid"}, {"--from", "report"}, {"--to", "writer", "-o", "json"}, {"--assert", "input report never derives into writer"}}
	for _, q := range questions {
		got := call{dir: harvestPath(t), args: append([]string{"plan"}, q...), env: server.env()}.run(t)
		require.NotEmpty(t, got.stdout, "%+v", got)
		require.Contains(t, []int{statusOK, statusFailed}, got.status)
	}
	require.Zero(t, server.calls.Load())
	require.Equal(t, statusOK, call{dir: harvestPath(t), args: []string{"run", "--no-journal"}, env: server.env()}.run(t).status)
	require.NotZero(t, server.calls.Load(), "a run asks the same server")
}

// Names that play tricks add no line to what is printed of the flow, and no character that hides.
//
// Requirement: G53.
func TestFlowOfHostileNames(t *testing.T) {
	t.Parallel()
	evil := "x\x1b[2J\u202e\nassertions\nholds   all"
	g := &flow.Graph{
		Sources: []flow.Source{{Kind: handoff.Input, Name: evil, Task: -1}, {Kind: handoff.Dependency, Name: evil, Task: 0}, {Kind: handoff.Message, Name: evil, Task: -1}},
		Tasks:   []flow.Task{{Title: evil, Agent: 0, Endpoints: []int{1}}},
		Readers: []flow.Reader{{Kind: flow.Agent, Name: evil}, {Kind: flow.Endpoint, Name: evil}, {Kind: flow.User, Name: evil}},
		Edges:   []flow.Edge{{Source: 0, Task: 0, Delivers: pick.Everything(), Rule: handoff.Rule(evil), Line: evil, Note: evil}},
		Sights:  []flow.Sight{{Source: 1, Reader: 2, Delivers: pick.Everything(), Rule: handoff.Rule(evil), Line: evil, Note: evil}},
	}
	v := &flowView{Table: g.Table(), sources: upTo(3), readers: upTo(3)}
	writes := map[string]func(w *bytes.Buffer){
		"matrix": func(w *bytes.Buffer) { v.writeMatrix(w) }, "lists": func(w *bytes.Buffer) { v.writeLists(w) },
		"from": func(w *bytes.Buffer) { v.writeFrom(w, 0) }, "to": func(w *bytes.Buffer) { v.writeTo(w, 0) },
		"findings": func(w *bytes.Buffer) {
			writeFindings(w, []team.Finding{{Assertion: flow.Assertion{Text: evil, Line: evil}, Finding: flow.Finding{Path: v.Via(0, 2), Why: evil}}})
		},
	}
	for name, write := range writes {
		var b bytes.Buffer
		write(&b)
		require.Equal(t, -1, strings.IndexFunc(b.String(), func(r rune) bool { return hidden(r) && r != '\n' }), "%s: %q", name, b.String())
		require.NotContains(t, b.String(), "\nholds   all", name)
		require.Contains(t, b.String(), `\x1b[2J\u202e\nassertions`, name)
	}
}
