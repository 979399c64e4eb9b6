package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Ways past an assertion.

// assertionFinding returns the finding about one assertion of a plan. What does not hold
// keeps a run from starting, before any agent is called.
func assertionFinding(t *testing.T, tm *engine.Team, specs []task.Spec, o *engine.RunOptions, text string) flow.Finding {
	t.Helper()
	a, err := flow.ParseAssertion(text)
	require.NoError(t, err)
	with := *o
	with.Assert = []flow.Assertion{a}
	p, err := tm.Plan(specs, &with)
	require.NoError(t, err)
	require.Len(t, p.Findings, 1)
	if !p.Findings[0].Holds {
		_, err = tm.RunTasks(t.Context(), specs, &with)
		require.ErrorContains(t, err, "narrow the way with need, block or mode, or remove the assertion")
	}
	return p.Findings[0].Finding
}

// claimed is a task of an agent that reads an input called claim.
func claimed(name string, after ...string) task.Spec {
	s := spec(name, after...)
	s.Uses = []task.Use{{Name: "claim"}}
	return s
}

// withClaim brings an input with a property.
func withClaim() *engine.RunOptions {
	return &engine.RunOptions{Inputs: []engine.Input{{Name: "claim", Text: `{"internal_notes":"x"}`, Classification: label.Internal}}}
}

// One endpoint is one reader, however the agents and the assertion spell it.
//
// Requirement: G51.
func TestAssertionsAboutAnEndpointInAnySpelling(t *testing.T) {
	t.Parallel()
	a, b := member("a", never(t)), member("b", never(t))
	a.Endpoint, b.Endpoint = "https://llm.example/v1", "https://LLM.example:443/v1"
	tm := newTeam(t, a, b)
	for _, where := range []string{"https://llm.example/v1", "https://LLM.example:443/v1", "https://llm.example:443/v1/", "HTTPS://LLM.EXAMPLE/v1"} {
		f := assertionFinding(t, tm, []task.Spec{spec("a"), claimed("b")}, withClaim(), "input claim never reaches "+where)
		require.False(t, f.Holds, where)
		require.Equal(t, `input "claim" → task "b" → https://llm.example/v1`, f.Path.String())
		require.True(t, assertionFinding(t, tm, []task.Spec{claimed("a"), spec("b")}, withClaim(), "task a never reaches "+where).Holds, where)
	}
}

// Agents may send each other anything along edges, and the program to each of them over a bus. The table
// covers both.
//
// Requirement: G54.
func TestFlowTableHasTheMessageBus(t *testing.T) {
	t.Parallel()
	agents := []engine.Member{member("intake", never(t)), member("reader", never(t))}
	tm := newTeam(t, agents...)
	specs := []task.Spec{claimed("intake"), spec("reader")}
	connected, back := newTeamWith(t, edges("intake>reader"), agents...), newTeamWith(t, edges("reader>intake"), agents...)
	for _, give := range []string{"input claim never derives into reader", "task intake never derives into reader", "internal_notes never derives into reader"} {
		require.True(t, assertionFinding(t, tm, specs, withClaim(), give).Holds, give)
		require.True(t, assertionFinding(t, back, specs, withClaim(), give).Holds, give)
		f := assertionFinding(t, connected, specs, withClaim(), give)
		require.False(t, f.Holds, give)
		require.Contains(t, f.Path.String(), `→ task "reader" → reader`)
		o := withClaim()
		o.Bus = tm.NewBus()
		require.True(t, assertionFinding(t, tm, specs, o, give).Holds, "no agent sends over a bus without an edge: %s", give)
	}
	o := withClaim()
	o.Bus = tm.NewBus()
	sources := func(tm *engine.Team, o *engine.RunOptions) map[string]string {
		p, err := tm.Plan(specs, o)
		require.NoError(t, err)
		from := map[string]string{}
		for _, s := range p.Flow().Graph().Sources {
			if s.Kind == handoff.Message {
				from[s.Name] = s.From
			}
		}
		return from
	}
	require.Equal(t, map[string]string{"messages to intake": handoff.User, "messages to reader": handoff.User}, sources(tm, o))
	require.Equal(t, map[string]string{"handoffs of intake": "intake"}, sources(connected, withClaim()))
}

// The content of a memory that the caller brings is unknown, and is delivered to
// every task of scope all. The table covers it, and assertions name it as opaque.
//
// Requirement: G54.
func TestFlowTableHasTheCallersMemory(t *testing.T) {
	t.Parallel()
	store := teammemory.NewMapStore()
	e, err := envelope.New(envelope.Header{ID: "note", Producer: "intake", Classification: label.Internal, CreatedAt: time.Now()}, envelope.Text(`{"internal_notes":"`+canary+`"}`))
	require.NoError(t, err)
	require.NoError(t, teammemory.New(store).Writer().Write(t.Context(), "intake", "k", e, 0))
	d := newDesk()
	tm := newTeam(t, member("intake", says("i")), member("reader", d.keeps(says("r"))), member("apart", says(`{"score":1}`)))
	intake := claimed("intake", "reader") // after its reader, whose memory cannot hold its result
	apart := spec("apart")
	apart.OutputSchema = []byte(scoreOnly)
	specs := []task.Spec{scopeAll(spec("reader")), intake, apart}
	o := withClaim()
	o.Memory = store
	for _, give := range []string{"internal_notes never reaches reader", "internal_notes never derives into reader"} {
		f := assertionFinding(t, tm, specs, o, give)
		require.True(t, f.Holds)
		require.Contains(t, f.Why, `a text without a schema may contain it: reader `)
		require.Contains(t, f.Why, `memory "memory of the caller"`)
		require.NotContains(t, assertionFinding(t, tm, specs, withClaim(), give).Why, "memory", "without one there is nothing to say")
		require.NotContains(t, assertionFinding(t, tm, specs, o, "internal_notes never reaches apart").Why, "memory")
	}
	require.NoError(t, run(t, tm, o, specs...).Err())
	require.Contains(t, d.of("reader"), canary, "it is what may come that way")
	p, err := tm.Plan(specs, o)
	require.NoError(t, err)
	table := p.Flow()
	found := false
	for i, s := range table.Graph().Sources {
		if s.Kind == handoff.Memory {
			found = true
			require.Equal(t, "memory of the caller", s.Name)
			require.Equal(t, []flow.Reach{flow.Derived, flow.Whole, flow.Never}, table.Row(i)[:3])
		}
	}
	require.True(t, found)
}

// A message of the spec that is JSON has the properties that it has.
func TestAssertionsUseTheMembersOfMessages(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("reader", never(t)), member("fraud", never(t)))
	specs := []task.Spec{spec("reader"), claimed("fraud")}
	for text, holds := range map[string]bool{`{"internal_notes":"x"}`: false, `[{"a":{"Internal_Notes":1}}]`: false, `{"notes":"x"}`: true, "internal_notes": true} {
		o := withClaim()
		o.Messages = []engine.Message{{From: handoff.User, To: "reader", Text: text}}
		f := assertionFinding(t, tm, specs, o, "internal_notes never reaches reader")
		require.Equal(t, holds, f.Holds, text)
		if !holds {
			require.Equal(t, `message "message from user to reader" → task "reader" → reader`, f.Path.String())
		}
	}
}

// A text without a schema that happens to be JSON is what an assertion about a
// property cannot see: it says so, and names the text.
func TestAssertionsNameOpaqueTexts(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("intake", never(t)), member("reader", never(t)), member("fraud", never(t)))
	shape := spec("intake")
	shape.OutputSchema = []byte(scoreOnly)
	for _, with := range []bool{false, true} {
		specs := []task.Spec{spec("intake"), spec("reader", "intake"), claimed("fraud")}
		want := `reader receives result of "intake"`
		if with {
			specs[0], want = shape, ""
		}
		f := assertionFinding(t, tm, specs, withClaim(), "internal_notes never reaches reader")
		require.True(t, f.Holds)
		require.Contains(t, f.Why, want)
		require.Equal(t, with, f.Why == "")
	}
}

// A rule of everybody for the user that blocks parts would withhold the answer to a
// goal, which is a text: it is refused before a model is called.
//
// Requirement: G47.
func TestGoalWhoseAnswerIsWithheldIsRefusedBeforehand(t *testing.T) {
	t.Parallel()
	for from, ok := range map[string]bool{handoff.Anyone: false, "ada": true} {
		c := &planner{plans: []string{twoTasks}}
		tm, err := engine.New(engine.Config{
			Agents: []engine.Member{member("ada", says("x")), member("bob", says("y"))}, Coordinator: &engine.Coordinator{Agent: c},
			Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: from, To: handoff.User, Block: []task.Path{"ssn"}}}},
		})
		require.NoError(t, err)
		goal := engine.Goal{Text: "Say what happened."}
		for _, ask := range []func() (*engine.Result, error){
			func() (*engine.Result, error) { return tm.RunTeam(t.Context(), goal, nil) },
			func() (*engine.Result, error) {
				return tm.RunTasks(t.Context(), []task.Spec{spec("ada")}, &engine.RunOptions{Answer: &goal})
			},
		} {
			c.prompts = nil
			res, err := ask()
			if !ok {
				requireRule(t, err, gate.RuleGrant)
				require.ErrorContains(t, err, "the coordinator's answer would be withheld")
				require.Empty(t, c.prompts)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, "the answer", res.Output)
		}
	}
}
