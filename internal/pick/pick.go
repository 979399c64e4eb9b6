// Package pick decides which parts of a structured value paths select.
//
// A [Selection] holds lists of allow paths and a set of blocks. A part of a
// value is selected if every list covers it and no block names it, so that each addition
// narrows. The zero value selects nothing, and only [Everything] selects all.
//
// An allow path is an RFC 6901 pointer in which "*" means one element of an array or
// one member of an object. It grants the scalar at that place; with "/**" at its end
// it grants whatever is there, with all that is in it. The empty path is the value as
// a whole. Segments compare exactly, after NFC.
//
// A block is such a pointer, or a bare name, which counts at any depth. It
// removes whatever is there, with all that is in it, and compares loosely:
// case, compatibility forms and invisible characters make no difference.
package pick

import (
	"errors"

	"github.com/runteam/runteam/task"
)

// A Selection says which parts of a value are delivered: those that every list of paths
// covers and no block names.
//
// It is immutable and safe for concurrent use. The zero value selects nothing.
type Selection struct{ rules *rules }

var (
	everything = newRules(nil, nil)
	nothing    = newRules([][]pattern{nil}, nil)
)

// Everything selects all of any value. [Selection.Apply] then returns the value itself.
func Everything() Selection { return Selection{everything} }

func (s Selection) get() *rules {
	if s.rules == nil {
		return nothing
	}
	return s.rules
}

// Only narrows s to what the paths cover too. Paths of one call are
// alternatives, those of several calls must all agree; none select nothing.
//
// An error lists every invalid path (see [CheckAllow]) and comes with a
// Selection that selects nothing.
func (s Selection) Only(paths ...task.Path) (Selection, error) {
	list, err := parseAll(paths, parseAllow)
	if err != nil {
		return Selection{}, err
	}
	return s.And(Selection{newRules([][]pattern{ordered(list)}, nil)}), nil
}

// Except removes what the paths name from s, whatever the lists say.
//
// An error lists every invalid path (see [CheckBlock]) and comes with a
// Selection that selects nothing.
func (s Selection) Except(paths ...task.Path) (Selection, error) {
	blocks, err := parseAll(paths, parseBlock)
	if err != nil {
		return Selection{}, err
	}
	if len(blocks) == 0 {
		return Selection{s.get()}, nil
	}
	return s.And(Selection{newRules(nil, [][]pattern{ordered(blocks)})}), nil
}

// And selects what both select: all lists of both, less all blocks of both.
func (s Selection) And(t Selection) Selection {
	return Selection{s.get().and(t.get())}
}

func parseAll(paths []task.Path, parse func(task.Path) (pattern, error)) ([]pattern, error) {
	out := make([]pattern, 0, len(paths))
	var errs []error
	for _, p := range paths {
		one, err := parse(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, one)
	}
	return out, errors.Join(errs...)
}

// IsEverything reports whether s is [Everything]: it has no list and no block.
func (s Selection) IsEverything() bool {
	r := s.get()
	return len(r.lists) == 0 && len(r.excepts) == 0
}

// Whole reports whether an opaque text may be delivered: the whole is in every list and
// nothing is blocked.
func (s Selection) Whole() bool { return s.get().whole }

// Blocks reports whether s has a block.
func (s Selection) Blocks() bool { return len(s.get().excepts) > 0 }

// Paths returns the lists and the blocks as they were written, sorted and
// without doubles. No lists mean all of the value; an empty list, nothing.
func (s Selection) Paths() (lists [][]task.Path, blocks []task.Path) {
	r := s.get()
	for _, list := range r.lists {
		lists = append(lists, texts(list))
	}
	if len(r.excepts) > 0 {
		blocks = texts(r.flat().blocks)
	}
	return lists, blocks
}

func texts(patterns []pattern) []task.Path {
	out := make([]task.Path, len(patterns))
	for i, p := range patterns {
		out[i] = p.text
	}
	return out
}
