package flow_test

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
)

// claims is a graph of three tasks in a row: facts are taken from a claim, scored,
// and the customer is written to, who may know the score.
func claims() *flow.Graph {
	facts, _ := pick.Everything().Only("/facts/**")
	score, _ := pick.Everything().Only("/fraud_score")
	has := func(names ...string) func(string) flow.Answer {
		return func(name string) flow.Answer {
			if slices.Contains(names, name) {
				return flow.Yes
			}
			return flow.No
		}
	}
	return &flow.Graph{
		Readers: []flow.Reader{
			{Kind: flow.Agent, Name: "intake"}, {Kind: flow.Agent, Name: "fraud"}, {Kind: flow.Agent, Name: "letters"}, {Kind: flow.User, Name: "user"},
		},
		Tasks: []flow.Task{
			{Title: "Extract facts", Key: "facts", Agent: 0}, {Title: "Score fraud", Key: "score", Agent: 1}, {Title: "Write letter", Key: "letter", Agent: 2},
		},
		Sources: []flow.Source{
			{Kind: handoff.Input, Name: "claim", Task: -1},
			{Kind: handoff.Dependency, Name: "Extract facts", Task: 0, Names: has("facts", "internal_notes"), Members: []string{"facts", "internal_notes"}},
			{Kind: handoff.Dependency, Name: "Score fraud", Task: 1, Names: has("fraud_score"), Members: []string{"fraud_score"}},
			{Kind: handoff.Dependency, Name: "Write letter", Task: 2},
		},
		Edges: []flow.Edge{
			{Source: 0, Task: 0, Delivers: pick.Everything(), Rule: gate.RuleUses, Line: "team.yaml:17"},
			{Source: 1, Task: 1, Delivers: facts, Rule: "intake-to-fraud", Line: "team.yaml:31"},
			{Source: 2, Task: 2, Delivers: score, Rule: gate.RuleDependsOn, Line: "team.yaml:27"},
		},
		Sights: []flow.Sight{{Source: 3, Reader: 3, Delivers: pick.Everything(), Rule: gate.RuleResult}},
	}
}

func ExampleGraph_Table() {
	g := claims()
	table := g.Table()
	for i, source := range g.Sources {
		fmt.Println(source.Name, table.Row(i))
	}
	fmt.Println(table.Via(0, 3))
	// Output:
	// claim [whole derived derived derived]
	// Extract facts [never part derived derived]
	// Score fraud [never never part derived]
	// Write letter [never never never whole]
	// input "claim" → task "Extract facts" → task "Score fraud" → task "Write letter" → user
}

func ExampleTable_Check() {
	table := claims().Table()
	for _, text := range []string{
		"internal_notes never reaches letters",
		"internal_notes never derives into letters",
		"internl_notes never reaches letters",
	} {
		a, err := flow.ParseAssertion(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		f, err := table.Check(a)
		switch {
		case err != nil:
			fmt.Println(err)
		case f.Holds:
			fmt.Println("holds:", text)
		default:
			fmt.Println("fails:", text)
			fmt.Println(" ", f.Path)
			fmt.Println(" ", f.Why)
		}
	}
	// Output:
	// holds: internal_notes never reaches letters
	// fails: internal_notes never derives into letters
	//   result of "Extract facts" → task "Score fraud" → task "Write letter" → letters
	//   letters receives what task "Score fraud" wrote, which may reveal property "internal_notes" of result of "Extract facts", in task "Write letter" (dependsOn, team.yaml:27)
	// assertion "internl_notes never reaches letters": no input and no result can have a property "internl_notes": did you mean "internal_notes"?
}
