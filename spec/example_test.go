package spec_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/team"
)

// With Build(nil) the agents call the models that the file names. Here every
// agent is a Go function instead.
func Example() {
	file, err := spec.Load(spec.Options{Path: "-", Stdin: strings.NewReader(`
agents: [{name: worker, model: any}]
inputs: {report: {text: Sales rose by 4 %.}}
tasks:
  - {title: Read, assignee: worker, uses: [report], description: Say what happened.}
  - {title: Write, assignee: worker, dependsOn: [Read], description: Write it down.}
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	tm, err := file.Build(func(spec.Agent) (team.Agent, error) {
		return team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: p.Sections()[0].Text}, nil
		}), nil
	})
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

// Every problem has its place in the file.
func ExampleLoad() {
	_, err := spec.Load(spec.Options{Path: "-", Stdin: strings.NewReader(`agents:
  - name: writer
    modle: any
`)})
	fmt.Println(err)
	// Output:
	// -:3:5: agent "writer": unknown key "modle" in an agent
	//   2 |   - name: writer
	// > 3 |     modle: any
	//     |     ^
	//   hint: did you mean model?
}
