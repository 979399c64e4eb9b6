package assign

import "math/bits"

// A set is some of the agents, a bit for each.
type set []uint64

// newSet returns the empty set, with room for n agents.
func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) add(i int32)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int32) bool { return s[i/64]&(1<<(i%64)) != 0 }

// keep removes from s what is not in t. The nil set is empty.
func (s set) keep(t set) {
	if t == nil {
		clear(s)
		return
	}
	for k := range s {
		s[k] &= t[k]
	}
}

func (s set) empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// appendTo appends the members in the order of the roster.
func (s set) appendTo(list []int32) []int32 {
	for k, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, int32(64*k+bits.TrailingZeros64(word)))
		}
	}
	return list
}
