package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// retained is how many entries a run keeps for messages and calls.
func retained(r *run) (n int) {
	m := r.messages
	n = m.post.Len() + len(m.names.earlier) + len(m.handoffs) + len(m.sentBy) + len(m.read) + len(m.offered) + len(m.held) + len(r.calls.byTask)
	for _, by := range []map[int][]int{sizesOf(m.given), sizesOf(m.again), sizesOf(m.directed), sizesOf(m.turns)} {
		for _, list := range by {
			n += 1 + len(list)
		}
	}
	for _, name := range m.bus.Agents() {
		all, err := m.bus.All(name)
		must(err)
		n += len(all)
	}
	return n
}

func sizesOf[T any](of map[int][]T) map[int][]int {
	out := map[int][]int{}
	for k, list := range of {
		out[k] = make([]int, len(list))
	}
	return out
}

var handoffIDIn = regexp.MustCompile(`handoff ([0-9a-f-]{36})\):`)

// rounds is a run in which a reporter sends an editor handoffs, asks a helper and uses its reply, over and over. It
// returns what the run keeps in the last task of each round, and in the end.
func rounds(t *testing.T, n int) (kept []int, end int) {
	var r *run
	send := func(to, message, more string) llm.ToolCall {
		return llm.ToolCall{Name: "send_handoff", Arguments: fmt.Sprintf(`{"to":%q,"message":%q%s}`, to, message, more)}
	}
	does := func(turn func(p prompt.Prompt, turn int) []llm.ToolCall) Agent {
		return AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			said := 0
			for _, m := range p.Messages() {
				if m.Role == "assistant" {
					said++
				}
			}
			if calls := turn(p, said); len(calls) > 0 {
				return agent.Reply{ToolCalls: calls}, nil
			}
			return agent.Reply{Text: "done"}, nil
		})
	}
	tm, err := New(Config{
		Edges: []handoff.Edge{{From: "reporter", To: "editor"}, {From: "reporter", To: "helper", Bidirectional: true}},
		Agents: []Member{
			{Name: "reporter", Agent: does(func(p prompt.Prompt, turn int) (calls []llm.ToolCall) {
				switch turn {
				case 0:
					for k := range 20 {
						calls = append(calls, send("editor", fmt.Sprint("news ", k), ""))
					}
					return append(calls, send("helper", "Who?", `,"response":{"expectation":"required"}`))
				case 1:
					last := p.Messages()[len(p.Messages())-1].Text
					require.Contains(t, last, "Ada.")
				}
				return nil
			})},
			{Name: "helper", Agent: does(func(p prompt.Prompt, turn int) []llm.ToolCall {
				if turn > 0 {
					return nil
				}
				id := handoffIDIn.FindStringSubmatch(p.Text())
				require.NotNil(t, id, p.Text())
				return []llm.ToolCall{send("reporter", "Ada.", fmt.Sprintf(`,"contextRef":%q`, id[1]))}
			})},
			{Name: "editor", Agent: does(func(p prompt.Prompt, _ int) []llm.ToolCall {
				require.Contains(t, p.Text(), "news 19")
				r.mu.Lock()
				defer r.mu.Unlock()
				kept = append(kept, retained(r))
				return nil
			})},
		},
	})
	require.NoError(t, err)
	var specs []task.Spec
	for k := range n {
		for _, name := range []string{"reporter", "helper", "editor"} {
			s := task.Spec{Title: fmt.Sprint(name, k), Description: "Work.", Assignee: name}
			if name == "editor" {
				s.DependsOn = task.On(fmt.Sprint("reporter", k), fmt.Sprint("helper", k))
			} else if k > 0 {
				s.DependsOn = task.On(fmt.Sprint("editor", k-1))
			}
			specs = append(specs, s)
		}
	}
	o := settings(&RunOptions{MaxConcurrency: 1})
	p, err := tm.roster.Check(specs, o, time.Now())
	require.NoError(t, err)
	r, err = newRun(tm.roster, o, time.Now())
	require.NoError(t, err)
	require.NoError(t, r.setPlan(p))
	res, err := r.execute(t.Context())
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Empty(t, res.Warnings)
	raw, err := json.Marshal(res.Tasks[0].Metrics)
	require.NoError(t, err)
	require.Len(t, res.Tasks[0].Metrics.ToolCalls, 21, string(raw))
	return kept, retained(r)
}

// TestMemoryOfMessagesIsFlat checks that nothing of a message stays in a run that has acknowledged it. Counted is what
// the run itself keeps: its result has the receipts of all prompts.
//
// Requirement: G38.
func TestMemoryOfMessagesIsFlat(t *testing.T) {
	t.Parallel()
	kept, end := rounds(t, 40)
	require.Len(t, kept, 40)
	require.Greater(t, kept[0], 40, "the messages that the editor reads")
	require.Equal(t, kept[0], slices.Max(kept))
	require.Equal(t, kept[0], slices.Min(kept))
	require.Zero(t, end)
}
