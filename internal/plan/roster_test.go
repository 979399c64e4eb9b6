package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

func TestNewReportsAllProblems(t *testing.T) {
	t.Parallel()
	good := unused
	tests := []struct {
		name string
		give plan.Member
		want fault
	}{
		{"no name", plan.Member{Agent: good}, fault{"/agents/0/name", "it is empty", naming.ErrName}},
		{"not a name", plan.Member{Name: "a/b", Agent: good}, fault{"/agents/0/name", "'/'", naming.ErrName}},
		{"a reserved name", plan.Member{Name: "User", Agent: good}, fault{"/agents/0/name", "reserved", naming.ErrReserved}},
		{"no agent", plan.Member{Name: "a"}, fault{"/agents/0", "its Agent is nil", agent.ErrNone}},
		{"accepts", plan.Member{Name: "a", Agent: good, Accepts: 9}, fault{"/agents/0/accepts", "write one of public, internal, confidential, secret", label.ErrUnknown}},
		{"produces", plan.Member{Name: "a", Agent: good, Produces: new(label.Classification(-7))}, fault{"/agents/0/produces", "unknown label", label.ErrUnknown}},
		{"maxParallel", plan.Member{Name: "a", Agent: good, MaxParallel: -1}, fault{"/agents/0/maxParallel", "negative", task.ErrInvalid}},
		{"maxSession", plan.Member{Name: "a", Agent: good, MaxSession: -time.Second}, fault{"/agents/0/maxSessionMs", "negative", task.ErrInvalid}},
		{"a tag", plan.Member{Name: "a", Agent: good, OutputTags: []string{"fine", "not\nfine"}}, fault{"/agents/0/outputTags/1", "'\\n'", naming.ErrName}},
		{"a schema that is not JSON", plan.Member{Name: "a", Agent: good, OutputSchema: []byte(`{`)}, fault{"/agents/0/outputSchema", "not one strict JSON value", schema.ErrInvalid}},
		{"a schema that is none", plan.Member{Name: "a", Agent: good, OutputSchema: []byte(`{"type": 7}`)}, fault{"/agents/0/outputSchema", "bad output schema", schema.ErrInvalid}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := plan.New(plan.Config{Agents: []plan.Member{tt.give}})
			requireFaults(t, err, tt.want)
			require.Nil(t, r)
		})
	}
}

func TestNewReportsAllAgentsTogether(t *testing.T) {
	t.Parallel()
	good := unused
	_, err := newRoster(plan.Config{
		Agents:    []plan.Member{{Name: "Ada", Agent: good}, {Name: "ada", Agent: good, MaxParallel: -1}, {Name: "*"}},
		Endpoints: map[string]label.Classification{"https://one/v1": label.Secret, "https://two/v1": 8},
	})
	requireFaults(t, err,
		fault{"/agents/1/name", `there is already an agent "Ada"`, task.ErrDuplicate},
		fault{"/agents/1/maxParallel", "negative", task.ErrInvalid},
		fault{"/agents/2/name", "reserved", naming.ErrReserved},
		fault{"/agents/2", "its Agent is nil", agent.ErrNone},
		fault{"/endpoints/https:~1~1two~1v1/accepts", "unknown label", label.ErrUnknown},
	)
	_, err = newRoster(plan.Config{})
	requireFaults(t, err, fault{"/agents", "at least one agent", plan.ErrNoAgents})
}

func TestNewReportsProblemsOfTheCoordinator(t *testing.T) {
	t.Parallel()
	good := unused
	_, err := newRoster(plan.Config{Agents: []plan.Member{member("ada")}, Coordinator: &plan.Coordinator{Accepts: new(label.Classification(9)), Limits: plan.Limits{MaxPromptBytes: -1}}})
	requireFaults(t, err,
		fault{"/coordinator", "its Agent is nil", agent.ErrNone},
		fault{"/coordinator/accepts", "write one of public, internal, confidential, secret", label.ErrUnknown},
		fault{"/coordinator/maxPromptBytes", "from 1 to", task.ErrInvalid},
	)
	_, err = newRoster(plan.Config{Agents: []plan.Member{{Name: "ada"}}, Coordinator: &plan.Coordinator{Agent: good, Limits: plan.Limits{MaxPromptBytes: -1}}})
	requireFaults(t, err, fault{"/agents/0", "its Agent is nil", agent.ErrNone}, fault{"/coordinator/maxPromptBytes", "from 1 to", task.ErrInvalid})
}

// Names that only the runtime and tools have.
func TestAgentsCannotHaveNamesOfTools(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tool:pay", "runteam"} {
		_, err := newRoster(plan.Config{Agents: []plan.Member{member(name)}})
		require.ErrorContains(t, err, name)
	}
}

// An agent that cannot work is an error of New, and not of a run.
func TestAgentsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	const (
		none    = "its Agent is nil"
		set     = "set Agent, for instance to agent.New(model, agent.Options{})"
		noModel = "its Agent cannot work: no model: make the agent with agent.New and a model"
	)
	for name, tt := range map[string]struct {
		agent agent.Agent
		want  string // with one piece of advice
	}{
		"nil": {nil, none + ": " + set}, "a nil function": {agent.Func(nil), "its Agent is a nil agent.Func: " + set},
		"a typed nil": {(*agent.LLM)(nil), "its Agent is a nil *agent.LLM: " + set}, "a zero LLM": {&agent.LLM{}, noModel},
		"a nil model": {agent.New(nil, agent.Options{}), noModel}, "a nil model function": {agent.New(llm.ModelFunc(nil), agent.Options{}), noModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: tt.agent}}})
			require.EqualError(t, err, `agent "a": `+tt.want)
			require.ErrorIs(t, err, agent.ErrNone)
			_, err = newRoster(plan.Config{Agents: []plan.Member{member("a")}, Coordinator: &plan.Coordinator{Agent: tt.agent}})
			require.EqualError(t, err, "coordinator: "+tt.want)
			require.ErrorIs(t, err, agent.ErrNone)
			require.Equal(t, tt.want == noModel, errors.Is(err, llm.ErrNoModel))
		})
	}
}
