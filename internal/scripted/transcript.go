package scripted

import (
	"slices"
	"strings"
)

// transcript makes replies of calls: for each of these the first reply that
// matches is its own, if they come again in this order.
func transcript(calls []*recorded) []Reply {
	bySubject := make(map[subject][]*recorded)
	var order []subject
	for _, c := range calls {
		if bySubject[c.asked] == nil {
			order = append(order, c.asked)
		}
		bySubject[c.asked] = append(bySubject[c.asked], c)
	}
	slices.SortStableFunc(order, func(a, b subject) int { return rank(a) - rank(b) })
	var all []Reply
	for _, s := range order {
		for _, v := range voices(bySubject[s], s.none()) {
			all = append(all, v.replies()...)
		}
	}
	return all
}

// rank puts last what also would answer the calls of others.
func rank(s subject) int {
	if s.none() {
		return 1
	}
	return 0
}

// A voice is the calls about one subject that have one system prompt.
type voice struct {
	system string // of the calls, in lower case
	piece  string // what of it a script matches; empty if it need not
	whole  bool   // the piece may stand in the system prompts of other voices too
	calls  []*recorded
}

// voices tells calls about one subject apart by their system prompts. One that
// is contained in another comes after it, since it would match there too.
func voices(calls []*recorded, always bool) []*voice {
	var all []*voice
	known := make(map[string]*voice)
	for _, c := range calls {
		lower := strings.ToLower(c.system)
		v := known[lower]
		if v == nil {
			v = &voice{system: lower}
			known[lower] = v
			all = append(all, v)
		}
		v.calls = append(v.calls, c)
	}
	if len(all) > 1 || always {
		for _, v := range all {
			v.tell(all)
		}
	}
	slices.SortStableFunc(all, func(a, b *voice) int { return b.last() - a.last() })
	return all
}

// last orders voices: those that nothing else has in it first, then the longest.
func (v *voice) last() int {
	if !v.whole {
		return maxWhole
	}
	return len(v.system)
}

// maxPiece is about how much of a system prompt tells it from others, in bytes.
const maxPiece = 100

// tell finds a piece of the system prompt that no other voice has: the
// beginning of a line, or a line, or else the whole of it.
func (v *voice) tell(all []*voice) {
	system := v.calls[0].system
	for line := range strings.Lines(system) {
		line = strings.TrimSpace(line)
		for _, some := range []string{strings.TrimSpace(line[:piece(line, 0, maxPiece)]), line} {
			if some != "" && v.only(some, all) {
				v.piece = some
				return
			}
		}
	}
	v.piece, v.whole = system, true
}

// only reports whether no other voice has a piece in its system prompt.
func (v *voice) only(piece string, all []*voice) bool {
	piece = strings.ToLower(piece)
	return !slices.ContainsFunc(all, func(other *voice) bool { return other != v && strings.Contains(other.system, piece) })
}

// replies returns the replies of a voice, each for one call but the last.
func (v *voice) replies() []Reply {
	all := make([]Reply, len(v.calls))
	for i, c := range v.calls {
		all[i] = *c.reply
		all[i].System = v.piece
		if i < len(v.calls)-1 {
			all[i].Times = 1
		}
	}
	return all
}
