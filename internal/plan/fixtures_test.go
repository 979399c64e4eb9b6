package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// unused is an agent of a team that only makes plans, which call no agent.
var unused = agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { panic("a plan called an agent") })

// asksModel is an agent with a model, which no plan calls.
var asksModel = agent.New(llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
	panic("a plan called a model")
}), agent.Options{})

// A roster is a checked team.
type roster struct{ *plan.Roster }

// newRoster checks a team.
func newRoster(cfg plan.Config) (roster, error) {
	r, err := plan.New(cfg)
	return roster{r}, err
}

// plan checks tasks and describes what a run of them would do.
func (r roster) plan(specs []task.Spec, o *plan.Options) (*plan.Plan, error) {
	if o == nil {
		o = new(plan.Options)
	}
	p, err := r.Check(specs, o.WithDefaults(), time.Now())
	if err != nil {
		return nil, err
	}
	p.Describe()
	return p, nil
}

// newTeam is a team of these members.
func newTeam(t testing.TB, members ...plan.Member) roster {
	t.Helper()
	return newTeamOf(t, plan.Config{Agents: members})
}

// newTeamWith is [newTeam] with edges; see [edges].
func newTeamWith(t testing.TB, list []handoff.Edge, members ...plan.Member) roster {
	t.Helper()
	return newTeamOf(t, plan.Config{Agents: members, Edges: list})
}

// governed is [newTeam] under a policy.
func governed(t testing.TB, policy *handoff.Policy, members ...plan.Member) roster {
	t.Helper()
	return newTeamOf(t, plan.Config{Agents: members, Policy: policy})
}

// newTeamOf returns a team that must be valid.
func newTeamOf(t testing.TB, cfg plan.Config) roster {
	t.Helper()
	r, err := newRoster(cfg)
	require.NoError(t, err)
	return r
}

// member is an agent with the default label.
func member(name string) plan.Member { return plan.Member{Name: name, Agent: unused} }

// cleared is an agent that reads and writes up to a level.
func cleared(name string, level label.Classification) plan.Member {
	return plan.Member{Name: name, Agent: unused, Accepts: level}
}

// clerk is an agent that may call tools, also from untrusted context.
func clerk(name string, tools ...*tool.Tool) plan.Member {
	m := plan.Member{Name: name, Agent: asksModel, Tools: tools}
	for _, f := range tools {
		m.AllowUntrusted = append(m.AllowUntrusted, f.Name)
	}
	return m
}

// spec is a task for the agent of the same name.
func spec(title string, after ...string) task.Spec {
	return task.Spec{Title: title, Description: "Do " + title + ".", Assignee: title, DependsOn: task.On(after...)}
}

// by gives a task to another agent.
func by(agent string, s task.Spec) task.Spec {
	s.Assignee = agent
	return s
}

// edges are the edges between agents, each written "from>to", or "one<>other" for both ways.
func edges(list ...string) (out []handoff.Edge) {
	for _, text := range list {
		from, to, _ := strings.Cut(text, ">")
		name, both := strings.CutSuffix(from, "<")
		out = append(out, handoff.Edge{From: name, To: to, Bidirectional: both})
	}
	return out
}

// asserting returns assertions that a plan must meet.
func asserting(t testing.TB, texts ...string) (all []flow.Assertion) {
	t.Helper()
	for _, text := range texts {
		a, err := flow.ParseAssertion(text)
		require.NoError(t, err)
		all = append(all, a)
	}
	return all
}

// newTool returns a tool, which no plan calls.
func newTool(t testing.TB, name string, o tool.Options) *tool.Tool {
	t.Helper()
	made, err := tool.New(name, "About "+name+".", func(context.Context, struct{}) (string, error) { panic("a plan called a tool") }, o)
	require.NoError(t, err)
	return made
}

// A fault is one problem that a test expects.
type fault struct {
	pointer string
	part    string // of the text
	is      error
}

// requireFaults holds an error to be exactly these problems, in this order.
func requireFaults(t *testing.T, err error, want ...fault) {
	t.Helper()
	found, ok := errors.AsType[task.Problems](err)
	require.True(t, ok, "%v", err)
	var got, pointers []string
	for _, p := range found {
		got = append(got, p.Pointer)
	}
	for _, f := range want {
		pointers = append(pointers, f.pointer)
	}
	require.Equal(t, pointers, got, "%v", err)
	for i, f := range want {
		require.Contains(t, found[i].Error(), f.part)
		if f.is != nil {
			require.ErrorIs(t, found[i], f.is)
			require.ErrorIs(t, err, f.is)
		}
	}
}

// requireRule holds an error to be a refusal by one rule.
func requireRule(t *testing.T, err error, rule handoff.Rule) {
	t.Helper()
	var refused *gate.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, rule, refused.Rule)
}
