package scripted

import (
	"cmp"
	"slices"
	"strings"
)

// transcript makes replies from calls. If the calls are repeated in this order, the first
// reply that matches a call is its own.
func transcript(calls []*recorded) []Reply {
	bySubject := make(map[subject][]*recorded)
	turns := make(map[subject][]subject) // of each conversation, by its first turn
	var order []subject
	for _, c := range calls {
		first := c.asked.first()
		if turns[first] == nil {
			order = append(order, first)
		}
		if bySubject[c.asked] == nil {
			turns[first] = append(turns[first], c.asked)
		}
		bySubject[c.asked] = append(bySubject[c.asked], c)
	}
	slices.SortStableFunc(order, func(a, b subject) int { return cmp.Or(rank(a)-rank(b), len(b.goal)-len(a.goal)) })
	var all []Reply
	for _, first := range order {
		for _, s := range turns[first] {
			for _, v := range groups(bySubject[s], s.none()) {
				all = append(all, v.replies(len(turns[first]) > 1)...)
			}
		}
	}
	return all
}

// rank sorts replies that would also answer other calls to the end. Of goals, one may be a piece of another.
func rank(s subject) int {
	if s.none() {
		return 1
	}
	return 0
}

// A group is the calls about one subject with the same system prompt.
type group struct {
	system string // of the calls, in lower case
	piece  string // the piece of it that a script matches; empty if none is needed
	whole  bool   // other system prompts may have the piece too
	calls  []*recorded
}

// groups splits calls about one subject by their system prompts. A prompt that is
// contained in another comes after it, since it would match there too.
func groups(calls []*recorded, always bool) []*group {
	var all []*group
	known := make(map[string]*group)
	for _, c := range calls {
		lower := strings.ToLower(c.system)
		v := known[lower]
		if v == nil {
			v = &group{system: lower}
			known[lower] = v
			all = append(all, v)
		}
		v.calls = append(v.calls, c)
	}
	if len(all) > 1 || always {
		for _, v := range all {
			v.findPiece(all)
		}
	}
	slices.SortStableFunc(all, func(a, b *group) int { return b.last() - a.last() })
	return all
}

// last orders groups: those with a piece of their own first, then the longest prompt.
func (v *group) last() int {
	if !v.whole {
		return maxWhole
	}
	return len(v.system)
}

// maxPiece is about how much of a system prompt a script matches, in bytes.
const maxPiece = 100

// findPiece finds a piece of the system prompt that no other group has: the
// beginning of a line, or a line, or else the whole prompt.
func (v *group) findPiece(all []*group) {
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

// only reports whether no other group has a piece in its system prompt.
func (v *group) only(piece string, all []*group) bool {
	piece = strings.ToLower(piece)
	return !slices.ContainsFunc(all, func(other *group) bool { return other != v && strings.Contains(other.system, piece) })
}

// replies returns the replies of a group. Each but the last answers one call. Without
// hasTurns, only replies that call tools keep their turn.
func (v *group) replies(hasTurns bool) []Reply {
	all := make([]Reply, len(v.calls))
	for i, c := range v.calls {
		all[i] = *c.reply
		if all[i].System = v.piece; c.asked.goal != "" {
			all[i].Task, all[i].Goal = "", c.asked.goal
		}
		if !hasTurns && len(c.reply.ToolCalls) == 0 {
			all[i].Turn = 0
		}
		if i < len(v.calls)-1 {
			all[i].Times = 1
		}
	}
	return all
}
