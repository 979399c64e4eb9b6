package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A text that a tool returned was in the prompt of the next turn, and in none after that one
// in the record: later turns record what they add, and what was moved out of them.
func TestContainsFollowsAConversation(t *testing.T) {
	t.Parallel()
	page, err := tool.New("page", "Reads a page.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprintf("the word of page %d ", in.N) + strings.Repeat("x", 3000), nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	model := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if turn := 1 + len(r.Messages)/2; turn < 5 {
			return llm.Response{ToolCalls: []llm.ToolCall{{Name: "page", Arguments: fmt.Sprintf(`{"n": %d}`, turn)}}}, nil
		}
		return llm.Response{Text: "It is the word of page 1."}, nil
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "pager", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{page}, Limits: plan.Limits{MaxPromptBytes: 8000}}}})
	require.NoError(t, err)
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Options{})
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Read", Description: "Read.", Assignee: "pager"}}, &engine.RunOptions{Recorder: w.Record, Subscribers: []func(event.Event){w.Event}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	_, err = w.Close(res, time.Now())
	require.NoError(t, err)

	tr := read(t, out.Bytes())
	requireSound(t, tr)
	require.Len(t, tr.Prompts, 5)
	found := tr.Contains("the word of page 1")
	require.Equal(t, []string{"prompt of Read", "result of Read"}, places(found))
	require.True(t, strings.HasSuffix(found.Occurrences[0].Prompt.Receipt.Session, "/turn/2"))
	require.Len(t, found.Origins, 1)
	require.Equal(t, "tool:page", found.Origins[0].By)

	moved := map[string][]string{} // by turn
	for i := range tr.Prompts {
		r := tr.Prompts[i].Receipt
		for _, s := range r.Sources {
			if d := s.Decision; d != nil && d.Rule == gate.RulePromptSize {
				turn := r.Session[strings.LastIndex(r.Session, "/")+1:]
				moved[turn] = append(moved[turn], d.Source.Name)
			}
		}
	}
	require.Equal(t, map[string][]string{"4": {"call_1_1", "call_2_1"}}, moved)
}
