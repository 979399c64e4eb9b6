package readyqueue

// A heap is a binary heap of ranks, the lowest first.
type heap []int32

func (h *heap) push(rank int32) {
	s := append(*h, rank)
	*h = s
	for k := len(s) - 1; k > 0; {
		parent := (k - 1) / 2
		if s[parent] <= rank {
			break
		}
		s[k], s[parent] = s[parent], rank
		k = parent
	}
}

func (h *heap) pop() int32 {
	s := *h
	best, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	k := 0 // the gap, which sinks until last fits
	for {
		child := 2*k + 1
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if child >= len(s) || last <= s[child] {
			break
		}
		s[k], k = s[child], child
	}
	if len(s) > 0 {
		s[k] = last
	}
	return best
}
