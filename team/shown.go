package team

import (
	"regexp"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
)

// shown returns a prompt as the caller may see it. What an agent made, and the
// policy lets not cross to the caller as a whole, is in none that another agent
// reads either.
func (r *run) shown(p prompt.Prompt) prompt.Shown {
	accepts := *r.options.UserAccepts
	s := p.Show(accepts)
	if r.team.edges == nil {
		return s
	}
	hidden, some := make([]bool, len(s.Receipt.Sources)), false
	for i := range hidden {
		if d := s.Receipt.Sources[i].Decision; d != nil && d.From != handoff.User {
			hidden[i] = !crossesWhole(r.team.edges.between(d.From, handoff.User), d, accepts)
			some = some || hidden[i]
		}
	}
	if some {
		withhold(s.System, hidden)
		withhold(s.Text, hidden)
	}
	return s
}

// crossesWhole reports whether what a decision is about crosses as a whole, and
// with its own label, under the terms of its producer and the caller.
func crossesWhole(t *handoff.Terms, d *handoff.Decision, accepts label.Classification) bool {
	x := t.Crossing(d.Before, accepts, handoff.User)
	if x.Held() || x.Lowers != nil {
		return false
	}
	if d.Source.Instructs(d.From) {
		return true
	}
	s, err := t.Delivers(nil)
	return err == nil && s.Whole()
}

// fenceOf finds the fence in a line of a prompt. It is a digest of all payloads.
var fenceOf = regexp.MustCompile(`(\[/?envelope )[0-9a-f]+`)

// withhold takes the words of hidden sources out of a prompt, and the fences,
// by which one that has few values could be guessed.
func withhold(pieces []prompt.Piece, hidden []bool) {
	for i := range pieces {
		switch p := &pieces[i]; {
		case p.Source >= 0 && hidden[p.Source]:
			p.Words, p.Withheld = "", true
		case p.Part == prompt.PartFrame:
			p.Words = fenceOf.ReplaceAllString(p.Words, "$1…")
		}
	}
}
