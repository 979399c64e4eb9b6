package redact

import "sort"

// A reveal reports whether spans of kind may stay at path; see [Redactor.JSON]. The path of a text is nil.
type reveal func(kind Kind, path []string) bool

// A place is the leaf that is being decided on.
type place struct {
	reveal reveal
	walk   *walk   // nil for a text
	says   kindSet // what the key of the leaf says
	number bool    // the leaf is a JSON number
}

// permits reports whether spans of kind may stand here.
func (p place) permits(kind Kind) bool {
	if p.reveal == nil || kind.Secret() {
		return false
	}
	if p.walk == nil {
		return p.reveal(kind, nil)
	}
	return p.reveal(kind, p.walk.path())
}

// part sorts the hits of one text: those that must go stay in hits, those that may stand are returned.
func (s *scan) part() (standing []span) {
	if s.place.reveal == nil {
		return nil
	}
	standing, going := s.standing[:0], s.hits[:0]
	for _, h := range s.hits {
		if s.place.permits(h.Kind) {
			standing = append(standing, h)
		} else {
			going = append(going, h)
		}
	}
	s.standing, s.hits = merge(standing), going
	if len(s.standing) == 0 {
		return nil
	}
	s.hits = beyond(s.hits, s.standing)
	return s.standing
}

// beyond returns the spans of going that do not lie in a more specific one of standing, which is merged. What overlaps
// one that remains goes too.
func beyond(going, standing []span) []span {
	out := going[:0]
	for _, g := range going {
		i := covering(standing, g)
		if i < 0 || standing[i].Kind.rank() <= g.Kind.rank() {
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

// overlapping returns out extended by the spans of standing that overlap one of going. Both are merged.
func overlapping(out, going, standing []span) []span {
	k := 0
	for _, s := range standing {
		for k < len(going) && going[k].End <= s.Start {
			k++
		}
		if k < len(going) && going[k].Start < s.End {
			out = append(out, s)
		}
	}
	return out
}
