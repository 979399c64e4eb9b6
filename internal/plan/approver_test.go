package plan_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// The person who approves calls reads what the agent passes to the tool.
func TestAssertionsKnowApprovers(t *testing.T) {
	t.Parallel()
	pay := newTool(t, "pay", tool.Options{Approve: "editor"})
	r := newTeam(t, plan.Member{Name: "clerk", Agent: asksModel, Tools: []*tool.Tool{pay}, AllowUntrusted: []string{"pay"}}, plan.Member{Name: "editor", Agent: person.New(unused)})
	refund := by("clerk", spec("refund"))
	refund.Uses = []task.Use{{Name: "claim"}}
	for text, holds := range map[string]bool{
		"input claim never reaches editor":        false,
		"input claim never derives into tool:pay": false,
		"input other never derives into editor":   true,
	} {
		tasks := []task.Spec{refund, by("editor", spec("note"))}
		p, err := r.plan(tasks, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}, {Name: "other", Text: "y"}}, Assert: asserting(t, text)})
		require.NoError(t, err)
		require.Equal(t, holds, p.Broken().Err() == nil, "%s: %v", text, p.Broken().Err())
	}
}

// What could never be approved, or is not asked about, is an error of the check.
func TestApprovalsOfDeclassifiersAreChecked(t *testing.T) {
	t.Parallel()
	entry := func(f func(*handoff.Declassifier)) func(*plan.Config) {
		return func(c *plan.Config) { f(&c.Policy.Declassify[0]) }
	}
	for _, tt := range []struct {
		name   string
		change func(*plan.Config)
		graph  func([]task.Spec)
		want   string
	}{
		{"unknown", entry(func(d *handoff.Declassifier) { d.Approve = "edtor" }), nil, `"score-to-author": unknown approver "edtor"`},
		{"no person", entry(func(d *handoff.Declassifier) { d.Approve = "scorer" }), nil, `agent "scorer" cannot approve anything: it is not a person`},
		{"the reader", entry(func(d *handoff.Declassifier) { d.To = "editor" }), nil, `"editor" cannot approve what "editor" itself is to get`},
		{"the user", entry(func(d *handoff.Declassifier) { d.To = "user" }), nil, `approve works only if "to" is an agent; "user" is not one`},
		{"too low", func(c *plan.Config) { c.Agents[2].Accepts = label.Internal }, nil, `"score-to-author": what "scorer" makes is at least confidential, and "editor", who has to approve what it lowers, accepts at most internal`},
		{"withheld", func(c *plan.Config) {
			c.Policy.Rules = []handoff.PairRule{{From: "scorer", To: "editor", Mode: handoff.Minimal}}
		}, nil, `a rule of the policy delivers it nothing of agent "scorer"`},
		{"a condition", nil, func(s []task.Spec) { s[1].When = task.AtLeast("score", "/score", 5) }, `the condition or the list of task "write" reads what it lowers`},
		{"a list in an input", entry(func(d *handoff.Declassifier) { d.From, d.Paths, d.UnsafeText = "user", []task.Path{"/*/score"}, true }), func(s []task.Spec) {
			s[2].ForEach = &task.ForEach{Input: "claim", As: "c", MaxItems: 3}
		}, `the condition or the list of task "other" reads what it lowers`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			specs, cfg := scored(), scoring()
			if tt.graph != nil {
				tt.graph(specs)
			}
			if tt.change != nil {
				tt.change(&cfg)
			}
			r, err := newRoster(cfg)
			if err == nil {
				_, err = r.plan(specs, withClaim(`[{"score":1}]`))
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// The table shows the person as a reader of what would be lowered, and of nothing else.
func TestAssertionsKnowWhoApprovesADeclassifier(t *testing.T) {
	t.Parallel()
	for text, holds := range map[string]bool{
		"score never reaches editor":       false,
		"why never reaches editor":         true,
		"input claim never reaches editor": true,
	} {
		o := withClaim("claim")
		o.Assert = asserting(t, text)
		p, err := newTeamOf(t, scoring()).plan(scored(), o)
		require.NoError(t, err)
		require.Equal(t, holds, p.Broken().Err() == nil, "%s: %v", text, p.Broken().Err())
	}
}

// scoring is a team whose editor approves what a declassifier delivers of a score.
func scoring() plan.Config {
	return plan.Config{
		Agents: []plan.Member{cleared("scorer", label.Confidential), member("author"), {Name: "editor", Accepts: label.Confidential, Agent: person.New(unused)}},
		Policy: &handoff.Policy{Default: handoff.Full, Declassify: []handoff.Declassifier{{
			Entry: handoff.Entry{Name: "score-to-author", From: "scorer", To: "author", Reason: "a number"}, Paths: []task.Path{"/score"}, LowerTo: label.Internal, Approve: "editor",
		}}},
	}
}

// scored are the tasks of the team, the second of which reads the score.
func scored() []task.Spec {
	score := by("scorer", spec("score"))
	score.Uses = []task.Use{{Name: "claim"}}
	score.OutputSchema = []byte(`{"type":"object","properties":{"score":{"type":"integer","minimum":0,"maximum":9},"why":{"type":"string"}},"required":["score","why"]}`)
	return []task.Spec{score, by("author", spec("write", "score")), by("author", spec("other"))}
}

// withClaim are options with a confidential input.
func withClaim(text string) *plan.Options {
	return &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: text, Classification: label.Confidential}}, UserAccepts: new(label.Secret)}
}

func TestApproversAreChecked(t *testing.T) {
	t.Parallel()
	ann := plan.Member{Name: "ann", Agent: person.New(unused)}
	for _, tt := range []struct {
		approve string
		members func(*tool.Tool) []plan.Member
		want    string
	}{
		{"anna", func(f *tool.Tool) []plan.Member { return []plan.Member{clerk("clerk", f), ann} }, `unknown approver "anna": did you mean "ann"?`},
		{"clerk", func(f *tool.Tool) []plan.Member { return []plan.Member{clerk("clerk", f), ann} }, `agent "clerk" cannot approve anything: it is not a person`},
		{"ann", func(f *tool.Tool) []plan.Member {
			return []plan.Member{clerk("clerk", f), ann, {Name: "shell", Agent: &agent.Process{Command: "true", Confine: new(false)}}}
		}, `agent "shell" has commands that are not confined, and such a command could answer in place of "ann"`},
	} {
		pay := newTool(t, "pay", tool.Options{Approve: tt.approve})
		_, err := newRoster(plan.Config{Agents: tt.members(pay)})
		require.ErrorContains(t, err, tt.want)
	}
	pay, mail := newTool(t, "pay", tool.Options{Approve: "anna"}), newTool(t, "mail", tool.Options{Approve: "anna"})
	_, err := newRoster(plan.Config{Agents: []plan.Member{clerk("clerk", pay, mail), ann}})
	found, _ := errors.AsType[task.Problems](err)
	require.Len(t, found, 1, "each person is reported once")
	require.Equal(t, []string{"/agents/0/tools/0/approve", `tools "pay", "mail"`}, []string{found[0].Pointer, found[0].Subject})
	secret := newTool(t, "pay", tool.Options{Approve: "ann", Accepts: label.Confidential})
	c := clerk("clerk", secret)
	c.Accepts = label.Confidential
	s := by("clerk", spec("errand"))
	s.Classification = label.Confidential
	_, err = newTeam(t, c, ann).plan([]task.Spec{s}, nil)
	require.ErrorContains(t, err, `"ann", who has to approve calls of tool "pay", accepts at most internal`)
}

// A program that makes calls must be confined, or be said not to be, where a person approves something.
//
// Requirement: G56.
func TestProgramsAreConfinedWherePeopleApprove(t *testing.T) {
	t.Parallel()
	const problem = `mcp server "pages": it is not confined, and such a program could answer in place of "editor": write confine: true, or confine: false with reason: "WHY", which plans show`
	approving := map[string]func(*plan.Config){
		"nothing": func(*plan.Config) {},
		"a tool": func(c *plan.Config) {
			c.Agents[1].Tools = []*tool.Tool{newTool(t, "pay", tool.Options{Approve: "editor"})}
		},
		"the plan": func(c *plan.Config) { c.Coordinator = &plan.Coordinator{Agent: asksModel, Approve: "editor"} },
		"a declassifier": func(c *plan.Config) {
			c.Policy = &handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "score", From: "clerk", To: "reader", Reason: "It is a number."}, Paths: []task.Path{"/score"}, UnsafeText: true, LowerTo: label.Internal, Approve: "editor"}}}
		},
	}
	for what, approve := range approving {
		for _, tt := range []struct {
			program *tool.Program
			refused bool
		}{
			{nil, false},
			{&tool.Program{Name: `mcp server "pages"`}, true},
			{&tool.Program{Name: `mcp server "pages"`, Reason: "It opens the browser."}, false},
			{&tool.Program{Name: `mcp server "pages"`, Confined: true}, false},
		} {
			find, read := newTool(t, "pages__find", tool.Options{}), newTool(t, "pages__read", tool.Options{})
			find.Program, read.Program = tt.program, tt.program
			c := plan.Config{Agents: []plan.Member{
				{Name: "reader", Agent: asksModel, Tools: []*tool.Tool{find, read}},
				{Name: "clerk", Agent: asksModel},
				{Name: "editor", Agent: person.New(unused)},
			}}
			approve(&c)
			_, err := newRoster(c)
			if !tt.refused || what == "nothing" {
				require.NoError(t, err, "%s: %+v", what, tt.program)
				continue
			}
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok, "%s: %v", what, err)
			require.Len(t, problems, 1, "the server is reported once")
			require.Equal(t, "/agents/0/tools/0/mcp", problems[0].Pointer)
			require.EqualError(t, problems[0], problem)
			require.ErrorIs(t, err, plan.ErrUnconfined)
		}
	}
}
