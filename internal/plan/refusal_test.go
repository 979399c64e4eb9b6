package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
)

func TestClearanceRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		give  []task.Spec
		where string
		why   string
	}{
		{"by its own classification", []task.Spec{{Title: "t", Description: "x", Assignee: "low", Classification: label.Confidential}},
			"/tasks/0/classification", `"low" accepts internal (confidential by its own classification)`},
		{"by an input", []task.Spec{{Title: "t", Description: "x", Assignee: "low", Uses: []task.Use{{Name: "claim"}}}},
			"/tasks/0/uses/0", `(confidential by input "claim")`},
		{"through a chain", []task.Spec{
			{Title: "read", Description: "x", Assignee: "high", Uses: []task.Use{{Name: "claim"}}},
			{Title: "sum up", Description: "x", Assignee: "high", DependsOn: task.On("read")},
			{Title: "write", Description: "x", Assignee: "low", DependsOn: task.On("sum up")},
		}, "/tasks/2/dependsOn/0", `(through "sum up", through "read", confidential by input "claim")`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := &plan.Options{Inputs: []plan.Input{{Name: "claim", Classification: label.Confidential}}}
			_, err := newTeam(t, member("low"), cleared("high", label.Confidential)).plan(tt.give, o)
			requireFaults(t, err, fault{tt.where, tt.why, nil})
			requireRule(t, err, gate.RuleClearance)
			_, err = newTeam(t, cleared("low", label.Confidential), cleared("high", label.Confidential)).plan(tt.give, o)
			require.NoError(t, err)
		})
	}
}

func TestProducesRule(t *testing.T) {
	t.Parallel()
	m := cleared("a", label.Confidential)
	m.Produces = new(label.Internal)
	s := spec("a")
	s.Uses = []task.Use{{Name: "claim"}}
	o := &plan.Options{Inputs: []plan.Input{{Name: "claim", Classification: label.Confidential}}}
	_, err := newTeam(t, m).plan([]task.Spec{s}, o)
	requireFaults(t, err, fault{"/tasks/0/uses/0", `"a" produces at most internal (confidential by input "claim")`, nil})
	requireRule(t, err, gate.RuleProduces)
	o.Inputs[0].Classification = label.Internal
	_, err = newTeam(t, m).plan([]task.Spec{s}, o)
	require.NoError(t, err)
}

// Secret flows only by a rule for the exact pair, that states a mode.
//
// Requirement: G15.
func TestSecretIsWithheld(t *testing.T) {
	t.Parallel()
	r := newTeam(t, cleared("a", label.Secret), cleared("b", label.Secret))
	user := &plan.Options{UserAccepts: new(label.Secret), Inputs: []plan.Input{{Name: "key", Classification: label.Secret}}}

	from := spec("a")
	from.Classification = label.Secret
	_, err := r.plan([]task.Spec{from, spec("b", "a")}, user)
	requireFaults(t, err, fault{"/tasks/1/dependsOn/0", "exact pair of agents that states a mode: classify it confidential", nil})
	requireRule(t, err, gate.RuleSecret)

	use := spec("a")
	use.Uses = []task.Use{{Name: "key"}}
	_, err = r.plan([]task.Spec{use}, user)
	requireFaults(t, err, fault{"/tasks/0/uses/0", "exact pair", nil})
	requireRule(t, err, gate.RuleSecret)

	optional := spec("b")
	optional.DependsOn = []task.Ref{{Task: "a", Optional: true}}
	p, err := r.plan([]task.Spec{from, optional}, user)
	require.NoError(t, err)
	require.Equal(t, gate.ReasonRule, p.Tasks[1].Reads[0].Withheld)
	require.Equal(t, label.Internal, p.Tasks[1].Label, "what is withheld raises nothing")
}

func TestSessionsAreSeparate(t *testing.T) {
	t.Parallel()
	m := member("a")
	m.MaxSession = time.Minute
	s := spec("a")
	s.Timeout = time.Minute + 1
	_, err := newTeam(t, m).plan([]task.Spec{s}, nil)
	requireFaults(t, err, fault{"/tasks/0/timeoutMs", "lower timeoutMs, or raise maxSessionMs", nil})
	requireRule(t, err, gate.RuleSession)
	s.Timeout = time.Minute
	_, err = newTeam(t, m).plan([]task.Spec{s}, nil)
	require.NoError(t, err)
}

func TestTagRule(t *testing.T) {
	t.Parallel()
	m := member("a")
	m.OutputTags = []string{"draft"}
	s := spec("a")
	s.RequiredTags = []string{"draft", "final"}
	_, err := newTeam(t, m).plan([]task.Spec{s}, nil)
	requireFaults(t, err, fault{"/tasks/0/requiredTags", `"a" does not declare the required tags final`, nil})
	requireRule(t, err, gate.RuleTags)
	m.OutputTags = []string{"draft", "final"}
	_, err = newTeam(t, m).plan([]task.Spec{s}, nil)
	require.NoError(t, err)
}

// Only a program can tag an answer in text: an agent written in Go, or what asks a person. The answers of others carry what their schema has a
// member for.
func TestTagsThatNoAnswerCarries(t *testing.T) {
	t.Parallel()
	inGo, human := member("a"), plan.Member{Name: "a", Agent: person.New(unused)}
	const text, closed = `the task has no outputSchema, and an answer in text has no tags`, `{"type": "object", "properties": {"draft": {"type": "boolean"}}, "additionalProperties": false}`
	for name, tt := range map[string]struct {
		by     plan.Member
		schema string
		want   string // with its hint
		tag    int
	}{
		"text":            {by: clerk("a"), want: text + `: write an outputSchema with the property "draft"`},
		"text of Go":      {by: inGo},
		"text of people":  {by: human},
		"another member":  {by: clerk("a"), schema: closed, tag: 1, want: `no answer carries the tag "final": the outputSchema allows no member of that name: add the property "final" to the outputSchema`},
		"no object":       {by: clerk("a"), schema: `{"type": "array", "items": {"type": "string"}}`, want: `no answer carries the tag "draft"`},
		"another of Go":   {by: inGo, schema: closed},
		"optional member": {by: clerk("a"), schema: `{"type": "object", "properties": {"draft": {"type": "boolean"}, "final": {"type": "boolean"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.by.OutputTags = []string{"draft", "final"}
			s := spec("a")
			s.RequiredTags = []string{"draft", "final"}
			if tt.schema != "" {
				s.OutputSchema = []byte(tt.schema)
			}
			_, err := newTeam(t, tt.by).plan([]task.Spec{s}, nil)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			requireFaults(t, err, fault{fmt.Sprintf("/tasks/0/requiredTags/%d", tt.tag), tt.want, nil})
			requireRule(t, err, gate.RuleTags)
		})
	}
}

// A refused answer names the rule that would withhold it.
//
// Requirement: G47.
func TestRuleThatWithholdsTheAnswerIsNamed(t *testing.T) {
	t.Parallel()
	for _, rule := range []handoff.PairRule{{Mode: handoff.Minimal}, {Block: []task.Path{"h"}}, {Ceiling: new(label.Public)}} {
		rule.ID, rule.From, rule.To, rule.Origin = "quiet", "a", handoff.User, provenance.Position{File: "team.yaml", Line: 7}
		r := governed(t, &handoff.Policy{Rules: []handoff.PairRule{rule}}, member("a"))
		_, err := r.plan([]task.Spec{by("a", spec("made"))}, nil)
		requireFaults(t, err, fault{"/tasks/0", "would be withheld from you by rule quiet (team.yaml:7): let another task make an answer that you may see, or change the rule", nil})
	}
}
