package planning_test

import (
	"fmt"

	"github.com/runteam/runteam/internal/planning"
)

func ExampleManifest() {
	roster, err := planning.Manifest([]planning.Agent{
		{Name: "intake", Model: "gpt-4o-mini", SystemPrompt: "You read claims.\nList facts only.", Capabilities: []string{"insurance"}},
		{Name: "letters", Description: "Writes to customers."},
	})
	fmt.Println(roster.Canonical(), err)
	// Output:
	// [{"capabilities":["insurance"],"model":"gpt-4o-mini","name":"intake","roleSummary":"You read claims."},{"name":"letters","roleSummary":"Writes to customers."}] <nil>
}

func ExampleParts() {
	fmt.Println(planning.Parts([]int{40, 50, 30, 200, 10}, 100))
	// Output: [[0 2] [2 3] [3 4] [4 5]]
}
