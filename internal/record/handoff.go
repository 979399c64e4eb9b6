package record

import (
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// IsKnown reports whether a caller may know of a decision that is recorded in the form for the caller. Whether a task
// sends messages, fails on the way or makes files, and how often, depends on what it reads, so the caller knows of none
// of these that are hidden.
func IsKnown(h *event.Handoff) bool {
	switch {
	case !h.IsHidden():
		return true
	case h.Source.Kind == handoff.Message:
		return false
	}
	return h.To != handoff.User || h.Source.Kind != handoff.Fault && h.Source.Kind != handoff.Files
}

// Known returns the decisions of which the caller may know. It does not change the list.
func Known(list []event.Handoff) []event.Handoff {
	for i := range list {
		if IsKnown(&list[i]) {
			continue
		}
		left := slices.Clone(list[:i])
		for n := i + 1; n < len(list); n++ {
			if IsKnown(&list[n]) {
				left = append(left, list[n])
			}
		}
		return left
	}
	return list
}

// NewHandoff returns a decision as records have it, in the form that it is
// given in.
func NewHandoff(d *gate.Decision, session, policy string, at time.Time) event.Handoff {
	h := event.Handoff{
		Session:    session,
		From:       d.From,
		To:         d.To,
		Task:       d.Task,
		Source:     d.Source,
		Label:      d.Before,
		Delivered:  d.After,
		Translated: d.Translated,
		Time:       at,
		Ruling:     event.Ruling{Verdict: d.Verdict, Reason: d.Reason, Detail: d.Detail, Mode: d.Mode, Rule: d.Rule, Line: d.Line, Policy: policy},
	}
	for _, e := range d.Entries {
		h.Entries = append(h.Entries, handoff.Rule(e.Name))
	}
	measure(&h, d)
	if d.Envelope != "" && isResult(d.Source) {
		h.Before.Outputs = 1
		if d.IsDelivered() {
			h.After.Outputs = 1
		}
	}
	return h
}

// CountResults sets in the decisions about one prompt that are about results how many results of the same producer the
// prompt was to have, and how many of them were delivered.
func CountResults(list []event.Handoff) {
	type sides struct{ before, after int }
	made := map[string]sides{} // by producer
	for i := range list {
		if h := &list[i]; h.Before.Outputs > 0 {
			n := made[h.From]
			made[h.From] = sides{n.before + h.Before.Outputs, n.after + h.After.Outputs}
		}
	}
	for i := range list {
		if h := &list[i]; h.Before.Outputs > 0 {
			h.Before.Outputs, h.After.Outputs = made[h.From].before, made[h.From].after
		}
	}
}

// isResult reports whether a source is the result of a task: as a dependency, or as an entry of the shared memory.
func isResult(s gate.Source) bool {
	if s.Kind == handoff.Memory {
		_, is := ResultInMemory(s.Name)
		return is
	}
	return s.Kind == handoff.Dependency
}

// ResultInMemory returns the task whose result is an entry of the shared memory with this full key, such as
// "intake/task:<id>:result".
func ResultInMemory(key string) (id task.ID, ok bool) {
	_, key, _ = strings.Cut(key, "/")
	name, isTask := strings.CutPrefix(key, "task:")
	name, isResult := strings.CutSuffix(name, ":result")
	return task.ID(name), isTask && isResult
}

// measure sets everything that depends on more of the value than its labels.
func measure(h *event.Handoff, d *gate.Decision) {
	h.Coarse, h.Redacted, h.Revealed = d.Coarse, d.Redacted, d.Revealed
	h.Before = extent(h.Before.Outputs, d.BytesBefore)
	h.After = extent(h.After.Outputs, d.BytesAfter)
	h.After.Included, h.After.Excluded = d.Parts().Kept, d.Parts().Dropped
	if d.IsDelivered() && !d.Parts().Narrowed && !d.Coarse {
		h.After.Included = []task.Path{task.Whole}
	}
}

// LowerHandoff returns h for a reader with this clearance. It still says whether the caller sees the value.
func LowerHandoff(h *event.Handoff, clearance label.Classification) event.Handoff {
	if h.Coarse || h.Label <= clearance {
		return *h
	}
	d := gate.Decision{Verdict: h.Verdict, Sizes: gate.Sizes{BytesBefore: h.Before.Bytes, BytesAfter: h.After.Bytes}}
	outline := d.Outline()
	low := *h
	measure(&low, &outline)
	low.CallerSees = true
	return low
}

// extent measures one side of a decision, with the number of results that there are on it.
func extent(results, bytes int) event.Extent {
	return event.Extent{Outputs: results, Bytes: bytes, Tokens: gate.Tokens(bytes)}
}
