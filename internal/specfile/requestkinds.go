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

// Limits of stop texts. Endpoints have lower ones.
const (
	maxStops = 32
	maxStop  = 256 // characters
)

var stopText = object{{"type", "string"}, {"minLength", 1}, {"maxLength", maxStop}}

// checkStops checks a stop text or a list of them.
func checkStops(r *report, key string, n *node) {
	if n.is == isText {
		checkStop(r, key, n)
		return
	}
	if n.len() == 0 || n.len() > maxStops {
		r.bad(n, fmt.Sprintf("write from 1 to %d texts, or leave the key out", maxStops), "%s: %d texts", key, n.len())
		return
	}
	checkTexts(r, key, n)
	for i, item := range n.parts() {
		if item.is == isText {
			checkStop(r, fmt.Sprintf("%s[%d]", key, i), item)
		}
	}
}

// checkStop checks one stop text.
func checkStop(r *report, key string, n *node) {
	if size := len([]rune(n.text)); size == 0 || size > maxStop {
		r.bad(n, fmt.Sprintf("write from 1 to %d characters", maxStop), "%s: a text of %d characters", key, size)
	}
}

// stopList returns the stop texts.
func stopList(n *node) []string {
	if n != nil && n.is == isText {
		return []string{n.text}
	}
	return textList(n)
}

// checkExtraBody checks the members of extraBody.
func checkExtraBody(r *report, key string, n *node) {
	for _, member := range n.parts() {
		name := member.key
		if hint, reserved := connection.IsReserved(name); reserved {
			r.badKey(member, ErrInvalid, hint, "%s: %s cannot be set here", key, quote(name))
		} else if !connection.IsExtraName(name) {
			r.badKey(member, ErrInvalid, "write letters, digits, _, - and ., at most 64", "%s: %s is not a valid name", key, quote(name))
		}
	}
	if !r.passes(checkNoVariables, key, n) {
		return
	}
	text, err := n.appendJSON(nil)
	switch {
	case err != nil:
		r.bad(n, "write finite numbers", "%s: %v", key, err)
	case len(text) > connection.MaxExtraBody:
		r.bad(n, fmt.Sprintf("write at most %d KiB", connection.MaxExtraBody>>10), "%s: %d bytes", key, len(text))
	}
}

// checkNoVariables reports texts that look like a variable or a parameter as errors, since they
// would be sent unchanged.
func checkNoVariables(r *report, key string, n *node) {
	if n.is == isText && strings.Contains(n.text, opening) {
		r.bad(n, "write the value itself; credentials belong in apiKey or headers", "%s: ${…} is not replaced here", key)
	}
	for _, part := range n.parts() {
		checkNoVariables(r, key, part)
	}
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
