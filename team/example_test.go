package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
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
	if err != nil { // the run could not start
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
	// Output:
	// task "Write": dependsOn[0]: no task "Raed": did you mean "Read"?
	// task "Write": the context is confidential, and "letters" accepts internal (through "Read", confidential by input "claim"): take the confidential context away, declassify the parts that it needs, or set accepts: confidential on agent "letters"
}

// A failed task fails what depends on it; everything else goes on, and
// finished work is always returned.
func ExampleResult_Err() {
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
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range res.Tasks {
		fmt.Println(t.Title, t.Status)
	}
	fmt.Println(res.Err())
	fmt.Println(errors.Is(res.Err(), errNoPaper))
	// Output:
	// Print failed
	// Send failed
	// File completed
	// task "Print": out of paper
	// true
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

// A structured result is decoded from its canonical JSON, and receipts say
// what was granted and yet withheld.
func ExampleTaskResult() {
	score := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: `{"score": 0.25}`}, nil
	}
	broken := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{}, errors.New("no model today")
	}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "scorer", Agent: team.AgentFunc(score)},
		{Name: "reader", Agent: team.AgentFunc(broken)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{
		{Title: "Read", Description: "Read the file.", Assignee: "reader"},
		{
			Title: "Score", Description: "Score the risk.", Assignee: "scorer",
			DependsOn:    []task.Ref{{Task: "Read", Optional: true}},
			OutputSchema: []byte(`{"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}}`),
		},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	scored, _ := res.Task("Score")
	var answer struct{ Score float64 }
	if err := json.Unmarshal([]byte(scored.Structured), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Score)
	for _, held := range scored.Receipts[0].Withheld() {
		fmt.Println("withheld from", held.To+":", held.From, held.Reason)
	}
	// Output:
	// 0.25
	// withheld from scorer: reader failed
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
		Coordinator: &team.Coordinator{Agent: coordinator, MayGrant: team.Grants{Inputs: true}},
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
		Agents: []team.Member{{Name: "writer", Agent: team.AgentFunc(writer), Model: "small"}},
		Prices: map[string]llm.Price{"small": {Input: 5, Output: 20}}, // US dollars for a million tokens
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	specs := []task.Spec{{Title: "Write", Description: "Write a poem.", Assignee: "writer"}}
	res, err := t.RunTasks(context.Background(), specs, &team.RunOptions{MaxCostBudget: llm.Dollars(0.01)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, res.Errors[0].Code)
	fmt.Println(res.Usage.InputTokens, "tokens in,", res.Usage.OutputTokens, "out")
	// Output:
	// budget_exhausted COST_BUDGET_EXCEEDED
	// 800 tokens in, 200 out
}
