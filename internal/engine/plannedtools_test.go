package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// An office is a team whose coordinator may grant tools: ada has all tools of the runtime, bob can answer
// her, eve works on goals and fay finishes tasks. Each but fay does what its script says for a text in its prompt.
type office struct {
	planner
	edges   []handoff.Edge
	policy  *handoff.Policy
	change  func(c *engine.Config)
	scripts map[string][]step // by a text in the first message of a prompt

	mu      sync.Mutex // guards the rest
	asked   map[string][]string
	offered map[string][]string // the names of tools that were offered, by agent
}

func newOffice(plans ...string) *office {
	return &office{
		planner: planner{plans: plans}, scripts: map[string][]step{}, asked: map[string][]string{}, offered: map[string][]string{},
		edges: []handoff.Edge{{From: "ada", To: "bob", Bidirectional: true}, {From: "ada", To: "eve", Delegate: true}, {From: "ada", To: "fay", Transfer: true}},
	}
}

// member returns an agent that takes a minute for each turn.
func (o *office) member(name string) engine.Member {
	m := member(name, func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		turn := 0
		for _, one := range p.Messages()[1:] {
			if one.Role == "assistant" {
				turn++
			}
		}
		var tools []string
		for _, f := range p.Tools() {
			tools = append(tools, f.Name)
		}
		o.mu.Lock()
		o.asked[name], o.offered[name] = append(o.asked[name], conversation(p)), tools
		o.mu.Unlock()
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
		for _, text := range slices.Sorted(maps.Keys(o.scripts)) {
			if script := o.scripts[text]; name != "fay" && strings.Contains(p.Messages()[0].Text, text) {
				s := script[min(turn, len(script)-1)]
				if s.to != nil {
					s.calls = s.to(conversation(p))
				}
				return agent.Reply{Text: s.text, ToolCalls: s.calls}, nil
			}
		}
		return agent.Reply{Text: "the work of " + name}, nil
	})
	m.Description = "knows " + name
	return m
}

func (o *office) team(t *testing.T) *engine.Team {
	ada := o.member("ada")
	ada.Spawn = &plan.Spawning{Max: 4}
	c := engine.Config{
		Agents: []engine.Member{ada, o.member("bob"), o.member("eve"), o.member("fay")}, Edges: o.edges, Policy: o.policy,
		Coordinator: &engine.Coordinator{Agent: versioned{&o.planner}, MayGrant: synth.Grants{Tools: true}, MayPlan: synth.Constructs{When: true, Repeat: true, ForEach: true, Verify: true}},
	}
	if o.change != nil {
		o.change(&c)
	}
	tm, err := engine.New(c)
	require.NoError(t, err)
	return tm
}

var moveOffice = engine.Goal{Text: "Move the office, and tell everyone."}

// all returns everything that an agent was shown.
func (o *office) all(name string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.asked[name], "\n")
}

// talking is a plan in which ada works with everyone.
const talking = `[
	{"title": "Move", "description": "Plan the move.", "assignee": "ada", "tools": ["send_handoff", "spawn_agent", "delegate_to_agent", "transfer_to_fay"]},
	{"title": "Pack", "description": "Plan the boxes.", "assignee": "bob", "tools": ["send_handoff"]}
]`

// goodCheck is a task that ends a loop.
const goodCheck = `{"title": "Check", "description": "Check.", "assignee": "bob", "dependsOn": ["Move"], "outputSchema": {"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"]}}`

// talks has the agents of that plan use their tools.
func (o *office) talks() {
	o.scripts["Plan the move."] = []step{
		{calls: []llm.ToolCall{sendsTo("bob", "How many boxes?", `,"response":{"expectation":"required"}`)}},
		{calls: []llm.ToolCall{spawns("count the desks"), call("delegate_to_agent", `{"to":"eve","goal":"count the chairs"}`)}},
		{calls: []llm.ToolCall{call("transfer_to_fay", `{"reason":"you know the house"}`)}},
	}
	o.scripts["Plan the boxes."] = []step{{calls: []llm.ToolCall{sendsTo("ada", "Read this.")}}, {calls: []llm.ToolCall{sendsTo("ada", "And this.")}}, {to: func(conversation string) []llm.ToolCall {
		_, id, _ := strings.Cut(conversation, "Message from ada (handoff ")
		return []llm.ToolCall{sendsTo("ada", "Forty boxes.", fmt.Sprintf(`,"contextRef":%q`, id[:min(36, len(id))]))}
	}}, {text: "packed"}}
	o.scripts["count the desks"], o.scripts["count the chairs"] = []step{{text: "nine desks"}}, []step{{text: "ten chairs"}}
}

// TestPlansGrantToolsOfTheRuntime runs a plan whose agents send and reply, spawn, delegate and transfer, and
// one that names none of these tools.
//
// Requirement: G49.
func TestPlansGrantToolsOfTheRuntime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(talking)
		o.talks()
		res, err := o.team(t).RunTeam(t.Context(), moveOffice, nil)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.Empty(t, res.Warnings)
		require.Equal(t, "completed: the work of fay", answers(res)["Move"])
		ada, fay := o.all("ada"), o.all("fay")
		for _, text := range []string{"Reply from bob (handoff ", "Forty boxes.", "nine desks", "ten chairs"} {
			require.Contains(t, ada, text)
		}
		require.Contains(t, fay, "you know the house")
		require.Contains(t, fay, "ten chairs")
		system := o.systems[0]
		require.Contains(t, system, "## Working Together\n")
		for _, name := range []string{plan.SendHandoff, plan.SpawnAgent, plan.DelegateToAgent, plan.TransferPrefix} {
			require.Contains(t, system, `"`+name, "the words of the prompt are the names of the tools")
		}
		require.Contains(t, system, `{"description":"sends messages to bob, eve, fay","name":"send_handoff"}`)
		require.Contains(t, system, `{"description":"has a goal pursued by eve","name":"delegate_to_agent"}`)
		require.Contains(t, system, `{"description":"gives the task to fay, who finishes it","name":"transfer_to_fay"}`)
		require.Contains(t, system, `{"description":"has up to 4 copies of the agent pursue goals","name":"spawn_agent"}`)

		o = newOffice(`[{"title": "Move", "description": "Plan the move.", "assignee": "ada"}, {"title": "Pack", "description": "Plan the boxes.", "assignee": "bob"}]`)
		o.talks()
		res, err = o.team(t).RunTeam(t.Context(), moveOffice, nil)
		require.NoError(t, err)
		require.Empty(t, res.Warnings, "edges that the plan does not use are not worth a warning")
		require.Empty(t, o.offered["ada"])
		require.NotContains(t, o.all("ada"), "Forty boxes.")
		require.Empty(t, o.all("eve")+o.all("fay"))
	})
}

// TestPlannedReplyThatNobodyCanGive checks that a sender does not wait for a reply if its reader has ended.
func TestPlannedReplyThatNobodyCanGive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(strings.Replace(talking, `"assignee": "bob", "tools": ["send_handoff"]`, `"assignee": "bob"`, 1))
		o.scripts["Plan the move."] = []step{ // what is spawned works for a minute, in which bob ends
			{calls: []llm.ToolCall{spawns("count the desks")}},
			{calls: []llm.ToolCall{sendsTo("bob", "How many boxes?", `,"response":{"expectation":"required"}`)}}, {text: "moved"},
		}
		o.scripts["count the desks"] = []step{{text: "nine desks"}}
		o.scripts["Plan the boxes."] = []step{{text: "packed"}}
		res, err := o.team(t).RunTeam(t.Context(), moveOffice, nil)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.Contains(t, o.all("ada"), "No task of bob is left that could read it.")
	})
}

// TestPlannedToolsHideIdentity checks that a plan names tools as the coordinator reads them, by the names of
// agents, and that agents have them under the names that the policy shows.
func TestPlannedToolsHideIdentity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(strings.ReplaceAll(talking, `"send_handoff", "spawn_agent", "delegate_to_agent", `, ""))
		o.policy = &handoff.Policy{HideIdentity: true}
		o.scripts["Plan the move."] = []step{{calls: []llm.ToolCall{call("transfer_to_agent_4", `{}`)}}}
		res, err := o.team(t).RunTeam(t.Context(), moveOffice, nil)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"transfer_to_agent_4"}, o.offered["ada"])
		require.Equal(t, "completed: the work of fay", answers(res)["Move"])
		require.Contains(t, o.systems[0], `{"description":"gives the task to fay (agent 4), who finishes it","name":"transfer_to_fay"}`)
		require.Contains(t, o.systems[0], `{"description":"sends messages to bob (agent 2), eve (agent 3), fay (agent 4)","name":"send_handoff"}`)
		require.Contains(t, o.systems[0], `in titles and descriptions, write what the roster has in parentheses`)
		last := o.systems[len(o.systems)-1]
		require.Contains(t, last, `"name":"agent 4"`)
		require.NotContains(t, last, "transfer_to_fay")
		require.NotContains(t, last, "gives the task to")

		// A task of a spec can use either name.
		for _, name := range []string{"transfer_to_fay", "transfer_to_agent_4"} {
			move := spec("move")
			move.Assignee, move.Tools, move.Description = "ada", []string{name}, "Plan the move."
			o.policy = nil
			p, err := o.team(t).Plan([]task.Spec{move}, nil)
			require.NoError(t, err)
			require.Equal(t, []string{"transfer_to_fay"}, p.Tasks[0].Tools)
			o.policy = &handoff.Policy{HideIdentity: true}
			p, err = o.team(t).Plan([]task.Spec{move}, nil)
			require.NoError(t, err)
			require.Equal(t, []string{"transfer_to_agent_4"}, p.Tasks[0].Tools)
		}
	})
}

// TestPlannedToolsThatAreRefused checks that a coordinator gets back a plan with a tool of the runtime that the
// agent does not have, or with which it could never reach anyone.
func TestPlannedToolsThatAreRefused(t *testing.T) {
	t.Parallel()
	const move = `{"title": "Move", "description": "Plan the move.", "assignee": "ada", "tools": ["%s"]}`
	one := func(tool string, more ...string) string {
		return "[" + strings.Join(append([]string{fmt.Sprintf(move, tool)}, more...), ", ") + "]"
	}
	const pack = `{"title": "Pack", "description": "Plan the boxes.", "assignee": "bob"}`
	low := func(c *engine.Config) { // of what the coordinator writes, which is confidential
		for i := range c.Agents[:2] {
			c.Agents[i].Accepts = label.Confidential
		}
		c.Coordinator.Accepts = new(label.Confidential)
	}
	for name, tt := range map[string]struct {
		plan, want string
		change     func(c *engine.Config)
		level      label.Classification
	}{
		"no edges":          {plan: strings.Replace(one("send_handoff"), `"ada"`, `"eve"`, 1), want: `tools[0]: agent "eve" does not have the tool "send_handoff": remove it, or give the task to an agent that has it: "ada", "bob"`},
		"no such transfer":  {plan: one("transfer_to_bob", pack), want: `tools[0]: agent "ada" does not have the tool "transfer_to_bob": did you mean "transfer_to_fay"?`},
		"transfer of other": {plan: strings.Replace(one("transfer_to_fay"), `"ada"`, `"bob"`, 1), want: `agent "bob" does not have the tool "transfer_to_fay": write one of send_handoff, or give the task to an agent that has it: "ada"`},
		"letter case":       {plan: one("Send_Handoff", pack), want: `agent "ada" does not have the tool "Send_Handoff": did you mean "send_handoff"?`},
		"no agent":          {plan: strings.Replace(one("spawn_agents"), `"assignee": "ada", `, "", 1), want: `no agent has the tool "spawn_agents": did you mean "spawn_agent"?`},
		"named twice":       {plan: one(`send_handoff", "send_handoff`, pack), want: `"send_handoff" is named before`},
		"nobody reads": {plan: one("send_handoff"), want: `task 1 "Move": tools[0]: "send_handoff" could never be used: "bob" has no task; "eve" has no task: leave it out, or plan a task for a reader that this one does not depend on`,
			change: func(c *engine.Config) { c.Edges = c.Edges[:2] }},
		"all readers have ended": {plan: strings.Replace(one("send_handoff", pack), `"tools"`, `"dependsOn": ["Pack"], "tools"`, 1), want: `"send_handoff" could never be used: every task of "bob" has ended before: leave it out, or plan`,
			change: func(c *engine.Config) { c.Edges = c.Edges[:1] }},
		"a round that nobody reads": {plan: `[` + pack + `, {"title": "Draft", "repeat": {"maxRounds": 2, "until": {"task": "Check", "path": "/good", "equals": true}, "output": "Move", "tasks": [` + strings.Replace(fmt.Sprintf(move, "send_handoff"), `"tools"`, `"dependsOn": ["Pack"], "tools"`, 1) + `, ` + strings.Replace(goodCheck, `"bob"`, `"eve"`, 1) + `]}}]`,
			want: `task 2.1 "Move": tools[0]: "send_handoff" could never be used: every task of "bob" has ended before`, change: func(c *engine.Config) { c.Edges = c.Edges[:1] }},
		"above the edge": {plan: one("send_handoff", pack), want: `"send_handoff" could never be used: its context is at least confidential, and the edge to "bob" carries at most internal`,
			change: func(c *engine.Config) {
				low(c)
				c.Edges = []handoff.Edge{{From: "ada", To: "bob", MaxClassification: new(label.Internal)}}
			}, level: label.Confidential},
		"above the delegate": {plan: one("delegate_to_agent"), want: `"delegate_to_agent" could never be used: its context is at least confidential, and at most internal can be delegated to "eve"`, change: low, level: label.Confidential},
		"above the holder":   {plan: one("transfer_to_fay"), want: `"transfer_to_fay" could never be used: the task is at least confidential, and "fay" may see internal`, change: low, level: label.Confidential},
		"of a judge": {plan: `[{"title": "Move", "description": "Plan the move.", "assignee": "bob", "verify": {"judges": [{"agent": "ada", "tools": ["delegate_to_agent"]}]}}]`,
			want: `could never be used: its context is at least confidential`, change: low, level: label.Confidential},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(tt.plan, one("spawn_agent", pack))
				o.change = tt.change
				goal := moveOffice
				goal.Classification = max(goal.Classification, tt.level)
				res, err := o.team(t).RunTeam(t.Context(), goal, &engine.RunOptions{UserAccepts: new(label.Confidential)})
				require.NoError(t, err)
				require.NoError(t, res.Err())
				require.Contains(t, faultsIn(o.prompts[1]), tt.want)
				require.Equal(t, []string{"spawn_agent"}, o.offered["ada"])
			})
		})
	}
}

// TestPlannedToolsInSomeRounds checks that a tool which only the first rounds of a loop can use is no fault, and
// that a task without an assignee gets an agent that has its tools.
func TestPlannedToolsInSomeRounds(t *testing.T) {
	t.Parallel()
	o := newOffice(`[{"title": "Draft", "repeat": {"maxRounds": 2, "until": {"task": "Check", "path": "/good", "equals": true}, "output": "Move", "tasks": [
		{"title": "Move", "description": "Plan the move.", "tools": ["spawn_agent", "send_handoff"]},
		` + goodCheck + `]}}]`)
	p, err := o.team(t).PlanTeam(t.Context(), moveOffice, nil)
	require.NoError(t, err)
	require.Len(t, o.prompts, 1)
	require.Equal(t, "ada", p.Tasks[0].Assignee)
	require.Equal(t, []string{"send_handoff", "spawn_agent"}, p.Tasks[0].Tools)
}

// TestPlannedTalkResumesAfterEveryCommit checks that a planned run in which agents send, spawn, delegate and transfer
// ends as it would have, and that each message is read once, if the process ends after any commit.
//
// Requirement: G38.
func TestPlannedTalkResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ask := func(journal *memory) (*office, *engine.Result) {
			o := newOffice(talking)
			o.talks()
			res, err := startGoal(t.Context(), o.team(t), moveOffice, &engine.RunOptions{RunID: "r", Journal: journal})
			require.NoError(t, err)
			return o, res
		}
		whole := &memory{}
		_, want := ask(whole)
		require.NoError(t, want.Err())
		require.Greater(t, whole.len(), 10)
		for n := range whole.len() + 1 {
			o, res := ask(after(whole.history(n)))
			require.NoError(t, res.Err(), "after %d commits", n)
			require.Equal(t, answers(want), answers(res), "after %d commits", n)
			for who, texts := range map[string][]string{"bob": {"How many boxes?"}, "ada": {"Forty boxes.", "nine desks", "ten chairs"}, "fay": {"you know the house"}} {
				for _, text := range texts {
					for _, shown := range o.asked[who] {
						require.LessOrEqual(t, strings.Count(shown, text), 1, "%s after %d commits", who, n)
					}
				}
			}
		}
	})
}
