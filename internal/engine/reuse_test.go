package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// A placed model is behind some endpoint, and counts its calls.
type placed struct {
	base  string
	calls int
}

func (p *placed) Name() string     { return "m" }
func (p *placed) Endpoint() string { return p.base }

func (p *placed) Call(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
	p.calls++
	return llm.Response{Text: "from " + p.base}, nil
}

// TestReuseIsLimitedToTheOrigin checks that an answer of one endpoint is not taken
// for one of another, though the settings of the agent call them the same, and
// that a resumed run and a replay take it wherever the endpoint is now.
func TestReuseIsLimitedToTheOrigin(t *testing.T) {
	t.Parallel()
	run1 := func(p *placed, o *engine.RunOptions) *engine.Result {
		tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(p, agent.Options{}), Backend: plan.Backend{Version: "baseURL: ${URL}"}})
		res := run(t, tm, o, spec("a"))
		require.NoError(t, res.Err())
		return res
	}
	for _, tt := range []struct {
		name, before, now string
		taken             bool
	}{
		{"the same", "https://h.example/v1", "https://h.example/v1", true},
		{"the same, spelt otherwise", "https://h.example/v1", "HTTPS://H.example.:443/v1/", true},
		{"another host", "https://h.example/v1", "https://evil.example/v1", false},
		{"another port", "https://h.example/v1", "https://h.example:8443/v1", false},
		{"another scheme", "https://h.example/v1", "http://h.example/v1", false},
		{"another port of this machine", "http://127.0.0.1:1234/v1", "http://127.0.0.1:4321/v1", true},
		{"this machine, after another", "https://h.example/v1", "http://127.0.0.1:1/v1", false},
		{"another, after this machine", "http://localhost:1/v1", "https://h.example/v1", false},
		{"a name that looks like this machine", "http://127.0.0.1:1/v1", "http://127.0.0.1.example/v1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			journal, other := &memory{}, &placed{base: tt.now}
			want := run1(&placed{base: tt.before}, &engine.RunOptions{RunID: "r", Journal: journal})
			res := run1(other, &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true})
			if tt.taken {
				require.Zero(t, other.calls)
				require.Equal(t, answers(want), answers(res))
			} else {
				require.Equal(t, 1, other.calls)
				require.Equal(t, "from "+tt.now, of(t, res, "a").Result)
			}
			other.calls = 0
			past := journal.history(journal.len())
			require.Equal(t, answers(want), answers(run1(other, &engine.RunOptions{RunID: "r", Journal: after(past)})))
			require.Equal(t, answers(want), answers(run1(other, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)})))
			require.Zero(t, other.calls)
		})
	}
}

// An answer is taken only from a run of a caller of the same clearance, since it says that the prompt was sent
// before, and one of this machine only on this machine.
func TestReuseIsLimitedToTheCallerAndTheMachine(t *testing.T) {
	t.Parallel()
	const far, near = "https://h.example/v1", "http://127.0.0.1:1/v1"
	low, high := new(label.Internal), new(label.Confidential)
	for _, tt := range []struct {
		name, base  string // without a base, a Go agent
		before, now engine.RunOptions
		taken       bool
	}{
		{"the same caller", far, engine.RunOptions{UserAccepts: low}, engine.RunOptions{UserAccepts: low}, true},
		{"a lower caller", far, engine.RunOptions{UserAccepts: high}, engine.RunOptions{UserAccepts: low}, false},
		{"a higher caller", far, engine.RunOptions{UserAccepts: low}, engine.RunOptions{UserAccepts: high}, false},
		{"another machine, an endpoint elsewhere", far, engine.RunOptions{Machine: "a"}, engine.RunOptions{Machine: "b"}, true},
		{"another machine", near, engine.RunOptions{Machine: "a"}, engine.RunOptions{Machine: "b"}, false},
		{"the same machine", near, engine.RunOptions{Machine: "a"}, engine.RunOptions{Machine: "a"}, true},
		{"another machine, a Go agent", "", engine.RunOptions{Machine: "a"}, engine.RunOptions{Machine: "b"}, false},
		{"the same machine, a Go agent", "", engine.RunOptions{Machine: "a"}, engine.RunOptions{Machine: "a"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &placed{base: tt.base}
			m := engine.Member{Name: "a", Agent: agent.New(p, agent.Options{}), Backend: plan.Backend{Version: "1"}}
			if tt.base == "" {
				m.Agent = agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
					p.calls++
					return agent.Reply{Text: "x"}, nil
				})
			}
			tm, journal := newTeam(t, m), &memory{}
			tt.before.Journal = journal
			require.NoError(t, run(t, tm, &tt.before, spec("a")).Err())
			tt.now.Journal, tt.now.Reuse = &memory{others: journal.exchanges()}, true
			require.NoError(t, run(t, tm, &tt.now, spec("a")).Err())
			require.Equal(t, tt.taken, p.calls == 1)
		})
	}
}

// TestReuseComparesOriginsNotEndpointNames checks that an answer is not taken for
// another origin whose endpoint has the same name, as those of one variable have.
func TestReuseComparesOriginsNotEndpointNames(t *testing.T) {
	t.Parallel()
	const a, b, evil = "https://a.example/v1", "https://b.example/v1", "https://evil.example/v1"
	for name, other := range map[string][2]string{"its own": {evil, b}, "of the fallback": {a, evil}, "the same": {a, b}} {
		run1 := func(o *engine.RunOptions, first, next string) *placed {
			own := &placed{base: first}
			it := agent.New(own, agent.Options{Fallback: []llm.Model{&placed{base: next}}})
			tm := newTeam(t, engine.Member{Name: "a", Agent: it, Backend: plan.Backend{Version: "as written", EndpointNames: []string{"${A}/v1", "${B}/v1"}}})
			require.NoError(t, run(t, tm, o, spec("a")).Err())
			return own
		}
		journal := &memory{}
		run1(&engine.RunOptions{Journal: journal}, a, b)
		again := run1(&engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, other[0], other[1])
		require.Equal(t, name == "the same", again.calls == 0, name)
	}
}

// Every endpoint of a fallback may have answered, so an answer is taken only for
// the same chain.
func TestReuseIsLimitedToTheOriginsOfAFallback(t *testing.T) {
	t.Parallel()
	run1 := func(o *engine.RunOptions, bases ...string) (first *placed, res *engine.Result) {
		first = &placed{base: bases[0]}
		var next []llm.Model
		for _, base := range bases[1:] {
			next = append(next, &placed{base: base})
		}
		tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(first, agent.Options{Fallback: next}), Backend: plan.Backend{Version: "as written"}})
		res = run(t, tm, o, spec("a"))
		require.NoError(t, res.Err())
		return first, res
	}
	const a, b, evil = "https://a.example/v1", "https://b.example/v1", "https://evil.example/v1"
	journal := &memory{}
	run1(&engine.RunOptions{Journal: journal}, a, b)
	for _, tt := range []struct {
		name  string
		bases []string
		calls int
	}{
		{"the same", []string{a, b}, 0},
		{"without the fallback", []string{a}, 1},
		{"another fallback", []string{a, evil}, 1},
		{"one more", []string{a, b, evil}, 1},
		{"another order", []string{b, a}, 1},
	} {
		first, _ := run1(&engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, tt.bases...)
		require.Equal(t, tt.calls, first.calls, tt.name)
	}
}

// An agent written in Go says nothing of an endpoint: its version decides.
func TestAgentWithoutAnEndpointIsReused(t *testing.T) {
	t.Parallel()
	journal := &memory{}
	m := member("a", says("one"))
	m.Version = "1"
	run(t, newTeam(t, m), &engine.RunOptions{Journal: journal}, spec("a"))
	m = member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		t.Error("it was asked")
		return agent.Reply{}, errBroken
	})
	m.Version = "1"
	res := run(t, newTeam(t, m), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, spec("a"))
	require.Equal(t, "one", of(t, res, "a").Result)
}
