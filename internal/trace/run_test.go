package trace_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// run has a team of three read two inputs, of which the user is not cleared
// for one, and writes its trace to w.
func run(t *testing.T, w *trace.Writer, asked func()) *engine.Result {
	echo := func(prefix string) engine.Agent {
		return engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			asked()
			var text strings.Builder
			text.WriteString(prefix)
			for _, s := range p.Sections() {
				text.WriteString(" " + s.Text)
			}
			return agent.Reply{Text: text.String()}, nil
		})
	}
	tm, err := engine.New(engine.Config{Name: "echoes", Agents: []engine.Member{
		{Name: "open", Agent: echo("opened:"), Accepts: label.Confidential},
		{Name: "closed", Agent: echo("closed:"), Accepts: label.Confidential},
		{Name: "both", Agent: echo("both:"), Accepts: label.Confidential},
	}})
	require.NoError(t, err)
	accepts := label.Internal
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Read the open one", Description: "Read.", Assignee: "open", Uses: []task.Use{{Name: "public"}}},
		{Title: "Read the closed one", Description: "Read.", Assignee: "closed", Uses: []task.Use{{Name: "private"}}},
		{Title: "Read both", Description: "Join.", Assignee: "both", DependsOn: task.On("Read the open one", "Read the closed one")},
		{Title: "Read on", Description: "Go on.", Assignee: "open", DependsOn: task.On("Read the open one")},
	}, &engine.RunOptions{
		RunID: "r7", UserAccepts: &accepts, Output: "Read on", Recorder: w.Record, Subscribers: []func(event.Event){w.Event},
		Inputs: []engine.Input{
			{Name: "public", Text: "an open word", Classification: label.Internal},
			{Name: "private", Text: canary, Classification: label.Confidential},
		},
	})
	require.NoError(t, err)
	return res
}

// A real run leaves a trace that is whole, sound and verified, in which no
// canary above the caller's clearance stands.
//
// Requirement: G42.
func TestTraceOfARunHasNothingAboveTheCaller(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Options{Name: "echoes"})
	res := run(t, w, func() {})
	require.True(t, res.Success())
	head, err := w.Close(res, time.Now())
	require.NoError(t, err)
	require.NotContains(t, out.String(), canary)
	require.NotContains(t, out.String(), "closed:")

	tr := read(t, out.Bytes())
	requireSound(t, tr)
	require.Equal(t, "r7", tr.Run)
	require.Len(t, tr.Prompts, 4)
	decisions := 0
	for i := range tr.Prompts {
		p := &tr.Prompts[i]
		require.NotEmpty(t, p.Title)
		require.Equal(t, 1, p.Attempt)
		for _, s := range p.Receipt.Sources {
			if s.Decision != nil {
				decisions++
			}
		}
	}
	report, err := audit.Verify(bytes.NewReader(out.Bytes()), audit.VerifyOptions{Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
	toUser := 0
	for i := range tr.Handoffs {
		if tr.Handoffs[i].To == handoff.User {
			toUser++
		}
	}
	require.Equal(t, len(tr.Prompts), toUser, "each result went to the caller")
	require.Equal(t, decisions+toUser, report.Decisions, "each piece of context in a prompt has its decision")

	s := tr.Contains("an open word")
	require.Equal(t, trace.Origin{By: handoff.User, Kind: trace.FromInput, Name: "public"}, s.Origins[0])
	require.Len(t, s.Origins, 1)
	s = tr.Contains("opened: opened:")
	require.Len(t, s.Origins, 1)
	require.Equal(t, "Read on", s.Origins[0].Name)
	require.Zero(t, s.Origins[0].Unseen)

	both, err := tr.Find("Read both")
	require.NoError(t, err)
	at := slices.IndexFunc(tr.Prompts, func(p trace.Prompt) bool { return p.Receipt.Task == both.ID })
	require.NotEqual(t, -1, at)
	joined := &tr.Prompts[at]
	require.Equal(t, 1, joined.Withheld())
	_, _, inputs := tr.Absent(joined, 0)
	require.Empty(t, inputs, "nobody said which inputs there are")
}

// Translations for an attempt belong to it.
func TestTranslationBelongsToItsAttempt(t *testing.T) {
	t.Parallel()
	says := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "It is so."}, nil })
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{{Name: "maker", Agent: says}, {Name: "reader", Agent: says}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{
			{From: "maker", To: "reader", Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 50, ByModel: true}},
		}},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Options{})
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "One", Description: "Make.", Assignee: "maker"}, {Title: "Two", Description: "Make.", Assignee: "maker"},
		{Title: "Join", Description: "Join.", Assignee: "reader", DependsOn: task.On("One", "Two")},
	}, &engine.RunOptions{RunID: "a/b", Recorder: w.Record, Subscribers: []func(event.Event){w.Event}})
	require.NoError(t, err)
	require.True(t, res.Success())
	_, err = w.Close(res, time.Now())
	require.NoError(t, err)
	tr := read(t, out.Bytes())
	require.Len(t, tr.Prompts, 5, "three tasks, two retellings")
	for i := range tr.Prompts {
		require.Equal(t, 1, tr.Prompts[i].Attempt, tr.Prompts[i].Receipt.Session)
	}
}

// Nothing is sent that could not be written down.
//
// Requirement: G44.
func TestNoAgentIsCalledWithoutARecord(t *testing.T) {
	t.Parallel()
	w := trace.NewWriter(&full{}, trace.Options{})
	res := run(t, w, func() { t.Error("an agent was asked") })
	require.False(t, res.Success())
	for _, e := range res.Errors {
		require.NotContains(t, e.Message, canary)
	}
	_, err := w.Close(res, time.Now())
	require.ErrorIs(t, err, errFull)
	require.True(t, strings.Contains(res.Tasks[0].Error.Message, errFull.Error()) || errors.Is(res.Err(), errFull), "%v", res.Err())
}
