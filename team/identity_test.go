package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// hiddenNames are names that nothing else in these tests contains.
var hiddenNames = []string{"zelda", "Quux", "Écru 7", "Ximena"}

// A masked is a team whose agents keep everything that they can read of their prompts.
type masked struct {
	mu       sync.Mutex
	prompts  []string
	receipts []*prompt.Receipt // as records have them
}

// see keeps a prompt: both texts, its messages, its sections and its receipt.
func (m *masked) see(p prompt.Prompt) {
	var b strings.Builder
	fmt.Fprintln(&b, p.System()+"\n"+p.Text())
	for _, message := range p.Messages() {
		fmt.Fprintln(&b, message.Text)
	}
	for _, s := range p.Sections() {
		fmt.Fprintln(&b, s.Title, s.From, s.Text, s.JSON, s.Withheld)
	}
	r := p.Receipt()
	r.Agent = "" // who reads it knows who it is
	for i := range r.Sources {
		if d := r.Sources[i].Decision; d != nil {
			d.To = ""
			if d.Source.Kind == handoff.Draft { // its own words
				d.From, r.Sources[i].Producer = "", ""
			}
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	b.Write(raw)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompts = append(m.prompts, b.String())
}

func (m *masked) agent(name string, calls, fails bool) team.AgentFunc {
	return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		m.see(p)
		switch {
		case p.Schema() != "":
			return agent.Reply{Text: `{"accept":false,"critique":"too short"}`}, nil
		case fails:
			return agent.Reply{}, errors.New(name + " has no connection")
		case calls && len(p.Messages()) == 1:
			return agent.Reply{ToolCalls: []llm.ToolCall{
				{ID: "1", Name: "lookup", Arguments: `{"name":"ann"}`}, {ID: "2", Name: "send", Arguments: `{"name":"ann"}`}, {ID: "3", Name: "nothing", Arguments: `{}`},
			}}, nil
		}
		if out := team.OutboxFrom(ctx); out != nil {
			_ = out.Broadcast("a short\nmessage") // a reader that has no task any more gets none
		}
		return agent.Reply{Text: "a result"}, nil
	}
}

// teamOf returns a team of agents with these names, of which the last one is a person.
func (m *masked) teamOf(t testing.TB, fails string, hide bool) *team.Team {
	c := team.Config{Edges: []handoff.Edge{{From: hiddenNames[0], To: hiddenNames[1]}, {From: hiddenNames[2], To: hiddenNames[0]}}, Policy: &handoff.Policy{HideIdentity: hide, Rules: []handoff.PairRule{
		{From: hiddenNames[1], To: hiddenNames[2], Mode: handoff.Minimal}, // its name has the names of both
	}}}
	send, err := tool.New("send", "Sends it.", func(context.Context, lookupArguments) (string, error) { return "sent", nil }, tool.Options{Approve: hiddenNames[3], Repeatable: true})
	require.NoError(t, err)
	find := lookup(t, tool.Options{Effect: tool.None})
	for i, name := range hiddenNames[:3] {
		c.Agents = append(c.Agents, team.Member{
			Name: name, Agent: m.agent(name, i == 0, name == fails), SystemPrompt: "You work.", AllowUntrusted: []string{"send"},
			Tools: []*tool.Tool{find, send},
		})
	}
	c.Agents = append(c.Agents, team.Member{Name: hiddenNames[3], Agent: person.New(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		m.see(p)
		return agent.Reply{Text: `{"decision":"yes","reason":"fine"}`}, nil
	})})
	c.Coordinator = &team.Coordinator{Agent: team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		m.see(p)
		return agent.Reply{Text: "the answer"}, nil
	})}
	tm, err := team.New(c)
	require.NoError(t, err)
	return tm
}

// drawNamed draws a graph in which names reach prompts in every way.
func drawNamed(t *rapid.T) (specs []task.Spec) {
	for i := range rapid.IntRange(2, 6).Draw(t, "tasks") {
		s := task.Spec{Title: fmt.Sprintf("Task %d", i), Description: "Do it.", Assignee: rapid.SampledFrom(hiddenNames[:3]).Draw(t, "assignee")}
		for k := range i {
			if rapid.Bool().Draw(t, "depends") {
				s.DependsOn = append(s.DependsOn, task.Ref{Task: specs[k].Title, Optional: true})
			}
		}
		if rapid.Bool().Draw(t, "memory") {
			s.MemoryScope = task.ScopeAll
		}
		if rapid.IntRange(0, 3).Draw(t, "judged") == 0 {
			s.Verify = &task.Verify{Judges: judges(hiddenNames[0], hiddenNames[1], hiddenNames[1]), OnDissent: rapid.SampledFrom([]string{"keep", "revise"}).Draw(t, "dissent")}
		}
		specs = append(specs, s)
	}
	return specs
}

// run runs the graph, then a task of a person, and answers a goal from the results.
func (m *masked) run(t testing.TB, tm *team.Team, specs []task.Spec) *team.Result {
	last := task.Spec{Title: "Review", Description: "Read it.", Assignee: hiddenNames[3], OutputSchema: json.RawMessage(`{"type":"object"}`)}
	for i := range specs {
		last.DependsOn = append(last.DependsOn, task.Ref{Task: specs[i].Title, Optional: true})
	}
	res, err := tm.RunTasks(t.Context(), append(specs, last), &team.RunOptions{
		Answer:   &team.Goal{Text: "Do all of it."},
		Messages: []team.Message{{From: hiddenNames[0], To: hiddenNames[1], Text: "one line"}, {From: hiddenNames[2], To: hiddenNames[0], Text: "two\nlines"}},
		Subscribers: []func(event.Event){func(e event.Event) {
			if start, ok := e.Data.(event.AgentStart); ok && start.Receipt != nil {
				m.mu.Lock()
				m.receipts = append(m.receipts, start.Receipt)
				m.mu.Unlock()
			}
		}},
	})
	require.NotNil(t, res, err) // the run may fail, but it starts
	return res
}

// No prompt has a name of a member, whatever reaches it: results, memory, messages, judges, tools,
// errors, questions to a person, the answer of a goal. Records keep the names.
func TestNoPromptHasANameUnderHideIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		specs, m := drawNamed(rt), &masked{}
		fails := rapid.SampledFrom(append(slices.Clone(hiddenNames[:3]), "")).Draw(rt, "fails")
		m.run(t, m.teamOf(t, fails, true), specs)
		for _, p := range m.prompts {
			for _, name := range hiddenNames {
				if strings.Contains(p, name) {
					rt.Fatalf("the name %q is in the prompt\n%s", name, p)
				}
			}
		}
	})
}

// The same run without hideIdentity has the names, so the test above can fail; and with it, each name
// is a number that is the same everywhere, and records have the names.
func TestHideIdentityWritesNumbersAndKeepsRecords(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{
		{Title: "First", Description: "Do it.", Assignee: hiddenNames[0]},
		{Title: "Second", Description: "Do it.", Assignee: hiddenNames[1], DependsOn: []task.Ref{{Task: "First"}}, MemoryScope: task.ScopeAll},
		{Title: "Third", Description: "Do it.", Assignee: hiddenNames[2], DependsOn: []task.Ref{{Task: "First"}, {Task: "Second"}}},
	}
	open, hidden := &masked{}, &masked{}
	open.run(t, open.teamOf(t, "", false), slices.Clone(specs))
	res := hidden.run(t, hidden.teamOf(t, "", true), slices.Clone(specs))
	require.Equal(t, "ok", string(res.Status))
	plain, numbered := strings.Join(open.prompts, "\n"), strings.Join(hidden.prompts, "\n")
	for i, name := range hiddenNames[:3] {
		require.Contains(t, plain, "(by "+name+")")
		require.Contains(t, numbered, fmt.Sprintf("(by agent %d)", i+1))
		require.Contains(t, numbered, fmt.Sprintf(`from "agent %d", internal`, i+1))
	}
	require.Contains(t, plain, "- **"+hiddenNames[0]+"**: one line")
	require.Contains(t, numbered, "- **agent 1**: one line")
	require.Contains(t, numbered, "(completed by agent 3)")
	var producers []string
	for _, r := range hidden.receipts {
		for i := range r.Sources {
			if d := r.Sources[i].Decision; d != nil {
				producers = append(producers, d.From, r.Sources[i].Producer)
			}
		}
	}
	require.Subset(t, producers, hiddenNames[:3])
	require.NotContains(t, producers, "agent 1")
	require.Equal(t, hiddenNames[0], res.Tasks[0].Assignee)
}
