package redact

import "strings"

// A keyMeaning is what a key implies about its value.
type keyMeaning struct {
	role     pairRole
	class    nameClass
	keyKinds kindSet
	addition bool
	disarmed bool
}

// maxKnown is how many clean keys a walk remembers. Arrays of objects have the same keys again and
// again.
const maxKnown = 64

// meaningOf returns the meaning of a key, ignoring placeholders in it.
func meaningOf(key string) keyMeaning {
	keyKinds, addition := kindsNamedBy(withoutPlaceholders(key))
	name := key
	if n := len(key); n > 0 && is(key[n-1], digitChar|whitespaceChar) {
		name = strings.TrimRight(key, " "+digits) // [walk.unique] may have added it
	}
	name = withoutPlaceholders(name[max(0, len(name)-2*maxName):])
	return keyMeaning{pairRoles[key], classify(name), keyKinds, addition, disarmed(name)}
}

// A pairRole is what a key is for in a pair: {"name": "DB_PASSWORD", "value": …}, {"type": "phone",
// "number": …}.
type pairRole uint8

const (
	noRole     pairRole = iota
	namesPair           // its value is the name of the other value
	kindOfPair          // its value may name the kind of the other value
	pairValue
)

var pairRoles = wordTable(map[pairRole]string{
	namesPair: "name key variable header field", kindOfPair: "type label kind system", pairValue: "value val defaultValue",
})

// in returns the class of the value in f, by its own key or by the keys around the object.
func (k keyMeaning) in(f *frame) nameClass {
	if k.class == noName && f.class != noName && !k.disarmed {
		return f.class.lower()
	}
	return k.class
}

// key reads a key and its colon, and sets what is expected of the value.
func (w *walk) key(f *frame) error {
	from := w.at
	key, err := w.str()
	if err != nil {
		return err
	}
	if w.reveal != nil {
		f.token = strings.Clone(key)
	}
	if err := w.checkKey(f, key, from); err != nil {
		return err
	}
	w.skipSpaces()
	if !w.take(':') {
		return w.wrong("a colon")
	}
	w.skipSpaces()
	return nil
}

// checkKey searches the key that begins at from, unless it is known to be clean.
func (w *walk) checkKey(f *frame, key string, from int) error {
	if known, ok := w.known[key]; ok {
		f.expect(known, known.in(f))
		w.keys = append(w.keys, extent{from, w.at})
		return nil
	}
	if err := w.r.redact(w.s, key, location{}); err != nil {
		return err
	}
	clean := w.s.clean
	meaning := meaningOf(w.s.plain(clean))
	if len(w.s.found) == 0 {
		if w.at-from == len(key)+2 && len(w.known) < maxKnown { // no escapes: the key is a part of the value
			w.known[w.in[from+1:w.at-1]] = meaning
		}
		f.expect(meaning, meaning.in(f))
		w.keys = append(w.keys, extent{from, w.at})
		return nil
	}
	f.expect(meaning, max(meaningOf(w.s.plain(key)).in(f), meaning.in(f)))
	w.counts = count(w.counts, w.s.found)
	w.renames = append(w.renames, len(w.edits))
	w.edits = append(w.edits, edit{extent{from, w.at}, clean})
	return nil
}

// expect sets what is known about the next value of f from its key, which makes it one of
// class.
func (f *frame) expect(key keyMeaning, class nameClass) {
	f.member, f.named, f.titled = class, false, false
	f.kinds = key.keyKinds
	if key.addition {
		f.kinds = f.keyKinds
	}
	switch key.role {
	case namesPair:
		f.named = f.member == noName
		f.titled = f.named
	case kindOfPair:
		f.titled = true
	case pairValue:
		f.member = max(f.member, f.pair)
	}
}
