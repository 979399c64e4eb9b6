package prompt

import (
	"errors"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/provenance"
)

// The coordinator divides a goal into tasks. In a corrective turn it sees the
// plan that it gave, and what is wrong with it.

func checkPlanning(b *brief.Brief) error {
	if b.Goal == nil {
		return errors.New("there is no goal to plan for")
	}
	return nil
}

func (r *renderer) planning() {
	r.description()
	r.goal(brief.HeadGoal)
	r.drafted(brief.HeadDraft, handoff.Plan)
	r.drafted(brief.HeadWrong, handoff.Fault)
}

// goal writes what the user asks, which is no data but what all is about.
func (r *renderer) goal(heading string) {
	if p := r.one[oneGoal]; p != nil {
		r.heading(heading + "\n\n")
		r.instruction(brief.PartGoal, p.source, p.unfenced(), r.goalParams(p))
	}
}

// goalParams returns the positions of parameters in the goal. It returns none if
// the gate changed the goal, since they may then be elsewhere.
func (r *renderer) goalParams(goal *piece) []provenance.Param {
	if d := goal.Decision(); len(d.Redacted) > 0 || d.Broken > 0 {
		return nil
	}
	end := 0
	for _, p := range r.brief.GoalParams {
		if p.Start < end || p.End < p.Start || p.End > len(goal.unfenced()) {
			return nil // they are of another text
		}
		end = p.End
	}
	return r.brief.GoalParams
}

// drafted writes the section of one kind of drafts.
func (r *renderer) drafted(heading string, kind handoff.SourceKind) {
	opened := false
	for i := range r.list[listDrafts] {
		p := &r.list[listDrafts][i]
		if p.Source().Kind == kind && !p.silent() {
			r.open(&opened, heading+"\n")
			r.body(p)
		}
	}
}
