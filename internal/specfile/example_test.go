package specfile_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// The plan for a goal is saved as a spec of its own, to be read, corrected and
// run as it stands.
func ExampleFile_WithPlan() {
	file, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(`
goal: Tell what the report says.
apiKey: ${OPENAI_API_KEY}
inputs: {report: {text: Sales rose by 4 %.}}
agents: [{name: worker, model: any}]
`), Lookup: func(name string) (string, bool) { return "the key", name == "OPENAI_API_KEY" }})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A real program asks for them: plan.Specs() of the team's PlanTeam.
	tasks := []task.Spec{{Title: "Read", Assignee: "worker", Uses: []task.Use{{Name: "report"}}, Description: "Say what happened."}}
	text, _, err := file.WithPlan(*file.Goal, tasks, ".")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(text))
	// Output:
	// name: stdin
	// apiKey: "${OPENAI_API_KEY}"
	// goal: Tell what the report says.
	// inputs:
	//   report: {text: "Sales rose by 4 %."}
	// agents:
	//   - {name: worker, model: any}
	// tasks:
	//   - title: Read
	//     assignee: worker
	//     uses: [report]
	//     description: Say what happened.
}

// Editors complete and check specs by their schema.
func ExampleJSONSchema() {
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(specfile.JSONSchema(), &schema); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Properties["maxConcurrency"].Description)
	// Output: how many tasks run at the same time; 5 unless set
}
