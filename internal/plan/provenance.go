package plan

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// checkProvenance checks a description that is context. Its title and role stand
// in prompts outside of any fence, so they are checked as those of a plan are.
func (c *checker) checkProvenance(i int, s *task.Spec) {
	p := s.Provenance
	if p == nil {
		return
	}
	add := func(message, hint string, tokens ...any) {
		c.add(task.Problem{Pointer: naming.Pointer(append([]any{"tasks", i}, tokens...)...), Subject: subjectOf(s), Message: message, Hint: hint, Err: task.ErrInvalid})
	}
	const own = "word it differently, or remove provenance if the task is your own"
	if p.From != handoff.Coordinator && p.From != handoff.User {
		add(fmt.Sprintf("provenance: from: %q wrote no description", p.From), "write coordinator or user, or remove provenance if the task is your own", "provenance", "from")
	}
	if !p.ExpiresAt.IsZero() && !p.ExpiresAt.After(p.CreatedAt) {
		add("provenance: it expires before it was made", "remove expiresAt, or plan again", "provenance", "expiresAt")
	}
	for _, line := range []string{p.Envelope, p.Run} {
		if err := naming.CheckLine(line); line != "" && err != nil {
			add("provenance: "+err.Error(), "write one clean line, or leave it out", "provenance")
		}
	}
	if err := gate.CheckUnfenced(s.Title); err != nil {
		add("its planned title: "+err.Error(), own, "title")
	}
	if err := gate.CheckUnfenced(s.Role); err != nil {
		add("its planned role: "+err.Error(), own, "role")
	}
}
