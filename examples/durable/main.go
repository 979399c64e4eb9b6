// Command durable stops in the middle of a run and goes on with it: what
// completed before is not asked for again.
//
// Three tasks read one after the other. The first process, played here by a
// context that ends, dies while the second one is under way; another takes the
// run up from the journal. It needs no key and no network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func main() {
	dir, err := os.MkdirTemp("", "durable")
	if err == nil {
		defer os.RemoveAll(dir)
		err = run(context.Background(), filepath.Join(dir, "runs.db"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "durable:", err)
		os.Exit(1)
	}
}

var tasks = []task.Spec{
	{Title: "Measure", Assignee: "reader", Description: "Read the meter."},
	{Title: "Compare", Assignee: "reader", Description: "Compare it with last year.", DependsOn: task.On("Measure")},
	{Title: "Report", Assignee: "reader", Description: "Say what it means.", DependsOn: task.On("Compare")},
}

// run starts a run, loses it, and resumes it.
func run(ctx context.Context, path string, out io.Writer) error {
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	defer j.Close()

	dying, die := context.WithCancel(ctx)
	res, err := reader(out, 2, die).RunTasks(dying, tasks, &team.RunOptions{RunID: "meter", Journal: j})
	if !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Fprintf(out, "the first process ends: %s\n", res.Status)

	res, err = reader(out, 0, nil).Resume(ctx, "meter", &team.RunOptions{Tasks: tasks, Journal: j})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the second process ends: %s, %d tokens for the whole run\n%s\n", res.Status, res.Usage.OutputTokens, res.Output)
	return nil
}

// reader returns a team of one agent, which says what it is asked for. In the
// middle of the call with the number of last it dies.
func reader(out io.Writer, last int32, die func()) *team.Team {
	var calls atomic.Int32
	read := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(p.Text(), "\n")
		fmt.Fprintln(out, "  asked:", title)
		if calls.Add(1) == last {
			die()
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}
		answer := []string{"4,711 kWh"}
		for _, s := range p.Sections() {
			answer = append(answer, "after "+s.Title)
		}
		return agent.Reply{Text: strings.Join(answer, ", "), Usage: llm.Usage{OutputTokens: 3}}, nil
	}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "reader", Agent: team.AgentFunc(read)}}})
	if err != nil {
		panic(err) // a roster of one name is right or wrong for ever
	}
	return tm
}
