package task_test

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/task"
)

func ExampleResolve() {
	g, err := task.Resolve([]task.Spec{
		{Title: "Write letter", Description: "Tell the customer.", DependsOn: task.On("score fraud")},
		{Title: "Score fraud", Description: "Score the risk between 0 and 1."},
	}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range g.Order() {
		fmt.Println(g.Task(int(i)).Title)
	}
	// Output:
	// Score fraud
	// Write letter
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
