package handoff_test

import (
	"errors"
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// The letters agent receives only the risk level of a fraud analysis, and no agent
// receives internal notes.
func ExamplePolicy() {
	policy := handoff.Policy{
		Default: handoff.Full,
		Rules: []handoff.PairRule{
			{From: "fraud", To: "letters", Allow: []task.Path{"/risk_level"}},
			{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"internal_notes"}},
		},
		Declassify: []handoff.Declassifier{
			{Entry: handoff.Entry{Name: "score-to-letters", From: "fraud", To: "letters", Reason: "one of three words"}, Paths: []task.Path{"/risk_level"}, LowerTo: label.Internal},
		},
	}
	for _, rule := range policy.Rules {
		fmt.Printf("%s to %s: allow %v, block %v\n", rule.From, rule.To, rule.Allow, rule.Block)
	}
	// Output:
	// fraud to letters: allow [/risk_level], block []
	// * to *: allow [], block [internal_notes]
}

// The error of a task whose context was withheld says which rule decided.
func ExampleWithheldError() {
	err := fmt.Errorf("task %q: %w", "Write the letter", &handoff.WithheldError{
		Kind: handoff.Dependency, From: "fraud", Rule: "clearance", Reason: "clearance",
		Detail: `it is confidential, and "letters" may see internal`, Line: "team.yaml:31 dependsOn",
	})
	if held, ok := errors.AsType[*handoff.WithheldError](err); ok {
		fmt.Println(held.Rule, held.Reason, held.Line)
	}
	fmt.Println(err)
	// Output:
	// clearance clearance team.yaml:31 dependsOn
	// task "Write the letter": dependency from "fraud" is withheld by clearance: it is confidential, and "letters" may see internal (team.yaml:31 dependsOn)
}
