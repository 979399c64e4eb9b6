package assign_test

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func ExampleTasks() {
	g, err := graph.Resolve([]task.Spec{
		{Title: "Collect sources", Description: "Search the archive for the strike of 1926."},
		{Title: "Write the story", Description: "Write 800 words.", DependsOn: task.On("collect sources")},
		{Title: "Check the numbers", Description: "Recompute the table.", Requires: &task.Requires{Capabilities: []string{"statistics"}}},
	}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	agents := []assign.Agent{
		{Name: "author", Description: "Writes stories and portraits"},
		{Name: "archivist", Description: "Searches archives and registers"},
		{Name: "counter", Capabilities: []string{"Statistics", "charts"}},
	}
	chosen, err := assign.Tasks(g, make([]label.Classification, g.Len()), agents, assign.CapabilityMatch)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, k := range chosen {
		fmt.Printf("%s: %s\n", g.Task(i).Title, agents[k].Name)
	}
	// Output:
	// Collect sources: archivist
	// Write the story: author
	// Check the numbers: counter
}

func ExampleTasks_nobody() {
	g, err := graph.Resolve([]task.Spec{{Title: "Read the file", Description: "List the sums."}}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = assign.Tasks(g, []label.Classification{label.Confidential}, []assign.Agent{{Name: "writer", Produces: label.Secret}}, "")
	fmt.Println(err)
	// Output:
	// task "Read the file": no agent is cleared for confidential: the highest is internal, "writer": set accepts: confidential on an agent, or remove the confidential context
}

func ExampleBest() {
	agents := []assign.Agent{{Name: "frontend", Capabilities: []string{"css", "react"}}, {Name: "backend", Capabilities: []string{"sql", "go"}}}
	best, ok := assign.Best("Why is this SQL query slow?", agents, label.Internal)
	fmt.Println(agents[best].Name, ok)
	// Output: backend true
}
