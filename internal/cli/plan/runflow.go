package plan

import (
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
)

// A RunFlow is the flow of a stored run with its assertions, in JSON.
type RunFlow struct {
	flowDocument
	Policy     string              `json:"policyDigest"` // of the policy by which it is computed
	Assertions []assertionDocument `json:"assertions"`
}

// An assertionDocument is an assertion, whether it holds, and if not, on which path it is broken.
type assertionDocument struct {
	Text  string    `json:"text"`
	Line  string    `json:"line,omitempty"`
	Holds bool      `json:"holds"`
	Why   string    `json:"why,omitempty"`
	Path  flow.Path `json:"path,omitempty"`
}

// FlowOf returns the flow of a plan as the command plan prints it, with its assertions. With from it has only
// that source, and the path to each reader; with to only that reader. It is a usage error if the plan has none
// with that name.
func FlowOf(p *engine.Plan, from, to string) (*RunFlow, error) {
	v, err := (&flowFlags{from: from, to: to}).view(p)
	if err != nil {
		return nil, err
	}
	return newRunFlow(p, v), nil
}

// mostWays bounds how many ways [FlowWithWays] looks for: each takes time proportional to the plan.
const mostWays = 4000

// FlowWithWays returns the flow of a plan with the path from each source to each reader, unless there are too many.
func FlowWithWays(p *engine.Plan) (*RunFlow, error) {
	v, err := (&flowFlags{}).view(p)
	if err != nil {
		return nil, err
	}
	v.from = len(v.sources)*len(v.readers) <= mostWays
	return newRunFlow(p, v), nil
}

func newRunFlow(p *engine.Plan, v *flowView) *RunFlow {
	d := &RunFlow{flowDocument: v.document(), Policy: p.Roster().Rules.Digest(), Assertions: make([]assertionDocument, len(p.Findings))}
	for i := range p.Findings {
		f := &p.Findings[i]
		d.Assertions[i] = assertionDocument{f.Assertion.Text, f.Assertion.Line, f.Holds, f.Why, f.Path}
	}
	return d
}
