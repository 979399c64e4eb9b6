package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

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

func TestNewReportsAllProblems(t *testing.T) {
	t.Parallel()
	good := engine.AgentFunc(says("x"))
	tests := []struct {
		name string
		give engine.Member
		want fault
	}{
		{"no name", engine.Member{Agent: good}, fault{"/agents/0/name", "it is empty", naming.ErrName}},
		{"not a name", engine.Member{Name: "a/b", Agent: good}, fault{"/agents/0/name", "'/'", naming.ErrName}},
		{"a reserved name", engine.Member{Name: "User", Agent: good}, fault{"/agents/0/name", "reserved", naming.ErrReserved}},
		{"no agent", engine.Member{Name: "a"}, fault{"/agents/0", "its Agent is nil", agent.ErrNone}},
		{"accepts", engine.Member{Name: "a", Agent: good, Accepts: 9}, fault{"/agents/0/accepts", "write one of public, internal, confidential, secret", label.ErrUnknown}},
		{"produces", engine.Member{Name: "a", Agent: good, Produces: new(label.Classification(-7))}, fault{"/agents/0/produces", "unknown label", label.ErrUnknown}},
		{"maxParallel", engine.Member{Name: "a", Agent: good, MaxParallel: -1}, fault{"/agents/0/maxParallel", "negative", task.ErrInvalid}},
		{"maxSession", engine.Member{Name: "a", Agent: good, MaxSession: -time.Second}, fault{"/agents/0/maxSessionMs", "negative", task.ErrInvalid}},
		{"a tag", engine.Member{Name: "a", Agent: good, OutputTags: []string{"fine", "not\nfine"}}, fault{"/agents/0/outputTags/1", "'\\n'", naming.ErrName}},
		{"a schema that is not JSON", engine.Member{Name: "a", Agent: good, OutputSchema: []byte(`{`)}, fault{"/agents/0/outputSchema", "not one strict JSON value", schema.ErrInvalid}},
		{"a schema that is none", engine.Member{Name: "a", Agent: good, OutputSchema: []byte(`{"type": 7}`)}, fault{"/agents/0/outputSchema", "bad output schema", schema.ErrInvalid}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm, err := engine.New(engine.Config{Agents: []engine.Member{tt.give}})
			requireFaults(t, err, tt.want)
			require.Nil(t, tm)
		})
	}
}

func TestNewReportsAllAgentsTogether(t *testing.T) {
	t.Parallel()
	good := engine.AgentFunc(says("x"))
	_, err := engine.New(engine.Config{
		Agents:    []engine.Member{{Name: "Ada", Agent: good}, {Name: "ada", Agent: good, MaxParallel: -1}, {Name: "*"}},
		Endpoints: map[string]label.Classification{"https://one/v1": label.Secret, "https://two/v1": 8},
	})
	requireFaults(t, err,
		fault{"/agents/1/name", `there is already an agent "Ada"`, task.ErrDuplicate},
		fault{"/agents/1/maxParallel", "negative", task.ErrInvalid},
		fault{"/agents/2/name", "reserved", naming.ErrReserved},
		fault{"/agents/2", "its Agent is nil", agent.ErrNone},
		fault{"/endpoints/https:~1~1two~1v1/accepts", "unknown label", label.ErrUnknown},
	)
	_, err = engine.New(engine.Config{})
	requireFaults(t, err, fault{"/agents", "at least one agent", plan.ErrNoAgents})
}

func TestNewReportsProblemsOfTheCoordinator(t *testing.T) {
	t.Parallel()
	good := engine.AgentFunc(says("x"))
	_, err := engine.New(engine.Config{Agents: []engine.Member{member("ada", says("x"))}, Coordinator: &engine.Coordinator{Accepts: new(label.Classification(9)), Limits: plan.Limits{MaxPromptBytes: -1}}})
	requireFaults(t, err,
		fault{"/coordinator", "its Agent is nil", agent.ErrNone},
		fault{"/coordinator/accepts", "write one of public, internal, confidential, secret", label.ErrUnknown},
		fault{"/coordinator/maxPromptBytes", "from 1 to", task.ErrInvalid},
	)
	_, err = engine.New(engine.Config{Agents: []engine.Member{{Name: "ada"}}, Coordinator: &engine.Coordinator{Agent: good, Limits: plan.Limits{MaxPromptBytes: -1}}})
	requireFaults(t, err, fault{"/agents/0", "its Agent is nil", agent.ErrNone}, fault{"/coordinator/maxPromptBytes", "from 1 to", task.ErrInvalid})
}

func TestDefaultAccepts(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]label.Classification{
		"http://localhost:11434/v1":      label.Secret,
		"http://LOCALHOST/v1":            label.Secret,
		"http://127.0.0.1:8080/v1":       label.Secret,
		"http://127.9.9.9/v1":            label.Secret,
		"http://[::1]:8080/v1":           label.Secret,
		"https://api.openai.com/v1":      label.Confidential,
		"http://localhost.example/v1":    label.Confidential,
		"http://localhost@evil.example/": label.Confidential,
		"http://10.0.0.1/v1":             label.Confidential,
		"http://0.0.0.0/v1":              label.Confidential,
		"localhost":                      label.Confidential,
		"":                               label.Confidential,
		"::not a url::":                  label.Confidential,
	} {
		require.Equal(t, want, plan.DefaultAccepts(base), base)
	}
}
