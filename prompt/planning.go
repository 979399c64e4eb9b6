package prompt

import (
	"errors"

	"github.com/runteam/runteam/handoff"
)

// The coordinator divides a goal into tasks. In a corrective turn it sees the
// plan that it gave, and what is wrong with it.

func checkPlanning(b *Brief) error {
	if b.Goal == nil {
		return errors.New("there is no goal to plan for")
	}
	for i := 1; i < len(b.Drafts); i++ {
		if b.Drafts[i].Source().Kind == handoff.Plan && b.Drafts[i-1].Source().Kind == handoff.Fault {
			return errors.New("a plan stands behind what is wrong with it: put it before that")
		}
	}
	return nil
}

func (r *renderer) planning() {
	r.description()
	r.goal(headGoal)
	r.drafted(headDraft, handoff.Plan)
	r.drafted(headWrong, handoff.Fault)
}

// goal writes what the caller asks, which is no data but what all is about.
func (r *renderer) goal(heading string) {
	if p := r.one[oneGoal]; p != nil {
		r.heading(heading + "\n\n")
		r.put(PartGoal, p.source, p.unfenced())
	}
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
