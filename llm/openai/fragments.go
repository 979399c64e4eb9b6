package openai

import (
	"bytes"
	"encoding/json"
)

// joinFragments makes one call of calls beside each other that have one name, and arguments that are JSON
// only together: some servers give each piece of a call another ID and repeat the name. Pieces of other
// calls may follow until the reply has ended. If it has not, the last calls are joined if they may still
// become one, so that their number stays below the limit; each piece is then read once, however many come.
func (s *toolCalls) joinFragments(hasEnded bool) {
	kept := s.list[:s.whole]
	for i := s.whole; i < len(s.list); {
		s.whole = len(kept)
		n, isCall := fragments(s.list[i:], hasEnded)
		if isCall {
			for k := i + 1; k < i+n; k++ {
				s.list[i].join(&s.list[k])
			}
			kept = append(kept, s.list[i])
		} else {
			kept = append(kept, s.list[i:i+n]...)
		}
		i += n
	}
	s.list, s.size = kept, 0
	for i := range s.list {
		s.size += s.list[i].size()
	}
}

// fragments returns how many calls at the start of a list are one call, else how many are known to be none.
func fragments(list []toolCall, hasEnded bool) (n int, isCall bool) {
	continues := func(n int) bool {
		return n < len(list) && (len(list[n].name) == 0 || bytes.Equal(list[n].name, list[0].name))
	}
	first := 0 // with arguments
	if len(list[0].arguments) == 0 {
		first = 1
	}
	if !continues(first) || list[first].object.closed || !bytes.HasPrefix(bytes.TrimSpace(list[first].arguments), []byte("{")) {
		return 1, false
	}
	object := list[first].object
	for n = first + 1; continues(n); n++ {
		if object.add(list[n].arguments); !object.closed {
			continue
		}
		if continues(n+1) && !continues(n+2) && len(list[n+1].arguments) == 0 {
			n++ // the last piece
		}
		return n + 1, isJSON(list[:n+1])
	}
	isOpen := !hasEnded && n == len(list)
	for i := range list[:n] {
		isOpen = isOpen && list[i].index == list[0].index
	}
	return n, isOpen
}

// isJSON reports whether the arguments of calls are JSON together.
func isJSON(list []toolCall) bool {
	var all []byte
	for i := range list {
		all = append(all, list[i].arguments...)
	}
	return json.Valid(all)
}

// join adds another call as a piece.
func (t *toolCall) join(piece *toolCall) {
	t.arguments = append(t.arguments, piece.arguments...)
	t.object.add(piece.arguments)
	t.latest, t.pieces = nil, true
	t.members.join(&piece.members)
	t.function.join(&piece.function)
}

// join adds other members as pieces.
func (m *members) join(piece *members) {
	for name, value := range partsOf(piece.object()) {
		m.add(unquoted(name), value, asDelta)
	}
	m.excess = m.excess || piece.excess
}
