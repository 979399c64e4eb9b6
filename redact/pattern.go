package redact

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// A Pattern is a kind of one's own. Its spans are the matches of Regexp, in the syntax of package regexp (RE2), which
// takes linear time. They rank below the built-in kinds where they overlap, and the first pattern of a list before the
// next.
type Pattern struct {
	Name   string // the kind, and so what the placeholder shows: [REDACTED:name]; lower-case letters, digits and dashes, 32 at most
	Regexp string // must not match the empty text, nor anything in a placeholder
}

var patternName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// compile returns the patterns ready for use, or an error that lists everything wrong with them.
func compile(patterns []Pattern) ([]compiled, error) {
	var out []compiled
	var problems []error
	wrong := func(p Pattern, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: pattern %q: %w", ErrOptions, p.Name, fmt.Errorf(format, args...)))
	}
	names := map[string]bool{}
	for _, p := range patterns {
		expr, err := regexp.Compile(p.Regexp)
		switch {
		case !patternName.MatchString(p.Name):
			wrong(p, "write a name of lower-case letters, digits and dashes that begins with a letter and has 32 at most")
		case builtIn(Kind(p.Name)):
			wrong(p, "this is a built-in kind: choose another name")
		case names[p.Name]:
			wrong(p, "named twice: join the two by |")
		case err != nil:
			wrong(p, "%w", err)
		case shortest(p.Regexp) == 0:
			wrong(p, "can match the empty text: ask for a character at least")
		}
		names[p.Name] = true
		out = append(out, compiled{Kind(p.Name), expr})
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	for i, p := range patterns {
		if kind, ok := out[i].inPlaceholder(out); ok {
			wrong(p, "matches in %s, which takes the place of what was found: ask for more", kind.Placeholder())
		}
	}
	return out, errors.Join(problems...)
}

// inPlaceholder returns a kind in whose placeholder c matches, if there is one.
func (c compiled) inPlaceholder(own []compiled) (Kind, bool) {
	for _, kind := range ranking {
		if c.expr.MatchString(kind.Placeholder()) {
			return kind, true
		}
	}
	for _, other := range own {
		if c.expr.MatchString(other.kind.Placeholder()) {
			return other.kind, true
		}
	}
	return "", false
}

// shortest returns the length of the shortest match of expr in characters, which need not be reached.
func shortest(expr string) int {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0
	}
	return minimum(re)
}

func minimum(re *syntax.Regexp) (n int) {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return minimum(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * minimum(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			n += minimum(sub)
		}
		return n
	case syntax.OpAlternate:
		n = minimum(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, minimum(sub))
		}
		return n
	}
	return 0
}

// match adds the spans of own patterns to the hits of s.
func (r *Redactor) match(s *scan) {
	for _, p := range r.patterns {
		for _, at := range p.expr.FindAllStringIndex(s.text, -1) {
			s.hit(p.kind, at[0], at[1])
		}
	}
}
