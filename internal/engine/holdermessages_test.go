package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// TestAHolderReadsAQuestion checks that a wait for a reply ends when the conversation ends of which a later holder has
// read the question, although the reader has a task that has not begun.
func TestAHolderReadsAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		tm := edged(t, append(both("x<>b"), handoff.Edge{From: "c", To: "b", Transfer: true}),
			n.member(t, "x", requires("b", "Which order?", 30), done),
			n.member(t, "b", waits, done),
			n.member(t, "c", waits, waits, transfers("b")),
			n.member(t, "s", waits, waits, waits, waits, waits, waits, waits, waits, done))
		late := by("b", task.Spec{Title: "late", Description: "x", DependsOn: task.On("s")})
		res := run(t, tm, &engine.RunOptions{}, spec("x"), spec("c"), spec("s"), late)
		require.NoError(t, res.Err())
		require.Contains(t, strings.Join(n.asked["b"], "\n"), "Which order?")
		require.Contains(t, n.last("x"), "No reply: no task of b is left that could reply.")
		require.InDelta(t, 6, minutesOf(t, res, "x"), 0.01, "until the conversation has ended")
	})
}

// TestARefusedTransferBackPutsNothingBack checks that what an earlier holder has read stays read if the conversation
// cannot be transferred to it again.
func TestARefusedTransferBackPutsNothingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFrontDesk(t)
		cleared := label.Confidential
		triage := d.member("triage", transfers("billing", "r"))
		billing := d.member("billing", step{text: "done", to: func(conversation string) []llm.ToolCall {
			if strings.Contains(conversation, "Close the day.") {
				return nil
			}
			return transfers("shipping", "r").calls
		}})
		shipping := d.member("shipping", transfers("billing", "r"), step{text: "done"})
		boss := d.member("boss", step{text: "done"}) // might send something, so that the conversation may be confidential
		boss.Tools, boss.AllowUntrusted = nil, nil
		triage.Accepts, shipping.Accepts, boss.Accepts = cleared, cleared, cleared
		tm, err := engine.New(engine.Config{
			Agents: []engine.Member{triage, billing, shipping, boss},
			Edges:  append(transferring("triage>billing", "billing<>shipping"), edges("boss>triage")...),
		})
		require.NoError(t, err)
		o := &engine.RunOptions{UserAccepts: &cleared, MaxConcurrency: 1, Inputs: []engine.Input{{Name: "deal", Text: "x", Classification: cleared}}, Messages: []plan.Message{
			{From: handoff.User, To: "billing", Text: "CANARY", Classification: label.Internal},
			{From: handoff.User, To: "shipping", Text: "the address", Classification: cleared},
		}}
		last := by("billing", task.Spec{Title: "After", Description: "Close the day.", Tools: []string{}})
		res := run(t, tm, o, supportTask, last, by("boss", task.Spec{Title: "Deal", Description: "Make it.", Uses: []task.Use{{Name: "deal"}}}))
		require.NoError(t, res.Err())
		require.Contains(t, d.last("shipping"), "Call refused: your context is confidential, and billing may see internal.")
		had := 0
		for _, p := range d.asked["billing"] {
			had += strings.Count(p.Text(), "CANARY")
		}
		require.Equal(t, 1, had, "one conversation has it")
	})
}
