package prompt

import (
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
)

// The system prompt: the agent's own, for a coordinator the roster and the
// guidance behind it, endorsed context that is recast into it, and the schema
// of the reply.

func (r *renderer) system() {
	b := &r.brief
	if b.System != "" {
		r.instruction(brief.PartSystem, 1, b.System, b.SystemParams)
	}
	if p := r.one[oneRoster]; p != nil {
		r.heading(brief.HeadRoster + "\n\n")
		r.put(brief.PartPayload, p.source, p.unfenced())
	}
	if b.Guidance != "" {
		r.heading("")
		r.put(brief.PartSystem, 1, b.Guidance)
	}
	r.granted(brief.HeadInputs, r.list[listInputs], gate.RecastSystem)
	r.granted(brief.HeadDependencies, r.list[listResults], gate.RecastSystem)
	if b.Schema != "" {
		r.heading("Answer with one JSON value that matches the schema below, and with nothing else.\n\n" + brief.HeadSchema + "\n")
		r.put(brief.PartSchema, 0, b.Schema)
	}
}
