package engine_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// choice is the schema of a result that decides, one of three numbers.
const choice = `{"type":"object","properties":{"x":{"enum":[0,1,2]},"why":{"type":"string"}},"required":["x"],"additionalProperties":false}`

// A chooser answers each task with a number that depends on its title and a seed, and counts calls.
type chooser struct {
	*counter
	seed int
}

func (c *chooser) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
	r, err := c.counter.Run(ctx, p)
	r.Text = fmt.Sprintf(`{"x": %d}`, c.choice(title))
	return r, err
}

func (c *chooser) choice(title string) int {
	return int(crc32.ChecksumIEEE(fmt.Append(nil, title, c.seed)) % 3)
}

// drawBranches draws tasks with conditions and alternatives. The conditions on one value are a
// single one, or two of which one holds.
func drawBranches(t *rapid.T) []task.Spec {
	specs := make([]task.Spec, rapid.IntRange(2, 9).Draw(t, "tasks"))
	var routers []string
	var pairs [][]string
	var last *task.Condition // of the task before, if the next one may take the rest
	for i := range specs {
		s := &specs[i]
		*s = task.Spec{Title: fmt.Sprintf("task %d", i), Description: "Choose.", Assignee: "worker", OutputSchema: []byte(choice)}
		for k := range i {
			if rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
				s.DependsOn = append(s.DependsOn, task.Ref{Task: specs[k].Title, Optional: rapid.IntRange(0, 2).Draw(t, "optional") == 0})
			}
		}
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case kind == 0 && last != nil && !slices.ContainsFunc(s.DependsOn, func(d task.Ref) bool { return d.Task == specs[i-1].Title }):
			s.When, last, pairs = task.Not(last), nil, append(pairs, []string{specs[i-1].Title, s.Title})
		case kind == 1 && len(pairs) > 0:
			of := rapid.SampledFrom(pairs).Draw(t, "alternatives")
			s.DependsOn = slices.DeleteFunc(s.DependsOn, func(d task.Ref) bool { return slices.Contains(of, d.Task) })
			s.DependsOn = append(s.DependsOn, task.Ref{OneOf: of, Optional: rapid.Bool().Draw(t, "optional")})
		case kind > 1 && len(routers) > 0:
			s.When = rapid.SampledFrom([]func(string) *task.Condition{
				func(of string) *task.Condition { return task.Equals(of, "/x", 1) },
				func(of string) *task.Condition { return task.In(of, "/x", 0, 2) },
				func(of string) *task.Condition { return task.Any(task.Exists(of, "/why"), task.AtLeast(of, "/x", 1)) },
			}).Draw(t, "when")(routers[0])
			routers = routers[1:]
			last = s.When
			if task, _, single := s.When.Value(); !single || task == "" {
				last = nil
			}
		}
		if s.When == nil {
			last = nil
		}
		routers = append(routers, s.Title)
	}
	return specs
}

// expected says how each task ends, by plain evaluation in the order of the specs.
func expected(specs []task.Spec, c *chooser) map[string]task.Status {
	ended := map[string]task.Status{}
	completed := func(title string) bool { return ended[title] == task.Completed }
	for i := range specs {
		s := &specs[i]
		runs := !slices.ContainsFunc(s.DependsOn, func(d task.Ref) bool {
			return !d.Optional && !completed(d.Task) && !slices.ContainsFunc(d.OneOf, completed)
		})
		read := true
		s.When.Leaves(func(l *task.Condition) { read = read && completed(l.Task) })
		if s.When != nil && read {
			read = s.When.Holds(func(l *task.Condition) string {
				if l.Path == "/x" {
					return fmt.Sprint(c.choice(l.Task))
				}
				return ""
			})
		}
		if ended[s.Title] = task.NotNeeded; runs && read {
			ended[s.Title] = task.Completed
		}
	}
	return ended
}

// outcomes returns how the tasks of a run ended. Which of several dependencies was the first that
// was not needed depends on the order in which tasks end.
func outcomes(res *engine.Result) map[string]string {
	all := answers(res)
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Status == task.NotNeeded {
			all[t.Title] = string(t.Status)
		}
	}
	return all
}

// TestBranchesOfAnyGraph runs graphs with conditions, resumes them after each commit, replays them
// and reuses their answers: the same tasks run, and none is asked again.
func TestBranchesOfAnyGraph(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	rapid.Check(t, func(t *rapid.T) {
		specs, seed := drawBranches(t), rapid.IntRange(0, 1000).Draw(t, "seed")
		with := func() *chooser { return &chooser{&counter{}, seed} }
		whole, first := &memory{}, with()
		o := engine.RunOptions{RunID: "r", Journal: whole, MaxConcurrency: rapid.IntRange(1, 4).Draw(t, "at once")}
		want, err := teamOf(t, first).RunTasks(context.Background(), specs, &o)
		require.NoError(t, err)
		require.NoError(t, want.Err())
		for title, status := range expected(specs, first) {
			got, ok := want.Task(title)
			require.True(t, ok)
			require.Equal(t, status, got.Status, title)
		}
		for n := range whole.len() + 1 {
			past := whole.history(n)
			completed := map[string]bool{}
			for _, e := range past.Log {
				if e.Exchange != nil && e.Exchange.Completed() {
					completed[e.Exchange.Title] = true
				}
			}
			again := with()
			res, err := start(context.Background(), teamOf(t, again), specs, &engine.RunOptions{RunID: "r", Journal: after(past)})
			require.NoError(t, err)
			require.Equal(t, outcomes(want), outcomes(res), "after %d commits", n)
			require.Equal(t, want.Outcomes(), res.Outcomes())
			for title := range again.count() {
				require.False(t, completed[title], "%q was asked again", title)
			}
		}
		got, err := start(context.Background(), teamOf(t, nobody(t)), specs, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(whole.history(whole.len()))})
		require.NoError(t, err)
		same(t, document(t, want), document(t, got))
		reused, err := teamOf(t, nobody(t)).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "second", Journal: &memory{others: whole.exchanges()}, Reuse: true})
		require.NoError(t, err)
		require.Equal(t, outcomes(want), outcomes(reused))
	})
}

// routedTasks are a router, two cases and what follows.
func routedTasks() []task.Spec {
	return []task.Spec{
		{Title: "Route", Description: "d", Assignee: "worker", OutputSchema: []byte(choice)},
		{Title: "One", Description: "d", Assignee: "worker", When: task.Equals("Route", "/x", 1)},
		{Title: "Other", Description: "d", Assignee: "worker", When: task.Otherwise()},
	}
}

// routing answers Route with a number and any other task with its title.
func routing(x int) engine.Agent {
	return versioned{engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
		if title == "Route" {
			return agent.Reply{Text: fmt.Sprintf(`{"x": %d}`, x)}, nil
		}
		return agent.Reply{Text: "text of " + title}, nil
	})}
}

func TestOutputsThatAreNotNeededLeaveNoHeading(t *testing.T) {
	t.Parallel()
	res := run(t, teamOf(t, routing(1)), nil, routedTasks()...)
	require.Equal(t, "text of One", res.Output)
	require.Equal(t, engine.StatusOK, res.Status)
	require.Equal(t, `Not needed: it runs when /x of "Route" is not 1.`, of(t, res, "Other").Result)
	require.Nil(t, of(t, res, "Other").Error)
	specs := append(routedTasks(), task.Spec{Title: "Also", Description: "d", Assignee: "worker"})
	require.Equal(t, "# One\n\ntext of One\n\n# Also\n\ntext of Also", run(t, teamOf(t, routing(1)), nil, specs...).Output)
}

// TestCoordinatorOfBranches answers a goal from the results of the tasks that ran.
func TestCoordinatorOfBranches(t *testing.T) {
	t.Parallel()
	p := &planner{}
	tm := teamOf(t, routing(2), func(c *engine.Config) { c.Coordinator = &engine.Coordinator{Agent: p} })
	res, err := start(t.Context(), tm, routedTasks(), &engine.RunOptions{Answer: &engine.Goal{Text: "Answer."}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, "the answer", res.Output)
	require.Len(t, p.prompts, 1)
	require.Contains(t, p.prompts[0], "text of Other")
	require.NotContains(t, p.prompts[0], "One")
}

// TestConditionsOnWhatIsMissing checks that a result without the compared value is no error.
func TestConditionsOnWhatIsMissing(t *testing.T) {
	t.Parallel()
	specs := routedTasks()[:1]
	specs[0].OutputSchema = []byte(`{"type":"object","properties":{"x":{"enum":[1]},"why":{"type":"string"}}}`)
	for title, when := range map[string]*task.Condition{
		"is": task.Equals("Route", "/x", 1), "is not": task.Not(task.Equals("Route", "/x", 1)), "more": task.Any(task.Not(task.Exists("Route", "/why")), task.AtLeast("Route", "/x", 1)),
	} {
		specs = append(specs, task.Spec{Title: title, Description: "d", Assignee: "worker", When: when})
	}
	empty := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "{}"}, nil })
	res := run(t, teamOf(t, empty), nil, specs...)
	require.Equal(t, task.NotNeeded, of(t, res, "is").Status)
	require.Equal(t, task.Completed, of(t, res, "is not").Status)
	require.Equal(t, task.Completed, of(t, res, "more").Status)
}

// TestFailedDeciderFailsItsCases checks that nothing counts as not needed because of a failure.
func TestFailedDeciderFailsItsCases(t *testing.T) {
	t.Parallel()
	specs := append(routedTasks(), task.Spec{Title: "Join", Description: "d", Assignee: "worker", DependsOn: []task.Ref{{OneOf: []string{"One", "Other"}}}})
	broken := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errors.New("broken") })
	res := run(t, teamOf(t, broken), nil, specs...)
	require.Equal(t, []task.Status{task.Failed, task.Failed, task.Failed, task.Failed}, statuses(res))
	require.Equal(t, of(t, res, "Route").ID, of(t, res, "Join").Error.Root)
}

// TestAlternativesThatFail checks that a failure counts before what was not needed, and that an
// optional dependency on alternatives outlives it.
func TestAlternativesThatFail(t *testing.T) {
	t.Parallel()
	specs := append(routedTasks(),
		task.Spec{Title: "Join", Description: "d", Assignee: "worker", DependsOn: []task.Ref{{OneOf: []string{"One", "Other"}}}},
		task.Spec{Title: "Maybe", Description: "d", Assignee: "worker", DependsOn: []task.Ref{{OneOf: []string{"One", "Other"}, Optional: true}}})
	half := engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		if strings.HasPrefix(p.Text(), "# Task: One\n") {
			return agent.Reply{}, errors.New("broken")
		}
		return routing(1).Run(ctx, p)
	})
	res := run(t, teamOf(t, half), nil, specs...)
	require.Equal(t, []task.Status{task.Completed, task.Failed, task.NotNeeded, task.Failed, task.Completed}, statuses(res))
	require.Equal(t, of(t, res, "One").ID, of(t, res, "Join").Error.Root)
}

func TestNotNeededIsAnEvent(t *testing.T) {
	t.Parallel()
	specs := append(routedTasks(), task.Spec{Title: "Then", Description: "d", Assignee: "worker", DependsOn: task.On("One")})
	var heard audience
	o := heard.options()
	run(t, teamOf(t, routing(0)), o, specs...)
	all := heard.only(event.TaskNotNeeded)
	require.Len(t, all, 2)
	require.Equal(t, task.NotNeeded, all[0].Status)
	require.Equal(t, `Not needed: it runs when /x of "Route" is 1.`, all[0].Message)
	require.Equal(t, `Not needed: "One" was not needed.`, all[1].Message)
	require.Equal(t, all[0].Task, all[1].Root)
}

// TestConditionsAboveWhoSeesStatuses checks that neither the caller nor the coordinator can learn
// from the status of a task what it may not read, and that the value may be declassified.
func TestConditionsAboveWhoSeesStatuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		user   label.Classification
		goal   bool
		policy *handoff.Policy
		want   string
	}{
		{"the caller", label.Internal, false, nil, "whether it runs is confidential, and the caller sees the status of tasks and may see internal"},
		{"the coordinator", label.Confidential, true, nil, "whether it runs is confidential, and the coordinator sees the status of tasks and may see internal"},
		{"both may", label.Confidential, false, nil, ""},
		{"declassified", label.Internal, false, &handoff.Policy{Declassify: []handoff.Declassifier{{
			Entry: handoff.Entry{Name: "choice", From: "worker", To: "low", Reason: "three values"}, Paths: []task.Path{"/x"}, LowerTo: label.Internal,
		}}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			specs := routedTasks()
			specs[0].Classification = label.Confidential
			if tt.policy != nil {
				specs[1].Assignee, specs[2].Assignee = "low", "low"
			}
			tm := teamOf(t, routing(1), func(c *engine.Config) {
				c.Agents = append(c.Agents, engine.Member{Name: "low", Agent: routing(1)})
				c.Policy, c.Coordinator = tt.policy, &engine.Coordinator{Agent: &planner{}, Accepts: new(label.Internal)}
			})
			o := &engine.RunOptions{UserAccepts: new(tt.user)}
			if tt.goal {
				o.Answer = &engine.Goal{Text: "Answer."}
			}
			_, err := tm.Plan(specs, o)
			if tt.want == "" {
				require.NoError(t, err)
				require.Equal(t, []task.Status{task.Completed, task.Completed, task.NotNeeded}, statuses(run(t, tm, o, specs...)))
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// TestFlowOfConditions checks that the table says who learns from statuses what decides, even if
// rules deliver nothing else of it.
func TestFlowOfConditions(t *testing.T) {
	t.Parallel()
	specs := append(routedTasks(), task.Spec{Title: "Then", Description: "d", Assignee: "last", DependsOn: task.On("One")})
	specs[0].Assignee = "router"
	tm := teamOf(t, routing(1), func(c *engine.Config) {
		c.Agents = append(c.Agents, engine.Member{Name: "router", Agent: routing(1)}, engine.Member{Name: "last", Agent: routing(1)}, engine.Member{Name: "idle", Agent: routing(1)})
		c.Coordinator = &engine.Coordinator{Agent: &planner{}}
		c.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: "router", To: "user", Mode: handoff.Minimal}, {From: "router", To: "coordinator", Mode: handoff.Minimal}}}
	})
	p, err := tm.Plan(specs, &engine.RunOptions{Answer: &engine.Goal{Text: "Answer."}})
	require.NoError(t, err)
	table := p.Flow()
	g := table.Graph()
	for i := range g.Sources {
		s := &g.Sources[i]
		if s.Kind != handoff.Condition && s.Name != "Route" {
			continue
		}
		for r := range g.Readers {
			reach := table.Reach(i, r)
			if name := g.Readers[r].Name; name == "idle" || name == "router" {
				require.Equal(t, flow.Never, reach, "%s of %s", s.Name, name)
				continue
			}
			require.NotEqual(t, flow.Never, reach, "%s of %s", s.Name, g.Readers[r].Name)
		}
	}
}
