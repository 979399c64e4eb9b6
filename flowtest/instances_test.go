package flowtest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
)

// drafts is a loop of up to three rounds whose result a publisher gets without the notes.
const drafts = `
agents: [{name: writer}, {name: editor}, {name: publisher}]
inputs: {facts: {text: facts}, style: {text: style}}
tasks:
  - title: Draft
    repeat:
      maxRounds: 3
      until: {task: Check, path: /valid, equals: true}
      output: Write
      onLimit: fail
      tasks:
        - title: Write
          key: write
          assignee: writer
          uses: [facts]
          description: d
          dependsOn: [{task: Check, round: previous, need: [/feedback], optional: true}]
          outputSchema: {type: object, required: [text, notes], properties: {text: {type: string}, notes: {type: string}}}
        - title: Check
          assignee: editor
          uses: [style]
          description: d
          dependsOn: [{task: Write, need: [/text]}]
          outputSchema: {type: object, required: [valid, feedback], properties: {valid: {type: boolean}, feedback: {type: string}}}
  - {title: Publish, assignee: publisher, description: d, dependsOn: [Draft]}
policy: {rules: [{from: writer, to: publisher, block: [/notes]}]}
`

// TestCanariesAreFollowedThroughLoops checks that a canary is followed from round to round, and
// through the result of the loop, which is that of its last round.
func TestCanariesAreFollowedThroughLoops(t *testing.T) {
	t.Parallel()
	requireFailure(t, failures(t, drafts, func(f *flowtest.Flow) {
		text, notes, feedback := f.PlantResult("Write", "/text"), f.PlantResult("write", "/notes"), f.PlantResult("Check", "/feedback")
		f.Reaches(text, "editor", "publisher", "user")
		f.Never(notes, "editor", "publisher")
		f.Reaches(feedback, "writer")
		f.Never(feedback, "publisher")
	}))
	requireFailure(t, failures(t, drafts, func(f *flowtest.Flow) {
		f.Careless()
		style := f.PlantInput("style")
		f.Reaches(style, "editor", "writer", "publisher") // by the feedback, and the draft that follows it
	}))
	requireFailure(t, failures(t, drafts, func(f *flowtest.Flow) {
		f.Never(f.PlantResult("Write", "/text"), "publisher")
	}), `never reaches publisher, but it is in the prompt of "Publish" (publisher)`, `result of "Write" → task "Publish" [-:25]`)
	requireFailure(t, failures(t, drafts, func(f *flowtest.Flow) { f.PlantResult("Draft", "/text") }), "a loop writes nothing itself")
	requireFailure(t, failures(t, drafts, func(f *flowtest.Flow) { f.PlantResult("Wrote", "/text") }), `unknown task "Wrote"; did you mean "Write"?`)
}

// TestLoopsRunAllTheirRounds checks that the stand-ins end a loop in its last round, and that each
// round is searched.
func TestLoopsRunAllTheirRounds(t *testing.T) {
	t.Parallel()
	leak := func(round int64) string {
		return failures(t, drafts, func(f *flowtest.Flow) {
			notes := f.PlantResult("Write", "/notes")
			f.Reaches(notes, "user")
			var drafts atomic.Int64
			f.Agent("writer", engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				text := "text"
				if drafts.Add(1) == round {
					text = notes.String()
				}
				return agent.Reply{Text: fmt.Sprintf(`{"text": %q, "notes": %q}`, text, notes)}, nil
			}))
		})
	}
	for _, round := range []int64{1, 3} {
		requireFailure(t, leak(round), fmt.Sprintf(`is in the prompt of "Check#%d" (editor): no edge of the spec delivers it there`, round))
	}
	require.Empty(t, leak(4))
}

// searches is a task for each item of a list, and one that reads all results.
const searches = `
agents: [{name: planner}, {name: searcher}, {name: writer}]
tasks:
  - title: Plan
    assignee: planner
    description: d
    outputSchema: {type: object, required: [reason, searches], properties: {reason: {type: string}, searches: {type: array, items: {type: object, properties: {query: {type: string}}, required: [query]}}}}
  - {title: Search, assignee: searcher, description: d, forEach: {task: Plan, path: /searches, maxItems: 5}}
  - {title: Report, assignee: writer, description: d, dependsOn: [{each: Search, optional: true}]}
`

// TestCanariesAreFollowedThroughLists checks that one item reaches the task that it is for, and
// nothing else of the result does.
func TestCanariesAreFollowedThroughLists(t *testing.T) {
	t.Parallel()
	require.Empty(t, failures(t, searches, func(f *flowtest.Flow) {
		reason, first, last := f.PlantResult("Plan", "/reason"), f.PlantResult("Plan", "/searches/0/query"), f.PlantResult("Plan", "/searches/2/query")
		f.Never(reason, "searcher", "writer")
		f.Reaches(first, "searcher", "writer")
		f.Reaches(last, "searcher", "writer")
		f.Reaches(f.PlantResult("Search", ""), "writer")
	}))
	requireFailure(t, failures(t, searches, func(f *flowtest.Flow) {
		f.Never(f.PlantResult("Plan", "/searches/*/query"), "searcher")
	}), `never reaches searcher, but it is in the prompt of "Search[`)
}

// TestItemsStayApart has an agent that remembers what it read for other items.
func TestItemsStayApart(t *testing.T) {
	t.Parallel()
	const chained = searches + "maxConcurrency: 1\n"
	text := strings.Replace(chained, "description: d, forEach", "description: d, memoryScope: all, forEach", 1)
	for _, tt := range []struct{ spec, want string }{
		{chained, "it may reach this task, but not this round or this item of a list"},
		{text, ""}, // they read the results of others in the shared memory
	} {
		got := failures(t, tt.spec, func(f *flowtest.Flow) {
			first := f.PlantResult("Plan", "/searches/0/query")
			f.Reaches(first, "searcher")
			if tt.want == "" {
				return
			}
			f.Agent("planner", engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				return agent.Reply{Text: fmt.Sprintf(`{"reason": "", "searches": [{"query": %q}, {"query": "again %s"}]}`, first, first)}, nil
			}))
		})
		if tt.want == "" {
			require.Empty(t, got)
			continue
		}
		requireFailure(t, got, `is in the prompt of "Search[2]" (searcher): `+tt.want)
	}
}
