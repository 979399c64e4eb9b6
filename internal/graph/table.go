package graph

import (
	"hash/maphash"
	"math/bits"
)

// A table finds the index of a text among texts that lie elsewhere. It is a
// hash table with open addressing whose slots hold a piece of the hash and the
// index, without pointers: half the time of a map at a hundred thousand tasks,
// and nothing for the garbage collector to look at.
type table struct {
	slots []uint64 // hash << 32 | index + 1; zero is free
}

// seed differs from process to process, so that nobody can write titles that
// collide. No answer depends on it.
var seed = maphash.MakeSeed()

// newTable returns a table with room for n texts.
func newTable(n int) table {
	return table{slots: make([]uint64, 1<<bits.Len(uint(2*n)))}
}

// find returns the index of a text, where at returns the text of an index, or
// the slot where it would stand.
func find[T string | []byte](t *table, hash uint64, text T, at func(i int32) string) (i int32, slot uint64, ok bool) {
	if len(t.slots) == 0 {
		return 0, 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for slot = hash & mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		if t.slots[slot]>>32 == hash>>32 {
			if i = int32(uint32(t.slots[slot])) - 1; at(i) == string(text) {
				return i, slot, true
			}
		}
	}
	return 0, slot, false
}

// get returns the index of a text.
func (t *table) get(text string, at func(i int32) string) (i int32, ok bool) {
	i, _, ok = find(t, maphash.String(seed, text), text, at)
	return i, ok
}

// getBytes is get without a conversion.
func (t *table) getBytes(text []byte, at func(i int32) string) (i int32, ok bool) {
	i, _, ok = find(t, maphash.Bytes(seed, text), text, at)
	return i, ok
}

// put enters a text with its index, unless it is there already; then it
// returns the index that stands there.
func (t *table) put(text string, i int32, at func(i int32) string) (first int32, ok bool) {
	hash := maphash.String(seed, text)
	first, slot, found := find(t, hash, text, at)
	if !found {
		t.slots[slot] = hash>>32<<32 | uint64(uint32(i+1))
		return i, true
	}
	return first, false
}
