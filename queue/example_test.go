package queue_test

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/task"
)

func tasks(now time.Time) []task.Task {
	all, err := task.Resolve([]task.Spec{
		{Title: "Extract", Description: "List the facts."},
		{Title: "Score", Description: "Score the risk.", DependsOn: task.On("Extract")},
		{Title: "Write", Description: "Tell the customer.", DependsOn: task.On("Score")},
	}, now)
	if err != nil {
		panic(err)
	}
	return all
}

func Example() {
	now := time.Now()
	q, err := queue.New(tasks(now)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	q.On("task:ready", func(t task.Task) { fmt.Println("ready:", t.Title) })
	for t, ok := q.Next(""); ok; t, ok = q.Next("") {
		_ = q.Start(t.ID, now)
		if t.Title == "Score" {
			_ = q.Fail(t.ID, "no answer", now)
		} else {
			_ = q.Complete(t.ID, nil, now)
		}
	}
	for _, t := range q.List() {
		fmt.Printf("%s: %s %q\n", t.Title, t.Status, q.Reason(t.ID))
	}
	fmt.Println(q.IsComplete(), q.Progress()[task.Failed], len(q.List(task.Completed)))
	// Output:
	// ready: Score
	// Extract: completed ""
	// Score: failed "no answer"
	// Write: failed "Cancelled: dependency \"938a8b92-a799-5f1e-a5c9-a8ca4889bcec\" failed."
	// true 2 1
}

func ExampleQueue_Snapshot() {
	now := time.Now()
	q, _ := queue.New(tasks(now)...)
	first, _ := q.Next("")
	_ = q.Start(first.ID, now)
	snapshot, err := q.Snapshot()
	if err != nil {
		fmt.Println(err)
		return
	}

	restored, err := queue.FromSnapshot(snapshot, envelope.Header{})
	if err != nil {
		fmt.Println(err)
		return
	}
	again, _ := restored.Get(first.ID)
	fmt.Println(again.Title, again.Status)
	// Output: Extract pending
}
