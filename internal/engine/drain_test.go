package engine_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A callLog counts the calls of agents and tools, which take a minute each.
type callLog struct {
	mu     sync.Mutex // guards the rest
	begun  map[string]int
	ended  map[string]int
	newest time.Time // when the last one began
}

// during has a call last a minute longer, and counts it, unless ctx ends it.
func (l *callLog) during(ctx context.Context, name string, call func() error) error {
	l.mu.Lock()
	if l.begun == nil {
		l.begun, l.ended = map[string]int{}, map[string]int{}
	}
	l.begun[name]++
	l.newest = time.Now()
	l.mu.Unlock()
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := call(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[name]++
	return nil
}

// counted makes the calls of an agent last a minute, and counts them.
func (l *callLog) counted(m engine.Member) engine.Member {
	does := m.Agent
	m.Agent = engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (r agent.Reply, err error) {
		err = l.during(ctx, m.Name, func() error {
			r, err = does.Run(ctx, p)
			r.Usage = llm.Usage{InputTokens: 10, OutputTokens: 5}
			return err
		})
		return r, err
	})
	return m
}

// tool returns a tool whose calls last a minute and are counted.
func (l *callLog) tool(t *testing.T, name string, o tool.Options) *tool.Tool {
	o.Timeout = time.Hour
	return newTool(t, name, o, func(ctx context.Context, in map[string]any) (string, error) {
		return fmt.Sprint(name, " of ", in["n"]), l.during(ctx, name, func() error { return nil })
	})
}

// totals returns how many calls of each agent and tool have ended.
func (l *callLog) totals() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.ended)
}

// underWay returns how many calls of each agent and tool have not ended, and when the newest of all calls began.
func (l *callLog) underWay() (open map[string]int, newest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open = map[string]int{}
	for name, n := range l.begun {
		if n > l.ended[name] {
			open[name] = n - l.ended[name]
		}
	}
	return open, l.newest
}

// A drainedRun is a run that a process works on until it is drained, and that another one continues.
type drainedRun struct {
	specs []task.Spec
	goal  *engine.Goal
	team  func(t *testing.T, l *callLog) *engine.Team
}

// start runs it, or resumes it if the journal has a part of it.
func (d *drainedRun) start(ctx context.Context, t *testing.T, l *callLog, j *memory, change func(*engine.RunOptions)) *engine.Result {
	o := &engine.RunOptions{RunID: "r", Journal: j, MaxConcurrency: 3, Random: func() float64 { return 0.5 }}
	if change != nil {
		change(o)
	}
	var res *engine.Result
	var err error
	if d.goal != nil {
		res, err = startGoal(ctx, d.team(t, l), *d.goal, o)
	} else {
		res, err = start(ctx, d.team(t, l), d.specs, o)
	}
	require.NoError(t, err)
	return res
}

// turns is an agent that calls tools and then answers, as a script says: to "word?", whether the word is in its
// conversation.
func turns(script ...step) agentFunc {
	return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		turn := 0
		for _, m := range p.Messages()[1:] {
			if m.Role == "assistant" {
				turn++
			}
		}
		s := script[min(turn, len(script)-1)]
		if s.to != nil {
			s.calls = s.to(conversation(p))
		}
		if word, asks := strings.CutSuffix(s.text, "?"); asks {
			s.text = fmt.Sprint(word, " ", strings.Contains(conversation(p), word))
		}
		return agent.Reply{Text: s.text, ToolCalls: s.calls}, nil
	}
}

var drainedRuns = map[string]drainedRun{
	"tasks": {specs: []task.Spec{spec("a"), spec("b"), spec("c"), spec("d", "a", "b"), spec("e", "c"), spec("f", "d", "e")}, team: func(t *testing.T, l *callLog) *engine.Team {
		var members []engine.Member
		for name := range strings.SplitSeq("abcdef", "") {
			members = append(members, l.counted(member(name, says(name+" is done"))))
		}
		return newTeam(t, members...)
	}},
	"tools": {specs: []task.Spec{errand()}, team: func(t *testing.T, l *callLog) *engine.Team {
		look, pay := l.tool(t, "look", noEffect), l.tool(t, "pay", tool.Options{})
		m := clerk(nil, look, pay)
		m.Agent = engine.AgentFunc(turns(
			step{calls: []llm.ToolCall{call("look", `{"n":1}`), call("look", `{"n":2}`), call("pay", `{"n":3}`), call("pay", `{"n":4}`)}},
			step{calls: []llm.ToolCall{call("pay", `{"n":5}`)}}, step{text: "paid"}))
		return newTeam(t, l.counted(m))
	}},
	"calls that the program is asked about for a minute": {specs: []task.Spec{errand()}, team: func(t *testing.T, l *callLog) *engine.Team {
		m := clerk(nil, l.tool(t, "look", noEffect), l.tool(t, "pay", tool.Options{}))
		m.Agent = engine.AgentFunc(turns(step{calls: []llm.ToolCall{call("look", `{"n":1}`), call("look", `{"n":2}`), call("pay", `{"n":3}`)}}, step{text: "paid"}))
		tm, err := engine.New(engine.Config{Agents: []engine.Member{l.counted(m)}, OnToolCall: func(ctx context.Context, _ plan.ToolCall) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		require.NoError(t, err)
		return tm
	}},
	"prefetched tasks": {specs: []task.Spec{spec("a"), spec("b"), spec("c"), spec("d"), spec("e"), spec("f"), spec("g"), spec("h")}, team: func(t *testing.T, l *callLog) *engine.Team {
		var members []engine.Member
		for name := range strings.SplitSeq("abcdefgh", "") {
			members = append(members, l.counted(member(name, says(name+" is done"))))
		}
		return newTeam(t, members...)
	}},
	"children": {specs: []task.Spec{errand()}, team: func(t *testing.T, l *callLog) *engine.Team {
		look := l.tool(t, "look", noEffect)
		f := busy("a", "b")
		f.tools, f.takes = append(f.tools, look), map[string]time.Duration{"look into a": 0, "look into b": time.Minute, "": 0}
		f.parent[0].calls = []llm.ToolCall{spawns("look into a", `,"tools":["look"]`), spawns("look into b", `,"tools":["look"]`)}
		f.child = func(goal string, turn int) step {
			if turn == 0 {
				return step{calls: []llm.ToolCall{call("look", `{"n":1}`)}}
			}
			return step{text: "found " + goal}
		}
		return newTeam(t, l.counted(f.member()))
	}},
	"a goal": {goal: &engine.Goal{Text: "x"}, team: func(t *testing.T, l *callLog) *engine.Team {
		c := l.counted(member("coordinator", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			for part, text := range map[string]string{"Your previous plan": twoTasks, "## Task Results": "the answer"} {
				if strings.Contains(p.Text(), part) {
					return agent.Reply{Text: text}, nil
				}
			}
			return agent.Reply{Text: "no plan"}, nil
		}))
		return led(t, c.Agent, l.counted(member("ada", says("a"))), l.counted(member("bob", says("b"))))
	}},
	"an answer in parts": {goal: &engine.Goal{Text: "x"}, team: func(t *testing.T, l *callLog) *engine.Team {
		c := l.counted(engine.Member{Name: "coordinator", Agent: &planner{plans: []string{twoTasks}, digest: "d"}})
		tm, err := engine.New(engine.Config{
			Agents:      []engine.Member{l.counted(member("ada", says(strings.Repeat("facts ", 500)))), l.counted(member("bob", says(strings.Repeat("words ", 500))))},
			Coordinator: &engine.Coordinator{Agent: c.Agent, Limits: plan.Limits{MaxPromptBytes: 5 << 10}},
		})
		require.NoError(t, err)
		return tm
	}},
	"replies": {specs: []task.Spec{spec("a"), spec("b")}, team: func(t *testing.T, l *callLog) *engine.Team {
		work := l.tool(t, "work", noEffect)
		agents := map[string][]step{"a": {requires("b", "when?"), {text: "in May?"}}, "b": {waits, waits, replies("a", "in May"), waits, {text: "done"}}}
		var members []engine.Member
		for _, name := range []string{"a", "b"} {
			m := clerk(nil, work)
			m.Name, m.Agent = name, engine.AgentFunc(turns(agents[name]...))
			members = append(members, l.counted(m))
		}
		return edged(t, both("a<>b"), members...)
	}},
	"a transfer": {specs: []task.Spec{supportTask}, team: func(t *testing.T, l *callLog) *engine.Team {
		return helpDesk(t, newFrontDesk(t), nil, func(c *engine.Config) {
			for i := range c.Agents {
				c.Agents[i] = l.counted(c.Agents[i])
			}
		})
	}},
}

// requireLeft holds that a history has nothing that began after a moment, and no call that failed.
func requireLeft(t *testing.T, h *record.History, at time.Time) {
	for _, e := range h.Log {
		for _, began := range []*record.CallStart{e.Asked, e.ToolCall} {
			require.False(t, began != nil && began.Time.After(at), "%+v", began)
		}
		require.True(t, e.Exchange == nil || e.Exchange.Completed(), "%+v", e.Exchange)
	}
}

// Whenever a process is drained, calls under way end and are recorded, no call begins, and the process that continues
// the run makes exactly those that are missing.
func TestADrainLosesNoCall(t *testing.T) {
	t.Parallel()
	for name, d := range drainedRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var all callLog
				began := time.Now()
				want := d.start(t.Context(), t, &all, &memory{}, nil)
				require.NoError(t, want.Err())
				took := time.Since(began)
				require.Greater(t, took, 2*time.Minute)
				for at := 30 * time.Second; at < took; at += 30 * time.Second {
					var l callLog
					first := &memory{}
					drain := make(chan struct{})
					until := time.Now().Add(at)
					stop := time.AfterFunc(at, func() { close(drain) })
					res := d.start(t.Context(), t, &l, first, func(o *engine.RunOptions) { o.Drain = drain })
					stop.Stop()
					open, newest := l.underWay()
					require.False(t, newest.After(until), "after %v", at)
					require.Less(t, time.Since(until), 2*time.Minute+time.Second, "calls under way take no longer")
					h := first.history(first.len())
					if h.End != nil { // the last call was under way
						require.Equal(t, engine.StatusOK, res.Status)
						continue
					}
					require.Equal(t, engine.StatusInterrupted, res.Status, "after %v", at)
					require.Empty(t, open, "after %v", at)
					requireLeft(t, h, until)
					require.NotContains(t, statuses(res), task.Failed, "after %v", at)
					res = d.start(t.Context(), t, &l, after(h), nil)
					require.NoError(t, res.Err(), "after %v", at)
					require.Equal(t, answers(want), answers(res), "after %v", at)
					require.Equal(t, want.Output, res.Output)
					require.Equal(t, all.totals(), l.totals(), "after %v", at)
				}
			})
		})
	}
}

// A process that is out of time interrupts its calls and leaves the run as a crash would. Only these calls are made
// again, unless they may have had an effect.
func TestCallsAreInterruptedWithoutAnEnd(t *testing.T) {
	t.Parallel()
	for name, d := range drainedRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var all callLog
				began := time.Now()
				want := d.start(t.Context(), t, &all, &memory{}, nil)
				took := time.Since(began)
				for at := 15 * time.Second; at < took; at += 30 * time.Second {
					var l callLog
					first := &memory{}
					ctx, cancel := context.WithCancelCause(t.Context())
					stop := time.AfterFunc(at, func() { cancel(engine.ErrReleased) })
					res := d.start(ctx, t, &l, first, nil)
					stop.Stop()
					h := first.history(first.len())
					require.Nil(t, h.End, "after %v", at)
					require.Equal(t, engine.StatusInterrupted, res.Status, "after %v", at)
					open, _ := l.underWay()
					res = d.start(t.Context(), t, &l, after(h), nil)
					if open["pay"] > 0 {
						require.Equal(t, "EFFECTS_UNCERTAIN", res.Errors[0].Code, "after %v", at)
						continue
					}
					require.NoError(t, res.Err(), "after %v", at)
					require.Equal(t, answers(want), answers(res), "after %v", at)
					require.Equal(t, want.Output, res.Output)
					require.Equal(t, all.totals(), l.totals(), "after %v", at)
				}
			})
		})
	}
}

// What has no call under way is left at once: a pause, a wait for a retry. A command that cancels the run ends it.
func TestADrainWaitsForCallsAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command steer.Kind // a quarter of a minute after the beginning
		late    steer.Kind // when the process is drained
		retries bool
		after   time.Duration // how long the run works
		status  engine.Status
	}{
		"a pause":   {steer.Pause, "", false, 90 * time.Second, engine.StatusInterrupted},
		"a retry":   {"", "", true, 90 * time.Second, engine.StatusInterrupted},
		"a call":    {"", "", false, 2 * time.Minute, engine.StatusInterrupted},
		"a command": {"", steer.Cancel, false, 90 * time.Second, engine.StatusCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, drain := newSteered(t), make(chan struct{})
				o := s.options()
				o.Drain = drain
				first := spec("a")
				first.MaxRetries, first.RetryDelay = 100, time.Minute
				does := s.slow("a")
				if tt.retries {
					does = member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
						if time.Since(s.start) < 2*time.Minute {
							return agent.Reply{}, errBroken
						}
						return agent.Reply{Text: "a is done"}, nil
					})
				}
				tm := newTeam(t, does, s.slow("b"), s.slow("c"))
				if tt.command != "" {
					s.at(0.25, steer.Command{Kind: tt.command})
				}
				if tt.late != "" {
					s.at(1.5, steer.Command{Kind: tt.late})
				}
				time.AfterFunc(90*time.Second-time.Millisecond, func() { close(drain) })
				res := run(t, tm, o, first, spec("b", "a"), spec("c", "b"))
				require.InDelta(t, tt.after.Seconds(), time.Since(s.start).Seconds(), 0.1)
				require.Equal(t, tt.status, res.Status)
				h := s.journal.history(s.journal.len())
				require.Equal(t, tt.status == engine.StatusCanceled, h.End != nil)

				res = resumed(t, tm, h, first, spec("b", "a"), spec("c", "b"))
				require.NoError(t, res.Err())
				require.Less(t, time.Since(s.start), 10*time.Minute, "nobody has to resume it by hand")
			})
		})
	}
}

// A pause ends for a conversation, too, which would wait for its next turn.
func TestADrainEndsAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l callLog
		d, first := drainedRuns["tools"], &memory{}
		var m record.Monitor
		drain, began := make(chan struct{}), time.Now()
		time.AfterFunc(30*time.Second, func() {
			require.NoError(t, m.Steer(context.Background(), steer.Command{Kind: steer.Pause, By: "ann"}))
		})
		time.AfterFunc(time.Hour, func() { close(drain) })
		res := d.start(t.Context(), t, &l, first, func(o *engine.RunOptions) { o.Drain, o.Monitor = drain, &m })
		require.Equal(t, engine.StatusInterrupted, res.Status)
		require.Equal(t, time.Hour, time.Since(began))
		res = d.start(t.Context(), t, &l, after(first.history(first.len())), nil)
		require.NoError(t, res.Err())
		require.Equal(t, map[string]int{"clerk": 3, "look": 2, "pay": 3}, l.totals())
	})
}
