package redact

import (
	"cmp"
	"slices"
)

// A window is the part of the text of a [Stream] that one search looks at. What precedes start is
// known; what precedes released was released.
type window struct {
	text            string
	whole           bool // nothing precedes the text
	start, released int
	known           []agedSpan // before start

	open    int                   // what precedes it is searched and, after settle, settled
	found   []span                // the spans between start and open
	rounds  [maxRounds + 1][]span // those before each round, and at the end
	shallow bool                  // the text must begin further back
	work    int
}

// An agedSpan is a span that [Redactor.redact] replaces before each round from since to until.
type agedSpan struct {
	span
	since, until int
}

func (k agedSpan) moved(by int) agedSpan {
	k.Start, k.End = k.Start+by, k.End+by
	return k
}

// newWindow returns the window text[from:end] of s.
func newWindow(text string, from, end int, s *Stream) window {
	w := window{text: text[from:], whole: from == 0, start: s.start - from, released: s.released - from, open: end - from}
	first, _ := slices.BinarySearchFunc(s.known, from, func(k agedSpan, at int) int { return cmp.Compare(k.Start, at) })
	for _, k := range s.known[first:] {
		w.known = append(w.known, k.moved(-from))
	}
	return w
}

// settle finds out how much of w is settled, and where the next search must begin. It is
// [Redactor.redact] for the beginning of a text.
//
// Each round searches the text up to where it is settled, with the spans of earlier rounds
// replaced. What follows may be replaced too, and that may change what detectors decide before it:
// therefore each round settles less, until one finds nothing and settles all.
func (w *window) settle(r *Redactor, s *scan, where location) {
	begin, open, resume := w.start, w.open, w.open
	var ties []extent
	var found []span
	w.open = begin
	s.location = where
	for round := range maxRounds {
		before := w.before(round, found)
		if !w.search(r, s, before, open) {
			return
		}
		o := originsOf(before)
		resume = min(resume, o.of(s.resume, false))
		ties = joinTies(append(ties, o.ties(s)...))
		settled := lastCut(w.text, o.of(s.open, false), begin, ties)
		if settled <= w.released {
			return
		}
		s.hits = slices.DeleteFunc(s.hits, func(h span) bool { return o.of(h.Start, false) >= settled })
		if revealed := s.splitRevealed(); len(s.hits) > 0 && len(revealed) > 0 {
			s.hits = overlapping(s.hits, merge(s.hits), revealed)
		}
		hits := len(s.hits) > 0
		if hits && round == maxRounds-1 {
			return // as Redactor.redact, which gives up
		}
		if hits {
			found = slices.DeleteFunc(union(before, s.hits), func(f span) bool { return f.Start < begin })
		}
		w.rounds[round+1] = slices.Clone(found)
		if !hits && settled == open && round >= w.lastChange() {
			w.repeat(round + 1)
			break
		}
		open = settled
		found = slices.DeleteFunc(found, func(f span) bool { return f.Start >= open })
	}
	w.open = lastCut(w.text, open, begin, ties)
	w.start = lastCut(w.text, min(resume, w.open), begin, ties)
	w.found = found
}

// search searches the text up to open, with spans replaced, and reports whether it could decide.
func (w *window) search(r *Redactor, s *scan, spans []span, open int) bool {
	text := replace(w.text[:open], spans)
	s.spare = maxDecoded*len(text) + 4096
	s.frontier = frontier{arriving: true, whole: w.whole, start: replaced(spans, w.start), ties: s.ties[:0]}
	r.searchForms(s, text, 0, given)
	w.work += len(text) + s.work
	w.shallow = s.shallow
	return s.stopped() == nil && s.spare >= 0 && !s.shallow
}

// before returns the spans that are replaced before a round: the known ones and those that this
// search has found.
func (w *window) before(round int, found []span) (out []span) {
	for _, k := range w.known {
		if k.since <= round && round <= k.until {
			out = append(out, k.span)
		}
	}
	return append(out, found...)
}

// lastChange returns the round from which on the known spans are the same.
func (w *window) lastChange() (round int) {
	for _, k := range w.known {
		round = max(round, k.since)
	}
	return round
}

// repeat notes that further rounds would find nothing more than there was before a round.
func (w *window) repeat(round int) {
	for k := round + 1; k <= maxRounds; k++ {
		w.rounds[k] = w.rounds[round]
	}
}

// aged returns the spans that have become known: those before the new start.
func (w *window) aged() (out []agedSpan) {
	for round := 1; round <= maxRounds; round++ {
		for _, f := range w.rounds[round] {
			if f.Start >= w.start || contains(w.rounds[round-1], f) {
				continue
			}
			until := round
			for until < maxRounds && contains(w.rounds[until+1], f) {
				until++
			}
			out = append(out, agedSpan{f, round, until})
		}
	}
	slices.SortFunc(out, func(a, b agedSpan) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// lastCut returns the last offset up to at at which the text can be cut, outside of ties, or floor.
func lastCut(text string, at, floor int, ties []extent) int {
	for at > floor {
		cut := seam(text, at)
		next, _ := slices.BinarySearchFunc(ties, cut, func(t extent, at int) int { return cmp.Compare(t.from, at) })
		if next > 0 && cut < ties[next-1].to {
			cut = ties[next-1].from
		}
		if cut == at {
			return at
		}
		at = cut
	}
	return floor
}

// joinTies sorts extents and joins those that overlap.
func joinTies(all []extent) []extent {
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	out := all[:0]
	for _, e := range all {
		if n := len(out); n > 0 && e.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, e.to)
			continue
		}
		out = append(out, e)
	}
	return out
}

// An origins maps offsets of a text with spans replaced to the text.
type origins struct {
	found  []span
	starts []int // of the placeholders
}

func originsOf(found []span) origins {
	o := origins{found, make([]int, len(found))}
	shift := 0
	for i, f := range found {
		o.starts[i] = f.Start + shift
		shift += len(f.Kind.Placeholder()) - (f.End - f.Start)
	}
	return o
}

// ties returns where what a search has found, and what it searched as one, comes from.
func (o origins) ties(s *scan) (out []extent) {
	for _, h := range s.hits {
		out = append(out, extent{o.of(h.Start, false), o.of(h.End, true)})
	}
	for _, t := range s.ties {
		out = append(out, extent{o.of(t.from, false), o.of(t.to, true)})
	}
	return out
}

// of returns where an offset comes from; within a placeholder, the start of its span, or the end of
// it.
func (o origins) of(at int, end bool) int {
	i, exact := slices.BinarySearch(o.starts, at)
	if exact && !end {
		i++
	}
	if i == 0 {
		return at
	}
	f := o.found[i-1]
	stop := o.starts[i-1] + len(f.Kind.Placeholder())
	switch {
	case at > stop || at == stop && !end:
		return at - stop + f.End
	case end:
		return f.End
	}
	return f.Start
}

// replaced returns where an offset outside of the spans is in the text with them replaced.
func replaced(found []span, at int) int {
	shift := 0
	for _, f := range found {
		if f.End <= at {
			shift += len(f.Kind.Placeholder()) - (f.End - f.Start)
		}
	}
	return at + shift
}

// contains reports whether sorted spans have s.
func contains(spans []span, s span) bool {
	i, ok := slices.BinarySearchFunc(spans, s.Start, func(t span, at int) int { return cmp.Compare(t.Start, at) })
	return ok && spans[i] == s
}
