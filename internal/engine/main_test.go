package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// TestMain checks that no goroutine outlives a run.
func TestMain(m *testing.M) {
	slowtest.Checks(15)
	slowtest.FilesInMemory()
	startCompressors()
	goleak.VerifyTestMain(m)
}

// agentFunc is the shape of the fakes.
type agentFunc = func(ctx context.Context, p prompt.Prompt) (agent.Reply, error)

// says is an agent that answers with a text.
func says(text string) agentFunc {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil }
}

var errBroken = errors.New("the agent is out of order")

// fails is an agent that answers with an error.
func fails(err error) agentFunc {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, err }
}

// sleeps is an agent that works for a while, unless its context ends.
func sleeps(d time.Duration) agentFunc {
	return func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		select {
		case <-time.After(d):
			return agent.Reply{Text: "done"}, nil
		case <-ctx.Done():
			return agent.Reply{}, ctx.Err()
		}
	}
}

// fakeToken has the form of a token and opens nothing.
var fakeToken = "ghp_" + strings.Repeat("aB3dE6", 6)

// member is an agent with the default label.
func member(name string, fn agentFunc) engine.Member {
	return engine.Member{Name: name, Agent: engine.AgentFunc(fn)}
}

// cleared is an agent that reads and writes up to a level.
func cleared(name string, level label.Classification, fn agentFunc) engine.Member {
	m := member(name, fn)
	m.Accepts = level
	return m
}

func newTeam(t testing.TB, members ...engine.Member) *engine.Team {
	t.Helper()
	tm, err := engine.New(engine.Config{Agents: members})
	require.NoError(t, err)
	return tm
}

// newTeamWith is [newTeam] with edges; see [edges].
func newTeamWith(t testing.TB, list []handoff.Edge, members ...engine.Member) *engine.Team {
	t.Helper()
	tm, err := engine.New(engine.Config{Agents: members, Edges: list})
	require.NoError(t, err)
	return tm
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

// usable returns the edges of a config that a plan of these tasks accepts: nothing could be read along
// the others.
func usable(cfg engine.Config, specs []task.Spec, o *engine.RunOptions) ([]handoff.Edge, error) {
	for {
		tm, err := engine.New(cfg)
		if err != nil {
			return nil, err
		}
		_, err = tm.Plan(specs, o)
		var found task.Problems
		errors.As(err, &found)
		var left []handoff.Edge
		for k, e := range cfg.Edges {
			if !slices.ContainsFunc(found, func(p task.Problem) bool { return p.Pointer == fmt.Sprintf("/edges/%d", k) }) {
				left = append(left, e)
			}
		}
		if len(left) == len(cfg.Edges) {
			return left, nil
		}
		cfg.Edges = left
	}
}

// run runs tasks that can start.
func run(t testing.TB, tm *engine.Team, o *engine.RunOptions, specs ...task.Spec) *engine.Result {
	t.Helper()
	res, err := start(t.Context(), tm, specs, o)
	require.NoError(t, err)
	return res
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

func of(t testing.TB, res *engine.Result, name string) *engine.TaskResult {
	t.Helper()
	out, ok := res.Task(name)
	require.True(t, ok, name)
	return out
}

// statuses are the statuses of the tasks in the order written.
func statuses(res *engine.Result) []task.Status {
	var out []task.Status
	for i := range res.Tasks {
		out = append(out, res.Tasks[i].Status)
	}
	return out
}

// A log notes what happened, in order.
type log struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// An audience collects the events of one run. Read it after the run.
type audience struct{ events []event.Event }

func (a *audience) take(e event.Event) { a.events = append(a.events, e) }

func (a *audience) options() *engine.RunOptions {
	return &engine.RunOptions{Subscribers: []func(event.Event){a.take}}
}

// types are the events as type and title.
func (a *audience) types() []string {
	var out []string
	for _, e := range a.events {
		if e.Type == event.Handed { // one for each piece of context: tests of its own look at them
			continue
		}
		text := string(e.Type)
		if e.Title != "" {
			text += " " + e.Title
		}
		out = append(out, text)
	}
	return out
}

func (a *audience) only(kind event.Type) []event.Event {
	var out []event.Event
	for _, e := range a.events {
		if e.Type == kind {
			out = append(out, e)
		}
	}
	return out
}

// told is everything that the caller received: the result and the events.
func told(t testing.TB, res *engine.Result, a *audience) string {
	t.Helper()
	out, err := json.Marshal(res)
	require.NoError(t, err)
	events, err := json.Marshal(a.events)
	require.NoError(t, err)
	return string(out) + "\n" + string(events)
}
