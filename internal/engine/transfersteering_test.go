package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// delayed has an agent answer after a minute, and says what each answer takes.
func delayed(m engine.Member, takes llm.Usage) engine.Member {
	does := m.Agent
	m.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		reply, err := does.Run(ctx, p)
		reply.Usage = takes
		select {
		case <-time.After(time.Minute):
			return reply, err
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
	})
	return m
}

// slowDesk is a team whose agents take a minute for each turn: billing holds the conversation from the second minute.
func slowDesk(t testing.TB, d *frontDesk, billing ...step) *engine.Team {
	return helpDesk(t, d, nil, func(c *engine.Config) {
		c.Agents[1] = d.member("billing", billing...)
		for i := range c.Agents[:2] {
			c.Agents[i] = delayed(c.Agents[i], llm.Usage{InputTokens: 10})
		}
	})
}

// A command to a task reaches whoever holds its conversation.
func TestCommandsToAHolder(t *testing.T) {
	t.Parallel()
	answer := step{text: "Your money is on its way."}
	for _, tt := range []struct {
		name    string
		billing []step
		send    func(s *steered)
		ends    float64 // in minutes
		asked   [2]int  // of triage and billing
		status  task.Status
		says    string // to billing
	}{
		{"nothing", []step{answer}, func(*steered) {}, 3, [2]int{2, 1}, task.Completed, ""},
		{"an interrupt of the first turn", []step{answer}, func(s *steered) {
			s.at(2.5, steer.Command{Kind: steer.Interrupt, Task: "Support", Text: "Only the refund matters."})
		}, 3.5, [2]int{2, 2}, task.Completed, "Only the refund matters."},
		{"an interrupt of a later turn", []step{looksUp, answer}, func(s *steered) {
			s.at(3.5, steer.Command{Kind: steer.Interrupt, Task: "Support", Text: "Only the refund matters."})
		}, 4.5, [2]int{2, 3}, task.Completed, "Only the refund matters."},
		{"a pause", []step{looksUp, answer}, func(s *steered) {
			s.at(2.5, steer.Command{Kind: steer.Pause})
			s.at(62.5, steer.Command{Kind: steer.Resume})
		}, 63.5, [2]int{2, 2}, task.Completed, ""},
		{"a pause before the transfer", []step{answer}, func(s *steered) {
			s.at(1.5, steer.Command{Kind: steer.Pause})
			s.at(61.5, steer.Command{Kind: steer.Resume})
		}, 62.5, [2]int{2, 1}, task.Completed, ""},
		{"canceled", []step{answer}, func(s *steered) { s.at(2.5, steer.Command{Kind: steer.Cancel, Task: "Support"}) }, 2.5, [2]int{2, 1}, task.Skipped, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := newSteered(t), newFrontDesk(t)
				tt.send(s)
				limited := supportTask
				limited.Timeout = 20 * time.Minute
				res := run(t, slowDesk(t, d, tt.billing...), s.options(), limited)
				require.Equal(t, tt.status, of(t, res, "Support").Status, "%v", res.Err())
				require.InDelta(t, tt.ends, minutesOf(t, res, "Support"), 0.01)
				require.Equal(t, tt.asked, [2]int{len(d.asked["triage"]), len(d.asked["billing"])})
				require.Contains(t, d.last("billing"), tt.says)
				if tt.status != task.Completed {
					return
				}
				require.Equal(t, "triage > billing", of(t, res, "Support").Envelope.Producer())
				require.Equal(t, 1, of(t, res, "Support").Metrics.Attempts)
				again := newFrontDesk(t)
				repeated := resumed(t, slowDesk(t, again, tt.billing...), s.journal.history(s.journal.len()), limited)
				require.NoError(t, repeated.Err())
				require.Empty(t, again.asked)
				require.Equal(t, answers(res), answers(repeated))
			})
		})
	}
}

// What a new policy denies to a holder stops it, also if its assignee may have it, and nobody is given it again.
//
// Requirement: G61.
func TestPolicyReplacedWhileAHolderWorks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		rule  handoff.PairRule
		not   string // in the last prompt of billing
		stops bool
	}{
		{"what a tool returned", handoff.PairRule{From: "tool:lookup", To: "billing", Mode: handoff.Minimal}, "ORDER-7", true},
		{"what the earlier holder said", handoff.PairRule{From: "triage", To: "billing", Mode: handoff.Minimal}, "CANARY-REASON", true},
		{"what the task is granted", handoff.PairRule{From: handoff.User, To: "billing", Mode: handoff.Minimal}, "the plan of the harbor", true},
		{"what it does not hold", handoff.PairRule{From: "billing", To: "reader", Mode: handoff.Minimal}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := newSteered(t), newFrontDesk(t)
				tm := slowDesk(t, d, step{text: "done"})
				o := s.options()
				o.Inputs = []engine.Input{{Name: "brief", Text: "the plan of the harbor"}}
				with := supportTask
				with.Uses = []task.Use{{Name: "brief"}}
				replaced := s.replace(2.5, &handoff.Policy{Rules: []handoff.PairRule{tt.rule}})
				res := run(t, tm, o, with)
				require.NoError(t, <-replaced)
				require.NoError(t, res.Err())
				require.Contains(t, d.first("billing"), tt.not)
				require.Equal(t, tt.stops, len(d.asked["billing"]) > 1)
				if tt.stops {
					require.NotContains(t, d.last("billing"), tt.not)
				}
				require.Equal(t, "triage > billing", of(t, res, "Support").Envelope.Producer())
			})
		})
	}
}

// What holders take counts for the budget of the run.
func TestBudgetEndsInAHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFrontDesk(t)
		o := &engine.RunOptions{RunID: "r", Journal: &memory{}}
		o.Budget.MaxTokenBudget = 25
		res := run(t, slowDesk(t, d, looksUp, looksUp, step{text: "done"}), o, supportTask)
		require.Error(t, res.Err())
		require.Equal(t, "BUDGET_EXCEEDED", of(t, res, "Support").Error.Code)
		require.Len(t, d.asked["triage"], 2)
		require.Less(t, len(d.asked["billing"]), 3)
	})
}

// What is sent to the agent of a holder is in the prompts of the first task that is transferred to it, and of no other
// one, however often the run is resumed.
//
// Requirement: G58.
func TestMessagesToHoldersAfterEveryCommit(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{supportTask, {Title: "Again", Description: "Help again.", Assignee: "triage", DependsOn: task.On("Support")}}
	desk := func() (*frontDesk, *engine.Team) {
		d := newFrontDesk(t)
		return d, helpDesk(t, d, nil, func(c *engine.Config) {
			c.Edges = transferring("triage>billing", "billing>refunds")
			c.Agents[1] = d.member("billing", looksUp, transfers("refunds", "pay her"))
			c.Agents = append(c.Agents, d.member("refunds", looksUp, step{text: "Paid."}))
		})
	}
	options := func(j *memory) *engine.RunOptions {
		return &engine.RunOptions{RunID: "r", Journal: j, Messages: []plan.Message{
			{From: handoff.User, To: "billing", Text: "for billing alone", Classification: label.Internal},
			{From: handoff.User, To: "refunds", Text: "for refunds alone", Classification: label.Internal},
		}}
	}
	whole, first := &memory{}, map[string]bool{}
	d, tm := desk()
	want := run(t, tm, options(whole), specs...)
	require.NoError(t, want.Err())
	for name, list := range d.asked {
		for i, p := range list {
			first[name+": "+conversation(p)] = true
			for _, to := range []string{"billing", "refunds"} {
				require.Equal(t, name == to && i < 2, strings.Contains(conversation(p), "for "+to+" alone"), "prompt %d of %s", i, name)
			}
		}
	}
	for n := range whole.len() + 1 {
		again, tm := desk()
		res := run(t, tm, options(after(whole.history(n))), specs...)
		require.NoError(t, res.Err(), "after %d commits", n)
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		require.Empty(t, res.Warnings, "after %d commits", n)
		for name, list := range again.asked {
			for _, p := range list {
				require.True(t, first[name+": "+conversation(p)], "after %d commits, another prompt of %s:\n%s", n, name, conversation(p))
			}
		}
	}

	for name, replay := range map[string]*engine.Replay{"r": {}, "s": {Ask: true}} {
		silent, tm := desk()
		o := options(after(whole.history(whole.len())))
		o.RunID, o.Replay = name, replay
		got := run(t, tm, o, specs...)
		require.Empty(t, silent.asked, name)
		if !replay.Ask {
			same(t, document(t, want), document(t, got))
		}
		require.Equal(t, answers(want), answers(got))
		require.Empty(t, got.Warnings)
	}
}

// A name of an agent that the policy hides is in no prompt of a transferred conversation, and in the name of no tool.
func TestTransfersHideIdentity(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	members := []engine.Member{d.member("alpha", looksUp, transfers("agent_2", "over to you")), d.member("beta", looksUp, transfers("agent_3")), d.member("gamma", step{text: "done"})}
	for i := range members {
		members[i].SystemPrompt, members[i].Description = "You help.", "helps"
	}
	tm, err := engine.New(engine.Config{Agents: members, Edges: transferring("alpha>beta", "beta>gamma"), Policy: &handoff.Policy{HideIdentity: true}})
	require.NoError(t, err)
	res := run(t, tm, nil, by("alpha", spec("Support")), by("gamma", spec("Read", "Support")))
	require.NoError(t, res.Err())
	require.Equal(t, "alpha > beta > gamma", of(t, res, "Support").Envelope.Producer())
	for who, list := range d.asked {
		require.NotEmpty(t, list)
		for _, p := range list {
			for _, name := range []string{"alpha", "beta", "gamma"} {
				text := conversation(p) + encoded(p.Tools())
				if name != who { // an agent may know its own name
					text += encoded(p.Receipt().Sources)
				}
				if at := strings.Index(text, name); at >= 0 {
					t.Errorf("a prompt of %s: …%s", who, text[max(0, at-300):min(len(text), at+100)])
				}
			}
		}
	}
	require.Contains(t, d.last("gamma"), "agent 1 > agent 2 > agent 3")
}

// Tasks of other forms are transferred as well: with judges, in loops, for each item of a list, and in sessions.
func TestFormsOfTransferredTasks(t *testing.T) {
	t.Parallel()
	answer := step{text: `{"n":2,"items":["a","b"]}`}
	with := func(change func(s *task.Spec)) task.Spec {
		s := supportTask
		change(&s)
		return s
	}
	shaped := []byte(`{"type":"object","properties":{"n":{"type":"integer"},"items":{"type":"array","items":{"type":"string"},"maxItems":3}},"required":["n"]}`)
	for _, tt := range []struct {
		name  string
		specs []task.Spec
		times int // that the conversation is transferred
	}{
		{"verify", []task.Spec{with(func(s *task.Spec) {
			s.Verify = &task.Verify{Judges: []task.Judge{{Agent: "reader"}}, MaxRounds: 2}
		})}, 2},
		{"repeat", []task.Spec{{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, OnRepeat: "continue", Until: task.Equals("Support", "/n", 3), Output: "Support", Tasks: []task.Spec{with(func(s *task.Spec) { s.OutputSchema = shaped })}}}}, 2},
		{"forEach", []task.Spec{
			{Title: "List", Description: "d", Assignee: "lister", OutputSchema: shaped},
			with(func(s *task.Spec) {
				s.ForEach = &task.ForEach{Task: "List", Path: "/items"}
			}),
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, judged := newFrontDesk(t), 0
			tm := helpDesk(t, d, nil, func(c *engine.Config) {
				c.Agents[1] = d.member("billing", answer)
				c.Agents[2] = member("reader", func(context.Context, prompt.Prompt) (agent.Reply, error) {
					judged++
					return agent.Reply{Text: fmt.Sprintf(`{"accept":%t,"critique":"once more"}`, judged > 1)}, nil
				})
				c.Agents = append(c.Agents, member("lister", says(answer.text)))
			})
			j, res := journaled(t, tm, tt.specs...)
			require.NoError(t, res.Err())
			require.Len(t, d.asked["billing"], tt.times)
			require.Contains(t, chains(res), "triage > billing")
			require.NotContains(t, chains(res), "triage")
			require.NotContains(t, chains(res), "billing")
			silent := newFrontDesk(t)
			again := resumed(t, helpDesk(t, silent, nil, func(c *engine.Config) {
				c.Agents[1], c.Agents[2] = silent.member("billing", answer), member("reader", says("unused"))
				c.Agents = append(c.Agents, member("lister", says("unused")))
			}), j.history(j.len()), tt.specs...)
			require.Equal(t, answers(res), answers(again))
			require.Equal(t, chains(res), chains(again))
			require.Empty(t, silent.asked)
		})
	}
	d := newFrontDesk(t)
	s, err := helpDesk(t, d, nil, nil).NewSession(engine.SessionOptions{Agent: "triage"})
	require.NoError(t, err)
	for range 2 {
		turn, err := s.Send(t.Context(), "Help me.", label.Internal, nil)
		require.NoError(t, err)
		require.NoError(t, turn.Err())
		require.Equal(t, "Your money is on its way.", turn.Output)
	}
	require.Len(t, d.asked["triage"], 3, "each turn begins with the agent of the session; in the second one, it has looked it up")
	require.Len(t, d.asked["billing"], 2)
}

// chains returns the producers of the results of tasks.
func chains(res *engine.Result) (names []string) {
	for i := range res.Tasks {
		if e := res.Tasks[i].Envelope; e != nil {
			names = append(names, e.Producer())
		}
	}
	return names
}

// Assertions name a task whose conversation can be transferred by its title and its key. Its result reaches whom it
// reaches without a transfer, and a rule for one holder keeps what that says from a later one.
func TestFlowOfAChainOfHolders(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	tm := helpDesk(t, d, &handoff.Policy{Rules: []handoff.PairRule{{From: "triage", To: "refunds", Mode: handoff.Minimal}}}, func(c *engine.Config) {
		c.Edges = transferring("triage>billing", "billing>refunds")
		c.Agents = append(c.Agents, d.member("refunds", step{text: "Paid."}), member("stranger", says("x")))
	})
	keyed := supportTask
	keyed.Key = "help"
	p, err := tm.Plan([]task.Spec{keyed, {Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: task.On("Support")}}, nil)
	require.NoError(t, err)
	table := p.Flow()
	for _, name := range []string{"Support", "help"} {
		for reader, never := range map[string]bool{"reader": false, "stranger": true} {
			found, err := table.Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask, Name: name}, Claim: flow.Reaches, Reader: reader})
			require.NoError(t, err)
			require.Equal(t, never, found.Holds, "%s never reaches %s", name, reader)
		}
	}
	_, err = table.Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask, Name: "Suport"}, Claim: flow.Reaches, Reader: "reader"})
	require.ErrorContains(t, err, `did you mean "Support"?`)
	g, said := table.Graph(), map[string]bool{}
	for i := range g.Edges {
		e := &g.Edges[i]
		if src := &g.Sources[e.Source]; src.Kind == handoff.Transferred && e.Reach() != flow.Never {
			said[src.From+" to "+g.Tasks[e.Task].Title] = true
		}
	}
	require.True(t, said["triage to billing in Support"])
	require.True(t, said["billing to refunds in Support"])
	require.False(t, said["triage to refunds in Support"])
	require.Equal(t, []string{"billing", "refunds"}, holdersOf(p))
}

// holdersOf returns the agents to which the conversation of the first task can be transferred.
func holdersOf(p *engine.Plan) (names []string) {
	for _, t := range p.Flow().Graph().Tasks {
		if by, of, ok := strings.Cut(t.Title, " in "); ok && of == "Support" && t.Agent >= 0 {
			names = append(names, by)
		}
	}
	return names
}
