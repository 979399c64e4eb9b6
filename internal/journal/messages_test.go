package journal_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// talking is a team in which maker sends reader a message above the plaintext limit, or
// below it, and reader fails until it may answer.
func talking(t *testing.T, answers bool, read *[]string) (*engine.Team, []task.Spec) {
	maker := ver{func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "made"}, engine.OutboxFrom(ctx).Send("reader", "canary-message")
	}}
	reader := ver{func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		*read = append(*read, p.Text())
		if !answers {
			return agent.Reply{}, context.DeadlineExceeded
		}
		return agent.Reply{Text: "read"}, nil
	}}
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{{Name: "maker", Agent: maker, Accepts: label.Secret}, {Name: "reader", Agent: reader, Accepts: label.Secret}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{exact("maker", "reader")}},
		Edges:  []handoff.Edge{{From: "maker", To: "reader"}},
	})
	require.NoError(t, err)
	return tm, []task.Spec{
		{Title: "make", Description: "Make.", Assignee: "maker"},
		{Title: "read", Description: "Read.", Assignee: "reader", DependsOn: []task.Ref{{Task: "make", Optional: true}}},
	}
}

// A message above the plaintext limit is in no file in clear, and with the key of the
// journal the run is resumed with it; one that was altered is not delivered.
//
// Requirement: G42.
func TestMessagesAreStoredLikeResults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		level  label.Classification
		key    []byte
		alter  string
		kept   bool // the text is in the file
		reads  bool
		reason string
	}{
		"in clear":           {label.Internal, nil, "", true, true, ""},
		"secret with a key":  {label.Secret, oneKey, "", false, true, ""},
		"secret without one": {label.Secret, nil, "", false, true, "which was sent before, is lost"},
		"altered text":       {label.Internal, oneKey, `"canary-message"`, true, false, "which was sent before, is lost"},
		"for another reader": {label.Internal, oneKey, `"from":"maker","to":"reader"`, true, false, "which was sent before, is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			j, err := journal.Open(path, journal.Options{Key: tt.key})
			require.NoError(t, err)
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			var read []string
			tm, specs := talking(t, false, &read)
			for i := range specs {
				specs[i].Classification = tt.level
			}
			res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Bus: tm.NewBus()})
			require.NoError(t, err)
			require.NoError(t, res.JournalErr)
			require.Contains(t, read[0], "canary-message")
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			require.NoError(t, j.Close())
			require.Equal(t, tt.kept, strings.Contains(allText(t, path), "canary-message"))
			if tt.alter != "" {
				rewrite(t, path, func(s string) string {
					return strings.Replace(s, tt.alter, strings.NewReplacer("canary-message", "forged-message", `"to":"reader"`, `"to":"*"`).Replace(tt.alter), 1)
				})
			}

			j, err = journal.Open(path, journal.Options{Key: tt.key})
			require.NoError(t, err)
			defer j.Close()
			r, _, err = j.Resume(t.Context(), "r1")
			require.NoError(t, err)
			read = nil
			tm, _ = talking(t, true, &read)
			res, err = tm.Resume(t.Context(), "r1", &engine.RunOptions{Tasks: specs, Journal: journaltest.Opened(r), UserAccepts: new(label.Secret)})
			require.NoError(t, err)
			require.Equal(t, task.Completed, res.Tasks[1].Status)
			require.Equal(t, tt.reads, strings.Contains(read[len(read)-1], "canary-message"))
			require.NotContains(t, read[len(read)-1], "forged-message")
			require.Contains(t, strings.Join(res.Warnings, "\n"), tt.reason)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
		})
	}
}
