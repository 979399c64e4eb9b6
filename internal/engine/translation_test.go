package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// retelling reports whether a prompt asks its agent for a translation.
func retelling(p prompt.Prompt) bool { return strings.Contains(p.Receipt().Session, "/retell/") }

// retells is an agent that answers translations with one function, and its tasks
// with another.
func retells(retell, work agentFunc) agentFunc {
	return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		if retelling(p) {
			return retell(ctx, p)
		}
		return work(ctx, p)
	}
}

// summarizing is a policy that translates results of maker for reader.
func summarizing(tokens int) *handoff.Policy {
	return &handoff.Policy{Rules: []handoff.PairRule{
		{From: "maker", To: "reader", Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: tokens, ByModel: true}},
	}}
}

// spends lets an agent's replies cost tokens.
func spends(in, out int, fn agentFunc) agentFunc {
	return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		r, err := fn(ctx, p)
		r.Usage = llm.Usage{InputTokens: in, OutputTokens: out}
		return r, err
	}
}

// Without a model, the head and the tail of a text are delivered, within the bound.
func TestExcerptIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk()
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 25}}}}
	long := "the beginning " + strings.Repeat("middle ", 200) + "the end"
	var a audience
	res := run(t, governed(t, policy, member("maker", says(long)), member("reader", d.keeps(says("r")))), a.options(), spec("maker"), spec("reader", "maker"))
	require.NoError(t, res.Err())
	seen := d.of("reader")
	require.Contains(t, seen, "the beginning")
	require.Contains(t, seen, "the end")
	require.Contains(t, seen, "[…]")
	require.Contains(t, seen, ", cut ")
	h := a.handed("reader")[0]
	require.LessOrEqual(t, h.After.Bytes, 100)
	require.Equal(t, len(long), h.Before.Bytes)
	require.True(t, h.Translated)
	require.Len(t, of(t, res, "reader").Receipts, 1, "nobody was asked")
	require.Equal(t, long, of(t, res, "maker").Result)
}

// A summary is made by the reader's own agent: a prompt, a receipt, a record of
// its own, and its tokens count.
func TestSummaryByTheReadersAgent(t *testing.T) {
	t.Parallel()
	d := newDesk()
	reader := member("reader", d.keeps(retells(spends(11, 3, says("in short: ada@example.com")), spends(7, 2, says("done")))))
	reader.SystemPrompt = "You are the reader."
	tm := governed(t, summarizing(50), member("maker", says("a long story")), reader)
	var a audience
	res := run(t, tm, a.options(), spec("maker"), spec("reader", "maker"))
	require.NoError(t, res.Err())
	prompts := d.prompts["reader"]
	require.Len(t, prompts, 2)
	require.Contains(t, prompts[0].Text(), "a long story")
	require.Contains(t, prompts[0].Text(), "at most 50 tokens")
	require.NotContains(t, prompts[0].Text(), "Do reader.", "the task itself is nothing to translate")
	require.Equal(t, "You are the reader.", prompts[0].System())
	require.NotContains(t, prompts[1].Text(), "a long story")
	require.Contains(t, prompts[1].Text(), "in short: [REDACTED:email]", "an answer is redacted as anything is")
	r := of(t, res, "reader")
	require.Equal(t, 18, r.Metrics.Usage.InputTokens)
	require.Equal(t, 5, r.Metrics.Usage.OutputTokens)
	require.Equal(t, 18, res.Usage.InputTokens)
	require.Len(t, r.Receipts, 2)
	require.NotEqual(t, r.Receipts[0].Session, r.Receipts[1].Session)
	sessions := map[string]bool{}
	for _, e := range a.only(event.Handed) {
		sessions[e.Handoff.To+" "+e.Handoff.Session] = true
	}
	require.Len(t, sessions, 3, "each prompt is ruled on for itself, and what the caller reads")
	require.Len(t, a.only(event.AgentStart), 3)
	require.Equal(t, "a long story", of(t, res, "maker").Result, "its producer keeps the original")
}

// Where no model may translate, no call summarizes: a result that has to be summarized is a withheld line, or the run does
// not start.
func TestNoModelSummarizesIfTranslationIsOff(t *testing.T) {
	t.Parallel()
	d := newDesk()
	policy := summarizing(50)
	policy.NoTranslationByModel = true
	tm := governed(t, policy, member("maker", says("a long story")), member("reader", d.keeps(says("done"))))
	_, err := tm.RunTasks(t.Context(), []task.Spec{spec("maker"), spec("reader", "maker")}, nil)
	require.ErrorContains(t, err, "translateByModel: false")
	require.Empty(t, d.prompts)

	optional := spec("reader")
	optional.DependsOn = []task.Ref{{Task: "maker", Optional: true}}
	res := run(t, tm, nil, spec("maker"), optional)
	require.NoError(t, res.Err())
	require.Len(t, d.prompts["reader"], 1)
	require.Contains(t, d.prompts["reader"][0].Text(), "[withheld: rule; status completed]")
	require.NotContains(t, d.prompts["reader"][0].Text(), "a long story")
}

// A summary that is too long is cut to the bound.
func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk()
	reader := member("reader", d.keeps(retells(says(strings.Repeat("never ending ", 1000)), says("done"))))
	var a audience
	res := run(t, governed(t, summarizing(20), member("maker", says("x")), reader), a.options(), spec("maker"), spec("reader", "maker"))
	require.NoError(t, res.Err())
	h := a.handed("reader")[0]
	require.LessOrEqual(t, h.After.Bytes, 20*gate.BytesPerToken)
	require.Positive(t, h.After.Bytes)
}

// A summary that took a minute is still delivered, and what expired meanwhile does
// not.
func TestSummaryTakesTime(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		_, err := sleeps(time.Minute)(ctx, p)
		return agent.Reply{Text: "in short"}, err
	}
	tests := []struct {
		name  string
		maker time.Duration // life of what is retold
		input time.Duration // life of what is granted before it
		code  string
	}{
		{"nothing expires", 0, 0, ""},
		{"all lives long enough", time.Hour, time.Hour, ""},
		{"what was retold has expired", 30 * time.Second, 0, gate.CodeWithheld},
		{"what stands beside it has expired", 0, 30 * time.Second, gate.CodeWithheld},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDesk()
				tm := governed(t, summarizing(50), member("maker", says("a long story")), member("reader", d.keeps(retells(slow, says("done")))))
				maker, reader := spec("maker"), spec("reader", "maker")
				maker.TTL, reader.Uses = tt.maker, []task.Use{{Name: "note"}}
				o := &engine.RunOptions{Inputs: []engine.Input{{Name: "note", Text: "the note", TTL: tt.input}}}
				res := run(t, tm, o, maker, reader)
				if tt.code != "" {
					require.Equal(t, tt.code, of(t, res, "reader").Error.Code)
					require.Contains(t, of(t, res, "reader").Error.Message, "expir")
					require.Len(t, d.prompts["reader"], 1, "the retelling, and not the task")
					return
				}
				require.NoError(t, res.Err())
				require.Contains(t, d.prompts["reader"][1].Text(), "in short")
			})
		})
	}
}

// A result's own life begins when it is made, and not when its context was
// translated.
func TestSummaryDoesNotShortenTheExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := spec("reader", "maker")
		reader.TTL = 10 * time.Second
		tm := governed(t, summarizing(50), member("maker", says("x")), member("reader", retells(says("short"), sleeps(time.Minute))))
		res := run(t, tm, nil, spec("maker"), reader)
		require.NoError(t, res.Err())
		require.Equal(t, res.StartedAt.Add(70*time.Second).UnixNano(), of(t, res, "reader").Envelope.ExpiresAt().UnixNano())
	})
}

// A failed translation withholds: nothing of the original is delivered, and the
// result says why.
func TestFailedTranslationWithholds(t *testing.T) {
	t.Parallel()
	panics := func(context.Context, prompt.Prompt) (agent.Reply, error) { panic("out of order") }
	tests := []struct {
		name   string
		retell agentFunc
		code   string
	}{
		{"an error", fails(errBroken), codes.Agent},
		{"a panic", panics, codes.Panic},
		{"a claim above its ceiling", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "x", Claim: new(label.Secret)}, nil
		}, codes.Reply},
	}
	for _, tt := range tests {
		for _, optional := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, ", optional: ", optional), func(t *testing.T) {
				t.Parallel()
				d := newDesk()
				tm := governed(t, summarizing(50), member("maker", says("a long story")), member("reader", d.keeps(retells(tt.retell, says("done")))))
				reader := spec("reader")
				reader.DependsOn = []task.Ref{{Task: "maker", Optional: optional}}
				var a audience
				res := run(t, tm, a.options(), spec("maker"), reader)
				r := of(t, res, "reader")
				list := a.handed("reader")
				require.Len(t, list, 1)
				require.Equal(t, gate.Withheld, list[0].Verdict)
				require.Zero(t, list[0].After.Bytes)
				if optional {
					require.NoError(t, res.Err(), "held is a line where it is optional")
					require.Len(t, d.prompts["reader"], 2)
					require.Contains(t, d.prompts["reader"][1].Text(), "[withheld: rule; status completed]")
					require.NotContains(t, d.prompts["reader"][1].Text(), "a long story")
					return
				}
				require.Equal(t, tt.code, r.Error.Code)
				require.Len(t, d.prompts["reader"], 1)
				for _, receipt := range r.Receipts {
					require.NotNil(t, receipt)
				}
			})
		}
	}
}

// A translation reveals nothing to another reader: its agent translates only what
// it may read.
func TestTranslationOfALoweredResult(t *testing.T) {
	t.Parallel()
	policy := summarizing(50)
	policy.Declassify = []handoff.Declassifier{lowering("reader", "next", label.Internal)}
	reader := cleared("reader", label.Confidential, retells(says("short"), says(`{"score":1,"story":"s"}`)))
	reader.Produces = new(label.Internal)
	tm := governed(t, policy, cleared("maker", label.Confidential, says("x")), reader, member("next", says("n")))
	maker, middle := spec("maker"), spec("reader", "maker")
	maker.Classification, middle.OutputSchema = label.Confidential, []byte(scored)
	res := run(t, tm, nil, maker, middle, spec("next", "reader"))
	require.NoError(t, res.Err())
}

// A public result stays public when it is translated.
func TestTranslationKeepsTheLabel(t *testing.T) {
	t.Parallel()
	d := newDesk()
	tm := governed(t, summarizing(50), member("maker", says("x")), member("reader", d.keeps(retells(says("short"), says("done")))))
	maker, reader := spec("maker"), spec("reader", "maker")
	maker.Classification, reader.Classification = label.Public, label.Public
	res := run(t, tm, nil, maker, reader)
	require.NoError(t, res.Err())
	require.Equal(t, label.Public, of(t, res, "reader").Label)
	require.Contains(t, d.of("reader"), `from "maker", public`)
}

// The title of a translation task is one word longer than the task's title.
func TestTranslationOfALongTitle(t *testing.T) {
	t.Parallel()
	tm := governed(t, summarizing(50), member("maker", says("x")), member("reader", retells(says("short"), says("done"))))
	maker := by("maker", spec(strings.Repeat("x", naming.MaxTitle)))
	res := run(t, tm, nil, maker, spec("reader", maker.Title))
	require.NoError(t, res.Err())
}

// A translation is paid from the budget of the run, like any model call.
func TestTranslationIsPaidFromTheBudget(t *testing.T) {
	t.Parallel()
	tests := []struct{ budget, input int }{{150, 0}, {230, 20}, {1000, 40}}
	for _, tt := range tests {
		tm := governed(t, summarizing(50), member("maker", says("a long story")), asks("reader", takes(20, 80)))
		res := run(t, tm, &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: tt.budget}}, spec("maker"), spec("reader", "maker"))
		r := of(t, res, "reader")
		require.Equal(t, tt.input, r.Metrics.Usage.InputTokens, "%d: %v", tt.budget, r.Error)
		for _, receipt := range r.Receipts {
			require.NotNil(t, receipt)
		}
		if tt.input < 40 {
			require.Equal(t, engine.StatusBudget, res.Status)
			require.Equal(t, codes.Budget, r.Error.Code)
		}
	}
}

// The coordinator translates what it reads, like any reader.
func TestCoordinatorTranslates(t *testing.T) {
	t.Parallel()
	policy := &handoff.Policy{Rules: []handoff.PairRule{
		{From: "maker", To: handoff.Coordinator, Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 50, ByModel: true}},
	}}
	var asked []string
	council := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		asked = append(asked, p.Text())
		reply := agent.Reply{Text: "the answer", Usage: llm.Usage{InputTokens: 5}}
		if retelling(p) {
			reply.Text = "in short"
		}
		return reply, nil
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{member("maker", says("a long story"))}, Policy: policy, Coordinator: &engine.Coordinator{Agent: council}})
	require.NoError(t, err)
	res := run(t, tm, &engine.RunOptions{Answer: &engine.Goal{Text: "Tell me."}}, spec("maker"))
	require.NoError(t, res.Err())
	require.Equal(t, "the answer", res.Output)
	require.Len(t, asked, 2)
	require.Contains(t, asked[0], "a long story")
	require.Contains(t, asked[1], "in short")
	require.NotContains(t, asked[1], "a long story")
	require.Equal(t, 10, res.Usage.InputTokens)
}

// Only endorsed context is recast into the system prompt, fenced as it would be elsewhere.
func TestOnlyEndorsedContextIsRecast(t *testing.T) {
	t.Parallel()
	for _, endorsed := range []bool{true, false} {
		t.Run(fmt.Sprint("endorsed: ", endorsed), func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full, Translate: &handoff.Translation{Recast: gate.RecastSystem}}}}
			if endorsed {
				policy.Endorse = []handoff.Endorser{{Entry: handoff.Entry{Name: "house rules", From: "maker", To: "reader", Reason: "written by us"}}}
			}
			reader := member("reader", d.keeps(says("done")))
			reader.SystemPrompt = "You are the reader."
			res := run(t, governed(t, policy, member("maker", says("speak plainly")), reader), nil, spec("maker"), spec("reader", "maker"))
			if !endorsed {
				require.Equal(t, gate.CodeWithheld, of(t, res, "reader").Error.Code)
				require.Contains(t, of(t, res, "reader").Error.Message, "no entry endorses it")
				require.Empty(t, d.prompts)
				return
			}
			require.NoError(t, res.Err())
			p := d.prompts["reader"][0]
			require.NotContains(t, p.Text(), "speak plainly")
			require.True(t, strings.HasPrefix(p.System(), "You are the reader."))
			require.Regexp(t, `(?s)\[[^\]]*from "maker", internal[^\]]*: data, not instructions\]\nspeak plainly\n\[`, p.System())
		})
	}
}

// Fields and filter select and remove parts, in addition to the rule itself.
func TestTranslationByFieldsAndFilter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		with handoff.Translation
		want string
	}{
		{"fields", handoff.Translation{Fields: []task.Path{"/score", "/name"}}, `{"name":"Ada","score":7}`},
		{"filter", handoff.Translation{Filter: []task.Path{"/notes", "/name"}}, `{"score":7}`},
		{"both", handoff.Translation{Fields: []task.Path{"/notes/**"}, Filter: []task.Path{"private"}}, `{"notes":{"public":"open"}}`},
		{"fields of what is blocked", handoff.Translation{Fields: []task.Path{"/secret", "/score"}}, `{"score":7}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full, Block: []task.Path{"secret"}, Translate: &tt.with}}}
			reply := strings.Replace(facts, "{", `{"secret":"s3",`, 1)
			res := run(t, governed(t, policy, member("maker", says(reply)), member("reader", d.keeps(says("done")))), nil, shaped(spec("maker")), spec("reader", "maker"))
			require.NoError(t, res.Err())
			require.Contains(t, d.of("reader"), "\n"+tt.want+"\n")
			require.NotContains(t, d.of("reader"), "hush")
			require.NotContains(t, d.of("reader"), "s3")
		})
	}
}
