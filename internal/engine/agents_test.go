package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// typed is an error whose nil pointer panics, as a forgotten check makes one.
type typed struct{ text string }

func (e *typed) Error() string { return e.text }

func TestAgentsThatBreakDoNotBreakTheRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		agent agentFunc
		code  string
		text  string
	}{
		{"an error", fails(errBroken), "AGENT_ERROR", "the agent is out of order"},
		{"a panic", func(context.Context, prompt.Prompt) (agent.Reply, error) { panic("oh no") }, "AGENT_PANIC", "the agent panicked: oh no"},
		{"a panic of the runtime", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			var m map[string]int
			m["x"] = 1
			return agent.Reply{}, nil
		}, "AGENT_PANIC", "the agent panicked: assignment to entry in nil map"},
		{"a panic with an error", func(context.Context, prompt.Prompt) (agent.Reply, error) { panic(errBroken) }, "AGENT_PANIC", "the agent panicked: the agent is out of order"},
		{"the end of its goroutine", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			runtime.Goexit() // as require does in a test's agent
			return agent.Reply{}, nil
		}, "AGENT_PANIC", "the agent panicked: it ended its goroutine"},
		{"an error that panics", fails((*typed)(nil)), "AGENT_PANIC", "the agent panicked: runtime error: invalid memory address or nil pointer dereference"},
		{"a nil error of a model", fails((*llm.Error)(nil)), "AGENT_PANIC", "the agent panicked: runtime error: invalid memory address or nil pointer dereference"},
		{"an error text that is not UTF-8", fails(fmt.Errorf("bad \xff byte")), "AGENT_ERROR", "bad \uFFFD byte"},
		{"a reply that is not UTF-8", says("bad \xff byte"), "REPLY_REFUSED", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm := newTeam(t, member("bad", tt.agent), member("good", says("fine")))
			s := retrying("bad", 1)
			s.RetryDelay = task.NoDelay
			res := run(t, tm, &engine.RunOptions{MaxConcurrency: 1}, s, spec("good"), by("good", spec("more", "good")), by("good", spec("after", "bad")))
			bad := of(t, res, "bad")
			require.Equal(t, task.Failed, bad.Status)
			require.Equal(t, tt.code, bad.Error.Code)
			if tt.text != "" {
				require.Equal(t, tt.text, bad.Error.Message)
				require.Equal(t, tt.text, bad.Result, "as the original has it")
			}
			require.Equal(t, 2, bad.Metrics.Attempts)
			require.Equal(t, []task.Status{task.Failed, task.Completed, task.Completed, task.Failed}, statuses(res))
			require.Equal(t, bad.ID, of(t, res, "after").Error.Root)
			require.ErrorIs(t, of(t, res, "after").Error, engine.ErrDependency)
			require.Len(t, res.Errors, 2)
		})
	}
}

func TestPanicIsLoggedWithoutItsValue(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tm, err := engine.New(engine.Config{
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Agents: []engine.Member{member("a", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) { panic("PAYLOAD " + p.Text()) })},
	})
	require.NoError(t, err)
	run(t, tm, nil, spec("a"))
	require.Contains(t, out.String(), "agent panicked")
	require.Contains(t, out.String(), "agents_test.go", "the stack says where")
	require.NotContains(t, out.String(), "PAYLOAD")
}

func TestReplyOfThreeMegabytes(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("All work and no play makes a long text. ", 3<<20/40)
	tm := newTeam(t, member("writer", says(big)), member("reader", says("read")), member("judge", says("saw it")))
	optional := spec("judge")
	optional.DependsOn = []task.Ref{{Task: "writer", Optional: true}}
	res := run(t, tm, nil, spec("writer"), spec("reader", "writer"), optional)
	require.Equal(t, big, of(t, res, "writer").Result, "the work is there")
	require.Equal(t, "read", of(t, res, "reader").Result, "it is checked as a whole, and cut")
	require.Equal(t, "saw it", of(t, res, "judge").Result)
	for _, s := range of(t, res, "judge").Receipts[0].Sources {
		require.True(t, s.Decision == nil || s.Decision.Verdict == gate.Passed, "nothing is withheld from the judge")
	}
}

func TestReplyOfOnlyJSONIsAResult(t *testing.T) {
	t.Parallel()
	v, err := jsonvalue.Parse(`{"score": 0.5}`)
	require.NoError(t, err)
	reply := func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{JSON: v}, nil }
	with := spec("a")
	with.OutputSchema = []byte(`{"type":"object"}`)
	for _, s := range []task.Spec{spec("a"), with} {
		res := run(t, newTeam(t, member("a", reply)), nil, s)
		require.Equal(t, `{"score":0.5}`, res.Output)
	}
}

// An agent in Go that keeps and changes all it was given changes nothing.
//
// Requirement: G11.
func TestAgentCannotChangeWhatItWasGiven(t *testing.T) {
	t.Parallel()
	var kept []prompt.Prompt
	tags := []string{"checked"}
	thief := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		before := p.Text()
		for i, s := range p.Sections() {
			s.Text, s.Title = "forged", "forged"
			p.Sections()[i] = s
			sections := p.Sections()
			sections[i].Text = "forged"
		}
		if p.Text() != before || strings.Contains(fmt.Sprint(p.Sections()), "forged") {
			return agent.Reply{}, errBroken
		}
		kept = append(kept, p)
		return agent.Reply{Text: "stolen", Tags: tags}, nil
	}
	m := member("thief", thief)
	m.OutputTags = []string{"checked"}
	tm := newTeam(t, member("source", says("original")), m, member("reader", says("x")))
	m.OutputTags[0] = "changed after New"
	first, second, reader := by("thief", spec("first", "source")), by("thief", spec("second", "source")), spec("reader", "source", "first", "second")
	first.RequiredTags = []string{"checked"}
	res := run(t, tm, &engine.RunOptions{MaxConcurrency: 1}, spec("source"), first, second, reader)
	require.NoError(t, res.Err())
	tags[0] = "changed"
	require.Equal(t, []string{"checked"}, of(t, res, "first").Envelope.Header().Tags)
	require.Contains(t, kept[0].Text(), "original")
	require.Contains(t, kept[1].Text(), "original")
	require.Equal(t, "original", of(t, res, "source").Result)
	for i := range res.Tasks {
		require.NoError(t, res.Tasks[i].Envelope.Genuine())
	}
	h := of(t, res, "first").Envelope.Header()
	h.DerivedFrom[0], h.Tags[0] = "forged", "forged"
	require.NoError(t, of(t, res, "first").Envelope.Genuine())
	require.NotContains(t, of(t, res, "first").Envelope.Header().Tags, "forged")
}
