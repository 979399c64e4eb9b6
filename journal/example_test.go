package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A run that was interrupted is resumed: what had completed does not run again.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	j, err := journal.Open(filepath.Join(dir, "runs.db"), journal.Options{})
	if err != nil {
		panic(err)
	}
	defer j.Close()

	ctx, interrupt := context.WithCancel(context.Background())
	reads := team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		fmt.Println("called:", p.Receipt().Agent)
		return agent.Reply{Text: "4,711 kWh"}, nil
	})
	compares := team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		fmt.Println("called:", p.Receipt().Agent)
		interrupt() // as if the process were stopped here, the first time
		return agent.Reply{Text: "less than last year"}, ctx.Err()
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "reader", Agent: reads, Backend: team.Backend{Version: "1"}}, {Name: "analyst", Agent: compares, Backend: team.Backend{Version: "1"}}}})
	if err != nil {
		panic(err)
	}
	tasks := []task.Spec{
		{Title: "Read", Assignee: "reader", Description: "Read the meter."},
		{Title: "Compare", Assignee: "analyst", Description: "Compare it.", DependsOn: task.On("Read")},
	}

	res, err := tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "meter", Journal: j})
	fmt.Println(res.Status, errors.Is(err, context.Canceled))
	res, err = tm.Resume(context.Background(), "meter", &team.RunOptions{Tasks: tasks, Journal: j})
	fmt.Println(res.Status, res.Output, err)
	runs, err := j.Runs(context.Background())
	fmt.Println(runs[0].ID, runs[0].Status, err)
	// Output:
	// called: reader
	// called: analyst
	// cancelled true
	// called: analyst
	// ok less than last year <nil>
	// meter ok <nil>
}

// A program lists what people are asked, and answers: here a web form would be in between.
func ExampleJournal_Answer() {
	ctx := context.Background()
	editor := person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater })
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "editor", Agent: editor}}})
	if err != nil {
		panic(err)
	}
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the process
	tasks := []task.Spec{{
		Title: "Decide", Assignee: "editor", Description: "May the letter be sent?",
		OutputSchema: []byte(`{"enum":["send","stop"]}`),
	}}
	res, err := tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "letter", Journal: j})
	fmt.Println(res.Status, err)

	open, err := j.Questions(ctx)
	q := open[0]
	fmt.Println(q.Title, q.Agent, q.Schema, err)
	_, err = j.Answer(ctx, q.Run, q.ID, journal.Answer{By: "ann", Text: `"burn"`})
	fmt.Println(errors.Is(err, journal.ErrAnswerForm))
	_, err = j.Answer(ctx, q.Run, q.ID, journal.Answer{By: "ann", Text: `"send"`, Reason: "as discussed"})
	fmt.Println(err)
	_, err = j.Answer(ctx, q.Run, q.ID, journal.Answer{By: "bob", Text: `"stop"`})
	fmt.Println(errors.Is(err, journal.ErrAnswered))

	res, err = tm.Resume(ctx, "letter", &team.RunOptions{Tasks: tasks, Journal: j})
	fmt.Println(res.Status, res.Output, err)
	// Output:
	// suspended <nil>
	// Decide editor {"enum":["send","stop"]} <nil>
	// true
	// <nil>
	// true
	// ok "send" <nil>
}

// A run is canceled through its journal, as another process would do it.
func ExampleJournal_Steer() {
	ctx := context.Background()
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the process
	begun := make(chan struct{})
	waits := team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		close(begun)
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "reader", Agent: waits}}})
	if err != nil {
		panic(err)
	}
	cancel := steer.Command{Kind: steer.Cancel, By: "ann", Reason: "it is the wrong meter"}
	sent := make(chan error)
	go func() {
		<-begun
		sent <- j.Steer(ctx, "meter", cancel)
	}()
	tasks := []task.Spec{{Title: "Read", Assignee: "reader", Description: "Read the meter."}}
	res, _ := tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "meter", Journal: j})
	fmt.Println(res.Status, <-sent)
	err = j.Steer(ctx, "meter", cancel)
	fmt.Println(errors.Is(err, steer.ErrNotRunning))
	// Output:
	// cancelled <nil>
	// true
}
