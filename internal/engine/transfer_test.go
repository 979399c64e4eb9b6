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
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A frontDesk is a team whose agents transfer their conversations. Its agents follow scripts.
type frontDesk struct {
	mu     sync.Mutex // guards the rest
	asked  map[string][]prompt.Prompt
	lookup *tool.Tool
	paid   map[string]int
}

func newFrontDesk(t testing.TB) *frontDesk {
	lookup := newTool(t, "lookup", noEffect, func(context.Context, map[string]any) (string, error) { return "found order ORDER-7", nil })
	return &frontDesk{asked: map[string][]prompt.Prompt{}, paid: map[string]int{}, lookup: lookup}
}

// member returns an agent that follows a script. When it gets a conversation back, the script goes on with
// the step behind the last one.
func (d *frontDesk) member(name string, script ...step) engine.Member {
	m := clerk(nil, d.lookup)
	m.Name, m.SystemPrompt, m.Description = name, "You are "+name+".", "knows "+name
	m.Agent = agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asked[name] = append(d.asked[name], p)
		turn := strings.Count(p.Messages()[0].Text, "### "+name) // each of its transfers has a reason and no text
		for _, one := range p.Messages()[1:] {
			if one.Role == "assistant" {
				turn++
			}
		}
		s := script[min(turn, len(script)-1)]
		if s.to != nil {
			s.calls = s.to(conversation(p))
		}
		if s.text == "fail" {
			return agent.Reply{}, errBroken
		}
		return agent.Reply{Text: s.text, ToolCalls: s.calls}, nil
	})
	return m
}

// first returns the first prompt of an agent, and last the last one.
func (d *frontDesk) first(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked[name]) == 0 {
		return ""
	}
	return d.asked[name][0].Messages()[0].Text
}

func (d *frontDesk) last(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked[name]) == 0 {
		return ""
	}
	return conversation(d.asked[name][len(d.asked[name])-1])
}

func transfers(to string, reason ...string) step {
	arguments := "{}"
	if len(reason) > 0 {
		arguments = fmt.Sprintf(`{"reason":%q}`, reason[0])
	}
	return step{calls: []llm.ToolCall{call("transfer_to_"+to, arguments)}}
}

var looksUp = step{calls: []llm.ToolCall{call("lookup", `{"who":"mia"}`)}, text: "I look it up."}

// transferring returns edges along which conversations may be transferred, as [edges] writes them.
func transferring(list ...string) []handoff.Edge {
	all := edges(list...)
	for i := range all {
		all[i].Transfer = true
	}
	return all
}

// helpDesk is a team of triage and billing.
func helpDesk(t testing.TB, d *frontDesk, policy *handoff.Policy, change func(c *engine.Config)) *engine.Team {
	c := engine.Config{Policy: policy, Edges: transferring("triage>billing"), Agents: []engine.Member{
		d.member("triage", looksUp, transfers("billing", "she wants CANARY-REASON back")),
		d.member("billing", step{text: "Your money is on its way."}),
		member("reader", says("read")),
	}}
	if change != nil {
		change(&c)
	}
	tm, err := engine.New(c)
	require.NoError(t, err)
	return tm
}

var supportTask = task.Spec{Title: "Support", Description: "Help the customer.", Assignee: "triage"}

// Requirement: G63.
func TestTransferredConversation(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	var seen []event.Event
	tm := helpDesk(t, d, nil, nil)
	res := run(t, tm, &engine.RunOptions{Subscribers: []func(event.Event){func(e event.Event) { seen = append(seen, e) }}}, supportTask, task.Spec{Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: task.On("Support")})
	require.NoError(t, res.Err())
	support := of(t, res, "Support")
	require.Equal(t, "Your money is on its way.", support.Result)
	require.Equal(t, "triage > billing", support.Envelope.Producer())
	require.Equal(t, []string{"lookup", "transfer_to_billing"}, []string{support.Metrics.ToolCalls[0].Tool, support.Metrics.ToolCalls[1].Tool})

	got := d.first("billing")
	require.Contains(t, got, "# Task: Support\n\nHelp the customer.")
	require.Contains(t, got, "## Conversation before it was transferred to you")
	require.Regexp(t, `(?s)### triage\n.*from "triage".*I look it up\..*"who":"mia".*### lookup, called by triage\n\[envelope [0-9a-f]+ from "tool:lookup", internal.*found order ORDER-7.*### triage, reason of the transfer\n.*she wants CANARY-REASON back`, got)
	require.Equal(t, "You are billing.", d.asked["billing"][0].System())
	require.Len(t, d.asked["triage"], 2)
	for _, f := range d.asked["triage"][0].Tools() {
		if f.Name == "transfer_to_billing" {
			require.Contains(t, f.Description, "knows billing")
		}
	}
	var handed []string
	for _, e := range seen {
		if e.Type == event.AgentTransfer {
			handed = append(handed, fmt.Sprint(e.From, " ", e.To, " ", e.Title, " ", e.Turn))
		}
	}
	require.Equal(t, []string{"triage billing Support 2"}, handed)
	last := support.Receipts[len(support.Receipts)-1]
	require.Equal(t, "billing", last.Agent)
	var producers []string
	for _, s := range last.Sources {
		if s.Decision != nil && s.Decision.Source.Kind == handoff.Transferred {
			producers = append(producers, s.Decision.From)
		}
	}
	require.Equal(t, []string{"triage", "tool:lookup", "triage"}, producers)
}

// A rule decides about what each agent and tool passes to the new holder, and who reads the result gets
// what the rules of all holders let through.
//
// Requirement: G63.
func TestRulesOfATransfer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		rules    []handoff.PairRule
		has, not []string
		read     bool // whether the reader gets the result
	}{
		{"full", nil, []string{"I look it up.", "ORDER-7", "CANARY-REASON"}, nil, true},
		{"minimal", []handoff.PairRule{{From: "triage", To: "billing", Mode: handoff.Minimal}}, []string{"ORDER-7"}, []string{"I look it up.", "CANARY-REASON", "mia"}, true},
		{"scoped", []handoff.PairRule{{From: "triage", To: "billing", Allow: []task.Path{"/calls/*/name"}}}, []string{"ORDER-7"}, []string{"I look it up.", "CANARY-REASON", "mia"}, true},
		{"tool", []handoff.PairRule{{From: "tool:lookup", To: "billing", Mode: handoff.Minimal}}, []string{"CANARY-REASON"}, []string{"ORDER-7"}, true},
		{"first holder to reader", []handoff.PairRule{{From: "triage", To: "reader", Mode: handoff.Minimal}}, nil, nil, false},
		{"last holder to reader", []handoff.PairRule{{From: "billing", To: "reader", Mode: handoff.Minimal}}, nil, nil, false},
		{"other", []handoff.PairRule{{From: "reader", To: "billing", Mode: handoff.Minimal}}, []string{"CANARY-REASON"}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newFrontDesk(t)
			read := ""
			tm := helpDesk(t, d, &handoff.Policy{Rules: tt.rules}, func(c *engine.Config) {
				c.Agents[2] = member("reader", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					read = p.Text()
					return agent.Reply{Text: "read"}, nil
				})
			})
			res := run(t, tm, nil, supportTask, task.Spec{Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: task.On("Support")})
			require.NoError(t, res.Err())
			for _, text := range tt.has {
				require.Contains(t, d.first("billing"), text)
			}
			for _, text := range tt.not {
				require.NotContains(t, d.first("billing"), text)
			}
			require.Equal(t, tt.read, strings.Contains(read, "Your money"))
			if tt.read {
				require.Contains(t, read, `from "triage > billing"`)
			}
		})
	}
}

// Each holder has the pieces of all before it by their own rules, and an edge bounds what passes along it.
func TestChainOfTransfers(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	list := transferring("triage<>billing", "billing>refunds")
	list[1].MaxClassification = new(label.Public)
	c := engine.Config{Edges: list, Policy: &handoff.Policy{HideIdentity: false, Rules: []handoff.PairRule{{From: "triage", To: "refunds", Mode: handoff.Minimal}}}, Agents: []engine.Member{
		d.member("triage", transfers("billing", "over to you"), transfers("billing", "no, to you"), step{text: "unused"}),
		d.member("billing", transfers("triage", "back to you"), looksUp, transfers("refunds")),
		d.member("refunds", step{text: "done"}),
	}}
	tm, err := engine.New(c)
	require.NoError(t, err)
	res := run(t, tm, nil, supportTask)
	require.NoError(t, res.Err())
	require.Equal(t, "triage > billing > triage > billing > refunds", of(t, res, "Support").Envelope.Producer())
	require.Regexp(t, "(?s)over to you.*back to you", d.last("triage"))
	require.Regexp(t, "(?s)over to you.*back to you.*no, to you", d.last("billing"))
	got := d.first("refunds")
	require.NotContains(t, got, "over to")
	require.NotContains(t, got, "back to")
	require.NotContains(t, got, "lookup, called by")
}

func TestTransfersThatAreRefused(t *testing.T) {
	t.Parallel()
	confidential := func(c *engine.Config) {
		for i := range c.Agents {
			c.Agents[i].Accepts, c.Agents[i].Tools, c.Agents[i].AllowUntrusted = label.Confidential, nil, nil
		}
		c.Agents[1].Accepts = label.Internal
	}
	for _, tt := range []struct {
		name   string
		script []step
		change func(c *engine.Config)
		spec   func(s *task.Spec)
		says   string // to triage
	}{
		{"with another call", []step{{calls: []llm.ToolCall{call("lookup", `{}`), call("transfer_to_billing", `{}`)}}, {text: "done"}}, nil, nil, "Call refused: call transfer_to_billing alone"},
		{"twice in one turn", []step{{calls: []llm.ToolCall{call("transfer_to_billing", `{}`), call("transfer_to_billing", `{}`)}}, {text: "done"}}, nil, nil, "Call refused: call transfer_to_billing alone"},
		{"invalid arguments", []step{{calls: []llm.ToolCall{call("transfer_to_billing", `{"to":"billing"}`)}}, {text: "done"}}, nil, nil, "Invalid arguments"},
		{"unknown", []step{transfers("sales"), {text: "done"}}, nil, nil, "Unknown tool"},
		{"without clearance", []step{transfers("billing"), {text: "done"}}, confidential, func(s *task.Spec) { s.Classification = label.Confidential }, "Call refused: your context is confidential, and billing may see internal"},
		{"without tags", []step{transfers("billing"), {text: "done"}}, func(c *engine.Config) { c.Agents[0].OutputTags = []string{"done"} }, func(s *task.Spec) { s.RequiredTags = []string{"done"} }, "Call refused: billing cannot take this task over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newFrontDesk(t)
			s := supportTask
			tm := helpDesk(t, d, nil, func(c *engine.Config) {
				c.Agents[0] = d.member("triage", tt.script...)
				if tt.change != nil {
					tt.change(c)
				}
			})
			if tt.spec != nil {
				tt.spec(&s)
			}
			res := run(t, tm, nil, s)
			require.Contains(t, d.last("triage"), tt.says)
			if tt.name != "without tags" { // its own answer lacks them
				require.NoError(t, res.Err())
				require.Equal(t, "triage", of(t, res, "Support").Envelope.Producer())
			}
			require.Empty(t, d.asked["billing"])
		})
	}
}

func TestTransfersAreBounded(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	over := func(to string) step {
		return step{to: func(said string) []llm.ToolCall {
			if strings.Contains(said, "at most 8 times") {
				return nil
			}
			return transfers(to, "again").calls
		}, text: "enough"}
	}
	tm := helpDesk(t, d, nil, func(c *engine.Config) {
		c.Edges = transferring("triage<>billing")
		c.Agents[0], c.Agents[1] = d.member("triage", over("billing")), d.member("billing", over("triage"))
	})
	res := run(t, tm, nil, supportTask)
	require.NoError(t, res.Err())
	require.Equal(t, 8, strings.Count(of(t, res, "Support").Envelope.Producer(), ">"))
	require.Len(t, d.asked["triage"], 6)
	require.Len(t, d.asked["billing"], 4)
}

// Requirement: G58.
func TestTransfersResumeAfterEveryCommit(t *testing.T) {
	t.Parallel()
	desk := func() (*frontDesk, *engine.Team) {
		t.Helper()
		d := newFrontDesk(t)
		pay := newTool(t, "pay", tool.Options{}, func(ctx context.Context, _ map[string]any) (string, error) {
			c, _ := tool.CallFrom(ctx)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.paid[c.ID]++
			return "paid", nil
		})
		return d, helpDesk(t, d, nil, func(c *engine.Config) {
			c.Edges = transferring("triage>billing", "billing>refunds")
			c.Agents[1] = d.member("billing", looksUp, transfers("refunds", "pay her"))
			refunds := d.member("refunds", step{calls: []llm.ToolCall{call("pay", `{"to":"mia"}`)}}, step{text: "Paid."})
			refunds.Tools, refunds.AllowUntrusted = append(refunds.Tools, pay), append(refunds.AllowUntrusted, "pay")
			c.Agents = append(c.Agents, refunds)
		})
	}
	first, tm := desk()
	whole, want := journaled(t, tm, supportTask)
	require.NoError(t, want.Err())
	require.Equal(t, "triage > billing > refunds", want.Tasks[0].Envelope.Producer())
	require.Len(t, first.paid, 1)
	uncertain, shown := 0, map[string]bool{}
	for name, list := range first.asked {
		for _, p := range list {
			shown[name+": "+p.Text()] = true
		}
	}
	for n := range whole.len() + 1 {
		past := whole.history(n)
		before, asked := durableIn(past), 0
		for _, e := range past.Log {
			if e.Exchange != nil && e.Exchange.Completed() || e.Turn != nil {
				asked++
			}
		}
		again, tm := desk()
		res := resumed(t, tm, past, supportTask)
		calls := 0
		for name, list := range again.asked {
			calls += len(list)
			for _, p := range list {
				require.True(t, shown[name+": "+p.Text()], "after %d commits, another prompt of %s:\n%s", n, name, p.Text())
			}
		}
		open := false
		for id := range before.started {
			open = open || !before.ended[id] && strings.HasSuffix(id, "/call_1_1") && strings.Count(id, "/child/") == 2
		}
		for id, times := range again.paid {
			require.Equal(t, 1, times)
			require.False(t, before.started[id], "after %d commits", n)
		}
		if open {
			uncertain++
			require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code, "after %d commits", n)
			continue
		}
		require.NoError(t, res.Err(), "after %d commits", n)
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		require.Equal(t, "triage > billing > refunds", res.Tasks[0].Envelope.Producer(), "after %d commits", n)
		if asked < 6 {
			require.Equal(t, 6-asked, calls, "after %d commits", n)
		} else {
			require.Zero(t, calls)
		}
	}
	require.Positive(t, uncertain)
}

// A person approves a call of the new holder, in a later process too: nothing is asked twice.
func TestApprovalsAfterATransfer(t *testing.T) {
	t.Parallel()
	desk := func(decide string) (*frontDesk, *approver, *engine.Team, *countedTool) {
		d, boss := newFrontDesk(t), &approver{decide: always(decide)}
		pay := newCountedTool(t, "refund", tool.Options{Approve: "ann"})
		return d, boss, helpDesk(t, d, nil, func(c *engine.Config) {
			billing := d.member("billing", step{calls: []llm.ToolCall{call("refund", `{"amount":5}`)}}, step{text: "Refunded."})
			billing.Tools, billing.AllowUntrusted = append(billing.Tools, pay.Tool), append(billing.AllowUntrusted, "refund")
			c.Agents[1] = billing
			c.Agents = append(c.Agents, boss.member())
		}), pay
	}
	d, boss, tm, pay := desk(saysYes)
	res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: &memory{}}, supportTask)
	require.NoError(t, res.Err())
	require.Equal(t, []int{1, 1}, []int{int(pay.calls.Load()), len(boss.asked)})
	require.Contains(t, boss.asked[0], "Agent billing wants to call the tool refund")
	require.Equal(t, "triage > billing", of(t, res, "Support").Envelope.Producer())

	d, boss, tm, pay = desk("")
	j, res := journaled(t, tm, supportTask)
	require.Equal(t, engine.StatusSuspended, res.Status)
	require.Equal(t, "ann", of(t, res, "Support").WaitingFor)
	require.Equal(t, []int{2, 1}, []int{len(d.asked["triage"]), len(d.asked["billing"])})
	require.Zero(t, pay.calls.Load())

	again, boss, tm, pay := desk(saysYes)
	res = resumed(t, tm, j.history(j.len()), supportTask)
	require.NoError(t, res.Err())
	require.Equal(t, []int{0, 1, 1, 1}, []int{len(again.asked["triage"]), len(again.asked["billing"]), int(pay.calls.Load()), len(boss.asked)})
	require.Equal(t, "Refunded.", of(t, res, "Support").Result)
	require.Equal(t, 1, of(t, res, "Support").Metrics.Attempts)
}

// A failed holder fails the attempt, and the next attempt begins with the assignee.
func TestRetryAfterATransfer(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	tm := helpDesk(t, d, nil, func(c *engine.Config) { c.Agents[1] = d.member("billing", step{text: "fail"}) })
	s := supportTask
	s.MaxRetries, s.RetryDelay = 1, task.NoDelay
	res := run(t, tm, nil, s)
	require.Error(t, res.Err())
	require.Equal(t, []int{4, 2}, []int{len(d.asked["triage"]), len(d.asked["billing"])})
	require.Equal(t, 2, of(t, res, "Support").Metrics.Attempts)

	d = newFrontDesk(t)
	pay := newCountedTool(t, "pay", tool.Options{})
	tm = helpDesk(t, d, nil, func(c *engine.Config) {
		triage := d.member("triage", step{calls: []llm.ToolCall{call("pay", `{}`)}}, transfers("billing"))
		triage.Tools, triage.AllowUntrusted = append(triage.Tools, pay.Tool), append(triage.AllowUntrusted, "pay")
		c.Agents[0], c.Agents[1] = triage, d.member("billing", step{text: "fail"})
	})
	res = run(t, tm, nil, s)
	require.Equal(t, "EFFECTS_UNCERTAIN", of(t, res, "Support").Error.Code, "what was called before the transfer counts")
	require.Len(t, d.asked["billing"], 1)
}

// The output schema of the task applies to the answer of the new holder, and so does its time limit.
func TestTasksAfterATransfer(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	s := supportTask
	s.OutputSchema = []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)
	tm := helpDesk(t, d, nil, func(c *engine.Config) { c.Agents[1] = d.member("billing", step{text: `{"ok":true}`}) })
	res := run(t, tm, nil, s)
	require.NoError(t, res.Err())
	require.JSONEq(t, `{"ok":true}`, of(t, res, "Support").Structured)
	require.Contains(t, d.last("billing"), "## Output schema")

	d = newFrontDesk(t)
	tm = helpDesk(t, d, nil, func(c *engine.Config) { c.Agents[1] = d.member("billing", step{text: "no JSON"}) })
	res = run(t, tm, nil, s)
	require.Equal(t, "OUTPUT_SCHEMA_INVALID", of(t, res, "Support").Error.Code)

	synctest.Test(t, func(t *testing.T) {
		d := newFrontDesk(t)
		slow := func(of engine.Member, takes time.Duration) engine.Member {
			quick := of.Agent
			of.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				select {
				case <-time.After(takes):
					return quick.Run(ctx, p)
				case <-ctx.Done():
					return agent.Reply{}, context.Cause(ctx)
				}
			})
			return of
		}
		tm := helpDesk(t, d, nil, func(c *engine.Config) {
			c.Agents[0], c.Agents[1] = slow(c.Agents[0], 4*time.Minute), slow(c.Agents[1], 3*time.Minute)
		})
		s, began := supportTask, time.Now()
		s.Timeout = 10 * time.Minute
		res := run(t, tm, nil, s)
		require.Equal(t, "TIMEOUT", of(t, res, "Support").Error.Code)
		require.Equal(t, 10*time.Minute, time.Since(began))
	})
}

// What was sent to the agent of a new holder is in its prompts, and nothing of the inbox of another one.
func TestInboxOfANewHolder(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t)
	tm := helpDesk(t, d, nil, func(c *engine.Config) { c.Agents[1] = d.member("billing", looksUp, step{text: "done"}) })
	o := &engine.RunOptions{RunID: "r", Journal: &memory{}, Messages: []plan.Message{
		{From: handoff.User, To: "billing", Text: "for billing alone", Classification: label.Internal}, {From: handoff.User, To: "triage", Text: "for triage alone", Classification: label.Internal},
	}}
	res := run(t, tm, o, supportTask)
	require.NoError(t, res.Err())
	require.Contains(t, d.first("triage"), "for triage alone")
	require.NotContains(t, d.first("triage"), "for billing alone")
	require.Contains(t, d.first("billing"), "for billing alone")
	require.NotContains(t, d.last("billing"), "for triage alone")
	require.Empty(t, res.Warnings)
}
