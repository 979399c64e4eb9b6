package redact

import "strings"

// secretLeaf reports whether text is a secret as the whole value of a member whose key is of class
// c.
func secretLeaf(text string, c nameClass) bool {
	text = strings.TrimSpace(withoutPlaceholders(text[:min(len(text), maxLook)]))
	h := shapeOf(text)
	if h.letters+h.digits+h.foreign+h.symbols == 0 || filler(h) || h.located() {
		return false
	}
	switch {
	case c == wordName && h.spaces > 0:
		return !label(text)
	case c == wordName:
		return true
	case c == firmName:
		return h.random(8) || h.mixed(6) && !compound(text, h)
	}
	return h.random(10) && !address(text)
}

// sentenceWords are words of sentences about secrets, and the small words of any sentence.
var sentenceWords = wordSet("your enter required must should not none please forgot minimum invalid " +
	"the a an of to for in is are be has with will can and or at least characters")

// label reports a sentence about a secret rather than a pass phrase: it names what it is about, or
// has the small words of a sentence.
func label(text string) bool {
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, ".,:;!?()\"'")
		if classify(word) != noName || lookUp(sentenceWords, word) {
			return true
		}
	}
	return false
}

// phrase reports a quoted value of several words that is a pass phrase: a word of it is made up, or
// there are four or more and all in lower case.
func phrase(text string, h shape) bool {
	if h.foreign > 0 || is(text[0], whitespaceChar) || is(text[len(text)-1], whitespaceChar) || label(text) {
		return false
	}
	words := 0
	for word := range strings.FieldsSeq(text) {
		if shapeOf(word).mixed(4) {
			return true
		}
		words++
	}
	return words >= 4 && h.uppers == 0 && h.letters+h.spaces == len(text)
}

// disarmed reports a key that says itself what its value is: the length of a password, the type of
// a token.
func disarmed(key string) bool {
	end := len(key)
	for end > 0 && !is(key[end-1], letterChar) {
		end--
	}
	start := end
	for start > 0 && is(key[start-1], lowerChar) {
		start--
	}
	if start > 0 && is(key[start-1], upperChar) {
		start--
	}
	return lookUp(afterSecret, key[start:end])
}

// withoutPlaceholders returns text, a short one, without the placeholders in it.
func withoutPlaceholders(text string) string {
	k := strings.Index(text, "[REDACTED:")
	if k < 0 {
		return text
	}
	out := []byte(text[:k])
	for k < len(text) {
		if end := placeholderEnd(text, k); end > k {
			k = end
			continue
		}
		out = append(out, text[k])
		k++
	}
	return string(out)
}
