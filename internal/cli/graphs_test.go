package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/engine"
	"github.com/stretchr/testify/require"
)

// sketch writes a graph as lines of text: nodes, edges and folds.
func sketch(d *rungraph.Document) string {
	var b strings.Builder
	titles := map[string]string{}
	for _, n := range d.Nodes {
		text := n.Title
		if n.Name != "" {
			text += " = " + n.Name
		}
		titles[n.ID] = n.Title
		fmt.Fprintf(&b, "%s %s", n.Kind, text)
		if n.Agent != "" {
			fmt.Fprintf(&b, " by %s", n.Agent)
		}
		if n.Label != nil {
			fmt.Fprintf(&b, ", %s", n.Label)
		}
		for _, f := range n.Folds {
			fmt.Fprintf(&b, ", %d of %s", f.Number, f.Fold)
		}
		b.WriteString("\n")
	}
	for _, e := range d.Edges {
		fmt.Fprintf(&b, "%s -> %s, %s\n", titles[e.From], titles[e.To], e.Kind)
	}
	for _, f := range d.Folds {
		fmt.Fprintf(&b, "fold %s: %s, at most %d\n", f.Title, f.Kind, f.Most)
	}
	return b.String()
}

// requireGraph checks that nodes and folds are there once, and that edges and parts name some that exist.
func requireGraph(t *testing.T, d *rungraph.Document) {
	t.Helper()
	nodes, folds := map[string]bool{}, map[string]bool{}
	for _, f := range d.Folds {
		require.NotContains(t, folds, f.Title)
		folds[f.Title] = true
	}
	for _, n := range d.Nodes {
		require.NotContains(t, nodes, n.ID)
		nodes[n.ID] = true
		for _, p := range n.Folds {
			require.Contains(t, folds, p.Fold)
		}
	}
	for _, e := range d.Edges {
		require.Contains(t, nodes, e.From)
		require.Contains(t, nodes, e.To)
	}
}

func TestGraphsOfRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, example string
		recorded      bool // without the plan
	}{
		{name: "claims", example: "claims"},
		{name: "claims-recorded", example: "claims", recorded: true},
		{name: "loop", example: "patterns/evaluator-optimizer"},
		{name: "loop-recorded", example: "patterns/evaluator-optimizer", recorded: true},
		{name: "list", example: "patterns/map-reduce"},
		{name: "list-names", example: "patterns/lead-scoring"},
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
			d := rungraph.New(k, p)
			requireGraph(t, d)
			require.Equal(t, d, rungraph.New(k, p), "equal runs have equal graphs")
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
	d := rungraph.New(k, docs.plan(k))
	requireGraph(t, d)
	clitest.RequireGolden(t, "testdata/graph-nested.txt", sketch(d))
	requireGraph(t, rungraph.New(k, nil))
}

// Items that a run does not have are in no fold.
func TestGraphsLackItemsThatTheRunDoesNotHave(t *testing.T) {
	t.Parallel()
	docs := documentsIn(t, runOf(t, "patterns/map-reduce"))
	k := docs.load("")
	n := 0
	for _, node := range rungraph.New(k, docs.plan(k)).Nodes { // the list may have up to 10 items
		if slices.ContainsFunc(node.Folds, func(p rungraph.Part) bool { return p.Fold == "Search" }) {
			n++
		}
	}
	require.Equal(t, 3, n)
}

// Every task and step of a run is in its graph once.
func TestGraphsHaveEveryTask(t *testing.T) {
	t.Parallel()
	for _, example := range exampleSpecs(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, example)
			offlineRun(t, call{dir: dir})
			docs := documentsIn(t, dir)
			k := docs.load("")
			p, err := restored.Plan(t.Context(), docs.con, docs.flags, &k.Info, &k.History)
			require.NoError(t, err)
			var want, got []string
			for _, t := range k.Tasks {
				want = append(want, string(t.ID))
			}
			d := rungraph.New(k, p)
			requireGraph(t, d)
			for _, n := range d.Nodes {
				if n.Kind != "input" {
					got = append(got, n.ID)
				}
			}
			require.ElementsMatch(t, want, got)
		})
	}
}
