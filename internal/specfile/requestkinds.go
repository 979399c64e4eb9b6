package specfile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/connection"
)

// The settings of a model call that are not a plain number or word.

// maxSeed bounds a seed, because some JSON readers round larger numbers.
const maxSeed = 1 << 53

var seedNumber = kind{name: "whole number", want: "a whole number", hint: "write a number such as 7, without quotes"}.integers(-maxSeed, maxSeed)

// Limits of stop texts. Endpoints have lower ones.
const (
	maxStops = 32
	maxStop  = 256 // characters
)

var stopTexts = kind{
	name: "text, or list of 1 to 32", want: "a text, or a list of 1 to 32 texts", hint: `write a text such as "END", or ["END", "STOP"]`,
	json: anyOf(stopText, append(filledListOf(stopText), member{"maxItems", maxStops})), fits: is(isText, isList), parts: checkStops,
}

var stopText = object{{"type", "string"}, {"minLength", 1}, {"maxLength", maxStop}}

// checkStops checks a stop text or a list of them.
func checkStops(r *report, key string, n *node) bool {
	if n.is == isText {
		return checkStop(r, key, n)
	}
	if n.len() == 0 || n.len() > maxStops {
		r.bad(n, fmt.Sprintf("write from 1 to %d texts, or leave the key out", maxStops), "%s: %d texts", key, n.len())
		return false
	}
	ok := checkTexts(r, key, n)
	for i, item := range n.parts() {
		if item.is == isText && !checkStop(r, fmt.Sprintf("%s[%d]", key, i), item) {
			ok = false
		}
	}
	return ok
}

// checkStop checks one stop text.
func checkStop(r *report, key string, n *node) bool {
	if size := len([]rune(n.text)); size == 0 || size > maxStop {
		r.bad(n, fmt.Sprintf("write from 1 to %d characters", maxStop), "%s: a text of %d characters", key, size)
		return false
	}
	return true
}

// stopList returns the stop texts.
func stopList(n *node) []string {
	if n != nil && n.is == isText {
		return []string{n.text}
	}
	return textList(n)
}

var extraBody = kind{
	name: "mapping", want: "a mapping", hint: "write {name: value}", fits: is(isObject), parts: checkExtraBody,
	json: object{{"type", "object"}, {"propertyNames", object{{"pattern", connection.ExtraName}, {"not", oneOf(connection.Reserved())}}}},
}

// checkExtraBody checks the members of extraBody.
func checkExtraBody(r *report, key string, n *node) bool {
	ok := true
	for _, member := range n.parts() {
		name := member.key
		switch hint, reserved := connection.IsReserved(name); {
		case reserved:
			r.badKey(member, ErrInvalid, hint, "%s: %s cannot be set here", key, quote(name))
		case !connection.IsExtraName(name):
			r.badKey(member, ErrInvalid, "write letters, digits, _, - and ., at most 64", "%s: %s is not a valid name", key, quote(name))
		default:
			continue
		}
		ok = false
	}
	if !checkNoVariables(r, key, n) {
		return false
	}
	text, err := n.appendJSON(nil)
	switch {
	case err != nil:
		r.bad(n, "write finite numbers", "%s: %v", key, err)
		return false
	case len(text) > connection.MaxExtraBody:
		r.bad(n, fmt.Sprintf("write at most %d KiB", connection.MaxExtraBody>>10), "%s: %d bytes", key, len(text))
		return false
	}
	return ok
}

// checkNoVariables reports texts that look like a variable or a parameter as errors, since they
// would be sent unchanged.
func checkNoVariables(r *report, key string, n *node) bool {
	if n.is == isText && strings.Contains(n.text, opening) {
		r.bad(n, "write the value itself; credentials belong in apiKey or headers", "%s: ${…} is not replaced here", key)
		return false
	}
	ok := true
	for _, part := range n.parts() {
		ok = checkNoVariables(r, key, part) && ok
	}
	return ok
}

// jsonOf returns an object as JSON; nil if it is nil or empty.
func jsonOf(n *node) json.RawMessage {
	if n == nil || n.len() == 0 {
		return nil
	}
	text, err := n.appendJSON(nil)
	if err != nil {
		return nil // reported by checkExtraBody
	}
	return text
}
