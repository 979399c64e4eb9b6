package engine_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// busy is a family whose children work for ten minutes, in two turns if they have a tool.
func busy(words ...string) *family {
	f := &family{parent: []step{{calls: several(words...)}, {text: "done"}}, child: func(goal string, _ int) step { return step{text: "found " + goal} }, takes: map[string]time.Duration{}}
	f.spawn.Timeout = time.Hour
	for _, w := range words {
		f.takes["look into "+w] = 10 * time.Minute
	}
	return f
}

// TestInterruptsReachChildren checks that an interrupt ends the children of a task, that their parent learns it, and
// that it goes on, also in a process that continues the run.
func TestInterruptsReachChildren(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"all work": 4, "one waits for a slot": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, f := newSteered(t), busy("a", "b")
				s.at(2.5, steer.Command{Kind: steer.Interrupt, Task: "errand", Text: "Only the harbor matters."})
				o := s.options()
				o.MaxConcurrency = slots
				tm := newTeam(t, f.member())
				res := run(t, tm, o, errand())
				require.NoError(t, res.Err())
				require.InDelta(t, 3.5, minutesOf(t, res, "errand"), 0.01)
				require.Equal(t, 2, strings.Count(f.last(""), "No result: INTERRUPTED."))
				require.Contains(t, f.last(""), "Only the harbor matters.")
				require.Equal(t, slots < 2, len(f.asked["look into b"]) == 0)

				again := busy("a", "b")
				resumedRun := resumed(t, newTeam(t, again.member()), s.journal.history(s.journal.len()), errand())
				require.NoError(t, resumedRun.Err())
				require.Empty(t, again.asked)
			})
		})
	}
}

// TestPausesHoldChildren checks that no child begins a turn while a run is paused, and that neither its clock nor that
// of its parent runs then.
func TestPausesHoldChildren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, look := newSteered(t), newCountedTool(t, "look", noEffect)
		f := busy()
		f.tools = append(f.tools, look.Tool)
		f.spawn.Timeout = 10 * time.Minute
		f.parent[0].calls = []llm.ToolCall{spawns("look into a", `,"tools":["look"]`)}
		f.takes["look into a"] = 3 * time.Minute
		f.child = func(_ string, turn int) step {
			if turn == 0 {
				return step{calls: []llm.ToolCall{call("look", `{"amount":1}`)}}
			}
			return step{text: "found it"}
		}
		limited := errand()
		limited.Timeout = 20 * time.Minute
		s.at(2.5, steer.Command{Kind: steer.Pause})
		s.at(62.5, steer.Command{Kind: steer.Resume})
		res := run(t, newTeam(t, f.member()), s.options(), limited)
		require.NoError(t, res.Err())
		require.Contains(t, f.last(""), "found it")
		require.InDelta(t, 62.5+3+1, minutesOf(t, res, "errand"), 0.01) // its first turn ends in the pause
	})
	synctest.Test(t, func(t *testing.T) { // the time limit holds behind a pause
		s, f := newSteered(t), busy("a")
		limited := errand()
		limited.Timeout = 5 * time.Minute
		s.at(2, steer.Command{Kind: steer.Pause})
		s.at(4, steer.Command{Kind: steer.Resume})
		res := run(t, newTeam(t, f.member()), s.options(), limited)
		require.Equal(t, "TIMEOUT", of(t, res, "errand").Error.Code)
		require.InDelta(t, 7, minutesOf(t, res, "errand"), 0.01)
	})
}

// TestCanceledParents checks that the children of a task that is canceled end with it.
func TestCanceledParents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := newSteered(t), busy("a", "b", "c")
		s.at(2.5, steer.Command{Kind: steer.Cancel, Task: "errand"})
		o := s.options()
		o.MaxConcurrency = 2
		res := run(t, newTeam(t, f.member(), member("other", says("x"))), o, errand(), by("other", spec("later", "errand")), by("other", spec("free")))
		require.Equal(t, []task.Status{task.Skipped, task.Skipped, task.Completed}, statuses(res))
		require.InDelta(t, 2.5, minutesOf(t, res, "errand"), 0.01)
		require.Zero(t, f.now)
	})
}

// TestPolicyReplacedWhileChildrenWork checks that a policy that denies what a parent or its children hold ends them,
// and that the task begins again under the new one.
func TestPolicyReplacedWhileChildrenWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := newSteered(t), busy("a")
		o := s.options()
		o.Inputs = []engine.Input{{Name: "brief", Text: "the plan of the harbor"}}
		of := errand()
		of.Uses = []task.Use{{Name: "brief"}}
		replaced := s.replace(2.5, &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "clerk", Mode: handoff.Minimal}}})
		res := run(t, newTeam(t, f.member()), o, of)
		require.NoError(t, res.Err())
		require.NoError(t, <-replaced)
		require.Contains(t, f.asked[""][0].Text(), "the plan of the harbor")
		require.NotContains(t, f.last(""), "the plan of the harbor")
		require.Len(t, f.asked["look into a"], 2, "the goal that the first attempt wrote is not worked on any more")
		require.InDelta(t, 2.5+1+10+1, minutesOf(t, res, "errand"), 0.01)
	})
}

// TestPolicyReplacedWhileADelegateWorks checks that a policy that changes only what a delegate is given ends it, and
// that the task begins again under the new one.
//
// Requirement: G61.
func TestPolicyReplacedWhileADelegateWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := newSteered(t), busy()
		f.takes["look into harbor-4711"] = 10 * time.Minute
		f.parent = []step{{calls: []llm.ToolCall{call("delegate_to_agent", `{"to":"beta","goal":"look into harbor-4711"}`)}}, {text: "done"}}
		alpha := f.member()
		beta := alpha
		beta.Name, beta.Description, beta.Spawn = "beta", "Helps with harbors.", nil
		tm, err := engine.New(engine.Config{Agents: []engine.Member{alpha, beta}, Edges: []handoff.Edge{{From: alpha.Name, To: "beta", Delegate: true}}})
		require.NoError(t, err)
		replaced := s.replace(2.5, &handoff.Policy{Rules: []handoff.PairRule{{From: alpha.Name, To: "beta", Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "harbor", Regexp: "harbor-[0-9]+"}}}}}})
		res := run(t, tm, s.options(), errand())
		require.NoError(t, res.Err())
		require.NoError(t, <-replaced)
		require.Len(t, f.asked["look into harbor-4711"], 1)
		require.Equal(t, 2, of(t, res, "errand").Metrics.Attempts)
		require.InDelta(t, 2.5+3, minutesOf(t, res, "errand"), 0.01)
	})
}

// TestRunsThatEndWhileChildrenWork checks that a run that is canceled while children work, and resumed, asks those
// again that had not ended, and ends as if it had not been canceled.
func TestRunsThatEndWhileChildrenWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := newSteered(t), busy("a", "b")
		f.takes["look into a"] = time.Minute
		s.at(4, steer.Command{Kind: steer.Cancel})
		res := run(t, newTeam(t, f.member()), s.options(), errand())
		require.Error(t, res.Err())
		again := busy("a", "b")
		res = resumed(t, newTeam(t, again.member()), s.journal.history(s.journal.len()), errand())
		require.NoError(t, res.Err())
		require.Empty(t, again.asked["look into a"], "it had ended")
		require.Len(t, again.asked["look into b"], 1)
		require.Contains(t, again.last(""), "found look into a")
		require.Contains(t, again.last(""), "found look into b")
	})
}

// TestNamesOfDelegatesAreHidden checks that a policy that hides names hides those of agents in all that delegation,
// spawning, replies and their errors put into prompts.
func TestNamesOfDelegatesAreHidden(t *testing.T) {
	t.Parallel()
	hidden := func(t *testing.T, edges []handoff.Edge, members ...engine.Member) *engine.Team {
		for i := range members[1:] {
			if members[i+1].Tools != nil {
				members[i+1].Tools = members[0].Tools
			}
		}
		tm, err := engine.New(engine.Config{Agents: members, Edges: edges, Policy: &handoff.Policy{HideIdentity: true}})
		require.NoError(t, err)
		return tm
	}
	t.Run("replies", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := &newsroom{}
			reply := step{to: func(conversation string) []llm.ToolCall {
				ids := handoffIDs.FindAllString(conversation, -1)
				if len(ids) == 0 {
					return waits.calls
				}
				return []llm.ToolCall{sendsTo("agent 1", "sure", `,"contextRef":"`+ids[0]+`"`)}
			}}
			tm := hidden(t, edges("alpha<>beta", "alpha<>gamma"),
				n.member(t, "alpha", step{calls: append(requires("agent 2", "x", 60).calls, requires("agent 3", "x", 60).calls...)}, step{calls: []llm.ToolCall{sendsTo("agent 4", "x"), sendsTo("agent 3", "x", `,"contextRef":"`+guessedID+`"`)}}, requires("agent 3", "x"), done),
				n.member(t, "beta", waits, requires("agent 1", "x", 60), reply, done), n.member(t, "gamma", waits, waits, waits, waits, waits, done))
			res := run(t, tm, nil, by("alpha", spec("one")), by("beta", spec("two")), by("gamma", spec("three")))
			require.NoError(t, res.Err())
			require.Contains(t, n.last("beta"), "No reply: none can come, since nothing else runs or can start.")
			require.Contains(t, n.last("alpha"), "No reply: no task of agent 3 is left that could reply.")
			for _, who := range []string{"alpha", "beta", "gamma"} {
				for _, prompt := range n.asked[who] {
					require.NotRegexp(t, "alpha|beta|gamma", prompt)
				}
			}
		})
	})
	t.Run("delegation", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &family{spawn: plan.Spawning{Max: 1}, child: func(goal string, _ int) step {
				if goal == "look into trouble" {
					return step{text: "fail"}
				}
				return step{text: "9 percent"}
			}}
			f.parent = []step{{calls: []llm.ToolCall{
				call("delegate_to_agent", `{"to":"agent 2","goal":"look into taxes"}`), call("delegate_to_agent", `{"to":"agent 2","goal":"look into trouble"}`),
				call("delegate_to_agent", `{"to":"beta","goal":"look into taxes"}`), spawns("look into a"), spawns("look into b"),
			}}, {text: "done"}}
			alpha := f.member()
			alpha.Name = "alpha"
			beta := alpha
			beta.Name, beta.Description, beta.Spawn = "beta", "Helps alpha with taxes.", nil
			tm := hidden(t, []handoff.Edge{{From: "alpha", To: "beta", Delegate: true}}, alpha, beta)
			res := run(t, tm, nil, by("alpha", spec("errand")))
			require.NoError(t, res.Err())
			require.Contains(t, f.last(""), `from "agent 2"`)
			for goal, prompts := range f.asked {
				for _, p := range prompts {
					var text strings.Builder
					text.WriteString(p.System() + strings.ReplaceAll(p.Text(), `"to":"beta"`, "")) // what the agent itself wrote
					for _, tl := range p.Tools() {
						text.WriteString(tl.Description + string(tl.Parameters))
					}
					require.NotRegexp(t, "alpha|beta", text.String(), goal)
				}
			}
		})
	})
}

var handoffIDs = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

const guessedID = "01234567-89ab-5def-8123-456789abcdef"
