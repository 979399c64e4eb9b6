package redact

import "sort"

// A reveal reports whether spans of kind may stay at path; see [Redactor.JSON]. The path of a text
// is nil.
type reveal func(kind Kind, path []string) bool

// A location is the leaf that is searched.
type location struct {
	reveal   reveal
	walk     *walk   // nil for a text
	keyKinds kindSet // the kinds that the key of the leaf names
	number   bool    // the leaf is a JSON number
}

// permits reports whether spans of kind may stay here.
func (p location) permits(kind Kind) bool {
	if p.reveal == nil || kind.Secret() {
		return false
	}
	if p.walk == nil {
		return p.reveal(kind, nil)
	}
	return p.reveal(kind, p.walk.path())
}

// splitRevealed sorts the hits of one text: those to redact stay in hits, those that may stay are
// returned.
func (s *scan) splitRevealed() (revealed []span) {
	if s.location.reveal == nil {
		return nil
	}
	revealed, redacted := s.room[:0], s.hits[:0]
	for _, h := range s.hits {
		if s.location.permits(h.Kind) {
			revealed = append(revealed, h)
		} else {
			redacted = append(redacted, h)
		}
	}
	s.room, s.hits = merge(revealed), redacted
	if len(s.room) == 0 {
		return nil
	}
	s.hits = withoutCovered(s.hits, s.room)
	return s.room
}

// withoutCovered returns the spans of redacted that are not within a more specific one of revealed,
// which is merged. A revealed span that overlaps one of these is redacted too.
func withoutCovered(redacted, revealed []span) []span {
	out := redacted[:0]
	for _, g := range redacted {
		i := covering(revealed, g)
		if i < 0 || revealed[i].Kind.rank() <= g.Kind.rank() {
			out = append(out, g)
		}
	}
	return out
}

// covering returns the index of the span of sorted, disjoint spans in which g lies, or -1.
func covering(spans []span, g span) int {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].End >= g.End })
	if i < len(spans) && spans[i].Start <= g.Start {
		return i
	}
	return -1
}

// overlapping returns out extended by the spans of standing that overlap one of going. Both are
// merged.
func overlapping(out, redacted, revealed []span) []span {
	k := 0
	for _, s := range revealed {
		for k < len(redacted) && redacted[k].End <= s.Start {
			k++
		}
		if k < len(redacted) && redacted[k].Start < s.End {
			out = append(out, s)
		}
	}
	return out
}
