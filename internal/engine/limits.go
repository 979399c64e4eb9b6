package engine

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// truncated lists what a size limit cut in the prompts of an exchange. The caller
// asked for the cut of an input with Cut, which is not listed.
func (x *exchange) truncated() (list []*gate.Decision) {
	add := func(receipt *prompt.Receipt) {
		if receipt == nil {
			return
		}
		for i := range receipt.Sources {
			if d := receipt.Sources[i].Decision; d != nil && d.Truncated && !(d.Source.Kind == handoff.Input && x.run.mayCut(d.Source.Name)) {
				list = append(list, d)
			}
		}
	}
	for i := range x.spent {
		add(x.spent[i].receipt)
	}
	add(x.receipt)
	return list
}

// maxTruncations bounds how many warnings of one run say that context was cut.
const maxTruncations = 100

// warnTruncated warns of what a size limit cut in the prompts of an exchange.
func (r *run) warnTruncated(of string, x *exchange) {
	for _, d := range x.truncated() {
		if r.truncations++; r.truncations > maxTruncations {
			return
		}
		if r.truncations == maxTruncations {
			r.warn("more context was cut, and is not listed here; the receipts of the tasks list it")
			return
		}
		upTo := ""
		if d.Coarse {
			upTo = "up to "
		}
		r.warn(fmt.Sprintf("%s: %s was cut from %s%s to %s%s; raise maxContextBytes or maxPromptBytes, or grant parts with need", of, r.named(d), upTo, label.SizeText(d.CutFrom), upTo, label.SizeText(d.BytesAfter)))
	}
}

// named says what a decision is about.
func (r *run) named(d *gate.Decision) string {
	switch d.Source.Kind {
	case handoff.Dependency:
		if i, ok := r.queue.Index(task.ID(d.Source.Name)); ok {
			return fmt.Sprintf("the result of %q", r.tasks[i].Title)
		}
	case handoff.Input:
		return fmt.Sprintf("input %q", d.Source.Name)
	}
	return fmt.Sprintf("a %v from %q", d.Source.Kind, d.From)
}

// mayCut reports whether the caller lets an input be cut.
func (r *run) mayCut(name string) bool {
	if r.plan == nil {
		return false
	}
	k, known := r.plan.InputIndex[strings.ToLower(name)]
	return known && r.options.Inputs[k].Cut
}
