package pick

import (
	"slices"

	"github.com/runteam/runteam/task"
)

// An Answer says whether values that are not known yet can have something at a path.
type Answer uint8

// The answers, in this order.
const (
	No    Answer = iota // none has
	Maybe               // nothing confirms and nothing excludes it
	Yes                 // it is named
)

// String returns the answer as one word.
func (a Answer) String() string { return [...]string{"no", "maybe", "yes"}[min(a, Yes)] }

// maxMeet bounds the patterns of an intersection. A list that would make more
// is left out of it, which can only make static answers more careful.
const maxMeet = 256

// intersection returns patterns that cover whatever all lists cover.
func intersection(lists [][]pattern) []pattern {
	meet := []pattern{{deep: true}}
	for _, list := range lists {
		if next := meetOf(meet, list); len(next) <= maxMeet {
			meet = next
		}
	}
	return meet
}

func meetOf(a, b []pattern) []pattern {
	var out []pattern
	for _, p := range a {
		for _, both := range narrowings(p, b) {
			same := func(q pattern) bool { return q.covers(both) && both.covers(q) }
			if !slices.ContainsFunc(out, same) {
				out = append(out, both)
			}
			if len(out) > maxMeet {
				return out
			}
		}
	}
	return out
}

// narrowings covers what p and one of the list cover; that is p alone if one covers all of it.
func narrowings(p pattern, list []pattern) []pattern {
	if slices.ContainsFunc(list, func(q pattern) bool { return q.covers(p) }) {
		return []pattern{p}
	}
	var out []pattern
	for _, q := range list {
		if p.covers(q) {
			out = append(out, q)
		} else if both, ok := meetPatterns(p, q); ok {
			out = append(out, both)
		}
	}
	return out
}

// covers reports that p covers whatever q covers.
func (p pattern) covers(q pattern) bool {
	if len(p.steps) > len(q.steps) || !p.deep && (q.deep || len(p.steps) < len(q.steps)) {
		return false
	}
	for i, s := range p.steps {
		if !s.any && (q.steps[i].any || s.name != q.steps[i].name) {
			return false
		}
	}
	return true
}

// meetPatterns covers what both cover.
func meetPatterns(p, q pattern) (pattern, bool) {
	if len(p.steps) > len(q.steps) {
		p, q = q, p
	}
	if !p.deep && len(p.steps) < len(q.steps) {
		return pattern{}, false
	}
	steps, ok := overlay(q.steps, p.steps)
	deep := q.deep && p.deep
	return pattern{steps: steps, deep: deep}, ok
}

// overlay narrows the steps of a way by those of another, as far as both go.
func overlay(way, other []step) ([]step, bool) {
	out := append([]step(nil), way...)
	for i := range min(len(way), len(other)) {
		switch {
		case out[i].any:
			out[i] = other[i]
		case !other[i].any && other[i].name != out[i].name:
			return nil, false
		}
	}
	return out, true
}

// blocked reports whether a block is certain to name every place on the way. Each "*" of
// the way is a name that no block has.
func (r *rules) blocked(way []step) bool {
	for _, b := range r.blocks {
		if b.names(way) {
			return true
		}
	}
	return false
}

func (p pattern) names(way []step) bool {
	if p.anywhere {
		for _, s := range way {
			if !s.any && s.loose == p.steps[0].loose {
				return true
			}
		}
		return false
	}
	if len(p.steps) > len(way) {
		return false
	}
	for i, b := range p.steps {
		if !b.any && (way[i].any || way[i].loose != b.loose) {
			return false
		}
	}
	return true
}

// Empty reports that s is certain to select nothing of any value: its lists
// have no place in common, or blocks name all that they have.
func (s Selection) Empty() bool {
	r := s.get().static()
	for _, p := range r.meet {
		if !r.blocked(p.steps) {
			return false
		}
	}
	return true
}

// MayPass reports whether s delivers something of some value at a path, beneath it,
// or in place of it: a scalar where the path continues. The path is given as names,
// not escaped; "*" is any one member or element, and each element is given as "*".
// It is false for what a block names.
//
// The answer is never false when some value has such a part that is delivered.
func (s Selection) MayPass(path []string) bool {
	r := s.get().static()
	asked := steps(path)
	if r.blocked(asked) {
		return false
	}
	for _, p := range r.meet {
		if way, ok := overlay(p.steps, asked); ok && !r.blocked(way) {
			return true
		}
	}
	return false
}

// MayPassName reports whether s delivers, of some value, a member of this name
// or a part of one, at any depth. It is never false when some value has one
// that is delivered.
func (s Selection) MayPassName(name string) bool {
	r := s.get().static()
	member := step{name: Exact(name), loose: Loose(name), index: -1}
	for _, p := range r.meet {
		if r.passesName(p, member) {
			return true
		}
	}
	return false
}

func (r *rules) passesName(p pattern, member step) bool {
	for i, s := range p.steps {
		if !s.any && s.name != member.name {
			continue
		}
		way := append([]step(nil), p.steps...)
		way[i] = member
		if !r.blocked(way) {
			return true
		}
	}
	return p.deep && r.passesBelow(p.steps, member)
}

// passesBelow looks beneath a granted place as deep as a block can tell places apart.
func (r *rules) passesBelow(way []step, member step) bool {
	for range MaxSegments + 1 {
		if !r.blocked(append(way[:len(way):len(way)], member)) {
			return true
		}
		way = append(way[:len(way):len(way)], anyStep)
	}
	return false
}

// Covers reports whether an allow path grants the leaf at a path, given as for
// [Selection.MayPass]; of a number too, which an array element may have, only
// "*" covers it. What is no allow path covers nothing.
func Covers(p task.Path, path []string) bool {
	allow, err := parseAllow(p)
	if err != nil || len(allow.steps) > len(path) || !allow.deep && len(allow.steps) < len(path) {
		return false
	}
	for i, s := range allow.steps {
		if !s.any && (path[i] == "*" || s.name != Exact(path[i])) {
			return false
		}
	}
	return true
}
