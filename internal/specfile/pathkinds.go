package specfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	selection "github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// The kinds of values in a policy.

var (
	modeWord = words(string(handoff.Full), string(handoff.Scoped), string(handoff.Minimal))
	nameText = oneLine.checked(checkRuleName)

	neededText = oneLine.checked(checkGiven).orElse("write one")
	ruleSide   = neededText.ofOne(`write one rule for each pair, or "*" for all`)
	entrySide  = neededText.ofOne("write one entry for each pair")
	summary    = mapping.hinted("write {maxTokens: 200}").as(ref("summarize"))

	allowPaths = kind{name: "list of paths", want: "a list of paths", hint: "write a list such as [/score, /facts/**]", json: filledListOf(typed("string")), fits: is(isList), parts: checkAllow}
	blockPaths = kind{name: "list of paths and names", want: "a list of paths and names", hint: "write a list such as [/facts/notes, internal_notes]", json: filledListOf(typed("string")), fits: is(isList), parts: checkBlock}

	revealed      = kind{name: "mapping of lists of paths, by kind", want: "a mapping of kinds", hint: "write {iban: [/iban]}", json: object{{"type", "object"}, {"propertyNames", oneOf(kindNames())}, {"additionalProperties", filledListOf(typed("string"))}}, fits: is(isObject), parts: checkReveals}
	personalKinds = kind{name: "list of `" + strings.Join(kindNames(), "`, `") + "`", want: "a list of kinds", hint: "write a list such as [ip, mac]", json: filledListOf(oneOf(kindNames())), fits: is(isList), parts: checkKinds}
	filledList    = list.checked(checkNotEmpty)
	assertions    = kind{name: "list of assertions", want: "a list of assertions", hint: "write a line such as - internal_notes never reaches letters", json: listOf(filled), fits: is(isList), parts: checkAssertions}
)

// ofOne returns the kind with a hint for a list.
func (k kind) ofOne(many string) kind {
	k.many = many
	return k
}

// orElse returns the kind with a hint for null.
func (k kind) orElse(none string) kind {
	k.none = none
	return k
}

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
func checkNotEmpty(r *report, key string, n *node) bool {
	if n.len() > 0 {
		return true
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
	return false
}

func checkAllow(r *report, key string, n *node) bool {
	return checkPaths(r, key, n, selection.CheckAllow)
}

func checkBlock(r *report, key string, n *node) bool {
	return checkPaths(r, key, n, selection.CheckBlock)
}

// checkPaths checks each path of a list.
func checkPaths(r *report, key string, n *node, check func(task.Path) error) bool {
	if !checkNotEmpty(r, key, n) || !checkTexts(r, key, n) {
		return false
	}
	ok := true
	for _, item := range n.parts() {
		if err := check(task.Path(item.text)); err != nil {
			says, hint := advice(err, selection.ErrPath)
			if strings.HasPrefix(key, "reveal") && strings.HasPrefix(item.text, "*") {
				hint = `name the member: [/iban]; [""] is the whole value` // and not a path that would reveal more
			}
			r.badAs(item, fmt.Errorf("%w: %w", ErrInvalid, err), hint, "%s: %s", key, says)
			ok = false
		}
	}
	return ok
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
func checkKind(r *report, key string, src *source, at int, word string) bool {
	known := kindNames()
	if slices.Contains(known, word) {
		return true
	}
	hint := "write one of " + strings.Join(known, ", ")
	switch best := nearestOf(word, known...); {
	case redact.Kind(word).Secret() && key == "reveal":
		r.badAt(src, at, "leave it out", "%s: %s is a secret: no edge reveals it", key, word)
		return false
	case redact.Kind(word).Secret():
		r.badAt(src, at, "leave it out", "%s: %s is always redacted", key, word)
		return false
	case best != "":
		hint = fmt.Sprintf("did you mean %s? known are %s", best, strings.Join(known, ", "))
	}
	r.badAt(src, at, hint, "%s: unknown kind %s", key, quote(word))
	return false
}

func checkKinds(r *report, key string, n *node) bool {
	if !checkNotEmpty(r, key, n) || !checkTexts(r, key, n) {
		return false
	}
	ok := true
	for _, item := range n.parts() {
		ok = checkKind(r, key, item.src, item.at, item.text) && ok
	}
	return ok
}

// checkReveals checks the kinds and paths that are delivered unredacted.
func checkReveals(r *report, key string, n *node) bool {
	ok := true
	for _, item := range n.parts() {
		switch word := item.key; {
		case !checkKind(r, key, item.src, item.keyAt, word):
			ok = false
		case item.is != isList:
			r.bad(item, revealHint, "%s: %s: %s where a list of paths belongs", key, word, item.describe())
			ok = false
		default:
			ok = checkAllow(r, key+": "+word, item) && ok
		}
	}
	return ok
}

// checkGiven reports an empty text that is required.
func checkGiven(r *report, key string, n *node) bool {
	if strings.TrimSpace(n.text) != "" {
		return true
	}
	r.bad(n, "write "+key+": …", "%s: it is empty", key)
	return false
}

// checkRuleName checks the name of a rule.
func checkRuleName(r *report, key string, n *node) bool {
	if !checkNotBlank(r, key, n) {
		return false
	}
	err := naming.CheckName(n.text)
	if err != nil {
		r.badAs(n, fmt.Errorf("%w: %w", ErrInvalid, err), "write another name, or leave the key out", "%s: %v", key, err)
	}
	return err == nil
}

// checkAssertions checks the syntax of assertions.
func checkAssertions(r *report, key string, n *node) bool {
	if !checkTexts(r, key, n) {
		return false
	}
	ok := true
	for _, item := range n.parts() {
		if !checkNotBlank(r, key, item) {
			ok = false
			continue
		}
		if _, err := flow.ParseAssertion(item.text); err != nil {
			p, _ := errors.AsType[task.Problem](err)
			r.badAs(item, fmt.Errorf("%w: %w", ErrInvalid, err), p.Hint, "%s: %s: %s", key, quote(item.text), cmp.Or(p.Message, err.Error()))
			ok = false
		}
	}
	return ok
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
