package team

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
)

// shown returns a prompt as records of the run hold it. What an agent made, and the
// policy lets not cross to the caller as a whole, is in none that another agent
// reads either.
func (r *run) shown(p prompt.Prompt) prompt.Shown {
	accepts := r.options.recorded()
	if r.team.edges == nil {
		return p.Show(accepts, nil)
	}
	return p.Show(accepts, func(s *prompt.Source) bool {
		d := s.Decision
		return d != nil && d.From != handoff.User && !crossesWhole(r.team.edges.between(d.From, handoff.User), d, accepts)
	})
}

// crossesWhole reports whether what a decision is about crosses as a whole, and
// with its own label, under the terms of its producer and the caller.
func crossesWhole(t *handoff.Terms, d *handoff.Decision, accepts label.Classification) bool {
	x := t.Crossing(d.Before, accepts, handoff.User)
	if x.Held() || x.Lowers != nil || t.AddsRedaction() {
		return false
	}
	return d.Source.Instructs(d.From) || crossesAsText(t)
}
