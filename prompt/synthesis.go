package prompt

import (
	"fmt"
	"strconv"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// The coordinator answers a goal from results, or makes a digest of a part of
// them. It sees of every task what became of it.

func checkSynthesis(b *brief.Brief) error {
	if b.Parts < 0 || b.Part < min(b.Parts, 1) || b.Part > b.Parts {
		return fmt.Errorf("there is no part %d of %d", b.Part, b.Parts)
	}
	for i := range b.Dependencies {
		if s := &b.Dependencies[i]; s.Source().Kind == handoff.Dependency && s.Status() != task.Completed {
			return fmt.Errorf("dependency %q stands among the results, and its status is %q", s.Source().Name, s.Status())
		}
	}
	for _, list := range [...][]gate.Sealed{b.Failed, b.Skipped} {
		for i := range list {
			if s := &list[i]; s.As() != "" && s.As() != task.Output {
				return fmt.Errorf("fault %q is %s, and only a text says why a task has no result", s.Source().Name, s.As())
			}
		}
	}
	return nil
}

func (r *renderer) synthesis() {
	r.goal(brief.HeadOriginal)
	r.results(r.list[listResults])
	r.ended(brief.HeadFailed, " (FAILED)", "\nError:", r.list[listFailed])
	r.ended(brief.HeadSkipped, " (SKIPPED)", "\nReason:", r.list[listSkipped])
	r.memory(r.list[listMemory])
	if r.brief.Task.Description != "" {
		r.heading(brief.HeadDuty + "\n\n")
		r.description()
	}
}

// results writes the results of the tasks, or digests of them.
func (r *renderer) results(pieces []piece) {
	if len(pieces) == 0 {
		return
	}
	r.heading(brief.HeadResults)
	if b := &r.brief; b.Parts > 0 {
		r.frame(" (part " + strconv.Itoa(b.Part) + " of " + strconv.Itoa(b.Parts) + ")")
	}
	r.frame("\n")
	for i := range pieces {
		p := &pieces[i]
		r.frame("\n### ")
		r.put(brief.PartHeading, p.source, p.Title())
		if p.Source().Kind == handoff.Digest {
			r.by(" (digest by ", p.source, p.sender())
		} else {
			r.by(" (completed by ", p.source, p.Assignee())
		}
		if !p.silent() {
			r.body(p)
		}
	}
}

// ended writes the tasks without a result, and why each has none.
func (r *renderer) ended(heading, how, why string, pieces []piece) {
	if len(pieces) == 0 {
		return
	}
	r.heading(heading + "\n")
	for i := range pieces {
		p := &pieces[i]
		r.frame("\n### ")
		r.put(brief.PartHeading, p.source, p.Title())
		r.frame(how)
		switch {
		case p.silent():
		case p.Withheld():
			r.body(p)
		default:
			r.frame(why)
			r.said(p)
		}
	}
}
