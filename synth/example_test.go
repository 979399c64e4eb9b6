package synth_test

import (
	"errors"
	"fmt"

	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

func ExampleParsePlan() {
	specs, err := synth.ParsePlan("Here is the plan:\n```json\n"+`[
		{"title": "Read claim", "description": "List what was damaged, and when.", "assignee": "intake", "uses": ["claim"]},
		{"title": "Write letter", "description": "Tell the customer what is covered.", "dependsOn": ["Read claim"]}
	]`+"\n```", synth.Rules{Agents: []string{"intake", "letters"}, Inputs: []string{"claim"}, MayGrant: synth.Grants{Inputs: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range specs {
		fmt.Printf("%s: %d inputs, %d dependencies\n", s.Title, len(s.Uses), len(s.DependsOn))
	}
	// Output:
	// Read claim: 1 inputs, 0 dependencies
	// Write letter: 0 inputs, 1 dependencies
}

// A plan that cannot be run goes back to the coordinator with everything that
// is wrong with it.
func ExampleFaults() {
	_, err := synth.ParsePlan(`[
		{"title": "Read claim", "description": "List what was damaged.", "agent": "intake", "uses": ["claim"]},
		{"title": "Write letter", "assignee": "leters", "dependsOn": ["Raed claim"]}
	]`, synth.Rules{Agents: []string{"intake", "letters"}})
	if problems, ok := errors.AsType[task.Problems](err); ok {
		fmt.Println(synth.Faults(problems))
	}
	// Output:
	// - task 1 "Read claim": uses: a grant that this plan may not make: remove it, and write what the agent must know into the description
	// - task 1 "Read claim": unknown key "agent": write assignee
	// - task 2 "Write letter": assignee: unknown agent "leters": did you mean "letters"?
	// - task 2 "Write letter": description: it is missing
	// - task 2 "Write letter": dependsOn[0]: no task "Raed claim": did you mean "Read claim"?
}

func ExampleSimple() {
	fmt.Println(synth.Simple("What is the capital of France?"))
	fmt.Println(synth.Simple("Research the market and write a report."))
	// Output:
	// true
	// false
}
