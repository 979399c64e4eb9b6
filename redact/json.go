package redact

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// JSON redacts one strict JSON value as [Redactor.TextRevealing] redacts a text: in every string
// and every key, at any depth. The value of a member with a secret-like key is redacted whole, even
// where Text would need stronger evidence; a number there becomes the placeholder string. Booleans
// and null stay. A key that names a personal kind (homePhone, "ssn") replaces the word that would
// have to be next to the value in a text.
//
// Containers keep their type, order and length, and everything that is not redacted keeps its
// bytes. Keys that become equal get " 2", " 3", … after them. Because order is kept, the keys of a
// result whose keys were redacted may no longer be sorted as RFC 8785 requires. If nothing is
// found, JSON returns the same string and nil, without an allocation.
//
// A value that is split over neighboring strings and numbers of one array is found in their join,
// and its placeholder replaces each of them. Numbers are searched as decimal text without sign and
// exponent, and fractions only for own patterns.
//
// The path that reveal gets has the unescaped tokens of the JSON Pointer (RFC 6901) to the string
// or number, empty for the value itself. It must not keep path, and may be called more than once
// for one span. It is never called for secrets nor for keys, and nothing stays below a key that was
// redacted. A span stays only if its kind may stay in each of the elements that it is split over,
// and if no span to redact overlaps it. A less specific span within it, such as digits of an IBAN
// that also look like a phone number, does not count.
//
// JSON does not check for duplicate keys; decode strictly first. An error quotes nothing of the
// value.
func (r *Redactor) JSON(ctx context.Context, canonical string, reveal func(kind Kind, path []string) bool) (out string, redacted, revealed Counts, err error) {
	if at := invalidUTF8(canonical); at >= 0 {
		return "", nil, nil, fmt.Errorf("redact JSON: %w at byte %d of %d", errEncoding, at, len(canonical))
	}
	w := walks.Get().(*walk)
	w.r, w.s, w.reveal = r, newScan(ctx), reveal
	if err := r.guard(func() error { return w.redact(canonical) }); err != nil {
		return "", nil, nil, fmt.Errorf("redact JSON of %d bytes: %w", len(canonical), err)
	}
	out, redacted, revealed = w.in, w.counts, w.revealed
	w.free()
	return out, redacted, revealed, nil
}

// redact leaves in w.in the value without its spans. The last walk, which edits nothing, counts the
// revealed spans.
func (w *walk) redact(value string) error {
	w.in, w.counts = value, nil
	for range maxRounds {
		if err := w.run(); err != nil || len(w.edits) == 0 {
			return err
		}
		w.in = w.apply()
	}
	return errDiverged
}

var walks = sync.Pool{New: func() any { return &walk{known: map[string]keyMeaning{}} }}

// free returns w to the pool without its texts.
func (w *walk) free() {
	w.s.free()
	clear(w.edits)
	clear(w.known)
	if w.reveal != nil {
		clear(w.frames[:cap(w.frames)])
	}
	if cap(w.buf) > maxKept {
		w.buf = nil
	}
	w.in, w.s, w.reveal, w.counts, w.revealed = "", nil, nil, nil, nil
	walks.Put(w)
}

// maxDepth bounds the nesting of a JSON value, as encoding/json does.
const maxDepth = 10_000

// A walk goes through one JSON value.
type walk struct {
	r *Redactor
	s *scan
	jsonReader
	frames []frame // the first is around the value
	edits  []edit
	sorted bool // the edits are in order
	counts Counts
	row    row                   // neighboring leaves of the innermost array
	known  map[string]keyMeaning // what clean keys mean

	reveal   reveal
	revealed Counts // of this walk

	keys    []extent // clean keys of the open objects, the innermost last
	renames []int    // edits of keys of the open objects, the innermost last
}

// A frame is an open container.
type frame struct {
	object   bool
	class    nameClass // by the names around the container
	member   nameClass // of the next value
	named    bool      // the next value is the name of a pair
	pair     nameClass // of the value of a pair: {"name": "DB_PASSWORD", "value": …}
	keyKinds kindSet   // of the keys around the container, or of a pair: {"type": "phone", "number": …}
	kinds    kindSet   // of the next value
	titled   bool      // the next value names the kind of the value of a pair
	keys     int       // where its keys begin in walk.keys
	rename   int       // where its edited keys begin in walk.renames
	token    string    // the key of the next value, for a reveal
	index    int       // of the next value of an array
}

// An extent is in[from:to], a string with its quotes or a number.
type extent struct{ from, to int }

// An edit replaces an extent by text as a string.
type edit struct {
	extent
	text string
}

// run walks to the end of the value and collects its edits.
func (w *walk) run() error {
	w.frames = append(w.frames[:0], frame{object: true})
	w.at, w.keys, w.renames, w.edits, w.sorted, w.revealed = 0, w.keys[:0], w.renames[:0], w.edits[:0], true, nil
	w.row.reset()
	w.skipSpaces()
	for {
		opened, err := w.value()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		for { // after a value
			w.skipSpaces()
			if len(w.frames) == 1 {
				if w.at < len(w.in) {
					return w.wrong("the end of the value")
				}
				return nil
			}
			f := w.top()
			if w.take(',') {
				f.index++
				w.skipSpaces()
				if f.object {
					if err := w.key(f); err != nil {
						return err
					}
				}
				break
			}
			if err := w.joined(); err != nil { // the row of an array ends with it
				return err
			}
			if !w.close(f) {
				return w.wrong("a comma or the end of the container")
			}
		}
	}
}

// top returns the innermost open container.
func (w *walk) top() *frame { return &w.frames[len(w.frames)-1] }

// value reads one value, or opens a container and reads up to its first value. If opened is true, a
// value must follow.
func (w *walk) value() (opened bool, err error) {
	class, keyKinds := w.top().member, w.top().kinds
	if w.has('{') || w.has('[') {
		if err := w.joined(); err != nil {
			return false, err
		}
	}
	switch {
	case w.take('{'):
		return w.open(frame{object: true, class: class, keyKinds: keyKinds})
	case w.take('['):
		return w.open(frame{class: class, member: class, keyKinds: keyKinds, kinds: keyKinds})
	case w.has('"'):
		return false, w.text(class)
	case w.has('-'), at(w.in, w.at, digitChar):
		return false, w.number(class)
	}
	for _, literal := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(w.in[w.at:], literal) {
			w.at += len(literal)
			return false, w.joined()
		}
	}
	return false, w.wrong("a value")
}

// open enters a container.
func (w *walk) open(f frame) (opened bool, err error) {
	if len(w.frames) > maxDepth {
		return false, fmt.Errorf("%w: nested deeper than %d at byte %d", errSyntax, maxDepth, w.at)
	}
	f.keys, f.rename = len(w.keys), len(w.renames)
	w.frames = append(w.frames, f)
	top := w.top()
	w.skipSpaces()
	if w.close(top) {
		return false, nil
	}
	if f.object {
		return true, w.key(top)
	}
	return true, nil
}

// close leaves f if it ends here.
func (w *walk) close(f *frame) bool {
	if f.object && !w.take('}') || !f.object && !w.take(']') {
		return false
	}
	if len(w.renames) > f.rename {
		w.unique(f)
	}
	w.keys, w.renames = w.keys[:f.keys], w.renames[:f.rename]
	w.frames = w.frames[:len(w.frames)-1]
	return true
}

// text searches a string value.
func (w *walk) text(class nameClass) error {
	from := w.at
	text, err := w.str()
	if err != nil {
		return err
	}
	if err := w.r.redact(w.s, text, w.here()); err != nil {
		return err
	}
	clean := w.s.clean
	if f := w.top(); f.named || f.titled {
		name := withoutPlaceholders(w.s.plain(clean[:min(len(clean), 2*maxName)]))
		if f.named {
			f.pair = classify(name)
		}
		if f.titled {
			keyKinds, _ := kindsNamedBy(name)
			f.keyKinds |= keyKinds
		}
	}
	whole := class != noName && (secretLeaf(text, class) || secretLeaf(clean, class))
	if !whole {
		w.revealed = count(w.revealed, w.s.revealed)
		if len(w.s.found) == 0 {
			return w.add(from, clean, false)
		}
	}
	if whole {
		kind := kindPassword
		for _, f := range w.s.found {
			if f.Kind.rank() > kind.rank() {
				kind = f.Kind
			}
		}
		w.s.found, clean = append(w.s.found[:0], span{Kind: kind}), kind.Placeholder()
	}
	w.counts = count(w.counts, w.s.found)
	w.edits = append(w.edits, edit{extent{from, w.at}, strings.Clone(clean)})
	return w.add(from, clean, false)
}
