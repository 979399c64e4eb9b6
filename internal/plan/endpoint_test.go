package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// endpointAgent is an agent that says where its prompts go.
type endpointAgent struct {
	agent.Func
	url string
}

func (e endpointAgent) Endpoint() string { return e.url }

// The endpoint is a reader with a clearance of its own.
//
// Requirement: G51.
func TestEndpointIsAReader(t *testing.T) {
	t.Parallel()
	const far = "https://models.example/v1"
	asks := func(url string) plan.Member {
		return plan.Member{Name: "a", Agent: endpointAgent{unused, url}, Accepts: label.Secret}
	}
	told := asks("https://elsewhere.example")
	told.Endpoint = far
	tests := []struct {
		name      string
		give      plan.Member
		endpoints map[string]label.Classification
		leaves    string
		want      label.Classification
	}{
		{"an agent in this process", cleared("a", label.Secret), nil, "", label.Secret},
		{"by default confidential", asks(far), nil, far, label.Confidential},
		{"on this machine secret", asks("http://localhost:11434/v1"), nil, "http://localhost:11434/v1", label.Secret},
		{"one that does not say", asks(""), nil, "(a model that does not name its endpoint)", label.Confidential},
		{"raised", asks(far), map[string]label.Classification{far: label.Secret}, far, label.Secret},
		{"lowered", asks("http://localhost/v1"), map[string]label.Classification{"http://localhost/v1": label.Public}, "http://localhost/v1", label.Public},
		{"another slash and other letters", asks(far), map[string]label.Classification{"HTTPS://Models.example/v1/": label.Internal}, far, label.Internal},
		{"of two spellings the stricter", asks(far), map[string]label.Classification{far: label.Secret, far + "/": label.Internal, strings.ToUpper(far): label.Secret}, far, label.Internal},
		{"another endpoint's clearance", asks(far), map[string]label.Classification{"https://models.example/v2": label.Secret}, far, label.Confidential},
		{"the config's word counts", told, nil, far, label.Confidential},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := newRoster(plan.Config{Agents: []plan.Member{tt.give}, Endpoints: tt.endpoints})
			require.NoError(t, err)
			s := spec("a")
			s.Classification = tt.want
			o := &plan.Options{UserAccepts: new(label.Secret)}
			p, err := r.plan([]task.Spec{s}, o)
			require.NoError(t, err)
			require.Equal(t, tt.want, p.Agents[0].Clearance)
			require.Equal(t, tt.leaves, p.Agents[0].LeavesTo)
			require.Equal(t, tt.leaves, p.Tasks[0].LeavesTo)
			if tt.want == label.Secret {
				return
			}
			s.Classification = tt.want + 1
			_, err = r.plan([]task.Spec{s}, o)
			requireRule(t, err, gate.RuleClearance)
			require.ErrorContains(t, err, "endpoint "+tt.leaves+" accepts "+tt.want.String())
		})
	}
}

// Requirement: G51.
func TestSpellingsOfAnEndpointAreEqual(t *testing.T) {
	t.Parallel()
	m := member("a")
	m.Endpoint = "https://llm.example/v1"
	for _, spelling := range []string{
		"https://llm.example/v1", "https://llm.example/v1/", "HTTPS://LLM.example/v1", "https://llm.example:443/v1",
		"https://llm.example./v1", " https://llm.example/v1", "https://llm.example/v1/chat/completions", "https://llm.example/%76%31", "https://me@llm.example/x/../v1",
	} {
		r, err := newRoster(plan.Config{Agents: []plan.Member{m}, Endpoints: map[string]label.Classification{spelling: label.Public}})
		require.NoError(t, err)
		_, err = r.plan([]task.Spec{spec("a")}, nil)
		require.ErrorContains(t, err, "accepts public", spelling)
	}
	for _, other := range []string{"https://llm.example", "https://llm.example:8443/v1", "http://llm.example/v1", "https://llm.example.evil.example/v1"} {
		r, err := newRoster(plan.Config{Agents: []plan.Member{m}, Endpoints: map[string]label.Classification{other: label.Public}})
		require.NoError(t, err)
		p, err := r.plan([]task.Spec{spec("a")}, nil)
		require.NoError(t, err, other)
		require.Len(t, p.Warnings, 1)
		require.Contains(t, p.Warnings[0].Error(), "no agent's prompts go there", "it would protect nothing")
	}
	_, err := newRoster(plan.Config{Agents: []plan.Member{m}, Endpoints: map[string]label.Classification{"llm.example": label.Public}})
	require.ErrorContains(t, err, "it is not a base URL")
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
