package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// One reply or error that is too large for a line of the journal fails its own
// task, and not the run.
func TestHugeReplyFailsOnlyItsTask(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	list, err := jsonvalue.Parse("[" + strings.Repeat("1e20,", 400_000) + "1]") // 2 MB, of which the canonical form takes 9
	require.NoError(t, err)
	huge := map[string]struct {
		reply agent.Reply
		err   error
		code  string
	}{
		"control characters": {agent.Reply{Text: strings.Repeat("\x01", 3<<20)}, nil, codes.Reply},
		"structured":         {agent.Reply{JSON: list}, nil, codes.Reply},
		"error":              {agent.Reply{}, errors.New(strings.Repeat("out of order ", 1_400_000)), codes.Agent},
	}
	for name, give := range huge {
		for _, level := range []label.Classification{label.Internal, label.Secret} { // in clear, and encrypted
			if !slowtest.Enabled() && (level == label.Secret) == (name == "structured") {
				continue // one of the two, where slow tests have both
			}
			t.Run(fmt.Sprint(name, " ", level), func(t *testing.T) {
				t.Parallel()
				j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Key: oneKey})
				require.NoError(t, err)
				defer j.Close()
				r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
				require.NoError(t, err)
				produces := label.Secret
				tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Accepts: label.Secret, Produces: &produces, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					if strings.Contains(p.Text(), "# Task: huge") {
						return give.reply, give.err
					}
					return agent.Reply{Text: "small"}, nil
				})}}})
				require.NoError(t, err)
				specs := []task.Spec{
					{Title: "huge", Description: "x", Assignee: "a", Classification: level},
					{Title: "small", Description: "x", Assignee: "a"},
					{Title: "next", Description: "x", Assignee: "a", DependsOn: []task.Ref{{Task: "small"}}},
				}
				res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Reveal: true})
				require.NoError(t, err)
				require.NoError(t, res.JournalErr)
				require.Equal(t, give.code, res.Tasks[0].Error.Code)
				require.Equal(t, "small", res.Tasks[2].Result)
				_, err = r.Close(t.Context())
				require.NoError(t, err)
				s, err := j.Load(t.Context(), "r1")
				require.NoError(t, err)
				require.Equal(t, "error", s.History.End.Status)
			})
		}
	}
}

// The last entry of a run names every failure, however many there are and however
// long each error is.
func TestManyLongErrorsFitIntoTheLastEntry(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close()
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{}, errors.New("out of order " + strings.Repeat("\x01", 64<<10))
	})}}})
	require.NoError(t, err)
	var specs []task.Spec
	for i := range 50 {
		specs = append(specs, task.Spec{Title: fmt.Sprint("t", i), Description: "x", Assignee: "a"})
	}
	res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r)})
	require.NoError(t, err)
	require.NoError(t, res.JournalErr)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	require.Contains(t, reasonOf(&s.History, task.NewID("t49")), "out of order")
}

// What an agent writes in addition to its result is cut, so that the result, the
// reasoning and an answer that was rejected fit into one line.
func TestHugeReasoningIsCut(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for level, of := range map[label.Classification]string{label.Internal: "password: Xk9#mP2q ", label.Secret: "é\u2028<&>\"\x01"} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Key: oneKey})
			require.NoError(t, err)
			defer j.Close()
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			produces := label.Secret
			huge, size := strings.Repeat(of, (300<<10)/len(of)), 2<<20-1000
			if !slowtest.Enabled() {
				size /= 8
			}
			tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Accepts: label.Secret, Produces: &produces, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				if !strings.Contains(p.Text(), "Answer again") {
					return agent.Reply{Text: huge, Reasoning: huge}, &schema.RejectedError{Problem: "no text", Err: errors.New("no text")}
				}
				return agent.Reply{Text: `"` + strings.Repeat("password: Xk9#mP2q ", size/19) + `"`, Reasoning: huge}, nil
			})}}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "huge", Description: "x", Assignee: "a", Classification: level, OutputSchema: []byte(`{"type":"string"}`)}}, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret)})
			require.NoError(t, err)
			require.NoError(t, res.JournalErr)
			require.Equal(t, task.Completed, res.Tasks[0].Status, "%v", res.Tasks[0].Error)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			s, err := j.Load(t.Context(), "r1")
			require.NoError(t, err)
			labeledTexts := 0
			for _, e := range s.History.Log {
				if e.Exchange == nil {
					continue
				}
				for _, a := range []*record.LabeledText{e.Exchange.Reasoning, e.Exchange.Refused} {
					if a == nil {
						continue
					}
					labeledTexts++
					text, err := json.Marshal(a.Text)
					require.NoError(t, err)
					require.LessOrEqual(t, len(text), 256<<10)
				}
			}
			require.Equal(t, 3, labeledTexts)
		})
	}
}
