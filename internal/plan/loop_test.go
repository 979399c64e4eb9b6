package plan_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

const okSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`

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

// A plan says what a declassifier lets the condition of a loop read.
func TestLoweredConditionOfALoop(t *testing.T) {
	t.Parallel()
	does := unused
	r, err := newRoster(plan.Config{
		Agents: []plan.Member{{Name: "a", Agent: does, Accepts: label.Internal}, {Name: "chief", Agent: does, Accepts: label.Confidential}},
		Policy: &handoff.Policy{Declassify: []handoff.Declassifier{
			{Entry: handoff.Entry{Name: "yes or no", From: "chief", To: "a", Reason: "a test"}, Paths: []task.Path{"/ok"}, LowerTo: label.Internal},
		}},
	})
	require.NoError(t, err)
	gate := gateFor(label.Confidential)
	gate.Assignee = "chief"
	p, err := r.plan([]task.Spec{gate, loopOf("Draft", 2, task.Equals("Gate", "/ok", true))}, &plan.Options{UserAccepts: new(label.Internal)})
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

// Problems are reported where their conditions and lists are written, in the words of the file.
func TestPlacesOfProblemsOfLoops(t *testing.T) {
	t.Parallel()
	r := newTeam(t, cleared("a", label.Secret))
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
		_, err := r.plan(test.specs, &plan.Options{UserAccepts: new(label.Internal)})
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

// Problems with conditions and lists point at where these are written.
func TestProblemsPointAtConditionsAndLists(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"ok":{"type":"boolean"},"free":{"type":"string"},"to":{"type":"array","items":{"type":"string"}}},"required":["ok","free","to"]}`)
	work := func(title string, set func(*task.Spec)) task.Spec {
		s := task.Spec{Title: title, Description: "d", Assignee: "worker", OutputSchema: schema}
		if set != nil {
			set(&s)
		}
		return s
	}
	group := func(from string, when *task.Condition) task.Spec {
		return task.Spec{Title: "Group", When: when, ForEach: &task.ForEach{Task: from, Path: "/to", MaxItems: 2, Output: "In", Tasks: []task.Spec{work("In", nil), work("In2", func(s *task.Spec) { s.Uses = []task.Use{{Name: "item"}} })}}}
	}
	each := work("A", func(s *task.Spec) { s.DependsOn = []task.Ref{{Each: "Group"}} })
	for name, tt := range map[string]struct {
		tasks []task.Spec
		want  string
	}{
		"the condition of a list":         {[]task.Spec{work("A", nil), group("A", task.Equals("A", "/free", "x"))}, `/tasks/1/when/path`},
		"one of several in it":            {[]task.Spec{work("A", nil), group("A", task.Any(task.Equals("A", "/ok", true), task.Equals("A", "/free", "x")))}, `/tasks/1/when/any/1/path`},
		"the condition, not the list":     {[]task.Spec{work("A", nil), work("C", nil), group("C", task.Equals("A", "/free", "x"))}, `/tasks/2/when/path`},
		"a cycle of conditions":           {[]task.Spec{work("A", func(s *task.Spec) { s.When = task.Equals("B", "/ok", true) }), work("B", func(s *task.Spec) { s.When = task.Equals("A", "/ok", true) })}, `/tasks/0/when`},
		"a cycle through a list":          {[]task.Spec{group("A", nil), each}, `/tasks/0/forEach/path`},
		"a cycle through an item":         {[]task.Spec{work("Group", func(s *task.Spec) { s.ForEach = &task.ForEach{Task: "A", Path: "/to", MaxItems: 2} }), each}, `/tasks/0/forEach/path`},
		"a cycle through its condition":   {[]task.Spec{work("C", nil), group("C", task.Equals("A", "/ok", true)), each}, `/tasks/1/when`},
		"a cycle of dependencies":         {[]task.Spec{work("A", func(s *task.Spec) { s.DependsOn = task.On("B") }), work("B", func(s *task.Spec) { s.DependsOn = task.On("A") })}, `/tasks/0/dependsOn`},
		"an item that another task names": {[]task.Spec{work("A", nil), group("A", nil), work("B", func(s *task.Spec) { s.DependsOn = task.On("In[2]") })}, `/tasks/2/dependsOn/0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "worker", Agent: unused}}})
			require.NoError(t, err)
			_, err = r.plan(tt.tasks, nil)
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok, err)
			require.Len(t, problems, 1, problems)
			require.Equal(t, tt.want, problems[0].Pointer, problems[0].Message)
		})
	}
}

// Conditions that read one path of a result differ in what they need of its schema: whether there is a
// value tells little, whatever the value is.
func TestComparisonsOfOnePathAreCheckedApart(t *testing.T) {
	t.Parallel()
	r := newTeam(t, member("a"))
	write := by("a", spec("Write"))
	write.OutputSchema = []byte(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	exists, equals := by("a", spec("Exists")), by("a", spec("Equals"))
	exists.When, equals.When = task.Exists("Write", "/text"), task.Equals("Write", "/text", "yes")
	_, err := r.plan([]task.Spec{write, exists}, nil)
	require.NoError(t, err)
	for _, specs := range [][]task.Spec{{write, exists, equals}, {write, equals, exists}} {
		_, err := r.plan(specs, nil)
		require.ErrorContains(t, err, `the result of "Write": /text is not bounded`)
		found, _ := errors.AsType[task.Problems](err)
		require.Len(t, found, 1, err)
		require.Equal(t, `task "Equals"`, found[0].Subject)
	}
}
