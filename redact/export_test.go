package redact

import "context"

// Failing returns a redactor whose detector panics with a quotation of the text wherever an "!" stands.
func Failing() *Redactor {
	return build(detector{name: "failing", anchors: []anchor{{"!", "", ""}}, find: func(s *scan, i int) int { panic(s.text[i:]) }})
}

// Restless returns a redactor of a detector that finds a span in every text that has a bracket.
func Restless() *Redactor {
	return build(detector{name: "restless", anchors: []anchor{{"[", "", ""}}, find: func(s *scan, i int) int {
		s.hit(Token, i, i+1)
		return i
	}})
}

// Work returns how many bytes r looked at beyond the pass itself, over all rounds on text.
func Work(r *Redactor, text string) int {
	s := newScan(context.Background())
	defer s.free()
	work := 0
	s.found, s.settled = s.found[:0], text
	for range maxRounds {
		s.spare = maxDecoded*len(s.settled) + 4096
		r.look(s, s.settled, 0, given)
		work += s.work
		if len(s.hits) == 0 {
			break
		}
		s.found = union(s.found, s.hits)
		s.settled = replace(text, s.found)
	}
	s.found = s.found[:0]
	return work
}
