package matcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a glob.
const (
	MaxGlob         = 4 << 10   // bytes
	MaxAlternatives = 1_000     // that its braces stand for together
	maxExpanded     = 100 << 10 // characters of all alternatives
)

// ErrGlob reports a text that is no valid glob.
var ErrGlob = errors.New("invalid glob")

// A Glob is a pattern of paths: * and ? stand for characters of a name, ** for any folders, [a-z] and
// [^a-z] for one character, and {a,b} for alternatives, as if each were written out. A backslash takes the meaning
// from the next character. A glob without a slash matches the last part of a path. It is immutable and safe for
// concurrent use.
type Glob struct {
	pattern string
	anyDir  bool      // it matches the last part of a path
	options []globSeq // one for each choice of alternatives
}

// ParseGlob reads a glob. The error is [ErrGlob], or a [*LimitError] if the glob is too large.
func ParseGlob(pattern string) (*Glob, error) {
	if len(pattern) > MaxGlob {
		return nil, &LimitError{pattern, fmt.Sprintf("has more than %d bytes", MaxGlob)}
	}
	parts, rest, ok := globParts(pattern, false)
	if !ok || rest != "" {
		return nil, ErrGlob
	}
	e := expansion{}
	if e.expand(nil, parts, func(seq []globPart) { e.options = append(e.options, newSeq(seq)) }); e.tooLarge {
		return nil, &LimitError{pattern, fmt.Sprintf("stands for more than %d alternatives", MaxAlternatives)}
	}
	return &Glob{pattern, !strings.Contains(pattern, "/"), e.options}, nil
}

// String returns the glob as it was written.
func (g *Glob) String() string { return g.pattern }

// Match reports whether the glob matches a path.
func (g *Glob) Match(b *Budget, path string) (bool, error) {
	if g.anyDir {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	for _, option := range g.options {
		found, err := option.match(b, path, g.pattern)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// Globs are patterns of which one has to match.
type Globs []*Glob

// ParseGlobs reads a list of globs.
func ParseGlobs(patterns []string) (Globs, error) {
	out := make(Globs, len(patterns))
	for i, p := range patterns {
		var err error
		if out[i], err = ParseGlob(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Match reports whether one of the globs matches a path.
func (gs Globs) Match(b *Budget, path string) (bool, error) {
	for _, g := range gs {
		if found, err := g.Match(b, path); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// A globPart is one character, class or pair of braces of a glob.
type globPart struct {
	op      globOp
	char    rune
	class   []runeRange
	negated bool
	choices [][]globPart // of braces
	escaped bool         // a backslash is before it
}

type globOp uint8

const (
	opChar globOp = iota
	opAny         // ?
	opClass
	opStar    // *, or ** that is no part of its own
	opFolders // **/
	opRest    // ** at the end
	opBraces
)

type runeRange struct{ low, high rune }

// globParts reads a glob up to its end or, inside braces, up to the comma or brace that ends an
// alternative. It is not ok if the glob is not valid.
func globParts(s string, inside bool) (parts []globPart, rest string, ok bool) {
	for s != "" {
		p := globPart{}
		switch c := s[0]; {
		case inside && (c == ',' || c == '}'):
			return parts, s, true
		case c == '}':
			return nil, s, false
		case c == '*':
			p.op, s = opStar, s[1:]
		case c == '?':
			p.op, s = opAny, s[1:]
		case c == '[':
			p.op = opClass
			if p.class, p.negated, s, ok = globClass(s[1:]); !ok {
				return nil, s, false
			}
		case c == '{':
			p.op = opBraces
			for more := true; more; {
				var choice []globPart
				if choice, s, ok = globParts(s[1:], true); !ok || s == "" {
					return nil, s, false
				}
				p.choices = append(p.choices, choice)
				more = s[0] == ','
			}
			s = s[1:]
		default:
			if p.escaped = c == '\\'; p.escaped {
				if s = s[1:]; s == "" {
					return nil, s, false
				}
			}
			var n int
			p.char, n = utf8.DecodeRuneInString(s)
			s = s[n:]
		}
		parts = append(parts, p)
	}
	return parts, "", !inside
}

// globClass reads a class after its opening bracket.
func globClass(s string) (class []runeRange, negated bool, rest string, ok bool) {
	if negated = s != "" && (s[0] == '^' || s[0] == '!'); negated {
		s = s[1:]
	}
	next := func() (c rune) {
		s = strings.TrimPrefix(s, `\`)
		c, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		return c
	}
	for first := true; s != "" && (s[0] != ']' || first); first = false {
		if s[0] == ']' {
			return nil, false, s, false // it is empty
		}
		low := next()
		high := low
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			s = s[1:]
			high = next()
		}
		class = append(class, runeRange{low, high})
	}
	if s == "" {
		return nil, false, s, false
	}
	return class, negated, s[1:], true
}

// An expansion writes a glob out for each choice of alternatives.
type expansion struct {
	options  []globSeq
	chars    int
	tooLarge bool
}

// expand calls done with seq and each way to write parts after it.
func (e *expansion) expand(seq, parts []globPart, done func([]globPart)) {
	for i, p := range parts {
		if p.op != opBraces {
			seq = append(seq, p)
			continue
		}
		for _, choice := range p.choices {
			e.expand(slices.Clip(seq), choice, func(seq []globPart) { e.expand(seq, parts[i+1:], done) })
			if e.tooLarge {
				return
			}
		}
		return
	}
	if e.chars += len(seq) + 1; e.chars > maxExpanded || len(e.options) == MaxAlternatives {
		e.tooLarge = true
		return
	}
	done(seq)
}
