package schema

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// ErrUnbounded reports a path at which a schema allows more than bounded values.
var ErrUnbounded = errors.New("not bounded")

// Bounded returns nil if every value at the path in a valid result carries
// little: a number, a boolean, null, a value of an enum or const, or a bounded
// text. The path is an allow path, as package pick reads them: a pointer of RFC
// 6901 with * for any member or item. It names a value that is no container; with
// a final /**, and as "", it takes containers too, and then all in them is bounded.
//
// A text is bounded by a "pattern" between ^ and $ that matches at most 64
// characters ("maxLength" may see to that) and spells at most 42 bits. Digits,
// the letters A to F and the signs of ASCII spell nothing. Any other class is
// counted by its size, and so is each choice, such as of alternatives, of how
// often something is repeated, or of upper and lower case: eight letters of one
// case pass, and so do codes, dates, UUIDs and hashes; sentences do not.
// "format" bounds nothing, since the validator does not check it.
//
// The names of members that a path takes along, by * or /**, come from
// "properties" alone, in an object that "additionalProperties": false closes.
// A list taken along has at most 64 items. Of "allOf", one schema that bounds
// the path is enough; of "anyOf" and "oneOf", all must; what "if" and "not"
// say, and what two schemas bound only together, does not count.
//
// All that the path takes along counts together, lists with all their items and
// nested ones too: at most 42 bits that spell, and 2,560 characters, as many as
// 64 numbers have. An object or list in which nothing else counts is one character. So is
// a value of an enum; as an item or a member among others it spells too if there are
// more than six values.
//
// What remains: digits, hexadecimal letters, signs, and choices among six spell
// nothing by themselves, but carry a message between two that have a code for
// it: 64 digits some 26 bytes, 64 numbers one kilobyte, and what may have 2,560
// of any of these characters two. Each path is bounded by itself; several add up.
// An error wraps [ErrUnbounded]; it says why, and what to write in the schema.
// Without a schema (nil), nothing is bounded.
func (s *Schema) Bounded(path task.Path) error {
	if s == nil {
		return fmt.Errorf("%s is %w: there is no schema; write one in outputSchema", shown(path), ErrUnbounded)
	}
	if err := pick.CheckAllow(path); err != nil {
		return fmt.Errorf("%w: %w", ErrUnbounded, err)
	}
	tokens := pick.Tokens(path)
	q := question{path: tokens, strict: true, deep: isDeep(path), known: map[asked]reach{}}
	if s.Has(tokens) != Yes {
		return fmt.Errorf("%s is %w: the schema has no %s; write it under \"properties\"", shown(path), ErrUnbounded, shown(path))
	}
	there := q.at(s.root, 0)
	c, _ := there.most()
	if c.level != free {
		if c.why = there.load().excess(); c.why == "" {
			return nil
		}
	}
	if c.why == "" {
		c.why = `the schema allows anything there: write "type": "number", "integer" or "boolean", or an "enum"`
	}
	return fmt.Errorf("%s is %w: %s", shown(path), ErrUnbounded, c.why)
}

// Capacity bounds how many bytes a path can carry in one valid result: of two
// results that differ at the path, so many bytes may tell which one it is. ok is
// false if the schema does not bound the path (see [Schema.Bounded]).
//
// Every value counts by how many there are to choose from, rounded up to whole
// bytes: an enum of 200 values 1 byte, a text by how many texts its pattern
// matches, a whole number between a minimum and a maximum by their distance, any
// other number between bounds within 2^53 8 bytes, and a number without bounds
// 17, as many as its 40 digits. A value that may only be there or not is 1 byte, and
// so is an object or list in which nothing else counts. A list counts maxItems
// times what an item does.
func (s *Schema) Capacity(path task.Path) (bytes int, ok bool) {
	if s.Bounded(path) != nil {
		return 0, false
	}
	q := question{path: pick.Tokens(path), strict: true, deep: isDeep(path), known: map[asked]reach{}}
	bits := q.at(s.root, 0).bits()
	if math.IsInf(bits, 0) {
		return 0, math.IsInf(bits, -1)
	}
	return int(wholeBytes(bits)) / 8, true
}

// isDeep reports whether a path takes containers, with all that is in them.
func isDeep(path task.Path) bool {
	return path == task.Whole || strings.HasSuffix(string(path), "/**")
}

// shown returns a path as errors name it.
func shown(path task.Path) string {
	if path == task.Whole {
		return "the result as a whole"
	}
	return string(path)
}
