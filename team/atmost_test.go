package team_test

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A worstModel makes the most calls that it can: it calls tools until its last turn, writes the
// longest answers, and does not match a schema at first.
type worstModel struct {
	turns   int  // after which it answers in place of calling tools
	answers int  // bytes of a text
	cut     bool // its answers are incomplete

	mu    sync.Mutex // guards calls and sent
	calls int
	sent  int // tokens of prompts
}

func (m *worstModel) Call(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	n := len(r.System) + len(r.Schema)
	for _, said := range r.Messages {
		n += len(said.Text)
	}
	m.sent += n / 4
	turn := (len(r.Messages) + 1) / 2
	switch {
	case len(r.Tools) > 0 && turn < m.turns:
		return calls("look", `{}`), nil
	case m.cut:
		return llm.Response{Text: "x", CallInfo: llm.CallInfo{FinishReason: "length"}}, nil
	case len(r.Schema) == 0:
		return says(strings.Repeat("x", m.answers)), nil
	case turn == 1:
		return says(strings.Repeat("y", m.answers)), nil
	case strings.Contains(string(r.Schema), "critique"):
		return says(`{"accept":false,"critique":"no"}`), nil
	}
	return says(`{"ok":false,"items":["a","b","c"]}`), nil
}

// Plans say how many calls and tokens a run takes at most. No run takes more, and there are models
// that take as many calls.
func TestPlansBoundCallsAndTokens(t *testing.T) {
	t.Parallel()
	decides := []byte(`{"type":"object","properties":{"ok":{"type":"boolean"},"items":{"type":"array","items":{"type":"string"}}},"required":["ok"]}`)
	work := func(title string, of ...string) task.Spec {
		s := task.Spec{Title: title, Description: "d", Assignee: "worker"}
		for _, up := range of {
			s.DependsOn = append(s.DependsOn, task.Ref{Task: up})
		}
		return s
	}
	decide := func(title string, of ...string) task.Spec {
		s := work(title, of...)
		s.OutputSchema = decides
		return s
	}
	with := func(s task.Spec, set func(*task.Spec)) task.Spec { set(&s); return s }
	for name, tt := range map[string]struct {
		tasks  []task.Spec
		model  *worstModel
		tools  bool
		budget team.Budget
		own    team.Budget
		policy *handoff.Policy
		want   int // calls
		fails  bool
	}{
		"texts":        {tasks: []task.Spec{work("A"), work("B", "A")}, model: &worstModel{answers: 300 << 10}, want: 2},
		"a correction": {tasks: []task.Spec{decide("A"), work("B", "A")}, model: &worstModel{answers: 20}, want: 3},
		"retries":      {tasks: []task.Spec{with(work("A"), func(s *task.Spec) { s.MaxRetries, s.RetryDelay = 2, 1 })}, model: &worstModel{cut: true}, want: 3, fails: true},
		"tools":        {tasks: []task.Spec{work("A")}, tools: true, model: &worstModel{turns: 4, answers: 9}, want: 4},
		"no tools":     {tasks: []task.Spec{with(work("A"), func(s *task.Spec) { s.Tools = []string{} })}, tools: true, model: &worstModel{answers: 9}, want: 1},
		"a loop": {tasks: []task.Spec{{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 3, Until: task.Equals("Check", "/ok", true), Output: "Write", OnRepeat: "continue", Tasks: []task.Spec{work("Write"), decide("Check", "Write")}}}},
			model: &worstModel{answers: 50}, want: 3 * (1 + 2)},
		"a list": {tasks: []task.Spec{decide("Plan"), with(work("Search"), func(s *task.Spec) { s.ForEach = &task.ForEach{Task: "Plan", Path: "/items", As: "item", MaxItems: 3} })},
			model: &worstModel{answers: 50}, want: 2 + 3},
		"judges": {tasks: []task.Spec{with(work("A"), func(s *task.Spec) {
			s.Verify = &task.Verify{Judges: []task.Judge{{Agent: "worker"}, {Agent: "worker"}}, MaxRounds: 2}
		})}, model: &worstModel{answers: 50}, want: 2 * (1 + 2*2), fails: true},
		"a translation": {tasks: []task.Spec{{Title: "A", Description: "d", Assignee: "second"}, decide("B", "A")}, policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "second", To: "worker", Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 10, ByModel: true}}}},
			model: &worstModel{answers: 5000}, want: 1 + 1 + 2},
		"values and people":     {tasks: []task.Spec{{Title: "A", Value: []byte(`1`)}, {Title: "B", Description: "d", Assignee: "editor"}}, want: 0},
		"the budget of the run": {tasks: []task.Spec{work("A"), work("B", "A")}, budget: team.Budget{MaxTokenBudget: 150_000}, model: &worstModel{answers: 9}, want: 2},
		"that of the agent":     {tasks: []task.Spec{work("A"), work("B", "A")}, own: team.Budget{MaxTokenBudget: 140_000}, model: &worstModel{answers: 9}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := cmp.Or(tt.model, &worstModel{})
			worker := team.Member{Name: "worker", Agent: agent.New(model, agent.Options{MaxTurns: 4, Settings: llm.Settings{MaxTokens: 100_000}}), Budget: tt.own}
			if tt.tools {
				look, err := tool.New("look", "", func(context.Context, struct{}) (string, error) { return strings.Repeat("r", 100_000), nil }, tool.Options{Effect: tool.None})
				require.NoError(t, err)
				worker.Tools = []*tool.Tool{look}
			}
			tm, err := team.New(team.Config{Policy: tt.policy, Agents: []team.Member{worker, {Name: "second", Agent: worker.Agent}, {Name: "editor", Agent: person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "yes"}, nil })}}})
			require.NoError(t, err)
			o := &team.RunOptions{Budget: tt.budget}
			most := atMost(t, tm, tt.tasks, o)
			_, err = tm.RunTasks(t.Context(), tt.tasks, o)
			require.Equal(t, tt.fails, err != nil, err)
			require.Equal(t, tt.want, most.Calls)
			require.Equal(t, tt.want, model.calls)
			require.LessOrEqual(t, model.sent, most.PromptTokens)
			require.Less(t, most.PromptTokens, 3*128<<10*max(tt.want, 1), "no prompt is larger than its limit")
			switch {
			case tt.budget.MaxTokenBudget > 0:
				require.Equal(t, [2]int{150_000, 150_000}, [2]int{most.Tokens, most.TokenBudget})
			case tt.own.MaxTokenBudget > 0:
				require.Equal(t, 140_000, most.Tokens)
			default:
				require.Equal(t, most.PromptTokens+100_000*tt.want, most.Tokens)
			}
			require.Empty(t, most.UnboundedAnswers)
			require.Empty(t, most.NotCounted)
		})
	}
}

// atMostCounts is what the JSON form of a plan says about calls and tokens.
type atMostCounts struct {
	Calls, PromptTokens, Tokens, TokenBudget int
	UnboundedAnswers, NotCounted             []string
}

func atMost(t *testing.T, tm *team.Team, tasks []task.Spec, o *team.RunOptions) atMostCounts {
	t.Helper()
	p, err := tm.Plan(tasks, o)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	var shown struct{ AtMost atMostCounts }
	require.NoError(t, json.Unmarshal(raw, &shown))
	return shown.AtMost
}
