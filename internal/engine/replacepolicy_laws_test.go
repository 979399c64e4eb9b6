package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A share is how much of a result a prompt has.
type share int

const (
	nothing share = iota
	score         // without what is personal
	all
)

// A changed run is one whose policy is replaced. Its agents say something of their own in each task.
type changedRun struct {
	specs     []task.Spec
	instances []task.Spec         // of the specs: each round and each item is one
	before    map[[2]string]share // of producers and readers; all if there is none
	after     map[[2]string]share
	when      int             // how many prompts are answered before
	calls     map[string]bool // titles of tasks that call a tool before they answer
	sends     map[string]bool // titles of tasks that send a message to all agents

	monitor record.Monitor
	mu      sync.Mutex // guards the rest
	given   map[string][]string
	count   int
	stop    chan struct{} // closed when so many were answered
	events  []event.Event
}

var crew = []string{"w0", "w1", "w2"}

func drawShares(t *rapid.T, name string) map[[2]string]share {
	of := map[[2]string]share{}
	for _, from := range crew {
		for _, to := range crew {
			if how := rapid.SampledFrom([]share{all, all, score, nothing}).Draw(t, name+from+to); how != all {
				of[[2]string{from, to}] = how
			}
		}
	}
	return of
}

// policyOf is the policy that delivers these shares.
func policyOf(of map[[2]string]share) *handoff.Policy {
	p := &handoff.Policy{}
	for _, from := range crew {
		for _, to := range crew {
			switch how, is := of[[2]string{from, to}]; {
			case !is:
			case how == nothing:
				p.Rules = append(p.Rules, handoff.PairRule{From: from, To: to, Mode: handoff.Minimal})
			default:
				p.Rules = append(p.Rules, handoff.PairRule{From: from, To: to, Block: []task.Path{"ssn"}})
			}
		}
	}
	return p
}

// shareOf is what a policy delivers.
func shareOf(of map[[2]string]share, from, to string) share {
	if how, is := of[[2]string{from, to}]; is {
		return how
	}
	return all
}

// agent answers each task with its title, and lets the policy be replaced after some of them.
func (c *changedRun) agent(name string, tools ...*tool.Tool) engine.Member {
	m := member(name, func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		title := string(p.Receipt().Task)
		for i := range c.instances {
			if task.NewID(c.instances[i].Title) == p.Receipt().Task {
				title = c.instances[i].Title
			}
		}
		c.mu.Lock()
		c.given[title] = append(c.given[title], p.Text())
		if c.count++; c.count == c.when {
			close(c.stop)
		}
		c.mu.Unlock()
		if c.calls[writtenTitle(title)] && !strings.Contains(p.Added(), "looked it up") {
			return agent.Reply{ToolCalls: []llm.ToolCall{call("look", "{}")}}, nil
		}
		if c.sends[writtenTitle(title)] {
			if err := engine.OutboxFrom(ctx).Broadcast("note-" + title + "."); err != nil && !errors.Is(err, mailbox.ErrNoEdge) {
				return agent.Reply{}, err
			}
		}
		ok, list := decisionOf(title)
		return agent.Reply{Text: encoded(map[string]any{"score": "score-" + title + ".", "ssn": "canary-" + title + ".", "ok": ok, "list": list})}, nil
	})
	m.Tools = tools
	for _, of := range tools {
		m.AllowUntrusted = append(m.AllowUntrusted, of.Name)
	}
	return m
}

// drawWork draws who does the tasks, which of them call a tool or send messages, and which read the shared memory.
func (c *changedRun) drawWork(t *rapid.T) {
	for i := range c.specs {
		s := &c.specs[i]
		s.Assignee = rapid.SampledFrom(crew).Draw(t, "agent")
		c.calls[s.Title], c.sends[s.Title] = rapid.Bool().Draw(t, "calls"), rapid.Bool().Draw(t, "sends")
		if rapid.Bool().Draw(t, "reads memory") {
			s.MemoryScope = task.ScopeAll
		}
	}
}

func (c *changedRun) options(t *rapid.T) *engine.RunOptions {
	o := &engine.RunOptions{RunID: "r", Monitor: &c.monitor, AllowWidening: true, MaxConcurrency: rapid.IntRange(1, 4).Draw(t, "at once")}
	o.Subscribers = []func(event.Event){func(e event.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, e)
	}}
	if rapid.Bool().Draw(t, "journal") {
		o.Journal = &memory{}
	}
	return o
}

// shareIn is how much of what a task made is in a prompt: as a result, or as a message.
func shareIn(text, title string) share {
	switch {
	case strings.Contains(text, "canary-"+title+"."):
		return all
	case strings.Contains(text, "score-"+title+"."), strings.Contains(text, "note-"+title+"."):
		return score
	}
	return nothing
}

// problem says what a prompt of a task has that a policy does not make of it; empty if it is one of the policy.
// A result that the task depends on is there as the policy has it. Messages and the shared memory have what was
// there at that moment, and no more than the policy delivers.
func (c *changedRun) problem(s *task.Spec, text string, of map[[2]string]share) string {
	for k := range c.instances {
		from := &c.instances[k]
		if from == s {
			continue
		}
		has, may := shareIn(text, from.Title), shareOf(of, from.Assignee, s.Assignee)
		isDependency := slices.ContainsFunc(s.DependsOn, func(d task.Ref) bool { return c.source(&d) == from })
		if has > may || isDependency && has < may {
			return fmt.Sprintf("of %q it has %d, and the policy delivers %d", from.Title, has, may)
		}
	}
	return ""
}

// Whenever the policy is replaced, each prompt is one that exactly one of the two policies makes, and
// what completes after a revocation holds nothing that the new one denies.
//
// Requirement: G61.
func TestEachPromptIsOfOnePolicy(t *testing.T) {
	t.Parallel()
	look := newTool(t, "look", noEffect, func(context.Context, map[string]any) (string, error) { return "looked it up", nil })
	rapid.Check(t, func(t *rapid.T) {
		c := &changedRun{specs: drawGraph(t, 7), before: drawShares(t, "before"), after: drawShares(t, "after"), given: map[string][]string{}, stop: make(chan struct{}), calls: map[string]bool{}, sends: map[string]bool{}}
		c.drawWork(t)
		c.drawConstructs(t)
		c.when = rapid.IntRange(1, len(c.specs)).Draw(t, "when")
		cfg := engine.Config{Agents: []engine.Member{c.agent("w0", look), c.agent("w1", look), c.agent("w2", look)}, Policy: policyOf(c.before), Edges: edges("w0<>w1", "w0<>w2", "w1<>w2")}
		var err error
		c.instances, _, err = task.Unroll(c.specs)
		require.NoError(t, err)
		cfg.Edges, err = usable(cfg, c.specs, nil)
		require.NoError(t, err)
		tm, err := engine.New(cfg)
		require.NoError(t, err)
		replaced := make(chan error, 1)
		ended := make(chan struct{})
		go func() {
			select {
			case <-c.stop:
			case <-ended:
			}
			now, err := c.monitor.Policy()
			if err == nil {
				err = c.monitor.Steer(context.Background(), steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: policyOf(c.after), Replaces: now.Digest})
			}
			replaced <- err
		}()
		o := c.options(t)
		if rapid.Bool().Draw(t, "messages") {
			o.Bus = tm.NewBus()
		} else {
			clear(c.sends)
		}
		res, err := start(context.Background(), tm, c.specs, o)
		require.NoError(t, err)
		close(ended)
		took := <-replaced == nil
		require.NoError(t, res.Err())
		c.requireOnePolicy(t, took)
	})
}

// requireOnePolicy checks the prompts of a run that has ended.
func (c *changedRun) requireOnePolicy(t *rapid.T, took bool) {
	after := map[string]bool{} // what completed after the policy was replaced
	came := false
	for _, e := range c.events {
		came = came || e.Type == event.Steered
		after[e.Title] = after[e.Title] || e.Type == event.TaskComplete && came
	}
	require.Equal(t, took, came)
	for i := range c.instances {
		s := &c.instances[i]
		for _, text := range c.given[s.Title] {
			if was := c.problem(s, text, c.before); was != "" {
				require.True(t, took, "%s: %s", was, text)
				require.Empty(t, c.problem(s, text, c.after), "%s\n%s", was, text)
			}
		}
		if prompts := c.given[s.Title]; after[s.Title] && len(prompts) > 0 { // a loop has none
			last := prompts[len(prompts)-1]
			for k := range c.instances {
				if from := &c.instances[k]; from != s {
					require.LessOrEqual(t, shareIn(last, from.Title), shareOf(c.after, from.Assignee, s.Assignee), "%s: %s", from.Title, last)
				}
			}
		}
	}
}
