package journal

import (
	"context"
	"slices"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/record"
)

// PolicyOf returns the current or last policy of a run: that of the last command that replaced it, else
// that of its start. A run without a policy gets an empty policy. That of a program may have no text, and
// then Policy and Compile return [record.ErrPolicyUnwritten]; its digest is known. [record.Policy.Compile]
// returns the rules for each pair.
func PolicyOf(ctx context.Context, j *Journal, run string) (*record.Policy, error) {
	h, err := j.LoadRun(ctx, run)
	if err != nil {
		return nil, err
	}
	if had := policiesOf(h); len(had) > 0 {
		return had[len(had)-1], nil
	}
	none, err := policytext.Write(nil)
	if err != nil {
		return nil, err
	}
	p := &record.Policy{Text: none, Digest: (*gate.Rulebook)(nil).Digest()}
	for _, b := range h.Begins {
		for _, t := range b.Tasks {
			if t.Agent != "" && !slices.ContainsFunc(p.Parties, func(q gate.Party) bool { return q.Name == t.Agent }) {
				p.Parties = append(p.Parties, gate.Party{Name: t.Agent})
			}
		}
	}
	return p, nil
}

// PoliciesOf returns each policy that a run has had: those that its processes began with, then those that
// commands put in place, the oldest first.
func PoliciesOf(ctx context.Context, j *Journal, run string) ([]*record.Policy, error) {
	h, err := j.LoadRun(ctx, run)
	if err != nil {
		return nil, err
	}
	return policiesOf(h), nil
}

func policiesOf(h *record.History) (had []*record.Policy) {
	for i := range h.Begins {
		if p := h.Begins[i].Policy; p != nil {
			had = append(had, p)
		}
	}
	for i := range h.Log {
		if c := h.Log[i].Command; c != nil && c.Policy != nil {
			had = append(had, c.Policy)
		}
	}
	return had
}
