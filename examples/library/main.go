// Command library runs a team from a Go program: two agents ask a model, and
// one is a Go function, for what a program does better than a model.
//
// It needs no key and no network: the model is a scripted endpoint in the same
// process, called over HTTP like any other. To ask a real one, put
// openai.FromEnv("gpt-4o-mini") in the place of the endpoint and its model.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

var (
	//go:embed invoice.md
	invoiceText string
	//go:embed order.md
	orderText string
	//go:embed script.yaml
	script []byte
	//go:embed invoice.schema.json
	invoiceSchema []byte
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

// run checks an invoice, shows progress on log, and writes the answer to out.
func run(ctx context.Context, out, log io.Writer) error {
	replies, err := scripted.Parse("script.yaml", script)
	if err != nil {
		return err
	}
	endpoint, err := scripted.Start(replies)
	if err != nil {
		return err
	}
	defer endpoint.Close()
	model, err := openai.New(openai.Config{Model: "scripted", BaseURL: endpoint.URL()})
	if err != nil {
		return err
	}
	defer model.Close()

	office, err := team.New(team.Config{Name: "office", Agents: []team.Member{
		{Name: "clerk", Agent: agent.New(model, agent.Options{}), SystemPrompt: "You check invoices. Report what is written, and nothing else."},
		{Name: "ledger", Agent: team.AgentFunc(addUp)}, // ledger.go
		{Name: "writer", Agent: agent.New(model, agent.Options{}), SystemPrompt: "You write to suppliers: short, friendly, precise."},
	}})
	if err != nil {
		return err
	}
	tasks := []task.Spec{
		{
			Title: "Read the invoice", Assignee: "clerk", Uses: []task.Use{{Name: "invoice"}}, OutputSchema: invoiceSchema,
			Description: "Extract the number, the items and the total. Prices are in cents.",
		},
		{
			Title: "Add up", Assignee: "ledger", DependsOn: []task.Ref{{Task: "Read the invoice", As: task.Structured}},
			Description: "Add up the items and compare the sum with the total.",
		},
		{
			Title: "Compare with the order", Assignee: "clerk", Uses: []task.Use{{Name: "order"}}, DependsOn: task.On("Read the invoice"),
			Description: "Name the items whose price is not the one that was ordered.",
		},
		{
			Title: "Answer the supplier", Assignee: "writer", Uses: []task.Use{{Name: "invoice"}}, DependsOn: task.On("Add up", "Compare with the order"),
			Description: "Ask for a corrected invoice, with what was found.",
		},
	}
	result, err := office.RunTasks(ctx, tasks, &team.RunOptions{
		Inputs:      []team.Input{{Name: "invoice", Text: invoiceText}, {Name: "order", Text: orderText}},
		Subscribers: []func(event.Event){func(e event.Event) { show(log, e) }},
	})
	if result == nil {
		return err // the run did not start
	}
	fmt.Fprintln(out, result.Output)
	return err // what failed in it
}

// show prints an event that a person wants to see.
func show(w io.Writer, e event.Event) {
	switch data := e.Data.(type) {
	case event.TaskStart:
		fmt.Fprintf(w, "%-6s started   %s\n", e.Agent, e.Title)
	case event.TaskComplete:
		fmt.Fprintf(w, "%-6s completed %s\n", e.Agent, e.Title)
	case event.TaskFailed:
		fmt.Fprintf(w, "%-6s failed    %s: %s\n", e.Agent, e.Title, data.Message)
	}
}
