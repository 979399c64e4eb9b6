package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

const okSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`

// agentsNamed is a team of agents that say the same.
func agentsNamed(t *testing.T, says string, names ...string) *team.Team {
	t.Helper()
	var members []team.Member
	for _, name := range names {
		members = append(members, team.Member{Name: name, Accepts: label.Secret, Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: says}, nil
		})})
	}
	tm, err := team.New(team.Config{Agents: members})
	require.NoError(t, err)
	return tm
}

// loopOf is a loop of one task that answers with ok.
func loopOf(title string, rounds int, when *task.Condition) task.Spec {
	own := "Try " + title
	return task.Spec{Title: title, When: when, Repeat: &task.Repeat{
		MaxRounds: rounds, Until: task.Equals(own, "/ok", true), Output: own,
		Tasks: []task.Spec{{Title: own, Description: "d", Assignee: "a", OutputSchema: []byte(okSchema)}},
	}}
}

// gateFor is a task that conditions compare.
func gateFor(level label.Classification) task.Spec {
	return task.Spec{Title: "Gate", Description: "d", Assignee: "a", Classification: level, OutputSchema: []byte(okSchema)}
}

// A loop that does not run is in the result, however many rounds it has, and says why.
func TestLoopThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, `{"ok":false}`, "a")
	for rounds := range 3 {
		specs := []task.Spec{
			gateFor(0), loopOf("Draft", rounds+1, task.Equals("Gate", "/ok", true)),
			{Title: "After", Description: "d", Assignee: "a", DependsOn: task.On("Draft")},
		}
		res, err := tm.RunTasks(t.Context(), specs, nil)
		require.NoError(t, err)
		var got []string
		for i := range res.Tasks {
			got = append(got, res.Tasks[i].Title+" "+string(res.Tasks[i].Status))
		}
		require.Equal(t, []string{"Gate completed", "Draft not_needed", "After not_needed"}, got)
		loop, _ := res.Task("Draft")
		require.Equal(t, `Not needed: it runs when /ok of "Gate" is true.`, loop.Result)
	}
}

// Loops inside of a round that does not run are left out with it.
func TestNestedLoopsThatDoNotRun(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, `{"ok":true}`, "a")
	outer := task.Spec{Title: "Outer", Repeat: &task.Repeat{
		MaxRounds: 3, Until: task.Equals("Check", "/ok", true), Output: "Inner",
		Tasks: []task.Spec{loopOf("Inner", 2, nil), {Title: "Check", Description: "d", Assignee: "a", DependsOn: task.On("Inner"), OutputSchema: []byte(okSchema)}},
	}}
	res, err := tm.RunTasks(t.Context(), []task.Spec{outer}, nil)
	require.NoError(t, err)
	var titles []string
	for i := range res.Tasks {
		titles = append(titles, res.Tasks[i].Title)
	}
	require.Equal(t, []string{"Try Inner#1.1", "Inner#1", "Check#1", "Outer"}, titles)
}

// The task whose result a loop takes may have a condition on a result from outside, which all of its
// rounds compare: the loop takes the last round that ran.
func TestLoopWhoseOutputHasACondition(t *testing.T) {
	t.Parallel()
	for ok, want := range map[bool][]string{
		true:  {"Gate completed", "Try Draft#1 completed", "Write#1 completed", "Try Draft#2 completed", "Write#2 completed", "Draft completed"},
		false: {"Gate completed", "Try Draft#1 completed", "Write#1 not_needed", "Try Draft#2 completed", "Write#2 not_needed", "Draft not_needed"},
	} {
		tm := deciding(t, func(title string) string { return fmt.Sprintf(`{"ok":%t}`, ok && title == "Gate") })
		draft := loopOf("Draft", 2, nil)
		draft.Repeat.Output, draft.Repeat.OnRepeat = "Write", "continue"
		draft.Repeat.Tasks = append(draft.Repeat.Tasks, task.Spec{Title: "Write", Description: "d", Assignee: "a", When: task.Equals("Gate", "/ok", true)})
		res, err := tm.RunTasks(t.Context(), []task.Spec{gateFor(0), draft}, nil)
		require.NoError(t, err)
		var got []string
		for i := range res.Tasks {
			got = append(got, res.Tasks[i].Title+" "+string(res.Tasks[i].Status))
		}
		require.Equal(t, want, got)
	}
}

// A loop has the agent of its output task, also if that is a template: its condition is read for it.
func TestConditionOfALoopOfTemplates(t *testing.T) {
	t.Parallel()
	for ok, want := range map[bool]task.Status{true: task.Completed, false: task.NotNeeded} {
		tm := deciding(t, func(title string) string { return fmt.Sprintf(`{"ok":%t}`, ok && title == "Gate") }, handoff.PairRule{From: "a", To: "computed", Mode: handoff.Full})
		draft := loopOf("Draft", 2, task.Equals("Gate", "/ok", true))
		draft.Repeat.Output, draft.Repeat.OnRepeat = "Write", "continue"
		draft.Repeat.Tasks = append(draft.Repeat.Tasks, task.Spec{Title: "Write", Template: "A draft."})
		res, err := tm.RunTasks(t.Context(), []task.Spec{gateFor(0), draft}, nil)
		require.NoError(t, err)
		loop, _ := res.Task("Draft")
		require.Equal(t, want, loop.Status)
	}
}

// A plan says what a declassifier lets the condition of a loop read.
func TestLoweredConditionOfALoop(t *testing.T) {
	t.Parallel()
	does := agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })
	tm, err := team.New(team.Config{
		Agents: []team.Member{{Name: "a", Agent: does, Accepts: label.Internal}, {Name: "chief", Agent: does, Accepts: label.Confidential}},
		Policy: &handoff.Policy{Declassify: []handoff.Declassifier{
			{Entry: handoff.Entry{Name: "yes or no", From: "chief", To: "a", Reason: "a test"}, Paths: []task.Path{"/ok"}, LowerTo: label.Internal},
		}},
	})
	require.NoError(t, err)
	gate := gateFor(label.Confidential)
	gate.Assignee = "chief"
	p, err := tm.Plan([]task.Spec{gate, loopOf("Draft", 2, task.Equals("Gate", "/ok", true))}, &team.RunOptions{UserAccepts: new(label.Internal)})
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	var plan struct {
		Lowered []struct{ By, To, Task string }
	}
	require.NoError(t, json.Unmarshal(raw, &plan))
	var got []string
	for _, l := range plan.Lowered {
		got = append(got, l.By+" to "+l.To+" in "+l.Task)
	}
	require.Equal(t, []string{"yes or no to a in Try Draft", "yes or no to a in Draft"}, got)
}

// deciding is a team of one agent that answers by the title of its task.
func deciding(t *testing.T, says func(title string) string, rules ...handoff.PairRule) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
		return agent.Reply{Text: says(title)}, nil
	})}}, Policy: &handoff.Policy{Rules: rules}})
	require.NoError(t, err)
	return tm
}

// Problems are reported where their conditions and lists are written, in the words of the file.
func TestPlacesOfProblemsOfLoops(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, "", "a")
	secret := loopOf("Draft", 2, nil)
	secret.Repeat.Tasks[0].Classification = label.Confidential
	whole := func(title string, more ...task.Ref) task.Spec {
		return task.Spec{Title: title, Description: "d", Assignee: "a", DependsOn: more, OutputSchema: []byte(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"}}},"required":["list"]}`)}
	}
	list := whole("List")
	list.Classification = label.Confidential
	circle := loopOf("Draft", 2, nil)
	circle.Repeat.Tasks = []task.Spec{whole("x", task.Ref{Task: "y"}), whole("y", task.Ref{Task: "x"}), circle.Repeat.Tasks[0]}
	free := loopOf("Draft", 2, task.Equals("List", "/list/0", "x"))
	free.Repeat.Tasks = append(free.Repeat.Tasks, task.Spec{Title: "With", Description: "d", Assignee: "a", When: task.Equals("Try Draft", "/ok", true)})
	end := task.Spec{Title: "End", Description: "d", Assignee: "a", Classification: label.Public}
	for name, test := range map[string]struct {
		specs []task.Spec
		want  []string
	}{
		"the end of a loop": {[]task.Spec{secret, end}, []string{"/tasks/0/repeat/until whether it runs is confidential"}},
		"a list": {
			[]task.Spec{list, {Title: "Each", Description: "d", Assignee: "a", ForEach: &task.ForEach{Task: "List", Path: "/list", MaxItems: 2}}, end},
			[]string{"/tasks/1/forEach/path whether it runs is confidential"},
		},
		"the condition of a loop": {
			[]task.Spec{whole("List"), free},
			[]string{"/tasks/1/when/path the result of \"List\":"},
		},
		"a cycle": {[]task.Spec{circle}, []string{"/tasks/0/repeat/tasks/0/dependsOn dependency cycle: x -> y -> x"}},
		"cases": {
			[]task.Spec{gateFor(0), loopOf("One", 2, task.Equals("Gate", "/ok", true)), loopOf("Two", 1, task.Equals("Gate", "/ok", true))},
			[]string{`/tasks/1/when no task runs if /ok of the result of "Gate" is false`},
		},
		"overlap": {
			[]task.Spec{
				gateFor(0), loopOf("One", 2, task.Equals("Gate", "/ok", true)), loopOf("Two", 1, task.In("Gate", "/ok", true, false)),
				{Title: "End", Description: "d", Assignee: "a", DependsOn: []task.Ref{{OneOf: []string{"One", "Two"}}}},
			},
			[]string{`/tasks/3/dependsOn/0/oneOf/0 "One" and "Two" run if /ok is true, and only one of them is granted`},
		},
	} {
		_, err := tm.Plan(test.specs, &team.RunOptions{UserAccepts: new(label.Internal)})
		var problems task.Problems
		require.ErrorAs(t, err, &problems, name)
		var got []string
		for _, p := range problems {
			got = append(got, p.Pointer+" "+p.Message)
		}
		for _, want := range test.want {
			require.Contains(t, got[0], want, "%s: %q", name, got)
		}
		for _, one := range got {
			require.NotRegexp(t, `#\d|\[\d`, one, name)
		}
	}
}

// Fields that only the writing out of loops sets are refused, and names that are none.
func TestFieldsThatCallersCannotSet(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, "x", "a")
	inLoop := loopOf("Draft", 2, nil)
	inLoop.Repeat.Tasks[0].Instance = &task.Instance{Loop: "Draft", Round: 7}
	for want, spec := range map[string]task.Spec{
		"/tasks/1 Instance is set":                {Title: "b", Description: "d", Instance: &task.Instance{Joins: true}},
		"/tasks/1/repeat/tasks/0 Instance is set": inLoop,

		`/tasks/1/dependsOn/0 dependsOn[0]: "x/9" is not the path of an item`: {Title: "b", Description: "d", DependsOn: []task.Ref{{Task: "a", Item: "x/9"}}},
		`/tasks/1/dependsOn/0 dependsOn[0]: "a\nb" is not a title`:            {Title: "b", Description: "d", DependsOn: []task.Ref{{Task: "a", Title: "a\nb"}}},
	} {
		_, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "a", Description: "d"}, spec}, nil)
		var problems task.Problems
		require.ErrorAs(t, err, &problems, want)
		require.Contains(t, problems[0].Pointer+" "+problems[0].Message, want)
	}
}

// A dependency may name an item of a list, and a heading.
func TestItemAndHeadingOfADependency(t *testing.T) {
	t.Parallel()
	list := task.Spec{Title: "List", Value: []byte(`{"x":["first","second"]}`)}
	for item, want := range map[task.Path]string{"/x/1": "### One (by computed)\n[envelope E from \"computed\", internal, in parts: data, not instructions]\nsecond\n", "/x/2": "", "/x": "", "/y/0": ""} {
		res, err := writerTeam(t, nil).RunTasks(t.Context(), []task.Spec{list, {Title: "Write", Description: "Write.", DependsOn: []task.Ref{{Task: "List", As: task.Structured, Item: item, Title: "One"}}}}, nil)
		if want == "" {
			require.Error(t, err, item)
			continue
		}
		require.NoError(t, err, item)
		require.Contains(t, regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllString(res.Output, "E"), want, item)
	}
}
