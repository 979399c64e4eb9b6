package prompt

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// A task of the graph: its title and description, and what was granted to it.

func (r *renderer) work() {
	if !r.brief.Untitled {
		r.frame(brief.HeadTask)
		r.put(brief.PartTitle, 0, r.brief.Task.Title)
		r.frame("\n\n")
	}
	r.description()
	r.granted(brief.HeadInputs, r.list[listInputs], "")
	r.granted(brief.HeadDependencies, r.list[listResults], "")
	r.granted(filesHeading(&r.brief), r.list[listFiles], "")
	r.memory(r.list[listMemory])
	r.messages(r.list[listMessages])
	writeTransferred(r, r.list[listTransferred])
}

// filesHeading returns the heading of the files that a task, or a goal, comes with.
func filesHeading(b *brief.Brief) string {
	if b.Passed {
		return brief.HeadPassed
	}
	return brief.HeadFiles
}

// writeTransferred writes the conversation before it was transferred to the reader.
func writeTransferred(r *renderer, pieces []piece) {
	opened := false
	for i := range pieces {
		p := &pieces[i]
		if p.silent() {
			continue
		}
		if !opened {
			r.open(&opened, brief.HeadTransferred)
			r.frame("\n")
		}
		r.frame("\n### ")
		r.put(brief.PartHeading, p.source, p.Title())
		r.body(p)
	}
}

// description writes what is to be done: as the spec has it, or as the
// coordinator planned it.
func (r *renderer) description() {
	if p := r.one[oneInstruction]; p != nil {
		r.put(brief.PartDescription, p.source, p.unfenced())
		return
	}
	r.instruction(brief.PartDescription, 0, r.brief.Task.Description, r.brief.Task.Source.Params)
}

// granted writes the section of the inputs or of the dependencies, of those
// that are written in one of the two texts; only dependencies say who did the work.
func (r *renderer) granted(heading string, pieces []piece, recast string) {
	opened := false
	for i := range pieces {
		p := &pieces[i]
		if p.silent() || r.recastOf(p) != recast {
			continue
		}
		if !opened {
			r.open(&opened, heading)
			r.frame("\n")
		}
		r.frame("\n### ")
		r.put(brief.PartHeading, p.source, p.Title())
		if kind := p.Source().Kind; kind == handoff.Dependency || kind == handoff.Files || kind == handoff.Folder && p.Producer() != handoff.User {
			r.by(" (by ", p.source, p.Assignee())
		}
		r.body(p)
	}
}

// body writes what is under the heading of a piece that is not silent.
func (r *renderer) body(p *piece) {
	if p.Withheld() {
		text := "\n" + brief.WithheldOpen + ": " + string(p.Decision().Reason)
		if p.Status() != "" { // only tasks have one
			text += "; status " + string(p.Status())
		}
		r.put(brief.PartWithheld, p.source, text+"]")
		return
	}
	if p.As() == gate.AsFiles {
		r.frame("\nThese files are in your workspace:")
	}
	both := p.As() == task.Both
	if p.worded() {
		if both {
			r.frame("\n" + brief.HeadRaw)
		}
		r.fenced(p.source, p.text)
	}
	if p.canonical == "" {
		return
	}
	if both && p.worded() {
		r.frame("\n")
	}
	r.frame("\n" + brief.HeadStructured)
	r.fenced(p.source, p.canonical)
}
