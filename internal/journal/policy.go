package journal

import (
	"context"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/record"
)

// PolicyOf returns the current or last policy of a run, the last of [PoliciesOf]. That of a program may have no
// text, and then Policy and Compile return [record.ErrPolicyUnwritten]; its digest is known.
func PolicyOf(ctx context.Context, j *Journal, run string) (*record.Policy, error) {
	had, err := PoliciesOf(ctx, j, run)
	if err != nil {
		return nil, err
	}
	return had[len(had)-1], nil
}

// A HeldPolicy is a policy that a run has had, and how it came to hold.
type HeldPolicy struct {
	*record.Policy
	Time   time.Time // from then on
	By     string    // who sent it; empty for one that a process of the run began with
	Reason string
}

// PoliciesOf returns each policy that a run has had; see [HeldPolicies].
func PoliciesOf(ctx context.Context, j *Journal, run string) (had []*record.Policy, err error) {
	held, err := HeldPolicies(ctx, j, run)
	for i := range held {
		had = append(had, held[i].Policy)
	}
	return had, err
}

// HeldPolicies returns each policy that a run has had: those that its processes began with, then those that
// commands put in place, the oldest first. In place of that of a run of an earlier
// version, it has an empty policy. [record.Policy.Compile] returns the rules for each pair.
func HeldPolicies(ctx context.Context, j *Journal, run string) (held []HeldPolicy, err error) {
	h, err := j.LoadRun(ctx, run)
	if err != nil {
		return nil, err
	}
	for i := range h.Begins {
		p := h.Begins[i].Policy
		if p == nil {
			if p, err = emptyPolicy(&h.Begins[i]); err != nil {
				return nil, err
			}
		}
		held = append(held, HeldPolicy{Policy: p, Time: h.Begins[i].Time})
	}
	for i := range h.Log {
		if c := h.Log[i].Command; c != nil && c.Policy != nil {
			held = append(held, HeldPolicy{c.Policy, c.Time, c.By, c.Reason})
		}
	}
	if len(held) == 0 {
		p, err := emptyPolicy(&record.RunStart{})
		return []HeldPolicy{{Policy: p}}, err
	}
	return held, nil
}

// emptyPolicy returns a policy without rules for the agents of the tasks of a run.
func emptyPolicy(b *record.RunStart) (*record.Policy, error) {
	none, err := policytext.Write(nil)
	if err != nil {
		return nil, err
	}
	p := &record.Policy{Text: none, Digest: (*gate.Rulebook)(nil).Digest()}
	for _, t := range b.Tasks {
		if t.Agent != "" && !slices.ContainsFunc(p.Parties, func(q gate.Party) bool { return q.Name == t.Agent }) {
			p.Parties = append(p.Parties, gate.Party{Name: t.Agent})
		}
	}
	return p, nil
}
