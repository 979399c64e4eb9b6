package journal

import (
	"context"
	"slices"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/record"
)

// PolicyOf returns the current or last policy of a run: that of the last command that replaced it, else
// that of its start. A run without a policy, or one whose policy cannot be written in a file, gets an
// empty policy. [record.Policy.Compile] returns the rules for each pair.
func PolicyOf(ctx context.Context, j *Journal, run string) (*record.Policy, error) {
	h, err := j.LoadRun(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(h.Log) {
		if e.Command != nil && e.Command.Policy != nil {
			return e.Command.Policy, nil
		}
	}
	for _, b := range slices.Backward(h.Begins) {
		if b.Policy != nil {
			return b.Policy, nil
		}
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
