package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// governed is a spec with every kind of rule, and its plan, in which its last
// assertion is broken.
func governed(t *testing.T) (*specfile.File, *engine.Plan) {
	t.Helper()
	con, _, _ := clitest.Console(t)
	con.WorkDir = "" // the spec is here
	s := &source.SpecFlags{Path: "testdata/governed"}
	file, err := s.Load(t.Context(), con)
	require.NoError(t, err)
	plan, err := checkedPlan(t.Context(), con, file)
	require.NoError(t, err)
	return file, plan
}

// shown prints a plan in a form, and returns the exit status.
func shown(t *testing.T, form string, q flowFlags, file *specfile.File, plan *engine.Plan) (stdout, stderr string, status int) {
	t.Helper()
	con, out, complaints := clitest.Console(t)
	con.Settings.Output = form
	require.NoError(t, printPlan(t.Context(), con, file, plan, q))
	status = con.Report(reportBroken(con, plan.Findings, Drawings[form] == nil))
	return out.String(), complaints.String(), status
}

const untrue = "input claim never derives into statistics (testdata/governed/team.yaml:63)"

func TestPlanShowsPolicyEffects(t *testing.T) {
	t.Parallel()
	file, plan := governed(t)
	for form, golden := range map[string]string{"text": "governed.golden", "dot": "governed.dot.golden", "mermaid": "governed.mermaid.golden"} {
		text, stderr, status := shown(t, form, flowFlags{}, file, plan)
		clitest.RequireGolden(t, "testdata/"+golden, text)
		require.Equal(t, exit.StatusFailed, status)
		require.Contains(t, stderr, "runteam: 1 of 5 assertions broken\n")
		require.Equal(t, Drawings[form] != nil, strings.Contains(stderr, "BROKEN  "+untrue+"\n"), "a drawing on stdout has no assertions: %s", stderr)
	}
}

func TestPlanFromAndTo(t *testing.T) {
	t.Parallel()
	file, plan := governed(t)
	for name, q := range map[string]flowFlags{
		"from": {from: "claim"}, "from.task": {from: "task Score the risk"}, "to": {to: "letters"}, "fromto": {from: `task "Extract the facts"`, to: "statistics"},
	} {
		text, _, status := shown(t, "text", q, file, plan)
		clitest.RequireGolden(t, "testdata/governed."+name+".golden", text)
		require.Equal(t, exit.StatusFailed, status, "the assertions are checked even for a part of the flow")
	}
}

// The JSON has every cell of the table.
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
		Assertions []engine.Finding
	}
	read := func(q flowFlags) (d document) {
		text, _, status := shown(t, "json", q, file, plan)
		require.Equal(t, exit.StatusFailed, status)
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		return d
	}
	d := read(flowFlags{})
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

	d = read(flowFlags{from: "claim", to: "statistics"})
	require.Equal(t, []string{"statistics"}, []string{d.Flow.Readers[0].Name})
	require.Len(t, d.Flow.Sources, 1)
	require.Equal(t, []flow.Reach{flow.Derived}, d.Flow.Sources[0].Reach)
	require.Equal(t, []flow.Path{table.Via(0, 4)}, d.Flow.Sources[0].Ways)
}

// Hostile names add no line to the printed flow, and no hidden character.
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
	v := &flowView{Table: g.Table(), sources: indices(3), readers: indices(3)}
	writes := map[string]func(w *bytes.Buffer){
		"matrix": func(w *bytes.Buffer) { v.writeMatrix(w) }, "lists": func(w *bytes.Buffer) { v.writeLists(w) },
		"from": func(w *bytes.Buffer) { v.writeFrom(w, 0) }, "to": func(w *bytes.Buffer) { v.writeTo(w, 0) },
		"findings": func(w *bytes.Buffer) {
			writeFindings(w, []engine.Finding{{Assertion: flow.Assertion{Text: evil, Line: evil}, Finding: flow.Finding{Path: v.Via(0, 2), Why: evil}}})
		},
	}
	for name, write := range writes {
		var b bytes.Buffer
		write(&b)
		require.Equal(t, -1, strings.IndexFunc(b.String(), func(r rune) bool { return naming.Hidden(r) && r != '\n' }), "%s: %q", name, b.String())
		require.NotContains(t, b.String(), "\nholds   all", name)
		require.Contains(t, b.String(), `\x1b[2J\u202e\nassertions`, name)
	}
}
