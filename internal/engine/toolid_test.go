package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// callTraces is everything that a run leaves behind about a call with this argument: events,
// records, the journal, the history in the workspace, and the ID of the call.
func callTraces(t *testing.T, argument string, level label.Classification) (id, traces string) {
	t.Helper()
	var history strings.Builder
	pay := newTool(t, "pay", tool.Options{Accepts: level}, func(ctx context.Context, _ struct{ To string }) (string, error) {
		c, _ := tool.CallFrom(ctx)
		id = c.ID
		_, err := c.Workspace()
		return "ok", err
	})
	look := newTool(t, "look", tool.Options{Accepts: level, Effect: tool.None}, func(ctx context.Context, _ struct{}) (string, error) {
		c, _ := tool.CallFrom(ctx)
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		return "ok", fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			raw, err := root.ReadFile(path)
			fmt.Fprintln(&history, path, string(raw))
			return err
		})
	})
	c := clerk(byTurn(func(turn int, _ llm.Request) llm.Response {
		switch turn {
		case 1:
			return llm.Response{ToolCalls: []llm.ToolCall{call("pay", `{"To":"`+argument+`"}`)}}
		case 2:
			return llm.Response{ToolCalls: []llm.ToolCall{call("look", `{}`)}}
		}
		return llm.Response{Text: "done"}
	}), pay, look)
	c.Accepts = level
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close()
	begun, err := j.Begin(t.Context(), journal.Info{Run: "r"})
	require.NoError(t, err)
	var l ledger
	var a audience
	s := errand()
	s.Classification = level
	res := run(t, newTeam(t, c, member("other", says("x"))), a.with(engine.RunOptions{RunID: "r", Recorder: l.Record, Journal: journaltest.Opened(begun), UserAccepts: new(label.Internal), Output: "other"}), s, spec("other"))
	require.NoError(t, res.Err())
	_, err = begun.Close(t.Context())
	require.NoError(t, err)
	stored, err := j.Load(t.Context(), "r")
	require.NoError(t, err)
	require.Contains(t, history.String(), "history/step_001.json")
	out := []string{history.String(), told(t, res, &a), encoded(l.records)}
	for i := range stored.History.Log {
		e := &stored.History.Log[i]
		out = append(out, encoded(e))
		if e.ToolCall != nil {
			out = append(out, fmt.Sprintf("%x", e.ToolCall.Key))
		}
		for _, x := range []*record.AgentCall{e.Turn, e.Exchange} {
			if x != nil {
				out = append(out, fmt.Sprintf("%x %x %x", x.Key, x.Core, x.Reuse))
			}
		}
	}
	return id, strings.Join(out, "\n")
}

// traceWord is a word or a digest in a trace, and not a time.
var traceWord = regexp.MustCompile(`[A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]{4,}`)

func traceWords(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range traceWord.FindAllString(text, -1) {
		words[w] = true
	}
	return words
}

// Neither the ID of a call nor anything else that a run leaves behind is a function of the
// arguments, by which a guess could be confirmed. Of two runs with the same arguments, what is
// equal in both is also in a run with others.
func TestGuessedArgumentsCannotBeConfirmed(t *testing.T) {
	t.Parallel()
	for _, level := range []label.Classification{label.Internal, label.Confidential} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			first, one := callTraces(t, "alice", level)
			second, same := callTraces(t, "alice", level)
			other, different := callTraces(t, "robin", level)
			require.Equal(t, "r/"+string(task.NewID("errand"))+"/call_1_1", first)
			require.Equal(t, []string{first, first}, []string{second, other})
			again, others := traceWords(same), traceWords(different)
			maps.DeleteFunc(again, func(w string, _ bool) bool { return others[w] || !traceWords(one)[w] })
			require.Subset(t, []string{"alice"}, slices.Collect(maps.Keys(again)))
			require.Contains(t, same, "alice", "the history has the arguments themselves")
		})
	}
}

// A retry that makes a call with other arguments at the same place gets another ID, and the
// same arguments get the first one again, also in a resumed run.
func TestRepeatedCallsHaveTheIDOfTheirArguments(t *testing.T) {
	t.Parallel()
	var made []string
	team := func(amounts ...int) *engine.Team {
		pay := newTool(t, "pay", tool.Options{Repeatable: true}, func(ctx context.Context, in struct{ Amount int }) (string, error) {
			c, _ := tool.CallFrom(ctx)
			made = append(made, fmt.Sprint(in.Amount, strings.TrimPrefix(c.ID, "r/"+string(task.NewID("errand")))))
			return "paid", nil
		})
		return toolTeam(t, namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			if turnOf(r) > 1 {
				return llm.Response{}, errors.New("the line is down")
			}
			next := amounts[0]
			amounts = amounts[1:]
			return llm.Response{ToolCalls: []llm.ToolCall{call("pay", fmt.Sprintf(`{"Amount":%d}`, next))}}, nil
		}}, pay)
	}
	s := errand()
	s.MaxRetries, s.RetryDelay = 2, task.NoDelay
	j, _ := journaled(t, team(10, 20, 10), s)
	require.Equal(t, []string{"10/call_1_1", "20/call_1_1-2", "10/call_1_1"}, made)
	made = nil
	h := interrupted(j, func(e *record.Entry) bool { return answerEntry(e) || e.Turn != nil })
	resumed(t, team(20, 30, 10), h, s)
	require.Equal(t, []string{"20/call_1_1-2", "30/call_1_1-3", "10/call_1_1"}, made)
}
