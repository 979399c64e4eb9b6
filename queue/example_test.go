package queue_test

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/task"
)

func ExampleQueue() {
	now := time.Now()
	g, err := graph.Resolve([]task.Spec{
		{Title: "Extract", Description: "List the facts."},
		{Title: "Score", Description: "Score the risk.", DependsOn: task.On("Extract")},
		{Title: "Write", Description: "Tell the customer.", DependsOn: task.On("Score")},
	}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	q := queue.New(g)
	for {
		i, ok := q.NextReady()
		if !ok {
			break
		}
		_ = q.StartIndex(i, now)
		if g.Task(i).Title == "Score" {
			_ = q.FailIndex(i, "no answer", now)
		} else {
			_ = q.CompleteIndex(i, nil, now)
		}
	}
	for _, t := range q.List() {
		root, _ := q.Root(t.ID)
		fmt.Println(t.Title, t.Status, root == task.NewID("Score"))
	}
	// Output:
	// Extract completed false
	// Score failed true
	// Write failed true
}
