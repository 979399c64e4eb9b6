package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

func TestWarningsOfAcceptedFailures(t *testing.T) {
	t.Parallel()
	named := func(title string, on ...task.Ref) task.Spec {
		return task.Spec{Title: title, Description: "d", Assignee: "a", DependsOn: on}
	}
	continuing := func(s task.Spec) task.Spec {
		s.OnFailure = task.ContinueRun
		return s
	}
	news, judged := continuing(named("News")), continuing(named("News"))
	judged.Verify = &task.Verify{Judges: []task.Judge{{Agent: "a"}}}
	items := task.Spec{Title: "Items", Value: []byte(`{"l":["x","y"]}`), OutputSchema: []byte(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}}}`)}
	each := news
	each.ForEach = &task.ForEach{Task: "Items", Path: "/l", MaxItems: 2}
	check := named("Check", task.Ref{Task: "News"})
	check.OutputSchema = []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
	loop := func(output string) task.Spec {
		return task.Spec{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Check", "/ok", true), Output: output, OnRepeat: "continue", Tasks: []task.Spec{news, check}}}
	}
	needed, optional := task.Ref{Task: "News"}, task.Ref{Task: "News", Optional: true}
	const (
		inVain   = `task "News": no effect here: every task that depends on it needs its result, so they and the run fail if it fails: write optional: true in their dependsOn`
		noAnswer = `: the run can succeed without an answer: the failure of each task whose result is part of the answer is accepted: write onFailure: fail for one whose result you need`
	)
	for name, tt := range map[string]struct {
		specs []task.Spec
		at    string // of the warning; empty for none
		text  string
	}{
		"it is the answer":                      {[]task.Spec{news}, "/tasks/0/onFailure", `task "News"` + noAnswer},
		"it is a part of the answer":            {[]task.Spec{news, named("Report")}, "", ""},
		"both parts of the answer":              {[]task.Spec{continuing(named("Report")), news}, "/tasks/0/onFailure", `task "Report"` + noAnswer},
		"all items of the answer":               {[]task.Spec{items, each}, "/tasks/1/onFailure", `task "News"` + noAnswer},
		"its dependent needs it":                {[]task.Spec{news, named("Report", needed)}, "/tasks/0/onFailure", inVain},
		"its dependent can run without it":      {[]task.Spec{news, named("Report", optional)}, "", ""},
		"one of two can run without it":         {[]task.Spec{news, named("Report", needed), named("Other", optional)}, "", ""},
		"its dependent accepts that too":        {[]task.Spec{news, continuing(named("Report", needed))}, "/tasks/1/onFailure", `task "Report"` + noAnswer},
		"all items are needed":                  {[]task.Spec{items, each, named("Report", task.Ref{Each: "News"})}, "/tasks/1/onFailure", inVain},
		"the items that there are":              {[]task.Spec{items, each, named("Report", task.Ref{Each: "News", Optional: true})}, "", ""},
		"judges alone":                          {[]task.Spec{judged}, "/tasks/0/onFailure", `task "News"` + noAnswer},
		"judges, and a dependent that needs it": {[]task.Spec{judged, named("Report", needed)}, "/tasks/0/onFailure", inVain},
		"the rest of the round needs it":        {[]task.Spec{loop("Check")}, "/tasks/0/repeat/tasks/0/onFailure", inVain},
		"the loop has its result":               {[]task.Spec{loop("News")}, "/tasks/0/repeat/tasks/0/onFailure", inVain},
		"the whole loop accepts its failures":   {[]task.Spec{continuing(loop("News"))}, "/tasks/0/onFailure", `task "Loop"` + noAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := newTeam(t, plan.Member{Name: "a", Agent: asksModel}).plan(tt.specs, nil)
			require.NoError(t, err)
			if tt.at == "" {
				require.Empty(t, p.Warnings)
				return
			}
			require.Len(t, p.Warnings, 1)
			require.Equal(t, tt.at, p.Warnings[0].Pointer)
			require.EqualError(t, p.Warnings[0], tt.text)
		})
	}
}
