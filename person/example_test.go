package person_test

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A program that answers from an inbox: the run is suspended until the answer is there.
func Example() {
	inbox := map[task.ID]string{}
	editor := person.New(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		answer, ok := inbox[p.Receipt().Task]
		if !ok {
			return agent.Reply{}, person.ErrLater // show p.Text() to the person
		}
		return agent.Reply{Text: answer}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "editor", Agent: editor}}})
	if err != nil {
		panic(err)
	}
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the process
	tasks := []task.Spec{{Title: "Approve", Description: "May the letter be sent?", Assignee: "editor"}}
	res, err := tm.RunTasks(context.Background(), tasks, &team.RunOptions{RunID: "r1", Journal: j})
	fmt.Println(res.Status, res.WaitingFor("Approve"), err)

	inbox[task.NewID("Approve")] = "yes"
	res, err = tm.Resume(context.Background(), "r1", &team.RunOptions{Tasks: tasks, Journal: j})
	fmt.Println(res.Status, res.Output, err)
	// Output:
	// suspended editor <nil>
	// ok yes <nil>
}
