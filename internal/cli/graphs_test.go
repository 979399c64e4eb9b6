package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// sketch writes a graph as lines of text, without coordinates: nodes with their layers, then edges.
func sketch(d *rungraph.Document) string {
	var b strings.Builder
	titles := map[string]string{}
	for _, n := range d.Nodes {
		text := n.Title
		if n.Name != "" {
			text += " = " + n.Name
		}
		titles[n.ID] = n.Title
		fmt.Fprintf(&b, "%d %s %s", n.Layer, n.Kind, text)
		if n.Agent != "" {
			fmt.Fprintf(&b, " by %s", n.Agent)
		}
		if n.Label != nil {
			fmt.Fprintf(&b, ", %s", n.Label)
		}
		if strings.HasPrefix(n.ID, "fold:") {
			fmt.Fprintf(&b, ", %d of %d, %d members", n.Count, n.Most, len(n.Members))
		}
		if n.Fold != "" {
			fmt.Fprintf(&b, ", in %s", n.Fold)
		}
		b.WriteString("\n")
	}
	for _, e := range d.Edges {
		fmt.Fprintf(&b, "%s -> %s, %s\n", titles[e.From], titles[e.To], e.Kind)
	}
	return b.String()
}

// requireDrawn checks that a drawing is one: no nodes overlap, and lines go from node to node.
func requireDrawn(t *testing.T, d *rungraph.Document) {
	t.Helper()
	at := map[string]*rungraph.Node{}
	for i, n := range d.Nodes {
		require.NotContains(t, at, n.ID)
		at[n.ID] = n
		require.True(t, n.X >= 0 && n.Y >= 0 && n.X+n.W <= d.Width+1 && n.Y+n.H <= d.Height, "%s", n.ID)
		for _, o := range d.Nodes[:i] {
			require.True(t, n.X+n.W < o.X || o.X+o.W < n.X || n.Y+n.H < o.Y || o.Y+o.H < n.Y, "%s overlaps %s", n.ID, o.ID)
		}
	}
	for _, e := range d.Edges {
		from, to := at[e.From], at[e.To]
		require.NotNil(t, from, e.From)
		require.NotNil(t, to, e.To)
		require.Equal(t, [2]int{from.X + from.W/2, from.Y + from.H}, e.Points[0])
		require.Equal(t, [2]int{to.X + to.W/2, to.Y}, e.Points[len(e.Points)-1])
	}
}

func TestGraphsOfRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, example string
		recorded      bool // without the plan
		expand        []string
	}{
		{name: "claims", example: "claims"},
		{name: "claims-recorded", example: "claims", recorded: true},
		{name: "loop", example: "patterns/evaluator-optimizer"},
		{name: "loop-recorded", example: "patterns/evaluator-optimizer", recorded: true},
		{name: "loop-expanded", example: "patterns/evaluator-optimizer", expand: []string{"Notice"}},
		{name: "list", example: "patterns/map-reduce"},
		{name: "list-expanded", example: "patterns/map-reduce", expand: []string{"Search", "unknown"}},
		{name: "list-names", example: "patterns/lead-scoring", expand: []string{"Score", "Mails"}},
		{name: "list-recorded", example: "patterns/lead-scoring", recorded: true},
		{name: "coordinator", example: "patterns/orchestrator-workers"},
		{name: "coordinator-recorded", example: "patterns/orchestrator-workers", recorded: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			docs := documentsIn(t, runOf(t, tt.example))
			k := docs.load("")
			var p *engine.Plan
			if !tt.recorded {
				p = docs.plan(k)
			}
			d := rungraph.New(k, p, tt.expand)
			requireDrawn(t, d)
			require.Equal(t, d, rungraph.New(k, p, tt.expand), "equal runs have equal graphs")
			clitest.RequireGolden(t, "testdata/graph-"+tt.name+".txt", sketch(d))
		})
	}
}

// nestedSpec has a loop in a list, a list in a loop, and a loop in a loop.
const nestedSpec = `
name: nested
model: m
agents: [{name: solo, systemPrompt: You answer.}]
inputs: {names: {text: '["ann", "bob"]'}}
tasks:
  - title: Letters
    forEach:
      input: names
      maxItems: 5
      output: Letter
      tasks:
        - title: Letter
          repeat:
            maxRounds: 3
            until: {task: Check, path: /ok, equals: true}
            output: Draft
            tasks:
              - {title: Draft, assignee: solo, uses: [item], description: Write.}
              - {title: Check, assignee: solo, dependsOn: [Draft], description: Check., outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
  - title: Outer
    repeat:
      maxRounds: 2
      onRepeat: continue
      until: {task: Judge, path: /ok, equals: true}
      output: Inner
      tasks:
        - title: Inner
          repeat:
            maxRounds: 2
            onRepeat: continue
            until: {task: Try, path: /ok, equals: true}
            output: Try
            tasks:
              - {title: Try, assignee: solo, description: Try., outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
        - title: Each
          assignee: solo
          description: Look at one.
          forEach: {input: names, maxItems: 5, as: name}
        - {title: Judge, assignee: solo, dependsOn: [Inner, {each: Each}], description: Judge., outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}
  - {title: End, assignee: solo, dependsOn: [Outer, {each: Letters}], description: End.}
`

const nestedScript = `
replies:
  - {task: Draft, text: Dear all.}
  - {task: Check, text: '{"ok": true}'}
  - {task: Try, text: '{"ok": true}'}
  - {task: Each, text: Seen.}
  - {task: Judge, text: '{"ok": true}'}
  - {task: End, text: Done.}
`

func TestNestedLoopsAndListsAreFoldedFromOutside(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": nestedSpec, "script.yaml": nestedScript})
	got := offlineRun(t, call{dir: dir}, "--script", "script.yaml")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	docs := documentsIn(t, dir)
	k := docs.load("")
	p := docs.plan(k)
	for i, expand := range [][]string{nil, {"Letter"}, {"Letter", "Letter[1]"}, {"Outer"}, {"Outer", "Inner#1", "Each#1"}, {"Letter[1]", "Each#1"}} {
		d := rungraph.New(k, p, expand)
		requireDrawn(t, d)
		clitest.RequireGolden(t, fmt.Sprintf("testdata/graph-nested-%d.txt", i), sketch(d))
	}
	for _, recorded := range [][]string{nil, {"Draft", "Check"}} {
		requireDrawn(t, rungraph.New(k, nil, recorded))
	}
}

// withoutEnd returns a run without its end, and without what it did for some tasks.
func withoutEnd(k *journals.StoredRun, leaveOut func(title string) bool) *journals.StoredRun {
	h := k.Whole
	h.End, h.Log = nil, slices.DeleteFunc(slices.Clone(h.Log), func(e record.Entry) bool {
		about := func(id task.ID) bool { return leaveOut != nil && k.ByID[id] != nil && leaveOut(k.ByID[id].Title) }
		return e.Asked != nil && about(e.Asked.Task) || e.Turn != nil && about(e.Turn.Task) || e.Exchange != nil && about(e.Exchange.Task) || e.Event != nil && about(e.Event.Task)
	})
	return journals.NewStoredRun(k.Summary, k.Trace, &journal.Stored{Info: k.Info, History: h}, k.Now)
}

// While a run works, a fold says how many there may be; the items of a list are counted once it is there.
func TestFoldsOfARunThatWorks(t *testing.T) {
	t.Parallel()
	docs := documentsIn(t, runOf(t, "patterns/map-reduce"))
	k := docs.load("")
	p := docs.plan(k)
	fold := func() *rungraph.Node {
		for _, n := range rungraph.New(k, p, nil).Nodes {
			if n.ID == "fold:Search" {
				return n
			}
		}
		return nil
	}
	require.Equal(t, []int{3, 0}, []int{fold().Count, fold().Most})
	k = withoutEnd(k, nil)
	require.Equal(t, []int{3, 10}, []int{fold().Count, fold().Most})
	k = withoutEnd(k, func(title string) bool { return strings.HasPrefix(title, "Search[") })
	require.Equal(t, []int{0, 10, 10}, []int{fold().Count, fold().Most, len(fold().Members)})
	for _, s := range k.Tasks {
		if s.Title == "Search[9]" {
			s.Status, s.Ended.Reason = task.NotNeeded, engine.WhyLeftOut
		}
	}
	require.Equal(t, []int{9, 10, 9}, []int{fold().Count, fold().Most, len(fold().Members)})
}

// Every task and step of a run is in its graph once, folded or not.
func TestGraphsHaveEveryTask(t *testing.T) {
	t.Parallel()
	for _, example := range exampleSpecs(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, example)
			offlineRun(t, call{dir: dir})
			docs := documentsIn(t, dir)
			k := docs.load("")
			p, err := restored.Plan(t.Context(), docs.con, docs.flags, &k.Info, &k.History, "")
			require.NoError(t, err)
			var want, got []string
			for _, t := range k.Tasks {
				want = append(want, string(t.ID))
			}
			d := rungraph.New(k, p, nil)
			requireDrawn(t, d)
			for _, n := range d.Nodes {
				switch {
				case n.Kind == "input":
				case len(n.Members) > 0:
					for _, id := range n.Members {
						got = append(got, string(id))
					}
				default:
					got = append(got, n.ID)
				}
			}
			require.ElementsMatch(t, want, got)
		})
	}
}
