package pick

import "slices"

// Within reports that it is certain that s selects no more of any value than t does. It may be false
// where that cannot be seen from the paths alone.
func (s Selection) Within(t Selection) bool {
	if s.Empty() || t.Whole() {
		return true
	}
	own, other := s.get().static(), t.get().static()
	for _, list := range other.lists {
		within := func(own []pattern) bool {
			return !slices.ContainsFunc(own, func(p pattern) bool {
				return !slices.ContainsFunc(list, func(q pattern) bool { return q.covers(p) })
			})
		}
		if !slices.ContainsFunc(own.lists, within) && !within(own.meet) {
			return false
		}
	}
	for _, b := range other.blocks {
		kept := slices.ContainsFunc(own.blocks, func(p pattern) bool { return p.blocksAll(b) })
		if !kept && slices.ContainsFunc(own.meet, func(p pattern) bool { return b.mayTouch(p) }) {
			return false
		}
	}
	return true
}

// blocksAll reports that a block blocks whatever another one does.
func (p pattern) blocksAll(b pattern) bool {
	switch {
	case p.anywhere:
		return slices.ContainsFunc(b.steps, func(s step) bool { return !s.any && s.loose == p.steps[0].loose })
	case b.anywhere, len(p.steps) > len(b.steps):
		return false
	}
	for i, s := range p.steps {
		if !s.any && (b.steps[i].any || s.loose != b.steps[i].loose) {
			return false
		}
	}
	return true
}

// mayTouch reports whether a block may name a part of what an allowed path covers.
func (p pattern) mayTouch(allowed pattern) bool {
	if p.anywhere {
		return allowed.deep || slices.ContainsFunc(allowed.steps, func(s step) bool { return s.any || s.loose == p.steps[0].loose })
	}
	if len(allowed.steps) < len(p.steps) && !allowed.deep {
		return false
	}
	for i := range min(len(allowed.steps), len(p.steps)) {
		a, b := allowed.steps[i], p.steps[i]
		if !a.any && !b.any && a.loose != b.loose {
			return false
		}
	}
	return true
}
