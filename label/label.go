// Package label defines sensitivity and trust labels for context.
//
// A [Classification] only rises when values are combined, and a [Trust] only
// falls: a value derived from several others is as sensitive as the most sensitive
// of them and as trusted as the least trusted. Both are plain values, safe to copy
// and to compare with < and >.
package label

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Classification is the sensitivity of a value or, as a clearance, the highest
// sensitivity that a reader may see. The levels are ordered with < and >.
//
// The zero value is Internal: a value without a label is for the team only.
type Classification int8

// The four levels, least sensitive first.
const (
	Public       Classification = iota - 1 // may go anywhere
	Internal                               // for the team; the default
	Confidential                           // for readers with a need to know
	Secret                                 // for a named pair of agents only; never in a log
)

// ErrUnknown reports an unknown name of a level. Errors of this package wrap it.
var ErrUnknown = errors.New("unknown label")

var levels = [...]string{"public", "internal", "confidential", "secret"}

// Classifications returns the names of all levels, least sensitive first.
func Classifications() []string { return slices.Clone(levels[:]) }

// ParseClassification returns the level with this name: exactly "public", "internal",
// "confidential" or "secret". For any other word, and for the empty string, it returns
// [Secret] and an error that wraps [ErrUnknown], so that ignoring the error is safe.
func ParseClassification(word string) (Classification, error) {
	for i, name := range levels {
		if word == name {
			return Public + Classification(i), nil
		}
	}
	return Secret, fmt.Errorf("%w %q: write one of %s", ErrUnknown, word, strings.Join(levels[:], ", "))
}

// Join returns the label of a value derived from values of both levels: the higher one.
func (c Classification) Join(d Classification) Classification { return max(c, d) }

// Valid reports whether c is one of the four levels.
func (c Classification) Valid() bool { return c >= Public && c <= Secret }

// String returns the level's name; a level that does not exist reads "classification(n)".
func (c Classification) String() string {
	if !c.Valid() {
		return fmt.Sprintf("classification(%d)", int8(c))
	}
	return levels[c-Public]
}

// MarshalText writes the level's name; a level that does not exist is an error.
func (c Classification) MarshalText() ([]byte, error) {
	if !c.Valid() {
		return nil, fmt.Errorf("%w %v", ErrUnknown, c)
	}
	return []byte(c.String()), nil
}

// UnmarshalText reads a level's name as [ParseClassification] does. After an error, c is
// [Secret].
func (c *Classification) UnmarshalText(text []byte) (err error) {
	*c, err = ParseClassification(string(text))
	return err
}

// Trust says whether a value is endorsed. The zero value is Untrusted: text from a
// model or a file is never trusted by itself.
type Trust uint8

// The two levels of trust, least trusted first.
const (
	Untrusted Trust = iota
	Endorsed
)

// Join returns the trust of a value derived from both: the lower one.
func (t Trust) Join(u Trust) Trust { return min(t, u) }

// String returns "untrusted" or "endorsed"; a level that does not exist reads "untrusted".
func (t Trust) String() string {
	if t == Endorsed {
		return "endorsed"
	}
	return "untrusted"
}

// MarshalText writes the name of the level.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads "untrusted" or "endorsed". After an error t is Untrusted.
func (t *Trust) UnmarshalText(text []byte) error {
	*t = Untrusted
	switch string(text) {
	case "untrusted":
	case "endorsed":
		*t = Endorsed
	default:
		return fmt.Errorf("%w %q: write untrusted or endorsed", ErrUnknown, text)
	}
	return nil
}
