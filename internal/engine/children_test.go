package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/tool"
)

// A family is an agent that spawns children. Its prompts are told apart by the goal in them.
type family struct {
	spawn  plan.Spawning
	tools  []*tool.Tool
	parent []step          // what the parent does in each turn
	child  func(goal string, turn int) step // what a child does
	takes  map[string]time.Duration // how long a child works on a goal; a minute unless it is here

	mu    sync.Mutex // guards the rest
	asked map[string][]prompt.Prompt // by goal; those of the parent are under ""
	now, most int // how many work
}

// goalOf returns the goal in the prompt of a child; empty for another prompt.
func goalOf(p prompt.Prompt) string {
	_, rest, found := strings.Cut(p.Messages()[0].Text, "Goal")
	if !found {
		return ""
	}
	for _, line := range strings.Split(rest, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "look into") {
			return line
		}
	}
	return ""
}

func (f *family) member() engine.Member {
	m := clerk(nil, f.tools...)
	m.Spawn = &f.spawn
	m.SystemPrompt = "You are a researcher."
	m.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		goal, turn := goalOf(p), 0
		for _, one := range p.Messages()[1:] {
			if one.Role == "assistant" {
				turn++
			}
		}
		f.mu.Lock()
		if f.asked == nil {
			f.asked = map[string][]prompt.Prompt{}
		}
		f.asked[goal] = append(f.asked[goal], p)
		f.now++
		f.most = max(f.most, f.now)
		f.mu.Unlock()
		defer func() { f.mu.Lock(); f.now--; f.mu.Unlock() }()
		takes, known := f.takes[goal]
		if !known {
			takes = time.Minute
		}
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
		s := f.parent[min(turn, len(f.parent)-1)]
		if goal != "" {
			s = f.child(goal, turn)
		}
		if s.text == "fail" {
			return agent.Reply{}, errBroken
		}
		return agent.Reply{Text: s.text, ToolCalls: s.calls}, nil
	})
	return m
}

func spawns(goal string, more ...string) llm.ToolCall {
	return call("spawn_agent", fmt.Sprintf(`{"goal":%q%s}`, goal, strings.Join(more, "")))
}

// last returns the conversation that the agent had in the end.
func (f *family) last(goal string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.asked[goal]
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].Text()
}

func TestChildrenKnowTheirGoalAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &family{
			parent: []step{{calls: []llm.ToolCall{spawns("look into frameworks")}, text: "My private reasoning."}, {text: "done"}},
			child:  func(string, int) step { return step{text: "PyTorch"} },
		}
		var l audience
		res := run(t, newTeam(t, f.member()), l.options(), errand())
		require.NoError(t, res.Err())
		t.Log(f.last("look into frameworks"))
		t.Log(f.last(""))
	})
}
