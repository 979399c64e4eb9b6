package plan

import "github.com/runteam/runteam/label"

// CallerSees returns the highest label of what the caller may see of the run, and of what its statuses depend on: of
// everything that it can begin with or read from outside, whoever reads it. A spec is internal. Whatever a policy lowers
// counts with the label that it had, so another policy changes nothing.
func (p *Plan) CallerSees() label.Classification {
	o, team := p.Options(), p.Roster()
	if o.Bus != nil || o.Memory != nil { // they may hold anything, which decisions describe even if nobody reads it
		return o.RecordClearance()
	}
	level := label.Internal
	for i := range p.Labels {
		level = level.Join(p.Labels[i]).Join(p.Branches.Of(i))
	}
	for i := range o.Inputs {
		level = level.Join(o.Inputs[i].Classification)
	}
	for i := range o.Messages {
		level = level.Join(o.Messages[i].Classification)
	}
	for i := range o.Conversation {
		if e := o.Conversation[i].Envelope; e != nil {
			level = level.Join(e.Classification())
		}
	}
	if o.Answer != nil {
		level = level.Join(o.Answer.Classification)
	}
	if o.Turn != nil {
		level = level.Join(o.Turn.Label)
	}
	for i := range team.Config.Agents { // children may call tools that no task does
		for _, t := range team.Config.Agents[i].Tools {
			level = level.Join(t.Level())
		}
	}
	return min(level, o.RecordClearance())
}
