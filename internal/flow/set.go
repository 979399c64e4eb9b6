package flow

// A set is some of the readers, a bit for each.
type set []uint64

// newSets returns n empty sets with room for so many readers each, in one
// piece of memory.
func newSets(n, readers int) []set {
	words := (readers + 63) / 64
	all, sets := make(set, n*words), make([]set, n)
	for i := range sets {
		sets[i] = all[i*words : (i+1)*words : (i+1)*words]
	}
	return sets
}

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// grow adds all of t and reports whether that was anything new.
func (s set) grow(t set) (grown bool) {
	for k, word := range t {
		grown = grown || word&^s[k] != 0
		s[k] |= word
	}
	return grown
}
