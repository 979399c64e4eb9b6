package export

import (
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/redact"
)

// patternsOf returns the own patterns of each policy that a run has had, whoever may see the policies. The plan
// has that of a run of an earlier version, which did not store it; nil is no plan.
func patternsOf(stored []*record.Policy, p *engine.Plan) ([]redact.Pattern, error) {
	var had []*handoff.Policy
	if p != nil && p.Roster().Config.Policy != nil {
		had = append(had, p.Roster().Config.Policy)
	}
	for _, one := range stored {
		policy, err := one.Policy()
		if err != nil {
			return nil, err
		}
		had = append(had, policy)
	}
	return patterns(had), nil
}

// patterns returns the patterns of policies. Those with one name find what each of them finds.
func patterns(had []*handoff.Policy) (all []redact.Pattern) {
	var met []redact.Pattern
	add := func(list []redact.Pattern) {
		for _, one := range list {
			if slices.Contains(met, one) {
				continue
			}
			met = append(met, one)
			i := slices.IndexFunc(all, func(of redact.Pattern) bool { return of.Name == one.Name })
			if i < 0 {
				all = append(all, one)
			} else {
				all[i].Regexp = "(?:" + all[i].Regexp + ")|(?:" + one.Regexp + ")"
			}
		}
	}
	for _, policy := range had {
		add(policy.Redact.Patterns)
		for i := range policy.Rules {
			add(policy.Rules[i].Redact.Patterns)
		}
	}
	return all
}
