package plan

import (
	"cmp"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/task"
)

// Bytes of a prompt that no grant is for, and the growth of a text that is redacted.
const (
	aroundTask  = 4 << 10 // what the runtime writes around a task, at most
	aboutAnswer = 4 << 10 // what it says about an answer that it does not accept, at most
	maskGrowth  = 4       // how many times its length a text can have once it is redacted
)

// promptSizes are the most tokens that the prompts of one attempt can have.
type promptSizes struct {
	first      int
	corrected  int // that has an answer which was not accepted
	most       int // of any turn, by the limits
	translated int // how many pieces of context are translated by a model first
}

// sizesOfPrompts returns the sizes of the prompts of task i. An input that the caller may not read
// counts with its limit.
func sizesOfPrompts(p *Plan, i int) promptSizes {
	t, m := p.Graph.Task(i), &p.Roster().Config.Agents[p.Members[i]]
	limits := p.Roster().MemberLimits(int(p.Members[i]))
	most := brief.Limit(limits.MaxPromptBytes)
	s := promptSizes{}
	size := aroundTask + len(t.Title) + len(t.Description)
	if t.Classification > *p.Options().UserAccepts || t.MemoryScope == task.ScopeAll || i < len(p.arrivals) && len(p.arrivals[i]) > 0 {
		size = most
	}
	for _, a := range p.deliveries(nil, i) {
		if !a.Withheld && a.part.kind != handoff.Condition {
			grant, _ := p.grantOf(i, &a)
			size = min(size+Frame+sizeOfDelivery(p, i, &a, &grant), most)
			if grant.Terms.ByReader() {
				s.translated++
			}
		}
	}
	around := len(m.SystemPrompt) + len(t.OutputSchema) + len(m.OutputSchema)
	for _, f := range p.Tools(i) {
		around += len(f.Name) + len(f.Description) + len(f.Parameters) + Frame
	}
	for _, f := range RuntimeTools(p, i) {
		around += len(f.Name) + len(f.Description) + len(f.Parameters) + Frame
	}
	answer := cmp.Or(limits.MaxContextBytes, gate.DefaultContextBytes) + aboutAnswer
	s.first, s.most = tokencount.OfBytes(around+min(size, most)), tokencount.OfBytes(around+most)
	s.corrected = tokencount.OfBytes(around + min(size+answer, most))
	return s
}

// sizeOfDelivery returns the most bytes that a prompt of task i has of a delivery.
func sizeOfDelivery(p *Plan, i int, a *delivery, g *gate.Grant) int {
	t, limit := p.Graph.Task(i), cmp.Or(g.MaxBytes, gate.DefaultContextBytes)
	switch a.part.kind {
	case handoff.Input:
		in := &p.Options().Inputs[p.InputIndex[strings.ToLower(t.Uses[a.part.n].Name)]]
		if in.Folder != nil || in.Classification > *p.Options().UserAccepts {
			return limit
		}
		return min(limit, maskGrowth*len(in.Text))
	case handoff.Conversation:
		if c := &p.Options().Conversation[a.part.n]; c.Envelope.Classification() <= *p.Options().UserAccepts {
			return min(limit, maskGrowth*c.Envelope.Size())
		}
	case handoff.Dependency:
		if t.DependsOn[a.part.n].As == task.Both {
			return 2 * limit // the text, and the value
		}
	}
	return limit
}
