package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// Agents may be models (agent.New) or functions. Each sees its task and the
// results of its direct dependencies, and nothing else.
func Example() {
	count := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: fmt.Sprint(len(strings.Fields(p.Sections()[0].Text)), " words")}, nil
	}
	report := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "The claim has " + p.Sections()[0].Text + "."}, nil
	}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "counter", Agent: team.AgentFunc(count), Accepts: label.Confidential},
		{Name: "reporter", Agent: team.AgentFunc(report), Accepts: label.Confidential},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{
		{Title: "Count", Description: "Count the words.", Assignee: "counter", Uses: []task.Use{{Name: "claim"}}},
		{Title: "Report", Description: "Report them.", Assignee: "reporter", DependsOn: task.On("Count")},
	}, &team.RunOptions{Inputs: []team.Input{{Name: "claim", Text: "A pipe burst in the kitchen.", Classification: label.Confidential}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, res.Tasks[1].Label)
	fmt.Println(res.Output)
	// Output:
	// ok confidential
	// The claim has 6 words.
}

// A plan is the static check: who reads what at which label, or everything
// that is wrong, before anything runs.
func ExampleTeam_Plan() {
	nobody := team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "intake", Agent: nobody, Accepts: label.Confidential},
		{Name: "letters", Agent: nobody},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = tm.Plan([]task.Spec{
		{Title: "Read", Description: "List the facts.", Assignee: "intake", Uses: []task.Use{{Name: "claim"}}},
		{Title: "Write", Description: "Write a letter.", Assignee: "letters", DependsOn: task.On("Raed")},
	}, &team.RunOptions{Inputs: []team.Input{{Name: "claim", Classification: label.Confidential}}})
	fmt.Println(err)

	_, err = tm.Plan([]task.Spec{
		{Title: "Read", Description: "List the facts.", Assignee: "intake", Uses: []task.Use{{Name: "claim"}}},
		{Title: "Write", Description: "Write a letter.", Assignee: "letters", DependsOn: task.On("Read")},
	}, &team.RunOptions{Inputs: []team.Input{{Name: "claim", Classification: label.Confidential}}})
	fmt.Println(err)

	p, err := tm.Plan([]task.Spec{{Title: "Write", Description: "Write a letter.", Assignee: "letters"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Tasks[0].Assignee, p.Tasks[0].Label)
	res, err := p.Run(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status)
	// Output:
	// task "Write": dependsOn[0]: no task "Raed": did you mean "Read"?
	// task "Write": the context is confidential, and "letters" accepts internal (through "Read", confidential by input "claim"): remove the confidential context, declassify the parts that it needs, or set accepts: confidential on agent "letters"
	// letters internal
	// ok
}

// A failed task fails what depends on it; everything else continues. The result comes with
// a *team.RunError, which wraps what the agent returned.
func ExampleRunError() {
	errNoPaper := errors.New("out of paper")
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "printer", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errNoPaper })},
		{Name: "clerk", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "filed"}, nil })},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{
		{Title: "Print", Description: "Print it.", Assignee: "printer"},
		{Title: "Send", Description: "Send it.", Assignee: "clerk", DependsOn: task.On("Print")},
		{Title: "File", Description: "File it.", Assignee: "clerk"},
	}, nil)
	if failed, ok := errors.AsType[*team.RunError](err); ok {
		fmt.Println(failed)
	}
	fmt.Println(errors.Is(err, errNoPaper))
	for _, t := range res.Tasks {
		fmt.Println(t.Title, t.Status)
	}
	// Output:
	// run ended with status error: task "Print": out of paper
	// true
	// Print failed
	// Send failed
	// File completed
}

// One agent, one prompt.
func ExampleTeam_RunAgent() {
	shout := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: strings.ToUpper(p.Text())}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "crier", Agent: shout}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunAgent(context.Background(), "crier", "Hear ye.", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Output)
	// Output: HEAR YE.
}

// A structured result is validated against the task's schema, and decoded into a Go type.
func ExampleResultAs() {
	score := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: `{"score": 0.25}`}, nil
	}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "scorer", Agent: team.AgentFunc(score)}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{{
		Title: "Score", Description: "Score the risk.", Assignee: "scorer",
		OutputSchema: []byte(`{"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}}`),
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	risk, err := team.ResultAs[struct{ Score float64 }](res, "Score")
	fmt.Println(risk.Score, err)
	// Output: 0.25 <nil>
}

// A policy narrows what passes between agents. The receipt of a prompt says what was
// withheld, and by which rule.
func ExampleConfig_policy() {
	extract := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: `{"amount": 120, "note": "ask the lawyers"}`}, nil
	}
	write := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: p.Sections()[0].JSON}, nil
	}
	tm, err := team.New(team.Config{
		Agents: []team.Member{{Name: "intake", Agent: team.AgentFunc(extract)}, {Name: "letters", Agent: team.AgentFunc(write)}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "intake", To: "letters", Block: []task.Path{"/note"}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{
		{
			Title: "Extract", Description: "List the facts.", Assignee: "intake",
			OutputSchema: []byte(`{"type": "object", "properties": {"amount": {"type": "number"}, "note": {"type": "string"}}}`),
		},
		{Title: "Write", Description: "Write a letter.", Assignee: "letters", DependsOn: []task.Ref{{Task: "Extract", As: task.Structured}}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Output)
	// Output: {"amount":120}
}

// Subscribers receive every event of a run, in order.
func ExampleRunOptions_events() {
	echo := team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "done"}, nil })
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "echo", Agent: echo}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = tm.RunTasks(context.Background(), []task.Spec{{Title: "Say", Description: "Say something.", Assignee: "echo"}}, &team.RunOptions{
		Subscribers: []func(event.Event){func(e event.Event) { fmt.Println(e.Type) }},
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// run_start
	// task_ready
	// task_start
	// agent_start
	// context_handoff
	// agent_complete
	// task_complete
	// all_complete
	// run_complete
}

// A run that was interrupted is resumed from its journal: completed tasks are not run
// again.
func ExampleTeam_Resume() {
	j := journal.InMemory()
	defer j.Close()
	ctx, interrupt := context.WithCancel(context.Background())
	read := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(p.Text(), "\n")
		fmt.Println("called:", title)
		if title == "# Task: Report" && ctx.Err() == nil && interrupt != nil {
			interrupt()
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}
		return agent.Reply{Text: "4,711 kWh"}, nil
	}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "reader", Agent: team.AgentFunc(read), Backend: team.Backend{Version: "1"}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	tasks := []task.Spec{
		{Title: "Measure", Description: "Read the meter.", Assignee: "reader"},
		{Title: "Report", Description: "Report it.", Assignee: "reader", DependsOn: task.On("Measure")},
	}
	_, err = tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "meter", Journal: j})
	fmt.Println(errors.Is(err, context.Canceled))

	interrupt = nil
	res, err := tm.Resume(context.Background(), "meter", &team.RunOptions{Tasks: tasks, Journal: j})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status)
	// Output:
	// called: # Task: Measure
	// called: # Task: Report
	// true
	// called: # Task: Report
	// ok
}

// A coordinator plans two tasks for a goal and answers it. It would ask a model
// (agent.New); here it is a function.
func ExampleTeam_RunTeam() {
	coordinator := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		if !strings.Contains(p.Text(), "## Original Goal") {
			return agent.Reply{Text: `[
				{"title": "Find", "description": "Say when the pump stopped.", "assignee": "reader", "uses": ["log"]},
				{"title": "Tell", "description": "Tell it in one sentence.", "assignee": "writer", "dependsOn": ["Find"]}]`}, nil
		}
		for _, s := range p.Sections() {
			if s.Title == "Tell" {
				return agent.Reply{Text: s.Text}, nil
			}
		}
		return agent.Reply{Text: "Nobody told."}, nil
	})
	reader := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: p.Sections()[0].Text[:5]}, nil
	})
	writer := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "The pump stopped at " + p.Sections()[0].Text + "."}, nil
	})
	tm, err := team.New(team.Config{
		Agents:      []team.Member{{Name: "reader", Agent: reader}, {Name: "writer", Agent: writer}},
		Coordinator: &team.Coordinator{Agent: coordinator, MayGrant: synth.Grants{Inputs: true}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTeam(context.Background(), team.Goal{Text: "Why was there no water?"}, &team.RunOptions{
		Inputs: []team.Input{{Name: "log", Text: "09:12 pump stopped"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Output)
	// Output: The pump stopped at 09:12.
}

// An agent written in Go calls a model through [agent.Metered]: each call is paid
// from the budgets of the run, and the last one is not made.
func Example_meteredAgent() {
	model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "a draft", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 400, OutputTokens: 100}}, nil
	})
	writer := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		metered := agent.Metered(ctx, model)
		var text string
		for range 3 {
			res, err := metered.Call(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: p.Text()}}, Settings: llm.Settings{MaxTokens: 200}}, nil)
			if err != nil {
				return agent.Reply{}, err
			}
			text = res.Text
		}
		return agent.Reply{Text: text}, nil
	}
	t, err := team.New(team.Config{
		Agents: []team.Member{{Name: "writer", Agent: team.AgentFunc(writer), Backend: team.Backend{Model: "small"}}},
		Prices: map[string]llm.Price{"small": {Input: 5, Output: 20}}, // US dollars for a million tokens
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	specs := []task.Spec{{Title: "Write", Description: "Write a poem.", Assignee: "writer"}}
	res, err := t.RunTasks(context.Background(), specs, &team.RunOptions{Budget: team.Budget{MaxCostBudget: llm.Dollars(0.01)}})
	failed, _ := errors.AsType[*team.TaskError](err)
	fmt.Println(failed.Code)
	fmt.Println(res.Status)
	fmt.Println(res.Usage.InputTokens, "tokens in,", res.Usage.OutputTokens, "out")
	// Output:
	// COST_BUDGET_EXCEEDED
	// budget_exhausted
	// 800 tokens in, 200 out
}

// A session is a conversation. Each turn is a run, whose agent gets the turns before it.
func ExampleTeam_NewSession() {
	echo := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		messages := p.Messages()
		return agent.Reply{Text: fmt.Sprintf("%d messages, the last is %q", len(messages), messages[len(messages)-1].Text)}, nil
	}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "echo", Agent: team.AgentFunc(echo)}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, j := context.Background(), journal.InMemory()
	s, err := tm.NewSession(team.SessionOptions{Agent: "echo", Journal: j})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"Hello.", "And now?"} {
		res, err := s.Send(ctx, team.Turn{Text: text}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Output)
	}
	s, err = tm.ResumeSession(ctx, s.ID(), team.SessionOptions{Journal: j}) // a later process does the same
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := s.Send(ctx, team.Turn{Text: "Still there?"}, nil)
	fmt.Println(res.Output, err)
	// Output:
	// 1 messages, the last is "Hello."
	// 3 messages, the last is "And now?"
	// 5 messages, the last is "Still there?" <nil>
}

// Along an edge, an agent sends another one something while it works. The next prompt of that agent has it.
func ExampleConfig_edges() {
	reporter := team.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "A storm hit the coast."}, team.OutboxFrom(ctx).Send("editor", "It is no rumor.")
	})
	editor := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		_, messages, _ := strings.Cut(p.Text(), "## Messages from team members\n")
		return agent.Reply{Text: messages}, nil
	})
	tm, err := team.New(team.Config{
		Agents: []team.Member{{Name: "reporter", Agent: reporter}, {Name: "editor", Agent: editor}},
		Edges:  []handoff.Edge{{From: "reporter", To: "editor"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{
		{Title: "Report", Description: "Report on the storm.", Assignee: "reporter"},
		{Title: "Edit", Description: "Edit the report.", Assignee: "editor", DependsOn: task.On("Report")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Output)
	// Output: - **reporter**: It is no rumor.
}

// An agent spawns a child with a call of spawn_agent. The child is asked for its goal, and knows nothing else.
func ExampleSpawning() {
	lead := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		messages := p.Messages()
		switch last := messages[len(messages)-1]; {
		case strings.Contains(last.Text, "Count to three."):
			return agent.Reply{Text: "one, two, three"}, nil
		case len(messages) > 1:
			return agent.Reply{Text: fmt.Sprint("The child is done: ", strings.Contains(last.Text, "one, two, three"))}, nil
		}
		return agent.Reply{ToolCalls: []llm.ToolCall{{Name: "spawn_agent", Arguments: `{"goal": "Count to three."}`}}}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "lead", Agent: lead, Spawn: &team.Spawning{Max: 6, Timeout: 2 * time.Minute, MaxTurns: 10}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunAgent(context.Background(), "lead", "Have somebody count.", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Output)
	// Output: The child is done: true
}
