package specfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The settings of a model call that are not a plain number or word.

// maxSeed bounds a seed, because some JSON readers round larger numbers.
const maxSeed = 1 << 53

var seedNumber = kind{
	name: "whole number", want: "a whole number", hint: "write a number such as 7, without quotes", json: bounded("integer", -maxSeed, maxSeed),
	fits: func(n *node) bool { i, ok := n.whole(); return ok && i >= -maxSeed && i <= maxSeed },
}

// seedOf returns a seed; nil is nil.
func seedOf(n *node) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(integer(n)))
}

// Limits of stop texts. Endpoints have lower ones.
const (
	maxStops = 32
	maxStop  = 256 // characters
)

var stopTexts = kind{
	name: "text, or list of 1 to 32", want: "a text, or a list of 1 to 32 texts", hint: `write a text such as "END", or ["END", "STOP"]`,
	json: anyOf(stopText, append(filledListOf(stopText), member{"maxItems", maxStops})), fits: is(isText, isList), parts: (*loader).stops,
}

var stopText = object{{"type", "string"}, {"minLength", 1}, {"maxLength", maxStop}}

// stops checks a stop text or a list of them.
func (l *loader) stops(key string, n *node) bool {
	if n.is == isText {
		return l.stop(key, n)
	}
	if n.len() == 0 || n.len() > maxStops {
		l.bad(n, ErrInvalid, fmt.Sprintf("write from 1 to %d texts, or leave the key out", maxStops), "%s: %d texts", key, n.len())
		return false
	}
	ok := l.onlyTexts(key, n)
	for i := range n.kids.nodes {
		if item := &n.kids.nodes[i]; item.is == isText && !l.stop(fmt.Sprintf("%s[%d]", key, i), item) {
			ok = false
		}
	}
	return ok
}

// stop checks one stop text.
func (l *loader) stop(key string, n *node) bool {
	if size := len([]rune(n.text)); size == 0 || size > maxStop {
		l.bad(n, ErrInvalid, fmt.Sprintf("write from 1 to %d characters", maxStop), "%s: a text of %d characters", key, size)
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

// maxExtraBody bounds extraBody, in bytes of JSON.
const maxExtraBody = 64 << 10

// extraName matches the names of members of extraBody.
const extraName = "^[A-Za-z0-9_.-]{1,64}$"

var isExtraName = regexp.MustCompile(extraName).MatchString

var extraBody = kind{
	name: "mapping", want: "a mapping", hint: "write {name: value}", fits: is(isObject), parts: (*loader).extraParts,
	json: object{{"type", "object"}, {"propertyNames", object{{"pattern", extraName}, {"not", oneOf(sortedKeys(ownMembers))}}}},
}

// ownMembers maps each member that extraBody must not have to the hint for its error.
// runteam writes these members itself, or they would change the model, the messages or
// the form of the reply. [openai.Config] has the same list.
var ownMembers = map[string]string{
	"model": "write model", "models": "write model, with one name",
	"messages": "write systemPrompt, and tasks with what they use", "prompt": "write systemPrompt, and tasks with what they use",
	"max_tokens": "write maxTokens", "max_completion_tokens": "write maxTokens, and maxTokensKey: max_completion_tokens",
	"temperature": "write temperature", "top_p": "write topP", "frequency_penalty": "write frequencyPenalty", "presence_penalty": "write presencePenalty",
	"seed": "write seed", "stop": "write stop", "reasoning_effort": "write reasoningEffort", "response_format": "write outputSchema",
	"stream": "remove it", "stream_options": "remove it",
	"tools": "remove it; agents have no tools yet", "tool_choice": "remove it; agents have no tools yet", "parallel_tool_calls": "remove it; agents have no tools yet",
	"functions": "remove it; agents have no tools yet", "function_call": "remove it; agents have no tools yet",
}

// extraParts checks the members of extraBody.
func (l *loader) extraParts(key string, n *node) bool {
	ok := true
	for i, name := range n.kids.keys {
		switch own := ownMember(name); {
		case own != "":
			l.badAt(n.src, n.kids.keyAt[i], ErrInvalid, ownMembers[own], "%s: %s cannot be set here", key, quote(name))
		case !isExtraName(name):
			l.badAt(n.src, n.kids.keyAt[i], ErrInvalid, "write letters, digits, _, - and ., at most 64", "%s: %s is not a valid name", key, quote(name))
		default:
			continue
		}
		ok = false
	}
	if !l.noVariables(key, n) {
		return false
	}
	text, err := n.appendJSON(nil)
	switch {
	case err != nil:
		l.bad(n, ErrInvalid, "write finite numbers", "%s: %v", key, err)
		return false
	case len(text) > maxExtraBody:
		l.bad(n, ErrInvalid, fmt.Sprintf("write at most %d KiB", maxExtraBody>>10), "%s: %d bytes", key, len(text))
		return false
	}
	return ok
}

// ownMember returns the one of ownMembers that a name means, or "". It ignores letter
// case, as some servers do.
func ownMember(name string) string {
	for own := range ownMembers {
		if strings.EqualFold(own, name) {
			return own
		}
	}
	return ""
}

// noVariables reports texts that look like a variable or a parameter as errors, since they
// would be sent unchanged.
func (l *loader) noVariables(key string, n *node) bool {
	if n.is == isText && strings.Contains(n.text, opening) {
		l.bad(n, ErrInvalid, "write the value itself; credentials belong in apiKey or headers", "%s: ${…} is not replaced here", key)
		return false
	}
	ok := true
	for i := range n.len() {
		ok = l.noVariables(key, &n.kids.nodes[i]) && ok
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
		return nil // extraParts reported it
	}
	return text
}
