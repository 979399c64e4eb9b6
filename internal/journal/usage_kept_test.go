package journal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// TestTokensAboveThePlaintextLimitAreClasses checks that the lines of a journal have no
// exact number of tokens of a secret task. With the key, it can be read back.
//
// Requirement: G42.
func TestTokensAboveThePlaintextLimitAreClasses(t *testing.T) {
	t.Parallel()
	took := llm.Usage{InputTokens: 71117, OutputTokens: 81119, CachedTokens: 60223, ReasoningTokens: 70489}
	price := llm.Price{Input: 1, Output: 1}
	for name, key := range map[string][]byte{"with a key": oneKey, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Key: key})
			require.NoError(t, err)
			defer j.Close() //nolint:errcheck // reads only
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			tm, err := engine.New(engine.Config{Prices: map[string]llm.Price{"m": price}, Agents: []engine.Member{{Name: "a", Backend: plan.Backend{Model: "m"}, Accepts: label.Secret, Agent: engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				return agent.Reply{Text: "done", Usage: took}, nil
			})}}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "t", Description: "x", Assignee: "a", Classification: label.Secret}},
				&engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Subscribers: []func(event.Event){func(event.Event) {}}})
			require.NoError(t, err)
			require.NoError(t, res.JournalErr)
			require.Equal(t, took, res.Usage, "the caller may see it")
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			text, err := journaltest.Text(j.Lines(t.Context(), "r1"))
			require.NoError(t, err)
			require.Contains(t, text, `{"exchange"`)
			for _, exact := range []string{"71117", "81119", "60223", "70489", fmt.Sprint(int64(price.Cost(took))), "cost"} {
				require.NotRegexp(t, `\b`+exact+`\b`, text) // digests and times may have the digits among others
			}
			s, err := j.Load(t.Context(), "r1")
			require.NoError(t, err)
			for _, e := range s.History.Log {
				if e.Exchange != nil {
					kept := e.Exchange
					require.Equal(t, key != nil, kept.Usage() == took)
					require.Equal(t, key != nil, kept.Cost == price.Cost(took))
				}
			}
		})
	}
}
