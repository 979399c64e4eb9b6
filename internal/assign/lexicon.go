package assign

import "math/bits"

// A lexicon numbers words from 0. It is a hash table with open addressing
// whose slots hold a piece of the hash and the number: a text is nearly all
// words to look up, most of which no agent has, and those are so missed
// without a look at any word.
type lexicon struct {
	slots    []uint64 // hash >> 32 << 32 | number + 1; zero is free
	words    []word
	function []uint32 // of each word, see [functionWords]
}

// hash multiplies by 2⁶⁴ over the golden ratio, so that the upper bits depend
// on all letters. It is no secret, and the same everywhere.
func (w word) hash() uint64 { return (w.head ^ bits.RotateLeft64(w.tail, 22)) * 0x9e3779b97f4a7c15 }

// find returns the number of a word, or the free slot where it would stand.
func (l *lexicon) find(w word) (id int32, slot uint64, ok bool) {
	hash, mask := w.hash(), uint64(len(l.slots)-1)
	for slot = hash >> 32 & mask; l.slots[slot] != 0; slot = (slot + 1) & mask {
		if e := l.slots[slot]; e>>32 == hash>>32 && l.words[uint32(e)-1] == w {
			return int32(uint32(e)) - 1, slot, true
		}
	}
	return 0, slot, false
}

// get returns the number of a word that is there and, with this many letters,
// no function word.
func (l *lexicon) get(w word, letters int) (id int32, ok bool) {
	id, _, ok = l.find(w)
	return id, ok && l.function[id]>>letters&1 == 0
}

// put returns the number of a word, a new one if it is not there.
func (l *lexicon) put(w word) int32 {
	if 2*len(l.words) >= len(l.slots) {
		l.grow()
	}
	id, slot, ok := l.find(w)
	if !ok {
		id = int32(len(l.words))
		l.words, l.function = append(l.words, w), append(l.function, functionWords[w])
		l.slots[slot] = w.hash()>>32<<32 | uint64(id+1)
	}
	return id
}

// grow doubles the slots.
func (l *lexicon) grow() {
	l.slots = make([]uint64, max(2*len(l.slots), 64))
	for id, w := range l.words {
		_, slot, _ := l.find(w)
		l.slots[slot] = w.hash()>>32<<32 | uint64(id+1)
	}
}
