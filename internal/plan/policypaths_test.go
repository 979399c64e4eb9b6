package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

const (
	closedClaim = `{"type": "object", "properties": {"remarks": {"type": "string"}, "facts": {"type": "object", "properties": {"sum": {"type": "number"}}, "additionalProperties": false}}, "additionalProperties": false}`
	openClaim   = `{"type": "object", "properties": {"remarks": {"type": "string"}}}`
)

// withSchema is a member whose results match a schema.
func withSchema(name, schema string) plan.Member {
	m := member(name)
	m.OutputSchema = []byte(schema)
	return m
}

func useAnInput(_ *plan.Config, _, read *task.Spec, o *plan.Options) {
	o.Inputs, read.Uses = []plan.Input{{Name: "claim", Text: "{}"}}, []task.Use{{Name: "claim"}}
}

// TestPathsThatNoResultCanHaveAreErrors is about a block with a typing error: it
// named nothing, so everything passed, and nothing was said.
func TestPathsThatNoResultCanHaveAreErrors(t *testing.T) {
	t.Parallel()
	const nothing = "no result of \"a\" matches "
	rule := func(r handoff.PairRule) *handoff.Policy {
		r.From, r.To = "a", "b"
		return &handoff.Policy{Rules: []handoff.PairRule{r}}
	}
	lower := func(paths ...task.Path) *handoff.Policy {
		return &handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "lower", From: "a", To: "b", Reason: "r"}, Paths: paths, LowerTo: label.Internal, UnsafeText: true}}}
	}
	block := func(paths ...task.Path) *handoff.Policy { return rule(handoff.PairRule{Block: paths}) }
	tests := []struct {
		name   string
		schema string
		policy *handoff.Policy
		want   []fault
	}{
		{"the block of the issue", closedClaim, block("/remarks", "remarkz"), []fault{{"/policy/rules/0/block/1", `rule a→b: ` + nothing + `"remarkz": did you mean "remarks"?`, task.ErrUnknown}}},
		{"a block at a pointer", closedClaim, block("/facts/smu"), []fault{{"/policy/rules/0/block/0", nothing + `"/facts/smu": did you mean "/facts/sum"?`, task.ErrUnknown}}},
		{"a block at any depth", closedClaim, block("/**/smu"), []fault{{"/policy/rules/0/block/0", nothing + `"/**/smu": did you mean "/**/sum"?`, task.ErrUnknown}}},
		{"a block beneath a text", closedClaim, block("/remarks/x"), []fault{{"/policy/rules/0/block/0", nothing + `"/remarks/x": write a path that the outputSchema`, task.ErrUnknown}}},
		{"an allow", closedClaim, rule(handoff.PairRule{Allow: []task.Path{"/remarks", "/fact/**"}}), []fault{{"/policy/rules/0/allow/1", `did you mean "/facts/**"?`, task.ErrUnknown}}},
		{"a reveal", closedClaim, rule(handoff.PairRule{Reveal: map[redact.Kind][]task.Path{redact.IBAN: {"/remark"}}}), []fault{{"/policy/rules/0/reveal/iban/0", `did you mean "/remarks"?`, task.ErrUnknown}}},
		{"fields of a translation", closedClaim, rule(handoff.PairRule{Translate: &handoff.Translation{Fields: []task.Path{"/remarks", "/sum"}}}), []fault{{"/policy/rules/0/translate/fields/1", nothing + `"/sum"`, task.ErrUnknown}}},
		{"a filter of a translation", closedClaim, rule(handoff.PairRule{Translate: &handoff.Translation{Filter: []task.Path{"remarkz"}}}), []fault{{"/policy/rules/0/translate/filter/0", `did you mean "remarks"?`, task.ErrUnknown}}},
		{"a declassifier, once", closedClaim, lower("/facts/sum", "/facts/smu"), []fault{{"/policy/declassify/0/paths/1", `"lower": ` + nothing + `"/facts/smu": did you mean "/facts/sum"?`, task.ErrUnknown}}},
		{"a rule for everybody", closedClaim, &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"remarkz"}}}}, []fault{{"/policy/rules/0/block/0", `no result of any agent matches "remarkz"`, task.ErrUnknown}}},
		{"another spelling", closedClaim, block("/REMARKS", "ＳＵＭ"), nil},
		{"an open schema", openClaim, block("/remarkz"), nil},
		{"no schema", "", block("/remarkz", "remarkz"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := member("a")
			a.Accepts, a.Produces = label.Confidential, new(label.Confidential)
			r, err := newRoster(plan.Config{Agents: []plan.Member{a, withSchema("b", closedClaim)}, Policy: tt.policy})
			require.NoError(t, err)
			made := by("a", spec("Make"))
			made.OutputSchema = []byte(tt.schema)
			if tt.schema == "" {
				made.OutputSchema = nil
			}
			if tt.policy.Declassify != nil {
				made.Classification = label.Confidential
			}
			_, err = r.plan([]task.Spec{made, by("b", spec("Read", "Make"))}, nil)
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			requireFaults(t, err, tt.want...)
		})
	}
}

// What an agent says of the context that it receives is compared with the schemas of what it reads.
func TestPathsOfAnAgentAreCompared(t *testing.T) {
	t.Parallel()
	const nothing = `agent "b": no result that it reads matches `
	blocked := func(paths ...task.Path) plan.Intake { return plan.Intake{BlockedContextFields: paths} }
	allowed := func(paths ...task.Path) plan.Intake { return plan.Intake{AllowedContextFields: paths} }
	for name, tt := range map[string]struct {
		own  plan.Intake
		edit func(c *plan.Config, made, read *task.Spec, o *plan.Options)
		want []fault
	}{
		"blocked": {own: blocked("/remarks", "remarkz"), want: []fault{{"/agents/1/blockedContextFields/1", nothing + `"remarkz": did you mean "remarks"?`, task.ErrUnknown}}},
		"allowed": {own: allowed("/facts/**", "/facts/smu"), want: []fault{{"/agents/1/allowedContextFields/1", nothing + `"/facts/smu": did you mean "/facts/sum"?`, task.ErrUnknown}}},
		"fields":  {own: plan.Intake{Translate: &handoff.Translation{Fields: []task.Path{"/remarks", "/sum"}}}, want: []fault{{"/agents/1/translate/fields/1", nothing + `"/sum": write one of`, task.ErrUnknown}}},
		"filter":  {own: plan.Intake{Translate: &handoff.Translation{Filter: []task.Path{"remarkz"}}}, want: []fault{{"/agents/1/translate/filter/0", nothing + `"remarkz"`, task.ErrUnknown}}},
		"right":   {own: blocked("/remarks", "sum")},
		"an open schema": {own: blocked("remarkz"), edit: func(_ *plan.Config, made, _ *task.Spec, _ *plan.Options) {
			made.OutputSchema = []byte(openClaim)
		}},
		"no schema":           {own: blocked("remarkz"), edit: func(_ *plan.Config, made, _ *task.Spec, _ *plan.Options) { made.OutputSchema = nil }},
		"it reads nothing":    {own: blocked("remarkz"), edit: func(_ *plan.Config, _, read *task.Spec, _ *plan.Options) { read.DependsOn = nil }},
		"it reads the memory": {own: blocked("remarkz"), edit: func(_ *plan.Config, _, read *task.Spec, _ *plan.Options) { read.MemoryScope = task.ScopeAll }},
		"it reads handoffs": {own: blocked("remarkz"), edit: func(c *plan.Config, _, _ *task.Spec, _ *plan.Options) {
			c.Edges = []handoff.Edge{{From: "c", To: "b"}}
		}},
		"it reads a message": {own: blocked("remarkz"), edit: func(_ *plan.Config, _, _ *task.Spec, o *plan.Options) {
			o.Messages = []plan.Message{{From: "user", To: "b", Text: "x"}}
		}},
		"blocks, and an input": {own: blocked("remarkz"), edit: useAnInput},
		"allows, and an input": {own: allowed("/remarks", "/remarkz"), edit: useAnInput, want: []fault{{"/agents/1/allowedContextFields/1", nothing, task.ErrUnknown}}},
		"another agent has it, by a default": {own: blocked("/remarkz"), edit: func(c *plan.Config, _, _ *task.Spec, _ *plan.Options) {
			c.Agents[2].Intake = blocked("/remarkz")
		}},
		"a default that nobody can have, once": {own: blocked("/remarkz"), edit: func(c *plan.Config, _, read *task.Spec, _ *plan.Options) {
			c.Agents[0].Intake = blocked("/remarkz")
		}, want: []fault{{"/agents/1/blockedContextFields/0", nothing, task.ErrUnknown}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := plan.Config{Agents: []plan.Member{member("a"), withSchema("b", closedClaim), member("c")}}
			c.Agents[1].Intake = tt.own
			made, read, o := by("a", spec("Make")), by("b", spec("Read", "Make")), plan.Options{}
			made.OutputSchema = []byte(closedClaim)
			if tt.edit != nil {
				tt.edit(&c, &made, &read, &o)
			}
			r, err := newRoster(c)
			require.NoError(t, err)
			_, err = r.plan([]task.Spec{made, read, by("a", spec("Free")), by("c", spec("Last", "Free"))}, &o)
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			requireFaults(t, err, tt.want...)
		})
	}
}

// A rule for several producers is wrong only if none of them can have the path,
// and a needToKnow only if no dependency can.
func TestPathsMustMatchEverySchema(t *testing.T) {
	t.Parallel()
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Anyone, To: "b", Block: []task.Path{"remarks", "/sum"}}}}
	r, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), member("b"), member("c")}, Policy: policy})
	require.NoError(t, err)
	makes := func(name, title, schema string) task.Spec {
		s := by(name, spec(title))
		s.OutputSchema = []byte(schema)
		return s
	}
	const sums = `{"type": "object", "properties": {"sum": {"type": "number"}}, "additionalProperties": false}`
	claim, sum := makes("a", "Claim", closedClaim), makes("c", "Sum", sums)
	read := by("b", spec("Read", "Claim", "Sum"))
	read.NeedToKnow = []task.Path{"/facts/**", "/sum"}
	p, err := r.plan([]task.Spec{claim, sum, read}, nil)
	require.NoError(t, err)
	require.Empty(t, p.Warnings)

	read.NeedToKnow = []task.Path{"/facts/**", "/smu"}
	_, err = r.plan([]task.Spec{claim, sum, read}, nil)
	requireFaults(t, err,
		fault{"/tasks/2/needToKnow/1", `no result that it depends on matches "/smu": did you mean "/sum"?`, task.ErrUnknown},
		fault{"/tasks/2/dependsOn/1", `nothing of the result of "Sum" can be delivered`, task.ErrUnknown})

	again := makes("a", "Again", sums) // another task of the same producer has it
	exact, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), member("b")}, Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Block: []task.Path{"/sum"}}}}})
	require.NoError(t, err)
	_, err = exact.plan([]task.Spec{claim, again, by("b", spec("Read", "Claim"))}, nil)
	require.NoError(t, err)
}

// What only may be a mistake is a warning: an open schema may have more members
// than it names, and another input may have what this one lacks.
func TestPathsThatNoSchemaNamesAreWarnings(t *testing.T) {
	t.Parallel()
	rules := func(from string, block ...task.Path) *handoff.Policy {
		return &handoff.Policy{Rules: []handoff.PairRule{{From: from, To: "b", Block: block}}}
	}
	tests := []struct {
		name, schema, input string
		policy              *handoff.Policy
		want                []string
	}{
		{"an open schema", openClaim, "{}", rules("a", "/remarkz"), []string{`rule a→b: no outputSchema of "a" names "/remarkz": did you mean "/remarks"?`}},
		{"an open schema that names it", openClaim, "{}", rules("a", "/Remarks", "remarks"), nil},
		{"a name that is far from any", openClaim, "{}", rules("a", "password"), []string{`rule a→b: no outputSchema of "a" names "password": name it under "properties", or close the schema with "additionalProperties": false`}},
		{"no schema", "", "{}", rules("a", "remarkz"), nil},
		{"an input", "", `{"remarks": "x"}`, rules(handoff.User, "/remarkz"), []string{`rule user→b: no value matches "/remarkz": did you mean "/remarks"?`}},
		{"an input that is a list", "", `[{"remarks": "x"}]`, rules(handoff.User, "/*/remarks", "remarks"), nil},
		{"an input that is a text", "", `call me`, rules(handoff.User, "remarkz"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := newRoster(plan.Config{Agents: []plan.Member{member("a"), member("b")}, Policy: tt.policy})
			require.NoError(t, err)
			made, read := by("a", spec("Make")), by("b", spec("Read", "Make"))
			if tt.schema != "" {
				made.OutputSchema = []byte(tt.schema)
			}
			read.Uses = []task.Use{{Name: "claim"}}
			if tt.input == "call me" {
				read.Uses = nil // a text is delivered whole or not at all, which is an error of its own
			}
			p, err := r.plan([]task.Spec{made, read}, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: tt.input}}})
			require.NoError(t, err)
			var said []string
			for _, w := range p.Warnings {
				if w.Subject == "rule a→b" || w.Subject == "rule user→b" {
					if w.Pointer == "/policy/rules/0/block/0" {
						said = append(said, w.Error())
					}
				}
			}
			require.Equal(t, tt.want, said)
		})
	}
}
