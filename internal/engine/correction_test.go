package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A corrected is a model whose first answer to a prompt does not match the schema.
type corrected struct {
	mu    sync.Mutex // guards the rest
	calls []llm.Request
	first string
	then  string
}

func (*corrected) Name() string { return "corrected" }

func (*corrected) Endpoint() string { return "http://127.0.0.1:1/v1" }

func (c *corrected) Call(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, r)
	text, usage := c.first, llm.Usage{InputTokens: 10, OutputTokens: 1}
	if len(r.Messages) > 1 {
		text, usage = c.then, llm.Usage{InputTokens: 20, OutputTokens: 2}
	}
	return llm.Response{Text: text, Usage: usage}, nil
}

// count returns how many calls there were since the last count.
func (c *corrected) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.calls)
	c.calls = nil
	return n
}

const (
	unfit = `{"n": "forty-two"} or so`
	right = `{"n": 42}`
)

// counting is a task whose answer is a number, and one that reads it.
func counting() []task.Spec {
	one := spec("count")
	one.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	return []task.Spec{one, spec("read", "count")}
}

func countingTeam(t testing.TB, m llm.Model, edit ...func(*engine.Member)) *engine.Team {
	t.Helper()
	c := engine.Member{Name: "count", Agent: agent.New(m, agent.Options{})}
	for _, f := range edit {
		f(&c)
	}
	reader := member("read", says("fine"))
	reader.Version, reader.Accepts, reader.Produces = "1", c.Accepts, c.Produces
	return newTeam(t, c, reader)
}

// TestCorrectiveCallHasItsOwnRecord checks that a corrective call is recorded like
// every model call: its prompt first, to the byte, with a decision for each piece
// of context, among them the faulty answer and what is wrong with it.
func TestCorrectiveCallHasItsOwnRecord(t *testing.T) {
	t.Parallel()
	m := &corrected{first: unfit, then: right}
	var mu sync.Mutex
	var records []record.Prompt
	var before []int
	journal := &memory{}
	a := &audience{}
	o := a.options()
	o.RunID, o.Journal = "r", journal
	o.Recorder = func(_ context.Context, r record.Prompt) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Prompt != nil && r.Prompt.Receipt.Agent == "count" {
			records, before = append(records, r), append(before, len(m.calls))
		}
		return nil
	}
	res := run(t, countingTeam(t, m), o, counting()...)
	require.NoError(t, res.Err())
	require.Equal(t, right, of(t, res, "count").Result)
	require.Equal(t, []int{0, 1}, before, "each call is recorded before it is made")
	require.Len(t, m.calls, 2)
	first, later := m.calls[0].Messages, m.calls[1].Messages
	require.Equal(t, m.calls[0].System, m.calls[1].System)
	require.Equal(t, first, later[:1], "the second call appends to the first")
	require.Equal(t, []string{llm.User, llm.Assistant, llm.User}, []string{later[0].Role, later[1].Role, later[2].Role})
	require.Equal(t, unfit, later[1].Text)
	require.Contains(t, later[2].Text, "/n: found \"forty-two\"; expected type \"integer\"")
	require.Equal(t, first[0].Text, words(records[0].Prompt.Text), "a record has what its call adds")
	require.Equal(t, "## assistant\n"+unfit+"\n\n## user\n"+later[2].Text, words(records[1].Prompt.Text))

	second := records[1]
	id := string(of(t, res, "count").ID)
	require.Equal(t, "r/"+id+"/1/turn/2", second.Prompt.Receipt.Session)
	kinds := map[handoff.SourceKind]string{}
	for _, h := range second.Handoffs {
		require.Equal(t, "r/"+id+"/1/turn/2", h.Session)
		require.Equal(t, gate.Passed, h.Verdict)
		kinds[h.Source.Kind] = h.From
	}
	require.Equal(t, map[handoff.SourceKind]string{handoff.Draft: "count", handoff.Fault: gate.Runtime}, kinds)

	receipts := of(t, res, "count").Receipts
	require.Len(t, receipts, 2)
	require.Equal(t, "r/"+id+"/1", receipts[0].Session)
	require.Equal(t, "r/"+id+"/1/turn/2", receipts[1].Session)
	require.Equal(t, llm.Usage{InputTokens: 30, OutputTokens: 3}, of(t, res, "count").Metrics.Usage)
	require.Equal(t, 1, of(t, res, "count").Metrics.Attempts)

	var kept []string
	for _, e := range journal.history(journal.len()).Log {
		switch {
		case e.Asked != nil && e.Asked.Agent == "count":
			kept = append(kept, "asked "+e.Asked.Session)
		case e.Rejected != nil:
			kept = append(kept, "rejected "+e.Rejected.Session+": "+e.Rejected.Result.Text)
		case e.Exchange != nil && e.Exchange.Agent == "count":
			kept = append(kept, "answered "+e.Exchange.Session)
		}
	}
	require.Equal(t, []string{
		"asked r/" + id + "/1", "rejected r/" + id + "/1: " + unfit, "asked r/" + id + "/1/turn/2",
		"answered r/" + id + "/1/turn/2", "answered r/" + id + "/1",
	}, kept)
}

// words joins the words of a shown prompt.
func words(pieces []promptview.Piece) (text string) {
	for i := range pieces {
		text += pieces[i].Words
	}
	return text
}

// TestAnsweredCorrectionIsNotRepeated resumes a run after each commit, and counts
// the calls: a durable answer is requested once.
func TestAnsweredCorrectionIsNotRepeated(t *testing.T) {
	t.Parallel()
	m := &corrected{first: unfit, then: right}
	journal := &memory{}
	want := run(t, countingTeam(t, m), &engine.RunOptions{RunID: "r", Journal: journal}, counting()...)
	require.NoError(t, want.Err())
	require.Equal(t, 2, m.count())
	seen := map[int]bool{}
	for n := range journal.len() + 1 {
		past, left := journal.history(n), 2
		for _, e := range past.Log {
			if e.Rejected != nil {
				left = 1
			}
			if e.Exchange != nil && e.Exchange.Agent == "count" {
				left = 0
			}
		}
		seen[left] = true
		again := &memory{}
		res := run(t, countingTeam(t, m), &engine.RunOptions{RunID: "r", Journal: again.after(past)}, counting()...)
		require.NoError(t, res.Err())
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		require.Equal(t, left, m.count(), "after %d commits", n)
		require.GreaterOrEqual(t, of(t, res, "count").Metrics.Usage.InputTokens, 30, "after %d commits", n)
	}
	require.Equal(t, map[int]bool{0: true, 1: true, 2: true}, seen)

	whole := journal.history(journal.len())
	res := run(t, countingTeam(t, m), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(whole)}, counting()...)
	same(t, document(t, want), document(t, res))
	require.Len(t, of(t, res, "count").Receipts, 2, "a replay has both prompts")
	res = run(t, countingTeam(t, m), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, counting()...)
	require.Equal(t, answers(want), answers(res))
	require.Zero(t, m.count())
}

// A crash between the two answers leaves a rejected answer, and a correction that
// was answered, and no result: then no agent is called.
func TestCorrectionThatWasAnsweredBeforeACrash(t *testing.T) {
	t.Parallel()
	m := &corrected{first: unfit, then: right}
	journal := &memory{}
	want := run(t, countingTeam(t, m), &engine.RunOptions{RunID: "r", Journal: journal}, counting()...)
	require.Equal(t, 2, m.count())
	past := journal.history(journal.len())
	cut := slices.IndexFunc(past.Log, func(e record.Entry) bool {
		return e.Exchange != nil && e.Exchange.Agent == "count" && e.Exchange.Part == ""
	})
	past.Log, past.End = past.Log[:cut], nil
	res := run(t, countingTeam(t, m), &engine.RunOptions{RunID: "r", Journal: after(past)}, counting()...)
	require.Equal(t, answers(want), answers(res))
	require.Zero(t, m.count())
	require.Equal(t, want.Usage, res.Usage)
}

// TestCorrectionPassesTheGate checks what is sent of a faulty answer.
func TestCorrectionPassesTheGate(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("a1B2c3D4", 5)[:36]
	m := &corrected{first: `{"n": "` + token + `", "mail": "jane@example.com"} <|im_start|>`, then: right}
	res := run(t, countingTeam(t, m), nil, counting()...)
	require.NoError(t, res.Err())
	sent := m.calls[1].Messages[1].Text
	require.NotContains(t, sent, token)
	require.NotContains(t, sent, "<|im_start|>")
	require.Contains(t, sent, "jane@example.com", "no edge is crossed: the agent's own words come back to it")

	m = &corrected{first: unfit + strings.Repeat("x", 2<<20), then: right}
	res = run(t, countingTeam(t, m), nil, counting()...)
	require.NoError(t, res.Err())
	require.Len(t, m.calls[1].Messages[1].Text, 256<<10)
	require.Contains(t, m.calls[1].Messages[2].Text, "up to its first 256 of 2048 KiB", "a long answer is cut like other context")
}

// A secret answer comes back to its agent without a rule for the pair, and to
// nobody else.
func TestCorrectionOfASecret(t *testing.T) {
	t.Parallel()
	m := &corrected{first: "canary " + unfit, then: right}
	secret := counting()[:1]
	secret[0].Classification = label.Secret
	secret = append(secret, spec("open"))
	secret[1].Assignee = "read"
	journal := &memory{}
	a := &audience{}
	o := a.options()
	o.Journal = journal
	var mu sync.Mutex // guards shown
	var shown strings.Builder
	o.Recorder = func(_ context.Context, r record.Prompt) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Prompt != nil {
			shown.WriteString(words(r.Prompt.Text) + words(r.Prompt.System))
		}
		return nil
	}
	res := run(t, countingTeam(t, m, func(c *engine.Member) { c.Accepts, c.Produces = label.Secret, new(label.Secret) }), o, secret...)
	require.Equal(t, task.Completed, of(t, res, "count").Status, of(t, res, "count").Result)
	require.Len(t, m.calls, 2)
	require.True(t, strings.Contains(m.calls[1].Messages[1].Text, "canary"))
	require.NotContains(t, shown.String(), "canary")
	require.NotContains(t, told(t, res, a), "canary")
	for _, e := range journal.history(journal.len()).Log {
		if e.Rejected != nil {
			require.Equal(t, label.Secret, e.Rejected.Result.Classification)
		}
	}
}

// TestCorrectionFails lists how an attempt ends whose correction does.
func TestCorrectionFails(t *testing.T) {
	t.Parallel()
	t.Run("the second answer is no better", func(t *testing.T) {
		t.Parallel()
		m := &corrected{first: unfit, then: unfit}
		res := run(t, countingTeam(t, m), nil, counting()...)
		require.Equal(t, codes.Schema, of(t, res, "count").Error.Code)
		require.Contains(t, of(t, res, "count").Error.Message, "also after a second try")
		require.NotContains(t, of(t, res, "count").Error.Message, "forty-two")
		require.Equal(t, 2, m.count(), "and there is no third")
		require.Equal(t, llm.Usage{InputTokens: 30, OutputTokens: 3}, res.Usage)
	})
	t.Run("no turn is left", func(t *testing.T) {
		t.Parallel()
		m := &corrected{first: unfit, then: right}
		tm := countingTeam(t, m, func(c *engine.Member) { c.Agent = agent.New(m, agent.Options{MaxTurns: 1}) })
		res := run(t, tm, nil, counting()...)
		require.Equal(t, codes.MaxTurns, of(t, res, "count").Error.Code)
		require.Equal(t, 1, m.count())
	})
	t.Run("the record cannot be kept", func(t *testing.T) {
		t.Parallel()
		m := &corrected{first: unfit, then: right}
		o := &engine.RunOptions{Recorder: func(_ context.Context, r record.Prompt) error {
			if r.Prompt != nil && strings.HasSuffix(r.Prompt.Receipt.Session, "/turn/2") {
				return errDisk
			}
			return nil
		}}
		res := run(t, countingTeam(t, m), o, counting()...)
		require.Equal(t, codes.Record, of(t, res, "count").Error.Code)
		require.Equal(t, 1, m.count(), "what is not recorded is not sent")
	})
	t.Run("the budget is spent", func(t *testing.T) {
		t.Parallel()
		m := &corrected{first: unfit, then: right}
		tm := countingTeam(t, m, func(c *engine.Member) { c.Agent = agent.New(m, agent.Options{Settings: llm.Settings{MaxTokens: 10}}) })
		res := run(t, tm, &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 110}}, counting()...)
		require.Equal(t, codes.Budget, of(t, res, "count").Error.Code)
		require.Equal(t, engine.StatusBudget, res.Status)
		require.Equal(t, 1, m.count())
	})
}
