package task_test

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/task"
)

func ExampleResolve() {
	tasks, err := task.Resolve([]task.Spec{
		{Title: "Write letter", Description: "Tell the customer.", DependsOn: task.On("score fraud")},
		{Title: "Score fraud", Description: "Score the risk between 0 and 1."},
	}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := task.Order(tasks)
	for _, id := range ids {
		fmt.Println(id)
	}
	fmt.Println(tasks[0].DependsOn[0].Task == string(task.NewID("Score fraud")), tasks[0].Status, err)
	// Output:
	// 625745af-e806-5853-881f-eb5ce7a28e26
	// 37f7fc6f-30e9-5edc-9973-c880375e9f2e
	// true pending <nil>
}

func ExampleResolve_problems() {
	_, err := task.Resolve([]task.Spec{
		{Title: "Score fraud", Description: "Score the risk.", DependsOn: task.On("Write letter")},
		{Title: "Write letter", DependsOn: task.On("Scroe fraud", "Score fraud")},
	}, time.Now())
	fmt.Println(err)
	// Output:
	// task "Score fraud": dependency cycle: Score fraud -> Write letter -> Score fraud: remove one of these dependencies
	// task "Write letter": description: it is empty: say what the agent must do
	// task "Write letter": dependsOn[0]: no task "Scroe fraud": did you mean "Score fraud"?
}
