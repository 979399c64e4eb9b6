package engine

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/redact"
)

// callInfo returns what a model reported of a call as the caller may see it. It is zero if the
// model does not report its calls.
func (v visibility) callInfo(of llm.CallInfo) llm.CallInfo {
	if of == (llm.CallInfo{}) || v.hidden {
		return llm.CallInfo{}
	}
	of = callinfo.Clean(of)
	for _, word := range []*string{&of.Model, &of.Endpoint, &of.RequestID, &of.FinishReason} {
		*word = masked(*word)
	}
	return of
}

// masked returns a text of an endpoint with secrets masked, or "" if it cannot be
// checked.
func masked(word string) string {
	clean, _, err := redact.Secrets().Text(word)
	if err != nil {
		return ""
	}
	return clean
}

// nonZero returns a copy of a call info, or nil if that is zero.
func nonZero(of llm.CallInfo) *llm.CallInfo {
	if of == (llm.CallInfo{}) {
		return nil
	}
	return new(of)
}

// orZero returns what p points to, or the zero value.
func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// maxWarnings bounds the different warnings of model calls that a run lists.
const maxWarnings = 20

// warnings returns warnings of model calls as the caller may see them. Warnings quote neither prompt nor reply, except
// for the name of a tool that was called, which the agent redacts. A model that read both could choose which ones to give.
func (v visibility) warnings(list []string) []string {
	if v.hidden {
		return nil
	}
	var out []string
	for _, w := range list[:min(len(list), maxWarnings+1)] {
		if w = masked(oneline.Of(w)); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// addModelWarnings adds the warnings of the model calls of a model call to those of the
// run, each once per agent.
func (r *recorder) addModelWarnings(x *modelCall) {
	all := x.visibility().warnings(x.reply.Warnings)
	for i := range x.spent {
		all = append(all, x.spent[i].warnings...)
	}
	for _, w := range all {
		text := fmt.Sprintf("agent %q: %s", x.caps.Agent, strings.TrimSpace(w))
		if r.warned[text] || len(r.warned) > maxWarnings {
			continue
		}
		if r.warned == nil {
			r.warned = map[string]bool{}
		}
		if r.warned[text] = true; len(r.warned) > maxWarnings {
			text = "more warnings of model calls are not listed here; the log has them at level debug"
		}
		r.warn(text)
	}
}
