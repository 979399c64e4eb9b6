package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// adviseReveals warns of personal data that something reveals at a path without effect: a reader with these
// terms, which needs these parts, gets nothing there, or gets it in any case. byRule says that a rule of the terms
// reveals it.
func adviseReveals(about subject, reveal map[redact.Kind][]task.Path, terms *gate.Terms, need []task.Path, byRule bool, f *findings) {
	for _, kind := range slices.Sorted(maps.Keys(reveal)) {
		for k, p := range reveal[kind] {
			why, hint := vainReveal(terms, need, kind, p)
			if why == "" && !byRule && terms.RevealsAll(kind, p) {
				why, hint = "a rule of the policy reveals it already", "remove it here"
			}
			if why != "" {
				f.advise(about.at(string(kind), k), fmt.Sprintf("reveal of %s at %q has no effect: %s", kind, string(p), why), hint)
			}
		}
	}
}

// vainReveal says why revealing a kind at a path has no effect, and what to write; empty if it may have one.
func vainReveal(terms *gate.Terms, need []task.Path, kind redact.Kind, p task.Path) (why, hint string) {
	if !terms.Redacts(kind) {
		return "it is only redacted if a policy names the kind", fmt.Sprintf("remove it, or write redact: {kinds: [%s]} in the policy", kind)
	}
	if terms.Mode() == handoff.Minimal {
		return "only a heading and a status are delivered", "remove it, or write mode: full or mode: scoped in the rule of the pair"
	}
	s, err := terms.Delivers(need)
	if err != nil || s.Empty() || p == task.Whole { // what a task needs may be granted, or another problem says more
		return "", ""
	}
	if at, err := s.Only(p); err == nil && at.Empty() {
		return "nothing there is delivered", "reveal a path that is, or deliver the path too, by need, allow and block"
	}
	return "", ""
}
