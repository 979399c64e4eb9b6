package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
)

// truncatedContext lists what a size limit cut in the prompts of a model call. The caller
// allowed a cut of an input with Cut, which is not listed.
func (x *modelCall) truncatedContext() (list []*gate.Decision) {
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

// warnTruncated warns of what a size limit cut in the prompts of a model call.
func (r *recorder) warnTruncated(x *modelCall, what, title string) {
	for _, d := range x.truncatedContext() {
		if r.truncations++; r.truncations > maxTruncations {
			return
		}
		if r.truncations == maxTruncations {
			r.warn("more context was cut, and is not listed here; the receipts of the tasks list it")
			return
		}
		of := what + " " + title
		if what == "task" {
			of = fmt.Sprintf("task %q", title)
		}
		r.warn(fmt.Sprintf("%s: %s was cut from %s to %s; raise maxContextBytes or maxPromptBytes, or grant parts with need", of, subjectOf(x, d), bytesize.Text(d.CutFrom), bytesize.Text(d.BytesAfter)))
	}
}

// subjectOf says what a decision about the context of a model call is about.
func subjectOf(x *modelCall, d *gate.Decision) string {
	switch d.Source.Kind {
	case handoff.Dependency:
		for i := range x.offers {
			if x.offers[i].Source == d.Source {
				return fmt.Sprintf("the result of %q", x.offers[i].Title)
			}
		}
	case handoff.Input:
		return fmt.Sprintf("input %q", d.Source.Name)
	case handoff.Conversation:
		return "the " + d.Source.Name
	}
	return fmt.Sprintf("a %v from %q", d.Source.Kind, d.From)
}

// mayCut reports whether the caller lets an input be cut.
func (r *runScope) mayCut(name string) bool {
	return slices.ContainsFunc(r.options.Inputs, func(in plan.Input) bool { return in.Cut && strings.EqualFold(in.Name, name) })
}
