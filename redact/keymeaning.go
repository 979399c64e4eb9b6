package redact

import "strings"

// A keyMeaning is what is known of a key that has been looked at and found clean: arrays of objects have the same ones
// again and again.
type keyMeaning struct {
	key      string // a part of the value that is walked
	name     string // what the pair is for, of those that [frame.expect] knows
	class    nameClass
	says     kindSet
	addition bool
	disarmed bool
}

// keyMeanings is a table by the hash of the key; a newer key takes the place of the older of two.
type keyMeanings [32]keyMeaning

// places returns the two places that a key may have, the one of the newer key first.
func (t *keyMeanings) places(key string) (newer, older *keyMeaning) {
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
func (t *keyMeanings) of(key string) *keyMeaning {
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
func (t *keyMeanings) put(meaning keyMeaning) {
	newer, older := t.places(meaning.key)
	*older, *newer = *newer, meaning
}

// meaningOf returns what key says, placeholders in it aside.
func meaningOf(key string) keyMeaning {
	says, addition := kindsNamedBy(withoutPlaceholders(key))
	name := key
	if n := len(key); n > 0 && is(key[n-1], digitChar|spaceChar) {
		name = strings.TrimRight(key, " "+digits) // what unique may have added
	}
	name = withoutPlaceholders(name[max(0, len(name)-2*maxName):])
	return keyMeaning{key, pairName(key), classify(name), says, addition, disarmed(name)}
}

// pairName returns the key of a pair that names something, or holds its value; empty for any other key.
func pairName(key string) string {
	for _, name := range [...]string{"name", "key", "variable", "header", "field", "type", "label", "kind", "system", "value", "val", "defaultValue"} {
		if key == name {
			return name
		}
	}
	return ""
}

// in returns what the key says about its value in f: by itself, or by what stands around the object.
func (k keyMeaning) in(f *frame) nameClass {
	if k.class == noName && f.class != noName && !k.disarmed {
		return f.class.lower()
	}
	return k.class
}

// key reads a key and its colon, and sets what it says about the value.
func (w *walk) key(f *frame) error {
	from := w.at
	key, err := w.str()
	if err != nil {
		return err
	}
	if w.reveal != nil {
		f.token = strings.Clone(key)
	}
	if err := w.ruleKey(f, key, from); err != nil {
		return err
	}
	w.blanks()
	if !w.take(':') {
		return w.wrong("a colon")
	}
	w.blanks()
	return nil
}

// ruleKey looks at the key that begins at from, unless it is known to be clean.
func (w *walk) ruleKey(f *frame, key string, from int) error {
	if known := w.known.of(key); known != nil {
		f.expect(*known, known.in(f))
		w.keepKey(key)
		return nil
	}
	if err := w.r.settle(w.s, key, place{}); err != nil {
		return err
	}
	clean := w.s.settled
	meaning := meaningOf(w.s.plain(clean))
	if len(w.s.found) == 0 {
		if w.at-from == len(key)+2 { // no escapes: the key is a part of the value
			kept := meaning
			kept.key = w.in[from+1 : w.at-1]
			w.known.put(kept)
		}
		f.expect(meaning, meaning.in(f))
		w.keepKey(key)
		return nil
	}
	f.expect(meaning, max(meaningOf(w.s.plain(key)).in(f), meaning.in(f)))
	w.dirty = true
	if w.keep {
		w.counts = count(w.counts, w.s.found)
		w.renames = append(w.renames, len(w.edits))
		w.edits = append(w.edits, edit{from, w.at, clean})
	}
	return nil
}

func (w *walk) keepKey(key string) {
	if w.keep {
		w.keys = append(w.keys, strings.Clone(key))
	}
}

// expect sets what the next value of f is by its key, which says that it is of class.
func (f *frame) expect(key keyMeaning, class nameClass) {
	f.member, f.named, f.titled = class, false, false
	f.kinds = key.says
	if key.addition {
		f.kinds = f.says
	}
	switch key.name {
	case "name", "key", "variable", "header", "field":
		f.named = f.member == noName
		f.titled = f.named
	case "type", "label", "kind", "system":
		f.titled = true
	case "value", "val", "defaultValue":
		f.member = max(f.member, f.pair)
	}
}
