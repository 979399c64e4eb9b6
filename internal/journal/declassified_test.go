package journal_test

import (
	"context"
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
)

// TestDeclassifiedSecretIsNotStoredInClear runs a declassifier that lets a secret
// be delivered to a public reader, for a caller who may see it. The journal has no
// key, so it keeps the words neither with the secret result nor in the reader's
// prompt, and of what was found in them no count and no exact size.
//
// Requirement: G42.
func TestDeclassifiedSecretIsNotStoredInClear(t *testing.T) {
	t.Parallel()
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // reads only
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	read := ""
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{
			{Name: "maker", Accepts: label.Secret, Agent: engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				return agent.Reply{Text: "the canary-4711 sings to ada.one@example.org"}, nil
			})},
			{Name: "reader", Accepts: label.Public, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				read = p.Text()
				return agent.Reply{Text: "done", Usage: llm.Usage{InputTokens: 71117, OutputTokens: 5}}, nil
			})},
		},
		Policy: &handoff.Policy{
			Rules:      []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full}, {From: "maker", To: handoff.User, Mode: handoff.Full}},
			Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "lowered", From: "maker", To: "reader", Reason: "a test"}, Paths: []task.Path{task.Whole}, LowerTo: label.Public, UnsafeText: true}},
		},
	})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "make", Description: "Make it.", Assignee: "maker", Classification: label.Secret},
		{Title: "read", Description: "Read it.", Assignee: "reader", Classification: label.Public, DependsOn: []task.Ref{{Task: "make"}}},
	}, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret)})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Contains(t, read, "canary-4711")
	require.Contains(t, res.Tasks[0].Result, "canary-4711", "the caller may see it")
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	text, err := journaltest.Text(j.Lines(t.Context(), "r1"))
	require.NoError(t, err)
	require.Contains(t, text, "Read it.", "the prompt is there")
	require.NotContains(t, text, "canary-4711")
	require.Contains(t, text, `"handoff":{`, "the decisions are there")
	require.NotContains(t, text, `"redacted":{`, "what was found in the secret")
	require.NotContains(t, text, ":71117", "the size of a prompt with the secret")
}
