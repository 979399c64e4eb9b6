package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A pager is an agent that reads long pages, one in each turn, and then answers. It keeps the
// messages of each turn.
type pager struct {
	turns int

	mu   sync.Mutex // guards seen
	seen map[int][]llm.Message
}

// pageBytes is the size of a page. Four of them do not fit into the prompt of a pager.
const pageBytes = 4000

func (p *pager) team(t testing.TB) *engine.Team {
	t.Helper()
	p.seen = map[int][]llm.Message{}
	page, err := tool.New("page", "Reads a page.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprintf("page %d: ", in.N) + strings.Repeat("x", pageBytes), nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		turn := 1 + len(r.Messages)/2
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen[turn] = append([]llm.Message{}, r.Messages...)
		if turn < p.turns {
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "page", Arguments: fmt.Sprintf(`{"n": %d}`, turn)}}}, nil
		}
		return llm.Response{Text: "read"}, nil
	}}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "pager", Agent: agent.New(model, agent.Options{MaxTurns: 20}), Tools: []*tool.Tool{page}, Limits: plan.Limits{MaxPromptBytes: 4 * pageBytes}}}})
	require.NoError(t, err)
	return tm
}

// After a crash, each turn has the bytes that it had in a run without one, also those after
// results were moved out of the conversation.
func TestCompactedConversationResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "Read", Description: "Read.", Assignee: "pager"}}
	whole, first := &memory{}, &pager{turns: 10}
	want, err := first.team(t).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "r", Journal: whole})
	require.NoError(t, err)
	require.NoError(t, want.Err())
	appended := 0
	for turn := 2; turn <= 10; turn++ {
		before, now := first.seen[turn-1], first.seen[turn]
		if fmt.Sprint(before) == fmt.Sprint(now[:len(before)]) {
			appended++
		}
		require.Contains(t, now[len(now)-1].Text, fmt.Sprintf("page %d: ", turn-1))
	}
	require.Equal(t, 7, appended, "of nine turns; the fourth and the seventh had no room")
	require.Equal(t, "[result removed: up to 4 KiB]", first.seen[10][2].Text)
	for n := range whole.len() + 1 {
		again := &pager{turns: 10}
		res, err := start(context.Background(), again.team(t), specs, &engine.RunOptions{RunID: "r", Journal: after(whole.history(n))})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		for turn, messages := range again.seen {
			require.Equal(t, first.seen[turn], messages, "turn %d after %d commits", turn, n)
		}
	}
}
