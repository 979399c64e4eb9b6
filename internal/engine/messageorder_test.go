package engine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// gossip is a team whose agents send each other handoffs, ask and reply, and have children, and its tasks.
func gossip(t *testing.T, n *newsroom) (*engine.Team, []task.Spec) {
	researches := step{text: "found", to: func(conversation string) []llm.ToolCall {
		if strings.Contains(conversation, "look into") {
			return nil // a child, or its parent when it has the results
		}
		return []llm.ToolCall{sendsTo("ada", "I begin."), spawns("look into x"), spawns("look into y"), sendsTo("bob", "I go on.")}
	}}
	carl := n.member(t, "carl", researches)
	carl.Spawn = &plan.Spawning{Max: 4}
	tm := edged(t, both("ada<>bob", "ada<>carl", "bob<>carl"),
		n.member(t, "ada", step{calls: []llm.ToolCall{sendsTo("carl", "One."), sendsTo("bob", "Two."), sendsTo("carl", "Three.")}}, requires("bob", "Four?"), waits, done),
		n.member(t, "bob", step{calls: []llm.ToolCall{sendsTo("carl", "Five."), sendsTo("ada", "Six.")}}, waits, replies("ada", "Seven."), waits, done),
		carl)
	return tm, []task.Spec{spec("ada"), spec("bob"), spec("carl"), by("carl", spec("print", "ada", "bob"))}
}

// ordered is everything that a run stored of each task and that its agents were asked, in order. An agent that has its
// reply and the one that sent it work at the same time, so their entries have no order among each other.
func ordered(t *testing.T, h *record.History, n *newsroom) string {
	lines := map[string][]string{} // by task
	for i := range h.Log {
		e := &h.Log[i]
		for _, one := range []any{e.Asked, e.Exchange, e.Sent, e.Turn, e.ToolCall, e.ToolResult} {
			raw, err := json.Marshal(one)
			require.NoError(t, err)
			if string(raw) == "null" {
				continue
			}
			var of struct{ Session string }
			require.NoError(t, json.Unmarshal(raw, &of))
			_, at, _ := strings.Cut(strings.TrimPrefix(of.Session, "r/"), "/")
			name := strings.TrimSuffix(of.Session, at)
			lines[name] = append(lines[name], string(raw))
		}
	}
	var b strings.Builder
	for _, of := range []map[string][]string{lines, n.asked} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			b.WriteString(name + "\n" + strings.Join(of[name], "\n") + "\n")
		}
	}
	return b.String()
}

// TestEqualOrderOfHandoffs checks that a scripted order has the same entries in the journal and the same prompts in
// every run, and that a replay has the same results without asking anybody.
func TestEqualOrderOfHandoffs(t *testing.T) {
	t.Parallel()
	first := ""
	runs := 10
	if slowtest.Enabled() {
		runs = 100
	}
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			n, journal := &newsroom{}, &memory{}
			tm, specs := gossip(t, n)
			res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal, MaxConcurrency: 1}, specs...)
			require.NoError(t, res.Err())
			was := ordered(t, journal.history(journal.len()), n)
			if i > 0 {
				require.Equal(t, first, was, "run %d", i)
				return
			}
			first = was
			for _, text := range []string{"One.", "Two.", "Three.", "Four?", "Five.", "Six.", "Seven.", "I begin.", "I go on.", "look into y"} {
				require.Contains(t, first, text)
			}
			again := &newsroom{}
			tm, _ = gossip(t, again)
			replayed, err := start(t.Context(), tm, specs, &engine.RunOptions{RunID: "r", MaxConcurrency: 1, Journal: after(journal.history(journal.len())), Replay: &engine.Replay{}})
			require.NoError(t, err)
			require.Equal(t, answers(res), answers(replayed))
			require.Empty(t, again.asked)
		})
	}
}
