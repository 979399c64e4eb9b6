package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A reasoner is a model that writes a canary into its reasoning.
type reasoner struct {
	mu      sync.Mutex // guards prompts
	prompts []string
	style   int
	answer  func(prompt string) string
}

func (*reasoner) Name() string { return "reasoner" }

func (*reasoner) Endpoint() string { return "http://127.0.0.1:1/v1" }

const thought = "CANARY-thought-4417"

func (r *reasoner) Call(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	var text strings.Builder
	for _, m := range req.Messages {
		text.WriteString(m.Text + "\n")
	}
	r.mu.Lock()
	r.prompts = append(r.prompts, req.System+fmt.Sprint(req.Messages))
	r.mu.Unlock()
	answer := r.answer(text.String())
	switch r.style {
	case 0:
		return llm.Response{Text: "<think>\nI know " + thought + "</think>\n\n" + answer}, nil
	case 1:
		return llm.Response{Text: answer, Reasoning: "I know " + thought}, nil
	case 2:
		return llm.Response{Text: "I know " + thought + "\n</think>\n" + answer, Reasoning: thought}, nil
	}
	return llm.Response{Text: "[THINK]" + thought + "[/THINK]<thinking>" + thought + "</thinking>" + answer, CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
}

// TestReasoningReachesOnlyTheJournal draws teams whose models write a canary into
// their reasoning, and holds that no prompt, result, event, record or message has it:
// not after a correction, a translation, a failure or a goal. The journal has it.
//
// Requirement: G42.
func TestReasoningReachesOnlyTheJournal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &reasoner{style: rapid.IntRange(0, 3).Draw(rt, "style")}
		n := rapid.IntRange(1, 4).Draw(rt, "tasks")
		unfitFirst := rapid.Bool().Draw(rt, "corrected")
		m.answer = func(text string) string {
			switch {
			case strings.Contains(text, "\n## Goal\n"):
				if unfitFirst && !strings.Contains(text, "What is wrong with it") {
					return "no plan"
				}
				return `[{"title": "t0", "description": "Do it.", "assignee": "a"}, {"title": "t1", "description": "Do it too.", "assignee": "a", "dependsOn": ["t0"]}]`
			case unfitFirst && !strings.Contains(text, "Answer again"):
				return `{"n": "x"}`
			}
			return `{"n": 1}`
		}
		policy := &handoff.Policy{}
		if rapid.Bool().Draw(rt, "translated") {
			policy.Rules = []handoff.PairRule{{ID: "short", From: "a", To: "*", Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 50, ByModel: true}}}
		}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{})}}, Policy: policy, Coordinator: &engine.Coordinator{Agent: agent.New(m, agent.Options{})}})
		if err != nil {
			rt.Fatal(err)
		}
		var specs []task.Spec
		for i := range n {
			s := by("a", spec(fmt.Sprint("t", i)))
			if rapid.Bool().Draw(rt, "schema") {
				s.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
			}
			if i > 0 && rapid.Bool().Draw(rt, "depends") {
				s.DependsOn = task.On(fmt.Sprint("t", i-1))
			}
			if rapid.Bool().Draw(rt, "memory") {
				s.MemoryScope = task.ScopeAll
			}
			specs = append(specs, s)
		}
		a, journal := &audience{}, &memory{}
		o := a.options()
		o.RunID, o.Journal = "r", journal
		var records []record.Prompt
		var mu sync.Mutex
		o.Recorder = func(_ context.Context, r record.Prompt) error {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
			return nil
		}
		ask := func(o *engine.RunOptions) (*engine.Result, error) { return start(t.Context(), tm, specs, o) }
		if rapid.Bool().Draw(rt, "goal") {
			ask = func(o *engine.RunOptions) (*engine.Result, error) {
				return startGoal(t.Context(), tm, engine.Goal{Text: "Count."}, o)
			}
			n = 4
		}
		res, err := ask(o)
		if err != nil {
			rt.Fatal(err)
		}
		if !res.Success() {
			rt.Fatal(res.Err())
		}
		kept := 0
		for _, x := range journal.exchanges() {
			if x.Reasoning == nil || !strings.Contains(x.Reasoning.Text, thought) {
				rt.Fatalf("the exchange %s%s has no reasoning", x.Session, x.Part)
			}
			kept++
			x.Reasoning = nil
			if text := fmt.Sprintf("%+v %+v", x, x.Result); strings.Contains(text, "CANARY") {
				rt.Fatalf("elsewhere in an exchange: %s", text)
			}
		}
		if kept < n {
			rt.Fatalf("%d exchanges of %d tasks", kept, n)
		}
		seen := told(t, res, a) + fmt.Sprintf("%+v", records) + strings.Join(m.prompts, "\n")
		if i := strings.Index(seen, "CANARY"); i >= 0 {
			rt.Fatalf("the reasoning stands in …%s", seen[max(0, i-200):min(len(seen), i+50)])
		}
		replay, err := ask(&engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))})
		if err != nil || strings.Contains(document(t, replay), "CANARY") {
			rt.Fatalf("%v, or the reasoning in a replay", err)
		}
	})
}

// TestReasoningIsAsSensitiveAsTheResult checks that the journal has the label of the
// result for reasoning, and that a caller below it, or one who may have only a part of
// the result, gets none of it.
//
// Requirement: G19.
func TestReasoningIsAsSensitiveAsTheResult(t *testing.T) {
	t.Parallel()
	keep := func(o engine.RunOptions, policy *handoff.Policy) *record.LabeledText {
		journal := &memory{}
		o.Journal = journal
		m := &reasoner{answer: func(string) string { return `{"n": 1, "m": "x"}` }}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{}), Accepts: label.Secret}, member("b", says("fine"))}, Policy: policy})
		require.NoError(t, err)
		s := spec("a")
		s.Classification, s.OutputSchema = label.Secret, json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"string"}}}`)
		res := run(t, tm, &o, s, spec("b"))
		require.NoError(t, res.Err())
		for _, x := range journal.exchanges() {
			if x.Title == "a" {
				return x.Reasoning
			}
		}
		return nil
	}
	full := keep(engine.RunOptions{UserAccepts: new(label.Secret)}, nil)
	require.Equal(t, &record.LabeledText{Text: "I know " + thought, Label: label.Secret}, full)
	require.Nil(t, keep(engine.RunOptions{}, nil), "that there was any depends on what is secret")
	require.Nil(t, keep(engine.RunOptions{UserAccepts: new(label.Secret), Reveal: true}, nil), "what is revealed is not recorded")
	lower := &handoff.Policy{
		Rules:      []handoff.PairRule{{ID: "user", From: "a", To: "user", Mode: handoff.Full}},
		Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "lower", From: "a", To: "user", Reason: "r"}, LowerTo: label.Internal, Paths: []task.Path{""}, UnsafeText: true}},
	}
	require.Nil(t, keep(engine.RunOptions{}, lower))
	scoped := &handoff.Policy{Rules: []handoff.PairRule{{ID: "user", From: "a", To: "user", Mode: handoff.Scoped, Allow: []task.Path{"/n"}}}}
	require.Nil(t, keep(engine.RunOptions{UserAccepts: new(label.Secret)}, scoped))
}

// TestCachedLabeledTextsPassTheGateAgain has a run whose caller may see less take a cached
// answer with its reasoning and the answer that was corrected.
//
// Requirement: G47.
func TestCachedLabeledTextsPassTheGateAgain(t *testing.T) {
	t.Parallel()
	m := &reasoner{answer: func(text string) string {
		if strings.Contains(text, "Answer again") {
			return right
		}
		return `{"n": "` + thought + `"}`
	}}
	secret := counting()[0]
	secret.Classification = label.Secret
	ask := func(o engine.RunOptions) (*engine.Result, *memory) {
		journal := &memory{}
		if o.Journal == nil {
			o.Journal = journal
		}
		res := run(t, newTeam(t, engine.Member{Name: "count", Agent: agent.New(m, agent.Options{}), Accepts: label.Secret, Backend: plan.Backend{Version: "1"}}, member("read", says("fine"))), &o, secret, spec("read"))
		require.NoError(t, res.Err())
		return res, journal
	}
	first, journal := ask(engine.RunOptions{RunID: "r", UserAccepts: new(label.Secret)})
	require.Contains(t, of(t, first, "count").Rejected[0].Text, thought)
	calls := len(m.prompts)
	past := journal.history(journal.len())
	for name, o := range map[string]engine.RunOptions{
		"resume": {RunID: "r", Journal: after(past)},
		"replay": {RunID: "r", Replay: &engine.Replay{}, Journal: after(past)},
	} {
		res, _ := ask(o)
		require.NotContains(t, document(t, res), thought, name)
		require.Empty(t, of(t, res, "count").Rejected, name)
	}
	require.Len(t, m.prompts, calls, "no model was called")
	same, _ := ask(engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true, UserAccepts: new(label.Secret)})
	require.Equal(t, of(t, first, "count").Rejected, of(t, same, "count").Rejected)
}
