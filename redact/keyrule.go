package redact

import "strings"

// A keyRuling is what is known of a key that has been looked at and found clean: arrays of objects have the same ones
// again and again.
type keyRuling struct {
	key      string // a part of the value that is walked
	class    nameClass
	says     promise
	addition bool
	disarmed bool
}

// keyRulings is a table by the hash of the key; a newer key takes the place of an older one.
type keyRulings [32]keyRuling

// of returns the place of a key.
func (t *keyRulings) of(key string) *keyRuling {
	h := uint(len(key))
	if len(key) > 0 {
		h = h*31 + uint(key[0])
		h = h*31 + uint(key[len(key)/2])
		h = h*31 + uint(key[len(key)-1])
	}
	return &t[h%uint(len(t))]
}

// ruleOn returns what key says, placeholders in it aside.
func ruleOn(key string) keyRuling {
	says, addition := promiseOf(withoutPlaceholders(key))
	name := key
	if n := len(key); n > 0 && is(key[n-1], digitChar|spaceChar) {
		name = strings.TrimRight(key, " "+digits) // what unique may have added
	}
	name = withoutPlaceholders(name[max(0, len(name)-2*maxName):])
	return keyRuling{key, classify(name), says, addition, disarmed(name)}
}

// in returns what the key promises to its value in f: by itself, or by what stands around the object.
func (k keyRuling) in(f *frame) nameClass {
	if k.class == noName && f.class != noName && !k.disarmed {
		return f.class.lower()
	}
	return k.class
}
