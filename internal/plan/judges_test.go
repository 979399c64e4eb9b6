package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// court is a writer, a reader, and two judges.
func court() []plan.Member {
	return []plan.Member{member("writer"), member("reader"), member("a"), member("b")}
}

// judged is a task with judges, and one that reads its result.
func judged(v task.Verify) []task.Spec {
	write := by("writer", spec("Write"))
	write.Verify = &v
	return []task.Spec{write, by("reader", spec("Read", "Write"))}
}

func judges(names ...string) (all []task.Judge) {
	for _, name := range names {
		all = append(all, task.Judge{Agent: name})
	}
	return all
}

func TestFlowOfJudges(t *testing.T) {
	t.Parallel()
	r := newTeam(t, court()...)
	v := task.Verify{Judges: judges("a", "b"), OnDissent: "reject"}
	v.Judges[1].Uses = []task.Use{{Name: "style"}}
	o := &plan.Options{Inputs: []plan.Input{{Name: "style", Text: "x"}, {Name: "brief", Text: "y"}}, Assert: asserting(t,
		"input style never derives into a", "input style never derives into writer", "input brief never reaches a", "input brief never reaches b",
		`task "Write: judge a" never derives into b`, `task "Write: judge a" never reaches writer`, `task "Write: verdict" never reaches a`,
	)}
	specs := judged(v)
	specs[0].Uses = []task.Use{{Name: "brief"}}
	p, err := r.plan(specs, o)
	require.NoError(t, err)
	require.NoError(t, p.Broken().Err())
	specs[0].Verify.OnDissent = "revise" // the writer and, through its next draft, everybody reads what a judge says
	p, err = r.plan(specs, o)
	require.NoError(t, err)
	require.ErrorContains(t, p.Broken().Err(), "input style never derives into writer")
	o.Assert = asserting(t, "task Write never reaches a", "task Write never reaches computed")
	p, err = r.plan(specs, o)
	require.NoError(t, err)
	require.ErrorContains(t, p.Broken().Err(), "task Write never reaches a", "a judge reads the drafts")
	require.NotContains(t, p.Broken().Err().Error(), "never reaches computed")
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	var shown struct {
		Tasks []struct {
			Title, Computed string
			Rounds          int
			Loop            bool
		}
	}
	require.NoError(t, json.Unmarshal(raw, &shown))
	require.Equal(t, "[{Write  2 false} {Write: judge a  2 false} {Write: judge b  2 false} {Write: verdict verdict 2 false} {Write  2 true} {Read  0 false}]", fmt.Sprint(shown.Tasks))
}

// The labels of what judges read are part of the result, and a judge who may not read it is refused.
func TestLabelsOfJudges(t *testing.T) {
	t.Parallel()
	members := court()
	for i := range members {
		if members[i].Name != "b" {
			members[i].Accepts = label.Confidential
		}
	}
	check := func(v task.Verify, change func(s *task.Spec), policy *handoff.Policy) (*plan.Plan, error) {
		r, err := newRoster(plan.Config{Agents: members, Policy: policy})
		require.NoError(t, err)
		specs := judged(v)
		change(&specs[0])
		return r.plan(specs, &plan.Options{Inputs: []plan.Input{{Name: "secret plan", Text: "x", Classification: label.Confidential}, {Name: "brief", Text: "y"}}})
	}
	_, err := check(task.Verify{Judges: judges("a", "b")}, func(s *task.Spec) { s.Uses = []task.Use{{Name: "secret plan"}} }, nil)
	var problems task.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, "/tasks/0/verify/judges/1/dependsOn/0", problems[0].Pointer)
	require.Contains(t, problems[0].Message, `"b" accepts internal`)

	v := task.Verify{Judges: judges("a")}
	v.Judges[0].Uses = []task.Use{{Name: "secret plan"}}
	p, err := check(v, func(s *task.Spec) { s.Uses = []task.Use{{Name: "brief"}} }, nil)
	require.NoError(t, err)
	labels := map[string]label.Classification{}
	for _, one := range p.Tasks {
		labels[one.Title] = one.Label
	}
	require.Equal(t, map[string]label.Classification{"Write": label.Confidential, "Write: judge a": label.Confidential, "Write: verdict": label.Confidential, "Read": label.Confidential}, labels)
	members[0].Accepts = label.Internal
	_, err = check(v, func(*task.Spec) {}, nil)
	require.ErrorContains(t, err, `"writer" accepts internal`, "the critique is confidential")
	_, err = check(task.Verify{Judges: judges("a")}, func(*task.Spec) {}, &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Computed, To: "writer", Mode: handoff.Minimal}}})
	require.ErrorContains(t, err, `/accepted of the result of "Write: verdict" is not delivered to "writer"`)
}
