package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Plans of a coordinator that may plan everything: one whose result two judges accept or refute, one
// for each item of an input, and one that is always right.
const (
	judgedPlan = `[
	{"title": "Advise", "description": "Write the advice.", "assignee": "ada", "verify": {"mode": "lens", "judges": ["bob", {"agent": "eve", "lens": "legal risk"}], "quorum": 2}},
	{"title": "Send", "description": "Send the advice.", "assignee": "ada", "dependsOn": ["Advise"]}
]`
	mailedPlan = `[
	{"title": "Mail", "description": "Write to this lead.", "assignee": "ada", "forEach": {"input": "leads", "as": "lead", "maxItems": 3},
	 "verify": {"judges": [{"agent": "bob", "uses": ["lead"]}], "onDissent": "reject"}},
	{"title": "Report", "description": "Report on the letters.", "assignee": "ada", "dependsOn": [{"each": "Mail"}]}
]`
	plainPlan = `[{"title": "Write", "description": "Write the report.", "assignee": "ada"}]`
)

// A bench is a coordinator, ada, and bob and eve, who judge: eve does not accept the first result.
type bench struct {
	*desk
	planner
	refused atomic.Bool
	may     synth.Constructs
	grants  synth.Grants
	policy  *handoff.Policy
	tools   []*tool.Tool // of bob
	options engine.RunOptions
}

func newBench(plans ...string) *bench {
	return &bench{desk: newDesk(), planner: planner{plans: plans}, may: synth.Constructs{When: true, Repeat: true, ForEach: true, Verify: true}, grants: synth.Grants{Inputs: true}}
}

// judge does not accept what it is given once, if it is asked to.
func (b *bench) judge(name string, once bool) engine.Member {
	return member(name, b.keeps(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		if once && b.refused.CompareAndSwap(false, true) {
			return agent.Reply{Text: `{"accept": false, "critique": "it promises too much"}`}, nil
		}
		return agent.Reply{Text: `{"accept": true, "critique": ""}`}, nil
	}))
}

func (b *bench) team(t *testing.T) *engine.Team {
	bob := b.judge("bob", false)
	bob.Tools = b.tools
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{member("ada", b.keeps(says("the advice"))), bob, b.judge("eve", true)}, Policy: b.policy,
		Coordinator: &engine.Coordinator{Agent: &b.planner, MayPlan: b.may, MayGrant: b.grants},
	})
	require.NoError(t, err)
	return tm
}

func (b *bench) run(t *testing.T) *engine.Result {
	t.Helper()
	res, err := b.team(t).RunTeam(t.Context(), engine.Goal{Text: "Advise the owner of the house.", Classification: label.Public}, &b.options)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	return res
}

func (b *bench) plan(t *testing.T) *engine.Plan {
	t.Helper()
	p, err := b.team(t).PlanTeam(t.Context(), engine.Goal{Text: "Advise the owner of the house.", Classification: label.Public}, &b.options)
	require.NoError(t, err)
	return p
}

func titlesOf(res *engine.Result) (titles []string) {
	for i := range res.Tasks {
		titles = append(titles, res.Tasks[i].Title)
	}
	return titles
}

// asserting returns an option that a plan must meet.
func asserting(t *testing.T, text string) []flow.Assertion {
	t.Helper()
	a, err := flow.ParseAssertion(text)
	require.NoError(t, err)
	return []flow.Assertion{a}
}

func leads(text string) []engine.Input {
	return []engine.Input{{Name: "leads", Text: text, ListFormat: "csv", Classification: label.Public}}
}

// TestCoordinatorPlansJudges runs a plan with judges, who see the description and the result as
// context and nothing else, and keeps the plan as it was written.
func TestCoordinatorPlansJudges(t *testing.T) {
	t.Parallel()
	b := newBench(judgedPlan)
	require.Equal(t, []string{
		"Advise#1", "Advise: judge bob#1", "Advise: judge eve#1", "Advise: verdict#1", "Advise#2", "Advise: judge bob#2", "Advise: judge eve#2", "Advise: verdict#2", "Advise", "Send",
	}, titlesOf(b.run(t)))
	require.Contains(t, b.systems[0], "## Judges\n")
	require.Contains(t, b.of("ada"), "it promises too much")
	for _, p := range b.desk.prompts["eve"] {
		require.Contains(t, p.Text(), "legal risk")
		require.NotContains(t, p.Text(), "Send the advice")
		require.True(t, slices.ContainsFunc(p.Receipt().Sources, func(s prompt.Source) bool { return s.Producer == handoff.Coordinator && s.Decision != nil }), "the description is context")
	}

	written := newBench(judgedPlan).plan(t).Specs()
	require.Len(t, written, 2)
	require.Equal(t, "Write the advice.", written[0].Description)
	require.Equal(t, "coordinator", written[0].Source.Record.From)
	require.Equal(t, &task.Verify{Mode: "lens", Judges: []task.Judge{{Agent: "bob", Tools: []string{}}, {Agent: "eve", Lens: "legal risk", Tools: []string{}}}, Quorum: 2, MaxRounds: 2}, written[0].Verify)
}

// TestCoordinatorPlansListsOfInputs runs a task, with a judge, for each row of a table that the
// coordinator does not see.
//
// Requirement: G49.
func TestCoordinatorPlansListsOfInputs(t *testing.T) {
	t.Parallel()
	b := newBench(mailedPlan)
	b.options.Inputs = leads("name\nAnn\nBen\n")
	require.Equal(t, []string{"Mail[1]#1", "Mail: judge bob[1]#1", "Mail: verdict[1]#1", "Mail[1]", "Mail[2]#1", "Mail: judge bob[2]#1", "Mail: verdict[2]#1", "Mail[2]", "Report"}, titlesOf(b.run(t)))
	for _, who := range []string{"ada", "bob"} {
		for _, p := range b.desk.prompts[who] {
			require.False(t, strings.Contains(p.Text(), "Ann") && strings.Contains(p.Text(), "Ben"), "one item each")
		}
		require.Contains(t, b.of(who), "Ann")
		require.Contains(t, b.of(who), "Ben")
	}
	require.Empty(t, b.of("eve"))
	require.Contains(t, b.systems[0], "- \"leads\": public, a list\n")
	for _, text := range append(b.planner.prompts, b.systems...) {
		require.NotContains(t, text, "Ann")
	}
}

// TestPlannedListsOfInputsKeepTheirSecrets checks that a plan with a list that is too long fails, and
// that the coordinator does not learn why.
func TestPlannedListsOfInputsKeepTheirSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(mailedPlan)
	b.options.Inputs = leads("name\nAnn\nBen\nCid\nDan\n")
	res, err := b.team(t).RunTeam(t.Context(), engine.Goal{Text: "Write to them."}, &b.options)
	require.NoError(t, err)
	require.ErrorContains(t, res.Err(), `input "leads" has 4 items, and maxItems is 3`)
	require.Len(t, b.planner.prompts, 1)
}

// TestPlannedJudgesHaveNoTools checks that a judge has the tools that the plan grants it, if it may.
//
// Requirement: G49.
func TestPlannedJudgesHaveNoTools(t *testing.T) {
	t.Parallel()
	search := &tool.Tool{Name: "search", Description: "Searches.", Parameters: []byte(`{"type": "object"}`), Options: tool.Options{Effect: tool.None}, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}
	granting := strings.Replace(judgedPlan, `["bob"`, `[{"agent": "bob", "tools": ["search"]}`, 1)
	for _, test := range []struct {
		name, plan string
		grants     synth.Grants
		want       []string
	}{
		{"not named", judgedPlan, synth.Grants{Tools: true}, []string{}},
		{"may not be named", judgedPlan, synth.Grants{}, []string{}},
		{"granted", granting, synth.Grants{Tools: true}, []string{"search"}},
	} {
		b := newBench(test.plan)
		b.tools, b.grants = []*tool.Tool{search}, test.grants
		p := b.plan(t)
		for i := range p.Tasks {
			if strings.Contains(p.Tasks[i].Title, "judge bob") {
				require.Equal(t, test.want, p.Tasks[i].Tools, test.name)
			}
		}
	}
	b := newBench(granting, plainPlan)
	b.tools, b.grants = []*tool.Tool{search}, synth.Grants{}
	b.run(t)
	require.Contains(t, b.planner.prompts[1], `task 1 "Advise": tools: a grant that this plan may not make`)
}

// TestPlannedJudgesAreReaders checks that the flow table of a plan has what its judges and lists may
// read, and that a plan in which they could read too much is not run.
//
// Requirements: G49, G54.
func TestPlannedJudgesAreReaders(t *testing.T) {
	t.Parallel()
	const helped = `[{"title": "Advise", "description": "Write the advice.", "assignee": "ada", "verify": {"judges": [{"agent": "bob", "uses": ["leads"]}]}}]`
	for _, test := range []struct {
		name, plan, never string
		policy            *handoff.Policy
		want              string
	}{
		{"an input of a judge", helped, "input leads never reaches bob", nil, `never reaches bob`},
		{"an item of a judge", mailedPlan, "input leads never reaches bob", nil, `never reaches bob`},
		{"an item", mailedPlan, "input leads never reaches ada", nil, `never reaches ada`},
		{"the answer", strings.ReplaceAll(judgedPlan, `"Advise"`, `"Write"`), "task Write never reaches eve", nil, `never reaches eve`},
		{"a forbidden judge", judgedPlan, "", &handoff.Policy{Rules: []handoff.PairRule{{From: "ada", To: "bob", Mode: handoff.Full, Ceiling: new(label.Public)}}}, `task 1 "Advise: judge bob": ada→bob: it is internal`},
		{"a forbidden list", mailedPlan, "", &handoff.Policy{Rules: []handoff.PairRule{{From: "user", To: "ada", Mode: handoff.Minimal}}}, `task 1 "Mail": `},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(test.plan, plainPlan)
			b.policy, b.options.Inputs = test.policy, leads("name\nAnn\n")
			if test.never != "" {
				b.options.Assert = asserting(t, test.never)
			}
			require.Equal(t, []string{"Write"}, titlesOf(b.run(t)))
			require.Contains(t, faultsIn(b.planner.prompts[1]), test.want)
			require.Empty(t, b.of("bob")+b.of("eve"))
		})
	}
}

// TestPlannedConstructsAreRefused checks that a plan has no construct that its coordinator may not
// plan, and grants nothing that it may not grant.
//
// Requirement: G49.
func TestPlannedConstructsAreRefused(t *testing.T) {
	t.Parallel()
	every := newBench().may
	for _, test := range []struct {
		name, plan string
		may        synth.Constructs
		grants     synth.Grants
		want       string
	}{
		{"judges", judgedPlan, synth.Constructs{When: true, Repeat: true, ForEach: true}, synth.Grants{Inputs: true}, `task 1 "Advise": verify: a plan does not set it`},
		{"a list", strings.Replace(mailedPlan, `"verify"`, `"priority": null, "verify"`, 1), synth.Constructs{Verify: true}, synth.Grants{Inputs: true}, `task 1 "Mail": unknown key "forEach"`},
		{"a list of an input", mailedPlan, every, synth.Grants{}, `task 1 "Mail": input: a grant that this plan may not make`},
		{"an input of a judge", strings.Replace(judgedPlan, `"lens": "legal risk"`, `"uses": ["leads"]`, 1), every, synth.Grants{}, `task 1 "Advise": uses: a grant that this plan may not make`},
		{"an unknown judge", strings.Replace(judgedPlan, `["bob"`, `["rob"`, 1), every, synth.Grants{}, `task 1 "Advise": judges[0]: unknown agent "rob": did you mean "bob"?`},
		{"too many judges accept", strings.Replace(judgedPlan, `"quorum": 2`, `"quorum": 3`, 1), every, synth.Grants{}, `task 1 "Advise": verify: quorum is 3 of 2 judges: write how many must accept, from 1 to 2`},
		{"an unknown input", strings.Replace(mailedPlan, `"input": "leads"`, `"input": "lead"`, 1), every, synth.Grants{Inputs: true}, `task 1 "Mail": input: unknown input "lead": did you mean "leads"?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(test.plan, plainPlan)
			b.may, b.grants, b.options.Inputs = test.may, test.grants, leads("name\nAnn\n")
			require.Equal(t, []string{"Write"}, titlesOf(b.run(t)))
			require.Contains(t, faultsIn(b.planner.prompts[1]), test.want)
		})
	}
}

// faultsIn returns what a coordinator is told about its plan.
func faultsIn(prompt string) string {
	_, faults, _ := strings.Cut(prompt, "## What is wrong with it")
	return faults
}

// A settled agent says that it answers equal prompts equally.
type settled struct{ engine.AgentFunc }

func (settled) Version() string       { return "1" }
func (settled) IsDeterministic() bool { return true }

// TestPlannedLoopsMayRepeat checks that a round of a plan that repeats an earlier one runs only if
// the plan says so.
func TestPlannedLoopsMayRepeat(t *testing.T) {
	t.Parallel()
	const loop = `[{"title": "Draft", "repeat": {"maxRounds": 4, "onRepeat": "fail", "until": {"task": "Check", "path": "/good", "equals": true}, "output": "Check", "tasks": [
		{"title": "Check", "description": "Check it.", "dependsOn": [{"task": "Check", "round": "previous", "optional": true}], "outputSchema": {"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"]}}
	]}}]`
	for onRepeat, rounds := range map[string]int32{"fail": 2, "continue": 4} {
		var calls atomic.Int32
		ada := engine.Member{Name: "ada", Agent: settled{func(context.Context, prompt.Prompt) (agent.Reply, error) {
			calls.Add(1)
			return agent.Reply{Text: `{"good": false}`}, nil
		}}}
		c := &planner{plans: []string{strings.Replace(loop, `"onRepeat": "fail"`, `"onRepeat": "`+onRepeat+`"`, 1)}}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{ada}, Coordinator: &engine.Coordinator{Agent: c, MayPlan: synth.Constructs{Repeat: true}}})
		require.NoError(t, err)
		res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Check the house."}, nil)
		require.NoError(t, err)
		require.Equal(t, rounds, calls.Load(), onRepeat)
		require.Equal(t, onRepeat == "continue", res.Success(), onRepeat)
	}
}

var canaryWord = regexp.MustCompile(`canary[ab]`)

// TestPlannedReachIsInTheTable runs random plans with judges, lists of inputs and tools of the runtime. Its
// agents repeat what they read, also in what they send, in goals and when they transfer. What any of them, or
// the coordinator, was given is in the flow table of the plan.
//
// Requirement: G54.
func TestPlannedReachIsInTheTable(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	used := map[string]bool{} // tools of the runtime that brought a canary to some agent
	rapid.Check(t, func(t *rapid.T) {
		r := &reach{read: map[[2]string]bool{}}
		var members []engine.Member
		for _, name := range []string{"ada", "bob", "eve"} {
			members = append(members, r.member(name))
		}
		members[0].Spawn, members[1].Spawn = &plan.Spawning{Max: 2}, &plan.Spawning{Max: 2}
		edges := randomEdges(t)
		c := &planner{answer: func(p prompt.Prompt) (string, error) {
			r.note(handoff.Coordinator, p.Text())
			return "the answer", nil
		}}
		tm, err := engine.New(engine.Config{
			Agents: members, Edges: edges,
			Coordinator: &engine.Coordinator{Agent: c, MayPlan: synth.Constructs{ForEach: true, Verify: true}, MayGrant: synth.Grants{Inputs: true, Tools: true}},
		})
		require.NoError(t, err)
		o := &engine.RunOptions{Inputs: []engine.Input{{Name: "a", Text: `["canarya", "canarya too"]`}, {Name: "b", Text: `["canaryb"]`}}, MaxConcurrency: rapid.IntRange(1, 2).Draw(t, "at the same time")}
		c.plans = []string{grantable(t, tm, c, o, randomPlan(t, edges))}
		c.prompts = nil
		_, err = tm.RunTeam(t.Context(), engine.Goal{Text: "Reach the goal."}, o)
		require.NoError(t, err)
		c.prompts = nil
		p, err := tm.PlanTeam(t.Context(), engine.Goal{Text: "Reach the goal."}, o)
		require.NoError(t, err)
		maps.Copy(used, r.brought)
		for pair := range r.read {
			claims := 0
			for _, claim := range []string{"reaches", "derives into"} {
				a, err := flow.ParseAssertion(fmt.Sprintf("input %s never %s %s", pair[1], claim, pair[0]))
				require.NoError(t, err)
				found, err := p.Flow().Check(a)
				require.NoError(t, err)
				if found.Holds {
					claims++
				}
			}
			require.Less(t, claims, 2, "%v in %s", pair, c.plans[0])
		}
	})
	require.Equal(t, map[string]bool{plan.SendHandoff: true, plan.SpawnAgent: true, plan.DelegateToAgent: true, plan.TransferPrefix: true}, used, "each tool is used")
}

// A reach notes which canaries agents were given.
type reach struct {
	mu      sync.Mutex         // guards the rest
	read    map[[2]string]bool // agent and input
	brought map[string]bool    // tools of the runtime with which an agent passed some on
}

// note notes what an agent was given, and returns the canaries in it.
func (r *reach) note(who, text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := canaryWord.FindAllString(text, -1)
	for _, word := range found {
		r.read[[2]string{who, strings.TrimPrefix(word, "canary")}] = true
	}
	return strings.Join(found[:min(len(found), 20)], " ")
}

// member returns an agent that repeats the canaries which it reads: it passes them to each of its tools, in one
// turn, then transfers the conversation if it can, and else answers.
func (r *reach) member(name string) engine.Member {
	return member(name, func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		said := r.note(name, conversation(p))
		var calls, transfer []llm.ToolCall
		for _, f := range p.Tools() {
			passed := f.Name
			switch {
			case f.Name == plan.SendHandoff || f.Name == plan.DelegateToAgent:
				for _, to := range []string{"ada", "bob", "eve"} {
					if !strings.Contains(f.Parameters, `"`+to+`"`) {
					} else if f.Name == plan.SendHandoff {
						calls = append(calls, call(f.Name, fmt.Sprintf(`{"to":%q,"message":"see %s"}`, to, said)))
					} else {
						calls = append(calls, call(f.Name, fmt.Sprintf(`{"to":%q,"goal":"see %s"}`, to, said)))
					}
				}
			case f.Name == plan.SpawnAgent:
				calls = append(calls, call(f.Name, fmt.Sprintf(`{"goal":"see %s"}`, said)))
			default:
				passed = plan.TransferPrefix
				transfer = []llm.ToolCall{call(f.Name, fmt.Sprintf(`{"reason":"see %s"}`, said))}
			}
			if said != "" {
				r.mu.Lock()
				if r.brought == nil {
					r.brought = map[string]bool{}
				}
				r.brought[passed] = true
				r.mu.Unlock()
			}
		}
		switch turns := len(p.Messages()); {
		case turns == 1 && len(calls) > 0:
			return agent.Reply{Text: "said " + said, ToolCalls: calls}, nil
		case transfer != nil && !strings.Contains(conversation(p), "Call refused") && strings.Count(p.Messages()[0].Text, "see ") < 3:
			return agent.Reply{Text: "said " + said, ToolCalls: transfer}, nil
		case strings.HasPrefix(p.Text(), "# Task: t") && strings.Contains(p.Text(), ": judge"):
			return agent.Reply{Text: fmt.Sprintf(`{"accept": %t, "critique": %q}`, len(said)%2 == 0, said)}, nil
		}
		return agent.Reply{Text: "said " + said}, nil
	})
}

// randomEdges draws edges between three agents.
func randomEdges(t *rapid.T) (list []handoff.Edge) {
	for _, way := range [][2]string{{"ada", "bob"}, {"bob", "eve"}, {"eve", "ada"}} {
		if rapid.Bool().Draw(t, "is connected") {
			list = append(list, handoff.Edge{
				From: way[0], To: way[1], Bidirectional: rapid.Bool().Draw(t, "is bidirectional"), Delegate: rapid.Bool().Draw(t, "delegates"), Transfer: rapid.Bool().Draw(t, "transfers"),
			})
		}
	}
	return list
}

// grantable returns a plan without the tools that could never be used in it.
func grantable(t *rapid.T, tm *engine.Team, c *planner, o *engine.RunOptions, list []map[string]any) string {
	for range 20 {
		raw, err := json.Marshal(list)
		require.NoError(t, err)
		c.plans, c.prompts = []string{string(raw)}, nil
		if _, err = tm.PlanTeam(t.Context(), engine.Goal{Text: "Reach the goal."}, o); err == nil {
			return string(raw)
		}
		refused := refusedTool.FindAllStringSubmatch(err.Error(), -1)
		require.NotEmpty(t, refused, "%v in %s", err, raw)
		for _, of := range refused {
			s := list[of[1][0]-'1']
			s["tools"] = slices.DeleteFunc(s["tools"].([]string), func(name string) bool { return name == of[2] })
			if v, ok := s["verify"].(map[string]any); ok {
				judge := v["judges"].([]any)[0].(map[string]any)
				judge["tools"] = slices.DeleteFunc(judge["tools"].([]string), func(name string) bool { return name == of[2] })
			}
		}
	}
	t.Fatalf("no plan is left of %v", list)
	return ""
}

var refusedTool = regexp.MustCompile(`task (\d) "[^"]*": tools\[\d\]: "([a-z_]+)" could never be used: `)

// runtimeTools returns the tools of the runtime that an agent has with these edges.
func runtimeTools(agent string, edges []handoff.Edge) (names []string) {
	if agent != "eve" {
		names = append(names, plan.SpawnAgent)
	}
	for _, e := range edges {
		to := e.To
		if e.Bidirectional && e.To == agent {
			to = e.From
		} else if e.From != agent {
			continue
		}
		names = append(names, plan.SendHandoff)
		if e.Delegate {
			names = append(names, plan.DelegateToAgent)
		}
		if e.Transfer {
			names = append(names, plan.TransferPrefix+to)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// randomPlan draws a plan of up to three tasks.
func randomPlan(t *rapid.T, edges []handoff.Edge) (list []map[string]any) {
	tools := func(agent any) []string { // some of its tools
		return slices.DeleteFunc(runtimeTools(agent.(string), edges), func(string) bool { return !rapid.Bool().Draw(t, "has tool") })
	}
	names := rapid.SampledFrom([]string{"ada", "bob", "eve"})
	for i := range rapid.IntRange(1, 3).Draw(t, "tasks") {
		s := map[string]any{"title": fmt.Sprintf("t%d", i), "description": "Do it.", "assignee": names.Draw(t, "agent")}
		uses := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 1, rapid.ID[string])
		s["uses"] = uses.Draw(t, "uses")
		if rapid.Bool().Draw(t, "is list") {
			s["forEach"] = map[string]any{"input": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "list"), "maxItems": 2}
			s["uses"] = []string{} // it could name the list again
		}
		if i > 0 && rapid.Bool().Draw(t, "depends") {
			before := map[string]any{"optional": true}
			key := "task"
			if list[i-1]["forEach"] != nil {
				key = "each"
			}
			before[key] = list[i-1]["title"]
			s["dependsOn"] = []any{before}
		}
		if rapid.Bool().Draw(t, "is judged") {
			judge := map[string]any{"agent": names.Draw(t, "judge"), "uses": uses.Draw(t, "of judge")}
			if s["forEach"] != nil && rapid.Bool().Draw(t, "has item") {
				judge["uses"] = []string{"item"}
			}
			judge["tools"] = tools(judge["agent"])
			s["verify"] = map[string]any{"judges": []any{judge, names.Draw(t, "second judge")}, "onDissent": rapid.SampledFrom([]string{"revise", "keep"}).Draw(t, "dissent")}
		}
		s["tools"] = tools(s["assignee"])
		list = append(list, s)
	}
	return list
}
