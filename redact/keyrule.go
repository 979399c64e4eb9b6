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

// keyRulings is a table by the hash of the key; a newer key takes the place of the older of two.
type keyRulings [32]keyRuling

// places returns the two places that a key may have, the one of the newer key first.
func (t *keyRulings) places(key string) (newer, older *keyRuling) {
	h := uint(len(key))
	if len(key) > 0 {
		h = h*31 + uint(key[0])
		h = h*31 + uint(key[len(key)/2])
		h = h*31 + uint(key[len(key)-1])
	}
	h = h * 2 % uint(len(t))
	return &t[h], &t[h+1]
}

// of returns what is known of a key, nil for nothing.
func (t *keyRulings) of(key string) *keyRuling {
	newer, older := t.places(key)
	switch {
	case key == "": // as in an empty place
		return nil
	case newer.key == key:
		return newer
	case older.key == key:
		return older
	}
	return nil
}

// put adds what is known of a key.
func (t *keyRulings) put(ruling keyRuling) {
	newer, older := t.places(ruling.key)
	*older, *newer = *newer, ruling
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
