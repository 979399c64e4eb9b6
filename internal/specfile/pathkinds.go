package specfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	selection "github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// The checks of values in a policy.

// kindNames returns the names of the personal kinds.
func kindNames() []string {
	var names []string
	for _, k := range redact.PersonalKinds() {
		names = append(names, string(k))
	}
	return names
}

// revealHint is the hint for a kind that is delivered unredacted.
const revealHint = `write where it may be: [/path], or [""] for the whole`

// checkNotEmpty reports an empty list, which would have no effect or allow nothing.
func checkNotEmpty(r *report, key string, n *node) {
	if n.len() > 0 {
		return
	}
	hint := "name something, or leave the key out"
	switch key {
	case "allow", "fields":
		hint = "write paths, or mode: minimal"
	case "need", "needToKnow":
		hint = `write paths, or [""] for the whole`
	case "paths":
		hint = "write the paths that are safe: [/path]"
	}
	if strings.HasPrefix(key, "reveal") {
		hint = revealHint
	}
	r.bad(n, hint, "%s: the list is empty", key)
}

// areTexts reports whether a list has items that are all texts.
func (r *report) areTexts(key string, n *node) bool {
	return r.passes(checkNotEmpty, key, n) && r.passes(checkTexts, key, n)
}

func checkAllow(r *report, key string, n *node) { checkPaths(r, key, n, selection.CheckAllow) }

func checkBlock(r *report, key string, n *node) { checkPaths(r, key, n, selection.CheckBlock) }

// checkPaths checks each path of a list.
func checkPaths(r *report, key string, n *node, check func(task.Path) error) {
	if !r.areTexts(key, n) {
		return
	}
	for _, item := range n.parts() {
		if err := check(task.Path(item.text)); err != nil {
			says, hint := advice(err, selection.ErrPath)
			if strings.HasPrefix(key, "reveal") && strings.HasPrefix(item.text, "*") {
				hint = `name the member: [/iban]; [""] is the whole value` // and not a path that would reveal more
			}
			r.badAs(item, fmt.Errorf("%w: %w", ErrInvalid, err), hint, "%s: %s", key, says)
		}
	}
}

// advice splits the text of an error, without its condition, into message and hint.
func advice(err, condition error) (says, hint string) {
	says = strings.TrimPrefix(err.Error(), condition.Error()+": ")
	if i := strings.LastIndex(says, ": write "); i >= 0 {
		return says[:i], says[i+2:]
	}
	return says, ""
}

// checkKind reports a word that is not a kind of personal data.
func (r *report) checkKind(key string, src *source, at int, word string) {
	known := kindNames()
	best := nearestOf(word, known...)
	switch {
	case slices.Contains(known, word):
	case redact.Kind(word).Secret() && key == "reveal":
		r.badAt(src, at, "leave it out", "%s: %s is a secret: no edge reveals it", key, word)
	case redact.Kind(word).Secret():
		r.badAt(src, at, "leave it out", "%s: %s is always redacted", key, word)
	case best != "":
		r.badAt(src, at, fmt.Sprintf("did you mean %s? known are %s", best, strings.Join(known, ", ")), "%s: unknown kind %s", key, quote(word))
	default:
		r.badAt(src, at, "write one of "+strings.Join(known, ", "), "%s: unknown kind %s", key, quote(word))
	}
}

func checkKinds(r *report, key string, n *node) {
	if !r.areTexts(key, n) {
		return
	}
	for _, item := range n.parts() {
		r.checkKind(key, item.src, item.at, item.text)
	}
}

// checkReveals checks the kinds and paths that are delivered unredacted.
func checkReveals(r *report, key string, n *node) {
	for _, item := range n.parts() {
		before := r.problems
		if r.checkKind(key, item.src, item.keyAt, item.key); r.problems > before {
			continue
		}
		if item.is != isList {
			r.bad(item, revealHint, "%s: %s: %s where a list of paths belongs", key, item.key, item.describe())
			continue
		}
		checkAllow(r, key+": "+item.key, item)
	}
}

// checkGiven reports an empty text that is required.
func checkGiven(r *report, key string, n *node) {
	if strings.TrimSpace(n.text) == "" {
		r.bad(n, "write "+key+": "+cmp.Or(examples[key], "…"), "%s: it is empty", key)
	}
}

// checkRuleName checks the name of a rule.
func checkRuleName(r *report, key string, n *node) {
	if !r.passes(checkNotBlank, key, n) {
		return
	}
	if err := naming.CheckName(n.text); err != nil {
		r.badAs(n, fmt.Errorf("%w: %w", ErrInvalid, err), "write another name, or leave the key out", "%s: %v", key, err)
	}
}

// checkAssertions checks the syntax of assertions.
func checkAssertions(r *report, key string, n *node) {
	if !r.passes(checkTexts, key, n) {
		return
	}
	for _, item := range n.parts() {
		if _, err := flow.ParseAssertion(item.text); err != nil && r.passes(checkNotBlank, key, item) {
			p, _ := errors.AsType[task.Problem](err)
			r.badAs(item, fmt.Errorf("%w: %w", ErrInvalid, err), p.Hint, "%s: %s: %s", key, quote(item.text), cmp.Or(p.Message, err.Error()))
		}
	}
}

// pathList returns the paths of a list; nil is nil.
func pathList(n *node) []task.Path {
	if n == nil {
		return nil
	}
	out := make([]task.Path, n.len())
	for i, item := range n.parts() {
		out[i] = task.Path(item.text)
	}
	return out
}
