package spec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A program reads a spec, says what does the work for each agent, and runs it.
// Whatever is wrong comes back with its place in the file.
func Example() {
	file, err := spec.Load(spec.Options{Path: "-", Stdin: strings.NewReader(`
agents: [{name: worker, model: any}]
inputs: {report: {text: Sales rose by 4 %.}}
tasks:
  - {title: Read, assignee: worker, uses: [report], description: Say what happened.}
  - {title: Tell, assignee: worker, dependsOn: [Read], description: Tell it.}
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A real program returns agent.New(model, …) with a model for a.Connection.
	echo := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: p.Sections()[0].Text}, nil
	}
	tm, err := file.Build(func(a spec.Agent) (team.Agent, error) { return team.AgentFunc(echo), nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), file.Tasks, &file.Run)
	if err != nil {
		fmt.Println(file.Locate(err))
		return
	}
	fmt.Println(res.Output)
	// Output: Sales rose by 4 %.
}

// The plan for a goal is saved as a spec of its own, to be read, mended and
// run as it stands.
func ExampleFile_WithPlan() {
	file, err := spec.Load(spec.Options{Path: "-", Stdin: strings.NewReader(`
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
	if err := json.Unmarshal(spec.JSONSchema(), &schema); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Properties["maxConcurrency"].Description)
	// Output: how many tasks run at the same time; 5 unless set
}
