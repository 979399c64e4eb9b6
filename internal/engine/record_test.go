package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A ledger keeps the record of a run.
type ledger struct {
	mu      sync.Mutex // guards records
	records []record.Prompt
}

func (l *ledger) Record(_ context.Context, r record.Prompt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// handoffs are all decisions in the record.
func (l *ledger) handoffs() (list []event.Handoff) {
	for _, r := range l.records {
		list = append(list, r.Handoffs...)
	}
	return list
}

// TestHandoffEventsCountResults checks that the events of a prompt say how many results of a producer it was to have and
// how many it has, that an input is of a kind of its own and no result, and that a structured result counts once.
//
// Requirement: G44.
func TestHandoffEventsCountResults(t *testing.T) {
	t.Parallel()
	const reply = `{"score":7,"reason":"late"}`
	policy := &handoff.Policy{Rules: []handoff.PairRule{{ID: "limit", From: "maker", To: "reader", Ceiling: new(label.Internal)}}}
	tm := governed(t, policy, cleared("maker", label.Confidential, says(reply)), member("other", says("o")), cleared("reader", label.Confidential, says("r")))
	var a audience
	o := a.with(engine.RunOptions{Inputs: []engine.Input{{Name: "note", Text: "eight by"}}})
	first, third, reader := shaped(by("maker", spec("first"))), by("maker", spec("third")), by("reader", spec("read", "first", "second", "own"))
	third.Classification = label.Confidential
	reader.DependsOn = append(reader.DependsOn, task.Ref{Task: "third", Optional: true})
	reader.DependsOn[0].As = task.Both
	reader.Uses = []task.Use{{Name: "note"}}
	require.NoError(t, run(t, tm, o, first, by("maker", spec("second")), third, by("other", spec("own")), reader).Err())

	counts := map[string][2]int{}
	for _, e := range a.only(event.Handed) {
		h := e.Handoff
		if h.To == handoff.User && h.From == "maker" && h.Source.Name == string(task.NewID("first")) {
			require.Equal(t, len(reply), h.Before.Bytes)
			require.Equal(t, gate.Tokens(len(reply)), h.Before.Tokens, "the text of a result is its structured part")
		}
		if h.To != "reader" {
			continue
		}
		if h.Source.Kind == handoff.Input {
			require.Equal(t, handoff.User, h.From)
			require.Zero(t, h.Before.Outputs+h.After.Outputs, "an input is no result of an agent")
			continue
		}
		require.Equal(t, handoff.Dependency, h.Source.Kind)
		counts[h.From] = [2]int{h.Before.Outputs, h.After.Outputs}
	}
	require.Equal(t, map[string][2]int{"maker": {3, 2}, "other": {1, 1}}, counts)
}

// Each decision is one event and one line of the record, what was allowed
// as well as what was not, with counts that are right.
//
// Requirement: G44.
func TestEachDecisionIsRecordedOnce(t *testing.T) {
	t.Parallel()
	policy := &handoff.Policy{Rules: []handoff.PairRule{
		{ID: "only the score", From: "maker", To: "reader", Allow: []task.Path{"/score", "/mail"}, Block: []task.Path{"private"}, Origin: provenance.Position{File: "team.yaml", Line: 7}},
		{ID: "nothing much", From: "maker", To: "other", Mode: handoff.Minimal},
	}}
	const reply = `{"mail":"ada@example.com","notes":{"` + canary + `":1,"private":"` + canary + `"},"score":7}`
	tm := governed(t, policy, member("maker", says(reply)), member("reader", says("r")), member("other", says("o")), member("low", says("l")))
	var a audience
	var l ledger
	o := a.with(engine.RunOptions{Recorder: l.Record, Inputs: []engine.Input{{Name: "note", Text: "eight by"}}})
	maker, low := shaped(spec("maker")), spec("low")
	maker.Uses = []task.Use{{Name: "note"}}
	low.DependsOn, low.TTL = []task.Ref{{Task: "maker", Optional: true, As: task.Structured, Need: []task.Path{"/missing"}}}, 0
	res := run(t, tm, o, maker, spec("reader", "maker"), spec("other", "maker"), low)
	require.NoError(t, res.Err())

	var heard []event.Handoff
	for _, e := range a.only(event.Handed) {
		heard = append(heard, *e.Handoff)
	}
	require.ElementsMatch(t, l.handoffs(), heard, "the events and the record say the same")
	byReader := map[string][]event.Handoff{}
	for _, h := range heard {
		byReader[h.To] = append(byReader[h.To], h)
	}
	for to, n := range map[string]int{"maker": 1, "reader": 1, "other": 1, "low": 1} {
		require.Len(t, byReader[to], n, to)
	}

	in := byReader["maker"][0]
	require.Equal(t, gate.Source{Kind: handoff.Input, Name: "note"}, in.Source)
	require.Equal(t, handoff.User, in.From)
	require.Equal(t, gate.Passed, in.Verdict)
	require.Equal(t, gate.RuleUses, in.Rule)
	require.Equal(t, event.Extent{Tokens: 2, Bytes: 8}, in.Before)
	require.Equal(t, event.Extent{Tokens: 2, Bytes: 8, Included: []task.Path{task.Whole}}, in.After)

	read := byReader["reader"][0]
	require.Equal(t, handoff.Rule("only the score"), read.Rule)
	require.Equal(t, "team.yaml:7", read.Line)
	require.Equal(t, handoff.Scoped, read.Mode)
	require.Equal(t, redact.Counts{redact.Email: 1}, read.Redacted)
	const delivered = `{"mail":"[REDACTED:email]","score":7}`
	require.Equal(t, len(delivered), read.After.Bytes)
	require.Equal(t, (len(delivered)+3)/4, read.After.Tokens)
	require.Equal(t, []task.Path{"/mail", "/score"}, read.After.Included, "the rule names them")
	require.Equal(t, []task.Path{"/*"}, read.After.Excluded, "nobody wrote this key down")
	require.Equal(t, res.RunID+"/"+string(of(t, res, "reader").ID)+"/1", read.Session)
	require.Equal(t, of(t, res, "reader").ID, read.Task)
	require.NotEmpty(t, read.Policy)

	least := byReader["other"][0]
	require.Equal(t, gate.Minimized, least.Verdict)
	require.Zero(t, least.After.Bytes)
	require.Zero(t, least.After.Outputs)

	held := byReader["low"][0]
	require.Equal(t, gate.Withheld, held.Verdict)
	require.Equal(t, gate.ReasonRule, held.Reason)
	require.Zero(t, held.After.Bytes)

	everything, err := json.Marshal([]any{heard, l.handoffs(), a.events})
	require.NoError(t, err)
	require.NotContains(t, string(everything), canary, "neither a value nor a key that nobody wrote down")
	require.NotContains(t, string(everything), "ada@example.com")
}

// Decisions may name the keys of a schema.
//
// Requirement: G44.
func TestDecisionsShowKeysOfTheSchema(t *testing.T) {
	t.Parallel()
	var l ledger
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Allow: []task.Path{"/score"}}}}
	maker := spec("maker")
	maker.OutputSchema = []byte(scored)
	run(t, governed(t, policy, member("maker", says(`{"score":1,"story":"s","`+canary+`":1}`)), member("reader", says("r"))), &engine.RunOptions{Recorder: l.Record}, maker, spec("reader", "maker"))
	for _, h := range l.handoffs() {
		if h.To == "reader" {
			require.ElementsMatch(t, []task.Path{"/story", "/*"}, h.After.Excluded)
			return
		}
	}
	require.Fail(t, "no decision for the reader")
}

// The record is written before the prompt is sent, with the prompt as the
// caller may see it.
//
// Requirement: G44.
func TestRecordIsWrittenBeforeThePromptIsSent(t *testing.T) {
	t.Parallel()
	var order log
	asks := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		order.add("asked %s", p.Receipt().Agent)
		return agent.Reply{Text: "x"}, nil
	}
	var shown []promptview.Shown
	rec := func(_ context.Context, r record.Prompt) error {
		if r.Prompt != nil {
			order.add("kept %s", r.Prompt.Receipt.Agent)
			shown = append(shown, *r.Prompt)
		}
		return nil
	}
	second := spec("b", "a")
	second.Uses = []task.Use{{Name: "key"}}
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "b", Mode: handoff.Full}}}
	tm := governed(t, policy, member("a", asks), cleared("b", label.Secret, asks))
	res := run(t, tm, &engine.RunOptions{Recorder: rec, Output: "a", Inputs: []engine.Input{{Name: "key", Text: canary, Classification: label.Secret}}}, spec("a"), second)
	require.NoError(t, res.Err())
	require.Equal(t, []string{"kept a", "asked a", "kept b", "asked b"}, order.all())
	text, err := json.Marshal(shown)
	require.NoError(t, err)
	require.NotContains(t, string(text), canary, "above the caller's clearance")
	require.Contains(t, string(text), "Do b.")
}

// The coordinator's prompts and translations are recorded like others.
//
// Requirement: G44.
func TestCoordinatorAndTranslationsAreRecorded(t *testing.T) {
	t.Parallel()
	var l ledger
	var a audience
	sent := 0
	var mu sync.Mutex // guards sent
	count := func(fn agentFunc) agentFunc {
		return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			mu.Lock()
			sent++
			mu.Unlock()
			return fn(ctx, p)
		}
	}
	council := count(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		if p.Layout() == brief.Planning.String() {
			return agent.Reply{Text: `[{"title":"one","description":"Do it.","assignee":"maker"},{"title":"two","description":"Do that.","assignee":"reader","dependsOn":["one"]}]`}, nil
		}
		return agent.Reply{Text: "the answer"}, nil
	})
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{member("maker", count(says("made"))), member("reader", count(retells(says("short"), says("done"))))},
		Policy: summarizing(50), Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(council)},
	})
	require.NoError(t, err)
	o := a.with(engine.RunOptions{Recorder: l.Record})
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Find it out."}, o)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	prompts, kinds := 0, map[handoff.SourceKind]bool{}
	for _, r := range l.records {
		if r.Prompt != nil {
			prompts++
		}
		for _, h := range r.Handoffs {
			kinds[h.Source.Kind] = true
		}
	}
	require.Equal(t, 5, sent, "a plan, two tasks, a retelling, the answer")
	require.Equal(t, sent, prompts)
	require.Equal(t, sent, res.Context.Prompts)
	require.Len(t, a.only(event.Handed), len(l.handoffs()))
	for _, kind := range []handoff.SourceKind{handoff.Goal, handoff.Roster, handoff.Plan, handoff.Dependency} {
		require.True(t, kinds[kind], string(kind))
	}
}

// What cannot be recorded is not sent.
//
// Requirement: G44.
func TestNothingIsSentWithoutARecord(t *testing.T) {
	t.Parallel()
	tests := map[string]record.Recorder{
		"an error":              func(context.Context, record.Prompt) error { return errors.New("disk full") },
		"a panic":               func(context.Context, record.Prompt) error { panic("disk full") },
		"it ends its goroutine": func(context.Context, record.Prompt) error { runtime.Goexit(); return nil },
		"an error about prompts": func(_ context.Context, r record.Prompt) error {
			if r.Prompt != nil {
				return errors.New("disk full")
			}
			return nil
		},
	}
	for name, rec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, after := spec("a"), spec("b", "a")
			s.MaxRetries, s.RetryDelay = 3, task.NoDelay
			res := run(t, newTeam(t, member("a", never(t)), member("b", never(t))), &engine.RunOptions{Recorder: rec}, s, after)
			require.Equal(t, codes.Record, of(t, res, "a").Error.Code)
			require.Equal(t, 1, of(t, res, "a").Metrics.Attempts, "it would fail again")
			require.Equal(t, codes.Dependency, of(t, res, "b").Error.Code)
			require.Zero(t, res.Context.Prompts)
			require.ErrorIs(t, res.Err(), engine.ErrRecord)
			require.Regexp(t, "disk full|ended its goroutine", of(t, res, "a").Error.Message, "it says why")
		})
	}
}

// Nothing is sent after its time because its record took long.
//
// Requirement: G44.
func TestSlowRecorder(t *testing.T) {
	t.Parallel()
	slow := func(_ context.Context, r record.Prompt) error {
		if r.Prompt != nil {
			time.Sleep(time.Minute)
		}
		return nil
	}
	patient := func(ctx context.Context, r record.Prompt) error {
		if r.Prompt != nil {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	tests := []struct {
		name    string
		rec     record.Recorder
		spec    func(*task.Spec)
		options engine.RunOptions
		check   func(t *testing.T, res *engine.Result)
	}{
		{"it takes a minute", slow, func(*task.Spec) {}, engine.RunOptions{}, func(t *testing.T, res *engine.Result) {
			require.NoError(t, res.Err())
			require.Equal(t, time.Minute, res.EndedAt.Sub(res.StartedAt))
		}},
		{"longer than its context lives", slow, func(*task.Spec) {}, engine.RunOptions{Inputs: []engine.Input{{Name: "x", Text: canary, TTL: 30 * time.Second}}}, func(t *testing.T, res *engine.Result) {
			require.Equal(t, gate.CodeWithheld, of(t, res, "a").Error.Code)
			require.Contains(t, of(t, res, "a").Error.Message, "expired")
		}},
		{"longer than the attempt may", slow, func(s *task.Spec) { s.Timeout = 30 * time.Second }, engine.RunOptions{}, func(t *testing.T, res *engine.Result) {
			require.NoError(t, res.Err(), "the agent's time begins with its work")
		}},
		{"until the run ends", patient, func(*task.Spec) {}, engine.RunOptions{Timeout: time.Minute}, func(t *testing.T, res *engine.Result) {
			require.Equal(t, engine.StatusTimeout, res.Status)
			require.Equal(t, time.Minute, res.EndedAt.Sub(res.StartedAt))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := spec("a")
				if len(tt.options.Inputs) > 0 {
					s.Uses = []task.Use{{Name: "x"}}
				}
				tt.spec(&s)
				o := tt.options
				o.Recorder = tt.rec
				res := run(t, newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
					asked++
					return agent.Reply{Text: "x"}, nil
				})), &o, s)
				tt.check(t, res)
				require.Equal(t, res.Success(), asked == 1, fmt.Sprint("asked ", asked))
			})
		})
	}
}

// refusing is a recorder that keeps all but the prompts of such sessions.
func refusing(session string) record.Recorder {
	return func(_ context.Context, r record.Prompt) error {
		if r.Prompt != nil && strings.Contains(r.Prompt.Receipt.Session, session) {
			return errors.New("disk full")
		}
		return nil
	}
}
