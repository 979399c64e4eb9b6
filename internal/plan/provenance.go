package plan

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// checkProvenance checks a description that is context. Its title and role are
// written into prompts outside of any fence, so they are checked like those of a
// plan.
func (c *checker) checkProvenance(i int, s *task.Spec) {
	p := s.Source.Record
	if p == nil {
		return
	}
	about := c.aboutTask(i, s)
	const own = "reword it, or remove provenance if the task is your own"
	if p.From != handoff.Coordinator && p.From != handoff.User && p.From != planEditor(c) {
		about.at("provenance", "from").report(fmt.Sprintf("provenance: from: %q does not write descriptions", p.From), "write coordinator or user, or remove provenance if the task is your own", task.ErrInvalid)
	}
	if !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(p.CreatedAt) {
		about.at("provenance", "expiresAt").report("provenance: it expires before it was made", "remove expiresAt, or plan again", task.ErrInvalid)
	}
	for _, line := range []string{p.Envelope, p.Run} {
		if err := naming.CheckLine(line); line != "" && err != nil {
			about.at("provenance").report("provenance: "+err.Error(), "write one clean line, or leave it out", task.ErrInvalid)
		}
	}
	if err := gate.CheckUnfenced(s.Title); err != nil {
		about.at("title").report("its planned title: "+err.Error(), own, task.ErrInvalid)
	}
	if err := gate.CheckUnfenced(s.Role); err != nil {
		about.at("role").report("its planned role: "+err.Error(), own, task.ErrInvalid)
	}
	if err := gate.CheckUnfenced(string(s.OutputSchema)); err != nil {
		about.at("outputSchema").report("its planned schema: "+err.Error(), own, task.ErrInvalid)
	}
}

// planEditor returns the person who may have edited the plan of this run; empty if none may.
func planEditor(c *checker) string {
	if k := c.team.Config.Coordinator; c.options.Planned && k != nil {
		return k.Approve
	}
	return ""
}
