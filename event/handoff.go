package event

import (
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Handoff is one decision of the gate as the record of a run keeps it: who
// wanted what of whom, by which rule it passed or was held, and what became
// smaller on the way. It has names, counts and sizes, and never a value. A
// coarse one is of a value that its viewer may not see, and has no paths, no
// counts and no exact sizes (see [gate.Decision.Outline]).
type Handoff struct {
	Session   string               `json:"sessionId"` // the run, the task and the attempt, and of a retelling what tells it from that; to the caller, the run and user
	From      string               `json:"fromAgentId"`
	To        string               `json:"toAgentId"`
	Task      task.ID              `json:"taskId,omitempty"` // the reader's
	Source    handoff.Source       `json:"source"`
	Verdict   handoff.Verdict      `json:"verdict"`
	Reason    handoff.Reason       `json:"reason,omitempty"` // why it was held
	Detail    string               `json:"detail,omitempty"` // the reason, for people
	Mode      handoff.Mode         `json:"handoffMode"`
	Rule      handoff.Rule         `json:"governanceRuleId"`
	Line      string               `json:"line,omitempty"` // where that rule is written
	Policy    string               `json:"policyDigest,omitempty"`
	Label     label.Classification `json:"labelBefore"`
	Delivered label.Classification `json:"labelAfter"`
	Before    Extent               `json:"contextBeforeScoping"`
	After     Extent               `json:"contextAfterScoping"`
	Redacted  redact.Counts        `json:"redacted,omitempty"`
	Revealed  redact.Counts        `json:"revealed,omitempty"`

	Coarse     bool           `json:"coarse,omitempty"` // sizes are classes; paths and counts are left out
	Translated bool           `json:"conversationTranslationApplied"`
	Entries    []handoff.Rule `json:"policyEntries,omitempty"` // the declassifiers, endorsers and renewals that were used
	Time       time.Time      `json:"timestamp"`
}

// NewHandoff returns a decision as records have it, in the form that it is
// given in.
func NewHandoff(d *gate.Decision, session, policy string, at time.Time) Handoff {
	h := Handoff{
		Session: session, From: d.From, To: d.To, Task: d.Task, Source: d.Source, Verdict: d.Verdict, Reason: d.Reason, Detail: d.Detail,
		Mode: d.Mode, Rule: d.Rule, Line: d.Line, Policy: policy, Label: d.Before, Delivered: d.After, Translated: d.Translated, Time: at,
	}
	for _, e := range d.Entries {
		h.Entries = append(h.Entries, handoff.Rule(e.Name))
	}
	h.measure(d)
	return h
}

// measure sets everything that depends on more of the value than its labels.
func (h *Handoff) measure(d *gate.Decision) {
	h.Coarse, h.Redacted, h.Revealed = d.Coarse, d.Redacted, d.Revealed
	h.Before = extent(d.BytesBefore, d.Envelope != "")
	h.After = extent(d.BytesAfter, d.IsDelivered())
	h.After.Included, h.After.Excluded = d.Kept, d.Dropped
	if d.IsDelivered() && !d.Narrowed && !d.Coarse {
		h.After.Included = []task.Path{task.Whole}
	}
}

// Lower returns h for a viewer with this clearance.
func (h *Handoff) Lower(clearance label.Classification) Handoff {
	if h.Coarse || h.Label <= clearance {
		return *h
	}
	d := gate.Decision{Verdict: h.Verdict, Sizes: gate.Sizes{BytesBefore: h.Before.Bytes, BytesAfter: h.After.Bytes}}
	if h.Before.Outputs > 0 {
		d.Envelope = "there is one"
	}
	outline := d.Outline()
	low := *h
	low.measure(&outline)
	return low
}

// extent measures one side of a decision.
func extent(bytes int, there bool) Extent {
	e := Extent{Bytes: bytes, Tokens: gate.Tokens(bytes)}
	if there {
		e.Outputs = 1
	}
	return e
}

// An Extent measures context on one side of the gate.
type Extent struct {
	Outputs  int         `json:"priorOutputsCount"`
	Tokens   int         `json:"totalTokens"` // estimated: a fourth of the bytes
	Bytes    int         `json:"bytes"`
	Included []task.Path `json:"fieldsIncluded,omitempty"`
	Excluded []task.Path `json:"fieldsExcluded,omitempty"` // a key that neither spec nor schema names is written *
}
