package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// anyObject is a schema of results with parts.
var anyObject = json.RawMessage(`{"type":"object"}`)

// intakeRun returns the text of the prompt of a reader of one result, or the error of its task.
func intakeRun(t *testing.T, p *handoff.Policy, mode handoff.Mode, in team.Intake, ref task.Ref) (string, error) {
	t.Helper()
	var got string
	tm, err := team.New(team.Config{Policy: p, Agents: []team.Member{
		{Name: "maker", Agent: answering(`{"a":1,"b":2,"c":{"d":3}}`), OutputSchema: anyObject},
		{Name: "reader", Handoff: mode, Intake: in, Agent: team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			got = p.Text()
			return agent.Reply{Text: "done"}, nil
		})},
	}})
	if err != nil {
		return "", err
	}
	ref.Task, ref.As = "Make", task.Structured
	_, err = tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Make", Description: "Make it.", Assignee: "maker"},
		{Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: []task.Ref{ref}},
	}, nil)
	return got, err
}

// What an agent allows, blocks and translates composes with the policy: the list is its default and
// counts where no rule states a mode; blocks and translations always count.
func TestIntakeComposesWithRules(t *testing.T) {
	t.Parallel()
	rules := func(r ...handoff.PairRule) *handoff.Policy { return &handoff.Policy{Rules: r} }
	exact := handoff.PairRule{From: "maker", To: "reader", Mode: handoff.Full}
	onlyB := handoff.PairRule{From: handoff.Anyone, To: "reader", Allow: []task.Path{"/b"}}
	tests := []struct {
		name   string
		policy *handoff.Policy
		mode   handoff.Mode
		give   team.Intake
		ref    task.Ref
		want   string
	}{
		{name: "nothing", want: `{"a":1,"b":2,"c":{"d":3}}`},
		{name: "list", give: team.Intake{AllowedContextFields: []task.Path{"/a"}}, want: `{"a":1}`},
		{name: "list and its mode", mode: handoff.Scoped, give: team.Intake{AllowedContextFields: []task.Path{"/c/d"}}, want: `{"c":{"d":3}}`},
		{name: "list under an exact rule", policy: rules(exact), give: team.Intake{AllowedContextFields: []task.Path{"/a"}}, want: `{"a":1,"b":2,"c":{"d":3}}`},
		{name: "list under a wildcard rule", policy: rules(onlyB), give: team.Intake{AllowedContextFields: []task.Path{"/a"}}, want: `{"b":2}`},
		{name: "list and need", give: team.Intake{AllowedContextFields: []task.Path{"/a", "/b"}}, ref: task.Ref{Need: []task.Path{"/b", "/c/d"}}, want: `{"b":2}`},
		{name: "list under a scoped default", policy: &handoff.Policy{Default: handoff.Scoped}, give: team.Intake{AllowedContextFields: []task.Path{"/a"}}, ref: task.Ref{Need: []task.Path{"/a", "/b"}}, want: `{"a":1}`},
		{name: "list under a minimal default", policy: &handoff.Policy{Default: handoff.Minimal}, give: team.Intake{AllowedContextFields: []task.Path{"/a"}}, want: "[withheld: minimal; status completed]"},
		{name: "block", give: team.Intake{BlockedContextFields: []task.Path{"b", "/c"}}, want: `{"a":1}`},
		{name: "block under an exact rule", policy: rules(exact), give: team.Intake{BlockedContextFields: []task.Path{"d"}}, want: `{"a":1,"b":2,"c":{}}`},
		{name: "block under a list of a rule", policy: rules(onlyB), give: team.Intake{BlockedContextFields: []task.Path{"/b"}}, want: "error"},
		{name: "fields", policy: rules(exact), give: team.Intake{Translate: &handoff.Translation{Fields: []task.Path{"/a"}}}, want: `{"a":1}`},
		{name: "filter beside a rule", policy: rules(onlyB), give: team.Intake{Translate: &handoff.Translation{Filter: []task.Path{"/a"}}}, want: `{"b":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := intakeRun(t, tt.policy, tt.mode, tt.give, tt.ref)
			if tt.want == "error" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Contains(t, got, "\n"+tt.want)
		})
	}
}

// A text has no parts, so an agent with blocked fields gets no text.
func TestIntakeBlocksTexts(t *testing.T) {
	t.Parallel()
	in := team.Intake{BlockedContextFields: []task.Path{"notes"}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "maker", Agent: answering("a text")}, {Name: "reader", Agent: answering("x"), Intake: in}}})
	require.NoError(t, err)
	_, err = tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Make", Description: "Make it.", Assignee: "maker"}, {Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: []task.Ref{{Task: "Make"}}},
	}, nil)
	require.ErrorContains(t, err, "a text is delivered whole or not at all")
}

// contextTokens returns the sizes of what a reader with a limit gets of texts of these sizes.
func contextTokens(t *testing.T, limit int, cut bool, inputs ...int) (sizes []int, err error) {
	t.Helper()
	tm, err := team.New(team.Config{Agents: []team.Member{{
		Name: "reader", Intake: team.Intake{MaxContextTokens: limit}, Agent: team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			for _, s := range p.Sections() {
				sizes = append(sizes, len(s.Text)+len(s.JSON))
			}
			return agent.Reply{Text: "done"}, nil
		})}}})
	require.NoError(t, err)
	spec, o := task.Spec{Title: "Read", Description: strings.Repeat("Read it. ", 100), Assignee: "reader"}, &team.RunOptions{}
	for i, n := range inputs {
		name := string(rune('a' + i))
		o.Inputs = append(o.Inputs, team.Input{Name: name, Text: strings.Repeat("x", n), Cut: cut})
		spec.Uses = append(spec.Uses, task.Use{Name: name})
	}
	_, err = tm.RunTasks(t.Context(), []task.Spec{spec}, o)
	return sizes, err
}

// The limit is on all pieces together, with four bytes counted as one token; the instructions do not
// count. Longer texts are cut to one common length.
func TestMaxContextTokensCutsAllTextsToOneLength(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		limit  int
		inputs []int
		want   []int
	}{
		{"none", 0, []int{500, 500}, []int{500, 500}},
		{"exactly", 100, []int{200, 200}, []int{200, 200}},
		{"one byte more", 100, []int{200, 201}, []int{200, 200}},
		{"long ones only", 100, []int{20, 1000, 1000}, []int{20, 190, 190}},
		{"one piece", 10, []int{1000}, []int{40}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := contextTokens(t, tt.limit, true, tt.inputs...)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// Inputs are known before the run, so one that does not fit, or several that do not fit together, are
// an error that says what to write.
func TestMaxContextTokensRefusesInputsBeforeTheRun(t *testing.T) {
	t.Parallel()
	_, err := contextTokens(t, 100, false, 401)
	require.ErrorContains(t, err, `input "a" has 401 bytes, and at most 400 bytes of it reach "reader"`)
	_, err = contextTokens(t, 100, false, 300, 300)
	found, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	require.Contains(t, found[0].Hint, "raise maxContextTokens")
}

// A structured value is never cut: one that is larger than the limit is withheld, and several that do
// not fit together fail the task.
func TestMaxContextTokensCutsNoStructuredValue(t *testing.T) {
	t.Parallel()
	_, err := intakeRun(t, nil, "", team.Intake{MaxContextTokens: 2}, task.Ref{})
	require.ErrorContains(t, err, "its structured value has more than 8 bytes")
	got, err := intakeRun(t, nil, "", team.Intake{MaxContextTokens: 7}, task.Ref{})
	require.NoError(t, err)
	require.Contains(t, got, `{"a":1,"b":2,"c":{"d":3}}`)
}
