package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// What the agent of a secret task says to its tools and what they return is in no file of a
// journal, whatever becomes of the call. With the key, the conversation can be read.
//
// Requirement: G42.
func TestJournalHasNoSecretOfAConversation(t *testing.T) {
	t.Parallel()
	const arguments = `{"of":"canary-argument"}`
	eachLimit(t, func(t *testing.T, o journal.Options, level label.Classification, hidden bool) {
		path := filepath.Join(t.TempDir(), "runs.db")
		j, err := journal.Open(path, o)
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		returns := func(name string, result tool.Result, err error) *tool.Tool {
			return &tool.Tool{Name: name, Parameters: json.RawMessage(`{"type":"object"}`), Options: tool.Options{Effect: tool.None, Accepts: label.Secret, Produces: &level}, Run: func(context.Context, tool.Call) (tool.Result, error) { return result, err }}
		}
		tools := []*tool.Tool{
			returns("text", tool.Result{Text: "canary-text"}, nil),
			returns("value", tool.Result{JSON: json.RawMessage(`{"is":"canary-value"}`)}, nil),
			returns("failing", tool.Result{}, errors.New("canary-error")),
		}
		var given string
		does := ver{func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if len(p.Messages()) > 1 {
				given = p.Added()
				return agent.Reply{Text: "canary-answer"}, nil
			}
			reply := agent.Reply{Text: "canary-said"}
			for _, name := range []string{"text", "value", "failing", "canary-unknown"} {
				reply.ToolCalls = append(reply.ToolCalls, llm.ToolCall{Name: name, Arguments: arguments})
			}
			return reply, nil
		}}
		policy := &handoff.Policy{Rules: []handoff.PairRule{exact("one", "user")}}
		for _, f := range tools {
			policy.Rules = append(policy.Rules, exact("one", "tool:"+f.Name), exact("tool:"+f.Name, "one"))
		}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "one", Agent: does, Accepts: label.Secret, Tools: tools}}, Policy: policy})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "a", Description: "A.", Assignee: "one", Classification: level}}, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Reveal: true})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		for _, canary := range []string{"canary-said", "canary-argument", "canary-text", "canary-value", "canary-error"} {
			require.Contains(t, given, canary, "the agent must have been given what the journal hides")
		}
		text := allText(t, path)
		require.Contains(t, text, "tool:failing")
		requireCanaries(t, text, hidden, "canary-said", "canary-argument", "canary-text", "canary-value", "canary-error")
		for _, s := range []string{arguments, "text\x00" + arguments, "canary-text", `{"is":"canary-value"}`} {
			sum := sha256.Sum256([]byte(s))
			require.NotContains(t, text, hex.EncodeToString(sum[:]), "a digest of %q without a key", s)
		}
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		stored, err := j.Load(t.Context(), "r1")
		require.NoError(t, err)
		results := 0
		for _, e := range stored.History.Log {
			if e.ToolResult != nil {
				results++
				require.Equal(t, !hidden || o.Key != nil, e.ToolResult.Result != nil, e.ToolResult.Missing)
			}
		}
		require.Equal(t, 3, results)
		require.NoError(t, j.Close())
		requireCanaries(t, allText(t, path), hidden)
	})
}
