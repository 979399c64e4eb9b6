package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
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
	specs  []task.Spec
	before map[[2]string]share // of producers and readers; all if there is none
	after  map[[2]string]share
	when   int // how many prompts are answered before

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
func (c *changedRun) agent(name string) engine.Member {
	return member(name, func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		title := string(p.Receipt().Task)
		for _, s := range c.specs {
			if task.NewID(s.Title) == p.Receipt().Task {
				title = s.Title
			}
		}
		c.mu.Lock()
		c.given[title] = append(c.given[title], p.Text())
		if c.count++; c.count == c.when {
			close(c.stop)
		}
		c.mu.Unlock()
		return agent.Reply{Text: fmt.Sprintf(`{"score":"score-%s.","ssn":"canary-%s."}`, title, title)}, nil
	})
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

// sharesIn are what a prompt of a task has of what it depends on.
func (c *changedRun) sharesIn(s *task.Spec, text string) (list []share) {
	for _, d := range s.DependsOn {
		switch {
		case strings.Contains(text, "canary-"+d.Task+"."):
			list = append(list, all)
		case strings.Contains(text, "score-"+d.Task+"."):
			list = append(list, score)
		default:
			list = append(list, nothing)
		}
	}
	return list
}

// sharesBy are what a policy makes of them.
func (c *changedRun) sharesBy(s *task.Spec, of map[[2]string]share) (list []share) {
	for _, d := range s.DependsOn {
		for k := range c.specs {
			if c.specs[k].Title == d.Task {
				list = append(list, shareOf(of, c.specs[k].Assignee, s.Assignee))
			}
		}
	}
	return list
}

// Whenever the policy is replaced, each prompt is one that exactly one of the two policies makes, and
// what completes after a revocation holds nothing that the new one denies.
//
// Requirement: G61.
func TestEachPromptIsOfOnePolicy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &changedRun{specs: drawGraph(t, 9), before: drawShares(t, "before"), after: drawShares(t, "after"), given: map[string][]string{}, stop: make(chan struct{})}
		for i := range c.specs {
			c.specs[i].Assignee = rapid.SampledFrom(crew).Draw(t, "agent")
		}
		c.when = rapid.IntRange(1, len(c.specs)).Draw(t, "when")
		tm, err := engine.New(engine.Config{Agents: []engine.Member{c.agent("w0"), c.agent("w1"), c.agent("w2")}, Policy: policyOf(c.before)})
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
		res, err := start(context.Background(), tm, c.specs, c.options(t))
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
	for i := range c.specs {
		s := &c.specs[i]
		was, is := c.sharesBy(s, c.before), c.sharesBy(s, c.after)
		for _, text := range c.given[s.Title] {
			has := c.sharesIn(s, text)
			if len(has) > 0 && (!took || fmt.Sprint(has) != fmt.Sprint(is)) {
				require.Equal(t, was, has, "%s", text)
			}
		}
		if prompts := c.given[s.Title]; after[s.Title] {
			for k, has := range c.sharesIn(s, prompts[len(prompts)-1]) {
				require.LessOrEqual(t, has, is[k], "%s", prompts[len(prompts)-1])
			}
		}
	}
}
