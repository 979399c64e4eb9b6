package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// chainAgent is an agent whose prompts may be sent to several endpoints.
type chainAgent struct {
	engine.AgentFunc
	urls []string
}

func (c chainAgent) Endpoints() []string { return c.urls }

// Each endpoint of a fallback is a reader, and the lowest clearance counts.
//
// Requirement: G51.
func TestEachEndpointOfAFallbackIsAReader(t *testing.T) {
	t.Parallel()
	const near, far, low = "http://localhost:11434/v1", "https://far.example/v1", "https://low.example/v1"
	endpoints := map[string]label.Classification{low: label.Internal}
	member := func(urls ...string) engine.Member {
		return engine.Member{Name: "a", Agent: chainAgent{says("x"), urls}, Accepts: label.Secret}
	}
	asWritten := member("http://10.0.0.1:8000/key/v1", "http://10.0.0.2:8000/key/v1", far)
	asWritten.EndpointNames = []string{"http://10.0.0.1:8000/${A}/v1", "http://10.0.0.2:8000/${B}/v1"}
	set := member(near, low)
	set.Endpoint = far
	tests := []struct {
		name   string
		give   engine.Member
		leaves []string
		want   label.Classification
		low    string
	}{
		{"a lower one last", member(near, low), []string{near, low}, label.Internal, low},
		{"a lower one first", member(low, near), []string{low, near}, label.Internal, low},
		{"in the middle", member(near, low, far), []string{near, low, far}, label.Internal, low},
		{"without settings", member(near, far), []string{near, far}, label.Confidential, far},
		{"one that is not named", member(near, ""), []string{near, "(a model that does not name its endpoint)"}, label.Confidential, "(a model that does not name its endpoint)"},
		{"none is named", member(), []string{"(a model that does not name its endpoint)"}, label.Confidential, "(a model that does not name its endpoint)"},
		{"twice the same", member(low, "https://LOW.example:443/v1/"), []string{low}, label.Internal, low},
		{"names to show", asWritten, []string{"http://10.0.0.1:8000/${A}/v1", "http://10.0.0.2:8000/${B}/v1", far}, label.Confidential, "http://10.0.0.1:8000/${A}/v1"},
		{"the first one is set", set, []string{far, low}, label.Internal, low},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm, err := engine.New(engine.Config{Agents: []engine.Member{tt.give}, Endpoints: endpoints})
			require.NoError(t, err)
			s := spec("a")
			s.Classification = tt.want
			o := &engine.RunOptions{UserAccepts: new(label.Secret)}
			p, err := tm.Plan([]task.Spec{s}, o)
			require.NoError(t, err)
			require.Equal(t, tt.want, p.Agents[0].Clearance)
			require.Equal(t, tt.leaves, append([]string{p.Agents[0].LeavesTo}, p.Agents[0].Fallback...))
			require.Equal(t, tt.leaves, append([]string{p.Tasks[0].LeavesTo}, p.Tasks[0].Fallback...))
			for _, where := range tt.leaves {
				f := assertionFinding(t, tm, []task.Spec{s}, o, "task a never reaches "+where)
				require.True(t, f.Holds, "what it writes is its own")
			}
			s.Classification = tt.want + 1
			_, err = tm.Plan([]task.Spec{s}, o)
			requireRule(t, err, gate.RuleClearance)
			require.ErrorContains(t, err, "endpoint "+tt.low+" accepts "+tt.want.String())
		})
	}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{member(near, far)}})
	require.NoError(t, err)
	f := assertionFinding(t, tm, []task.Spec{claimed("a")}, withClaim(), "input claim never reaches "+far)
	require.False(t, f.Holds, "an assertion about a fallback")
	require.Equal(t, `input "claim" → task "a" → `+far, f.Path.String())
}

// The coordinator reads what the lowest endpoint of its fallback may read.
//
// Requirement: G51.
func TestEachEndpointOfTheCoordinatorsFallback(t *testing.T) {
	t.Parallel()
	const low = "https://low.example/v1"
	k := &engine.Coordinator{Agent: chainAgent{never(t), []string{"http://localhost/v1", low}}}
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{cleared("a", label.Secret, never(t))}, Coordinator: k,
		Endpoints: map[string]label.Classification{low: label.Public},
	})
	require.NoError(t, err)
	_, err = tm.PlanTeam(t.Context(), engine.Goal{Text: "x", Classification: label.Internal}, nil)
	require.ErrorContains(t, err, "endpoint "+low+" accepts public")
}

// A listener is a model that fails or answers, and keeps what it was sent.
type listener struct {
	at    string
	fails string // empty if it answers
	heard []string
}

func (l *listener) Endpoint() string { return l.at }

func (l *listener) Call(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	l.heard = append(l.heard, req.System+req.Messages[0].Text)
	if l.fails != "" {
		return llm.Response{}, &llm.Error{Kind: l.fails, Endpoint: l.at}
	}
	return llm.Response{Text: "done", CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
}

// Whichever endpoints of a chain fail, none is sent anything above its
// clearance, and every call goes to the next one only when it may.
//
// Requirement: G51.
func TestFallbackReadsNothingAboveItsClearance(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		levels := rapid.SliceOfN(rapid.SampledFrom(classes), 1, 4).Draw(rt, "endpoints")
		input := rapid.SampledFrom(classes).Draw(rt, "input")
		listeners := make([]*listener, len(levels))
		endpoints := map[string]label.Classification{}
		var models []llm.Model
		for i, level := range levels {
			l := &listener{at: fmt.Sprintf("https://host%d.example/v1", i)}
			l.fails = rapid.SampledFrom([]string{callfault.ServerError, callfault.Unreachable, callfault.NoCredit, callfault.Timeout, callfault.Unauthorized, ""}).Draw(rt, "fails")
			endpoints[l.at], listeners[i] = level, l
			models = append(models, l)
		}
		does := agent.New(models[0], agent.Options{Retry: llm.RetryOptions{Extra: -1}, Fallback: models[1:]})
		// Writers between the input and the chain carry the canary on in words of their own.
		tm, err := engine.New(engine.Config{
			Agents:    []engine.Member{cleared("reader", label.Secret, echo), {Name: "chain", Agent: does, Accepts: label.Secret}},
			Endpoints: endpoints,
			Policy:    &handoff.Policy{Rules: []handoff.PairRule{{From: "reader", To: "chain", Mode: handoff.Full}, {From: handoff.User, To: "chain", Mode: handoff.Full}, {From: handoff.User, To: "reader", Mode: handoff.Full}}},
		})
		if err != nil {
			rt.Fatal(err)
		}
		last := spec("last")
		last.Assignee = "chain"
		if rapid.Bool().Draw(rt, "direct") {
			last.Uses = []task.Use{{Name: "in"}}
		} else {
			last.DependsOn = spec("last", "first").DependsOn
		}
		first := spec("first")
		first.Assignee, first.Uses = "reader", []task.Use{{Name: "in"}}
		o := &engine.RunOptions{UserAccepts: new(label.Secret), Inputs: []engine.Input{{Name: "in", Text: "CANARY", Classification: input}}}
		_, err = tm.RunTasks(t.Context(), []task.Spec{first, last}, o)
		lowest := slices.Min(levels)
		if refused := err != nil; refused != (input.Join(label.Internal) > lowest) {
			rt.Fatalf("endpoints accept %v, the input is %v, and the run says %v", levels, input, err)
		}
		for i, l := range listeners {
			for _, text := range l.heard {
				sent.Add(1)
				if strings.Contains(text, "CANARY") && input > levels[i] {
					rt.Fatalf("endpoint %d of %v, which accepts %v, is sent what is %v", i, levels, levels[i], input)
				}
			}
			failsOver := slices.Contains([]string{callfault.ServerError, callfault.Unreachable, callfault.NoCredit, callfault.Timeout}, l.fails)
			if i+1 < len(listeners) && (len(listeners[i+1].heard) > 0) != (len(l.heard) > 0 && failsOver) {
				rt.Fatalf("endpoint %d fails with %q; the next one is called %d times", i, l.fails, len(listeners[i+1].heard))
			}
		}
	})
	require.NotZero(t, sent.Load())
}
