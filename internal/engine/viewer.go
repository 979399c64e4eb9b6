package engine

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// A viewer is the caller of a run as a reader of its results, errors, events and records.
type viewer struct {
	team *plan.Roster // as the run began; see governed for the policy that holds now
	*policies
	id      string               // of the run
	session string               // of the contracts under which the caller reads
	accepts label.Classification // the highest label of what records of the run hold
}

// shown returns a prompt with this receipt as the caller may see it.
func (r viewer) shown(p prompt.Prompt, whole *prompt.Receipt) promptview.Shown {
	s, _ := promptview.Show(p, whole, r.accepts, r.hides())
	return s
}

// receiptOf returns the receipt of a prompt as the caller may see it, how many
// bytes the prompt has in that form, and whether words are left out.
func (r viewer) receiptOf(p prompt.Prompt, whole *prompt.Receipt) (shown *prompt.Receipt, bytes int, hid bool) {
	return promptview.Receipt(p, whole, r.accepts, r.hides())
}

// hides returns the sources of prompts that the policy hides from the caller,
// whatever their label; nil without a policy.
func (r viewer) hides() func(*prompt.Source) bool {
	if r.governed().Rules == nil {
		return nil
	}
	return func(s *prompt.Source) bool {
		return s.Decision != nil && !r.sees(s.Decision.From, s.Decision.Source, s.Decision.Before)
	}
}

// sees reports whether the caller may see all of a value: its label is within the
// caller's clearance, and the policy lets the caller have all that its producer makes.
func (r viewer) sees(producer string, source gate.Source, level label.Classification) bool {
	if level > r.accepts {
		return false
	}
	t := r.governed()
	return t.Rules == nil || producer == handoff.User || plan.PassesWhole(t.Terms(producer, handoff.User), producer, source, level, r.accepts)
}

// seesResult is sees for a value that an agent made.
func (r viewer) seesResult(producer string, level label.Classification) bool {
	return r.sees(producer, gate.Source{Kind: handoff.Dependency}, level)
}

// decided returns a decision as the caller may see it. It may be d itself and must not
// be changed.
func (r viewer) decided(d *gate.Decision) *gate.Decision {
	if r.sees(d.From, d.Source, d.Before) {
		return d
	}
	if d.To == handoff.User {
		return new(d.ForReader())
	}
	return new(d.Outline())
}

// sizeOf returns the size of an envelope as the caller may see it: zero unless the
// caller may see the whole value.
func (r viewer) sizeOf(e *envelope.Envelope) int {
	if r.seesResult(e.Producer(), e.Classification()) {
		return e.Size()
	}
	return 0
}

// A visibility says whether the caller may see all of a prompt and of its reply. Of a
// model call that is hidden, the caller learns that it was made, and how it ended.
type visibility struct{ hidden bool }

// visibility returns what the caller may see of the model call.
func (x *modelCall) visibility() visibility {
	by, level := x.makers(), x.contract.MaxInput
	if x.envelope != nil {
		by, level = x.envelope.Producer(), x.envelope.Classification()
	}
	return visibility{x.hidden || x.partly || !x.run.seesResult(by, level)}
}

// usage returns the usage of a model call as the caller may see it.
func (v visibility) usage(u llm.Usage) llm.Usage {
	if v.hidden {
		return llm.Usage{}
	}
	return u
}

// duration returns how long a model call took as the caller may see it.
func (v visibility) duration(d time.Duration) time.Duration {
	if v.hidden {
		return 0
	}
	return d
}

// shownOwnCost returns the cost of the model call's own model calls as the caller may see it.
func (x *modelCall) shownOwnCost() llm.Money {
	if x.visibility().hidden {
		return 0
	}
	return x.paid
}

// showCost adds the cost of the model call, and of the calls that served it, to what errors
// show to the caller.
func (x *modelCall) showCost() {
	cost := x.shownOwnCost()
	for _, s := range x.spent {
		cost = cost.Add(s.cost)
	}
	x.run.budgets.show(x.caps.Agent, max(cost-x.costShown, 0))
	x.costShown = max(x.costShown, cost)
}

// isPartial reports whether the caller may not see all of the model call, or of a call that
// served it.
func (x *modelCall) isPartial() bool {
	return x.visibility().hidden || slices.ContainsFunc(x.spent, func(s sideCall) bool { return s.partial })
}
