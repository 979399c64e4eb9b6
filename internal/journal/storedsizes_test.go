package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// The caller may see secrets, and readers of the file may not: it holds size classes of
// inputs and messages above the plaintext limit, with a key and without one.
//
// Requirement: G42.
func TestSizesAboveThePlaintextLimitAreClasses(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"with a key": oneKey, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Key: key})
			require.NoError(t, err)
			defer j.Close() //nolint:errcheck // reads only
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			var read []string
			tm, specs := talking(t, true, &read)
			for i := range specs {
				specs[i].Classification = label.Secret
			}
			res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{
				RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Bus: tm.NewBus(),
				Inputs: []engine.Input{{Name: "pin", Text: "4711", Classification: label.Secret}, {Name: "year", Text: "2026"}},
			})
			require.NoError(t, err)
			require.NoError(t, res.JournalErr)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			inputs, messages := 0, 0
			for text, err := range j.Lines(t.Context(), "r1") {
				require.NoError(t, err)
				if !strings.HasPrefix(string(text), `{"begin"`) && !strings.HasPrefix(string(text), `{"message"`) {
					continue
				}
				var line struct {
					Begin struct {
						Inputs []struct {
							Name  string
							Bytes int
						}
					}
					Message struct{ Bytes int }
				}
				require.NoError(t, json.Unmarshal(text, &line))
				for _, given := range line.Begin.Inputs {
					inputs++
					require.Equal(t, map[string]int{"pin": bytesize.Class(1), "year": 4}[given.Name], given.Bytes, given.Name)
				}
				if strings.HasPrefix(string(text), `{"message"`) {
					messages++
					require.Equal(t, bytesize.Class(1), line.Message.Bytes)
				}
			}
			require.Equal(t, 2, inputs)
			require.Equal(t, 1, messages)
		})
	}
}

// A process that resumes a run stores no exact sizes of results above the plaintext limit, which an earlier one made: not with
// the end of their tasks, and not in the sum of the run.
//
// Requirement: G42.
func TestALaterProcessStoresClassesToo(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"with a key": oneKey, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := journal.InMemory(journal.Options{Key: key})
			defer j.Close() //nolint:errcheck // it is in memory
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			fails := true
			agents := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				if strings.Contains(p.Text(), "Make.") {
					return agent.Reply{Text: "made", Usage: llm.Usage{InputTokens: 5, OutputTokens: 71117}, Turns: 1}, nil
				}
				if fails {
					return agent.Reply{}, errors.New("not yet")
				}
				return agent.Reply{Text: "done"}, nil
			})
			tm, err := engine.New(engine.Config{
				Agents: []engine.Member{{Name: "maker", Agent: ver{agents}, Accepts: label.Secret}},
				Policy: &handoff.Policy{Rules: []handoff.PairRule{exact("maker", handoff.User)}},
			})
			require.NoError(t, err)
			specs := []task.Spec{{Title: "make", Description: "Make.", Assignee: "maker", Classification: label.Secret}, {Title: "other", Description: "Do.", Assignee: "maker", Classification: label.Public}}
			_, err = tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret)})
			require.NoError(t, err)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			fails = false
			r, _, err = j.Resume(t.Context(), "r1")
			require.NoError(t, err)
			res, err := tm.Resume(t.Context(), "r1", &engine.RunOptions{Tasks: specs, Journal: journaltest.Opened(r), UserAccepts: new(label.Secret)})
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Equal(t, 71117, res.Usage.OutputTokens)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			text, err := journaltest.Text(j.Lines(t.Context(), "r1"))
			require.NoError(t, err)
			require.NotContains(t, text, `:71117`)
		})
	}
}
