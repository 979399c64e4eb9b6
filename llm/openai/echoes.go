package openai

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// A mark says what a byte of a text repeats.
type mark byte

const (
	noMark mark = iota
	promptMark
	keyMark
)

// echoes finds in a short text what it repeats of others.
type echoes struct {
	text    string
	marks   []mark // parallel to text
	views   []view // the text, as it is and decoded, in lower case
	plain   []view // the same without spaces and punctuation
	indexes []*index
}

func newEchoes(text string) *echoes {
	v := view{text: text, at: make([]span, len(text))}
	for i := range v.at {
		v.at[i] = span{uint16(i), uint16(i + 1)}
	}
	e := &echoes{text: text, marks: make([]mark, len(text))}
	for layer := 0; ; layer++ {
		e.views = append(e.views, v)
		e.views = v.appendPacked(e.views)
		next, changed := v.unescaped()
		if layer == maxLayers || !changed {
			break
		}
		v = next
	}
	e.plain = make([]view, len(e.views))
	for i := range e.views {
		e.plain[i] = e.views[i].squeezed()
		e.views[i].text = lower(e.views[i].text)
	}
	return e
}

// find marks what the text repeats of another: n bytes or more of it, or all of it
// if that is shorter.
func (e *echoes) find(of string, n int, as mark) {
	if len(of) < minSecret {
		return
	}
	e.findIn(e.views, of, min(n, len(of)), as)
	squeezed := squeeze(of)
	e.findIn(e.plain, squeezed, min(n, len(squeezed)), as)
}

// findIn marks what the views repeat of a text in any case: n bytes or more.
func (e *echoes) findIn(views []view, of string, n int, as mark) {
	if n < minSecret {
		return
	}
	x := e.index(views, n)
	if x == nil {
		return
	}
	for at := 0; at+n <= len(of); at++ {
		if !x.mayHave(of[at:]) {
			continue
		}
		passage := lower(of[at : at+n])
		if !x.marked[passage] {
			x.marked[passage] = true
			e.markAll(views, passage, as)
		}
	}
}

// markAll marks every place of a passage in the views.
func (e *echoes) markAll(views []view, passage string, as mark) {
	for i := range views {
		v := &views[i]
		for at := 0; ; at++ {
			next := strings.Index(v.text[at:], passage)
			if next < 0 {
				break
			}
			at += next
			for k := v.at[at].from; k < v.at[at+len(passage)-1].to; k++ {
				e.marks[k] = max(e.marks[k], as)
			}
		}
	}
}

// index returns the index of the passages of n bytes of views, or nil if there are none.
func (e *echoes) index(views []view, n int) *index {
	for _, x := range e.indexes {
		if x.n == n && &x.views[0] == &views[0] {
			return x
		}
	}
	count := 0
	for i := range views {
		count += max(len(views[i].text)-n+1, 0)
	}
	if count == 0 {
		return nil
	}
	x := &index{views: views, n: n, marked: map[string]bool{}, shift: 64 - bits.Len(uint(count*64))}
	x.seen = make([]uint64, 1<<(64-x.shift)/64+1)
	for i := range views {
		for at := 0; at+n <= len(views[i].text); at++ {
			a, b := x.hash(views[i].text[at:])
			x.seen[a>>6] |= 1 << (a & 63)
			x.seen[b>>6] |= 1 << (b & 63)
		}
	}
	e.indexes = append(e.indexes, x)
	return x
}

// An index says which passages of n bytes views may have.
type index struct {
	views  []view
	n      int
	seen   []uint64        // a Bloom filter: two bits for each passage
	shift  int             // from a hash to the number of a bit
	marked map[string]bool // passages that were looked for
}

// hash returns two bits for the passage at the start of s, ignoring case.
func (x *index) hash(s string) (uint64, uint64) {
	const lowerCase = 0x2020202020202020
	first, last := s[:4], s[x.n-4:x.n]
	h := uint64(binary.LittleEndian.Uint32([]byte(first)))<<32 | uint64(binary.LittleEndian.Uint32([]byte(last)))
	h = (h | lowerCase) * 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	return h >> x.shift, h << 24 >> x.shift
}

// mayHave reports whether the views may have the passage at the start of s.
func (x *index) mayHave(s string) bool {
	a, b := x.hash(s)
	return x.seen[a>>6]&(1<<(a&63)) != 0 && x.seen[b>>6]&(1<<(b&63)) != 0
}

// masked returns the text with a placeholder for what is marked. Around a key,
// the rest of the word is masked too.
func (e *echoes) masked() string {
	for i := 1; i < len(e.marks); i++ {
		if e.marks[i-1] == keyMark && inWord(e.text[i]) {
			e.marks[i] = keyMark
		}
	}
	for i := len(e.marks) - 2; i >= 0; i-- {
		if e.marks[i+1] == keyMark && inWord(e.text[i]) {
			e.marks[i] = keyMark
		}
	}
	var b strings.Builder
	last := noMark
	for i, m := range e.marks {
		switch {
		case m == noMark:
			b.WriteByte(e.text[i])
		case m == last:
		case m == keyMark:
			b.WriteString("[key]")
		default:
			b.WriteString("[prompt]")
		}
		last = m
	}
	return b.String()
}

// inWord reports whether a byte may be part of a key or of its encoded form.
func inWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || strings.IndexByte("-_+%=~", b) >= 0
}
