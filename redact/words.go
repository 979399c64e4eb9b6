package redact

import "strings"

// wordTable maps each word of the lists to the key of its list.
func wordTable[V comparable](lists map[V]string) map[string]V {
	t := map[string]V{}
	for of, words := range lists {
		for word := range strings.FieldsSeq(words) {
			t[word] = of
		}
	}
	return t
}

// wordSet returns the words of a list as a set.
func wordSet(words string) map[string]bool { return wordTable(map[bool]string{true: words}) }

// maxWord bounds the words that are looked up, in bytes.
const maxWord = 32

// lookUp returns what a table says of a word, in any case of its ASCII letters.
func lookUp[V any](table map[string]V, word string) (v V) {
	var lower [maxWord]byte
	if word == "" || len(word) > len(lower) {
		return v
	}
	for i := range len(word) {
		lower[i] = toLower(word[i])
	}
	return table[string(lower[:len(word)])]
}

// oneOf reports whether v is one of words, in any case.
func oneOf(v string, words ...string) bool {
	for _, word := range words {
		if strings.EqualFold(v, word) {
			return true
		}
	}
	return false
}

// endings has the ends of names, by their last byte.
type endings [256][]ending

type ending struct {
	text  string
	class nameClass
	whole bool // nothing may precede it
}

// endingsOf returns the endings of lists, which commas separate. Those with = are whole names.
func endingsOf(lists map[nameClass]string) (t endings) {
	for class, names := range lists {
		for name := range strings.SplitSeq(names, ",") {
			name, whole := strings.CutPrefix(name, "=")
			last := name[len(name)-1]
			t[last] = append(t[last], ending{name, class, whole})
		}
	}
	return t
}

// minJoined is the least length of a name that has more than an ending.
const minJoined = 6

// class returns the highest class of the endings of a name.
func (t *endings) class(name string) (c nameClass) {
	if name == "" {
		return noName
	}
	of := t[name[len(name)-1]]
	for i := range of {
		if e := &of[i]; (len(name) == len(e.text) || !e.whole && len(name) >= minJoined) && strings.HasSuffix(name, e.text) {
			c = max(c, e.class)
		}
	}
	return c
}
