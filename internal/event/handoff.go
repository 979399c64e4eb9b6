package event

import (
	"maps"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Handoff is one decision of the gate in the form in which a run records it: the context,
// its reader, the rule that delivered or withheld it, and what was left out. It has names,
// counts and sizes, never a value. If Coarse is set, the viewer may not see the value, and
// there are no paths, counts and exact sizes (see [gate.Decision.Outline]).
type Handoff struct {
	Session string      `json:"sessionId"` // run, task and attempt, with a suffix for a translation; for the caller, the run and "user"
	From    string      `json:"fromAgentId"`
	To      string      `json:"toAgentId"`
	Task    task.ID     `json:"taskId,omitempty"` // the reader's
	Source  gate.Source `json:"source"`
	Ruling
	Label     label.Classification `json:"labelBefore"`
	Delivered label.Classification `json:"labelAfter"`
	Before    Extent               `json:"contextBeforeScoping"`
	After     Extent               `json:"contextAfterScoping"`
	Redacted  redact.Counts        `json:"redacted,omitempty"`
	Revealed  redact.Counts        `json:"revealed,omitempty"`

	Coarse     bool      `json:"coarse,omitempty"`     // sizes are classes; paths and counts are left out
	CallerSees bool      `json:"callerSees,omitempty"` // with Coarse: the caller sees the value, and only what is stored of the decision is coarse
	Translated bool      `json:"conversationTranslationApplied"`
	Time       time.Time `json:"timestamp"`
}

// IsHidden reports whether the caller may not see the value.
func (h *Handoff) IsHidden() bool { return h.Coarse && !h.CallerSees }

// Clone returns a copy that shares nothing with h.
func (h *Handoff) Clone() Handoff {
	c := *h
	c.Entries, c.Redacted, c.Revealed = slices.Clone(h.Entries), maps.Clone(h.Redacted), maps.Clone(h.Revealed)
	for _, side := range []*Extent{&c.Before, &c.After} {
		side.Included, side.Excluded = slices.Clone(side.Included), slices.Clone(side.Excluded)
	}
	return c
}

// A Ruling says how the gate decided, and by which rule.
type Ruling struct {
	Verdict gate.Verdict   `json:"verdict"`
	Reason  string         `json:"reason,omitempty"` // why it was withheld
	Detail  string         `json:"detail,omitempty"` // the reason, for people
	Mode    handoff.Mode   `json:"handoffMode"`
	Rule    handoff.Rule   `json:"governanceRuleId"`
	Line    string         `json:"line,omitempty"` // where that rule is written
	Policy  string         `json:"policyDigest,omitempty"`
	Entries []handoff.Rule `json:"policyEntries,omitempty"` // the declassifiers, endorsers and renewals that were used
}

// An Extent measures context on one side of the gate.
type Extent struct {
	// Outputs is how many results of the producer there are on this side of all decisions about the prompt. It is zero
	// for context that is no result of a task, such as an input.
	Outputs int `json:"priorOutputsCount"`

	Tokens   int         `json:"totalTokens"` // estimated: a fourth of the bytes
	Bytes    int         `json:"bytes"`
	Included []task.Path `json:"fieldsIncluded,omitempty"`
	Excluded []task.Path `json:"fieldsExcluded,omitempty"` // a key that neither spec nor schema names is written *
}
