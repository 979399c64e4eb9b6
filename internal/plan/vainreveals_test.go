package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// TestRevealsWithoutEffect checks the warnings about reveals of a task and of a rule that change nothing.
func TestRevealsWithoutEffect(t *testing.T) {
	t.Parallel()
	type reveal = map[redact.Kind][]task.Path
	rule := func(mode handoff.Mode, allow, block []task.Path, shows reveal) handoff.PairRule {
		return handoff.PairRule{From: "user", To: "a", Mode: mode, Allow: allow, Block: block, Reveal: shows}
	}
	iban := []task.Path{"/iban"}
	for name, tt := range map[string]struct {
		rule handoff.PairRule
		need []task.Path
		uses map[string][]task.Path
		want []string
	}{
		"works":          {rule: rule(handoff.Full, nil, nil, nil), uses: map[string][]task.Path{"iban": iban}},
		"whole":          {need: iban, uses: map[string][]task.Path{"iban": {""}}},
		"not needed":     {need: []task.Path{"/name"}, uses: map[string][]task.Path{"iban": iban}, want: []string{`/tasks/0/uses/0/reveal/iban/0: reveal of iban at "/iban" has no effect: nothing there is delivered: reveal a path that is, or deliver the path too, by need, allow and block`}},
		"not allowed":    {rule: rule(handoff.Scoped, []task.Path{"/name"}, nil, nil), uses: map[string][]task.Path{"iban": iban}, want: []string{`/tasks/0/uses/0/reveal/iban/0: reveal of iban at "/iban" has no effect: nothing there is delivered`}},
		"blocked":        {rule: rule(handoff.Full, nil, iban, nil), uses: map[string][]task.Path{"iban": iban}, want: []string{`nothing there is delivered`}},
		"minimal":        {rule: rule(handoff.Minimal, nil, nil, nil), uses: map[string][]task.Path{"iban": iban}, want: []string{`only a heading and a status are delivered: remove it, or write mode: full or mode: scoped`}},
		"not redacted":   {uses: map[string][]task.Path{"ip": {"/host"}}, want: []string{`/tasks/0/uses/0/reveal/ip/0: reveal of ip at "/host" has no effect: it is only redacted if a policy names the kind: remove it, or write redact: {kinds: [ip]} in the policy`}},
		"revealed twice": {rule: rule(handoff.Full, nil, nil, reveal{redact.IBAN: iban}), uses: map[string][]task.Path{"iban": iban}, want: []string{`a rule of the policy reveals it already: remove it here`}},
		"rule":           {rule: rule(handoff.Full, nil, nil, reveal{redact.IBAN: iban})},
		"blocking rule":  {rule: rule(handoff.Full, nil, iban, reveal{redact.IBAN: iban}), want: []string{`/policy/rules/0/reveal/iban/0: reveal of iban at "/iban" has no effect: nothing there is delivered`}},
		"minimal rule":   {rule: rule(handoff.Minimal, nil, nil, reveal{redact.IBAN: iban}), want: []string{`/policy/rules/0/reveal/iban/0: reveal of iban at "/iban" has no effect: only a heading and a status are delivered`}},
		"rule of an IP":  {rule: rule(handoff.Full, nil, nil, reveal{redact.IP: {"/host"}}), want: []string{`/policy/rules/0/reveal/ip/0: reveal of ip at "/host" has no effect: it is only redacted if a policy names the kind`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := plan.Config{Agents: []plan.Member{member("a")}}
			if tt.rule.From != "" {
				cfg.Policy = &handoff.Policy{Rules: []handoff.PairRule{tt.rule}}
			}
			r, err := newRoster(cfg)
			require.NoError(t, err)
			s := spec("a")
			s.Uses = []task.Use{{Name: "claim", Need: tt.need, Reveal: tt.uses}}
			p, err := r.plan([]task.Spec{s}, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: `{"name": "Ann", "iban": "DE89 3704", "host": "10.0.0.1"}`}}})
			require.NoError(t, err)
			require.Len(t, p.Warnings, len(tt.want), "%v", p.Warnings)
			for k, w := range p.Warnings {
				require.Contains(t, w.Pointer+": "+w.Message+": "+w.Hint, tt.want[k])
			}
		})
	}
}
