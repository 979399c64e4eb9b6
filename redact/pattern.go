package redact

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/matcher"
)

// A Pattern is a kind of your own. Its spans are the matches of Regexp, in the syntax of package
// regexp (RE2). Where spans overlap, built-in kinds rank above patterns, and earlier patterns above
// later ones.
//
// The time that a match takes grows with the text and with the number of instructions that Regexp
// compiles to, so a pattern may have at most 1,000 of them, and all patterns of a [Redactor] 4,000.
type Pattern struct {
	Name   string // the kind, shown in the placeholder [REDACTED:name]: at most 32 lower-case letters, digits and dashes
	Regexp string // must match neither the empty text nor anything in a placeholder
}

// maxProgram and maxPrograms bound the instructions of one pattern, and of all patterns of a
// redactor together. Each instruction takes up to ten nanoseconds for each byte of a text.
const (
	maxProgram  = 1_000
	maxPrograms = 4_000
)

// A compiled is a [Pattern] ready for use.
type compiled struct {
	kind   Kind
	first  *regexp.Regexp // finds the first match of a text
	next   *regexp.Regexp // finds as its group the first match after the first character of a text
	prefix string         // every match begins with it
	size   int            // instructions
	reach  reach
}

var patternName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
})

// compile returns the patterns ready for use, or an error that lists everything wrong with them.
func compile(patterns []Pattern) ([]compiled, error) {
	var out []compiled
	var problems []error
	wrong := func(p Pattern, format string, args ...any) {
		problems = append(problems, fmt.Errorf("pattern %q: "+format, append([]any{p.Name}, args...)...))
	}
	names := map[string]bool{}
	for _, p := range patterns {
		c, err := compilePattern(p)
		switch {
		case !patternName().MatchString(p.Name):
			wrong(p, "write a name of lower-case letters, digits and dashes that begins with a letter and has 32 at most")
		case Kind(p.Name).rank() >= 0:
			wrong(p, "this is a built-in kind: choose another name")
		case names[p.Name]:
			wrong(p, "named twice: join the two by |")
		case err != nil:
			wrong(p, "%w", err)
		}
		names[p.Name] = true
		out = append(out, c)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	total := 0
	for i, p := range patterns {
		total += out[i].size
		if kind, ok := out[i].inPlaceholder(out); ok {
			wrong(p, "matches in %s, which takes the place of what was found: ask for more", kind.Placeholder())
		}
	}
	if total > maxPrograms {
		i := slices.IndexFunc(out, func(c compiled) bool { return c.size == slices.MaxFunc(out, bySize).size })
		wrong(patterns[i], "it has %d of %d instructions of all patterns together, at most %d are allowed: shorten what it repeats", out[i].size, total, maxPrograms)
	}
	return out, errors.Join(problems...)
}

func bySize(a, b compiled) int { return cmp.Compare(a.size, b.size) }

// compilePattern returns the pattern ready for use.
func compilePattern(p Pattern) (c compiled, err error) {
	tree, err := syntax.Parse(p.Regexp, syntax.Perl)
	if err != nil {
		return c, err
	}
	tree = withoutGroups(tree)
	if minimum(tree) == 0 {
		return c, errors.New("can match the empty text: ask for a character at least")
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return c, err
	}
	c.kind, c.size = Kind(p.Name), len(program.Inst)
	if c.size > maxProgram {
		return c, fmt.Errorf("compiles to %d instructions, at most %d are allowed: shorten what it repeats, such as {1,40}", c.size, maxProgram)
	}
	if c.first, err = regexp.Compile(tree.String()); err != nil {
		return c, err
	}
	c.prefix, _ = c.first.LiteralPrefix()
	c.reach = reachOf(tree)
	c.next, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + tree.String() + `)`)
	return c, err
}

// withoutGroups returns re with its capturing groups as plain ones.
func withoutGroups(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	for i, sub := range re.Sub {
		re.Sub[i] = withoutGroups(sub)
	}
	return re
}

// inPlaceholder returns a kind in whose placeholder c matches, if there is one.
func (c compiled) inPlaceholder(own []compiled) (Kind, bool) {
	kinds := ranking[:]
	for _, other := range own {
		kinds = append(kinds, other.kind)
	}
	i := slices.IndexFunc(kinds, func(k Kind) bool { return c.first.MatchString(k.Placeholder()) })
	if i < 0 {
		return "", false
	}
	return kinds[i], true
}

// minimum returns the length of the shortest match of re in characters, which need not be reached.
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

// matchPatterns adds the spans of own patterns to the hits of s.
func (r *Redactor) matchPatterns(s *scan) {
	if len(r.patterns) == 0 {
		return
	}
	in := matcher.NewRunes(s.ctx, maxProgram)
	for i := range r.patterns {
		p := &r.patterns[i]
		stable := len(s.text)
		if s.arriving {
			stable = max(p.reach.stable(s.text), s.start)
			s.open = min(s.open, stable)
		}
		for at := s.start; ; {
			from, to := p.find(in, s.text, at)
			if to < 0 || in.Err() != nil || from >= stable {
				break
			}
			s.hit(p.kind, from, to)
			at = to
		}
	}
}

// find returns the first match that begins at or after from. It is the one that
// [regexp.Regexp.FindAllString] finds next when the last match ended there: what precedes from
// counts for ^ and \b. An end of -1 means none.
func (p *compiled) find(in *matcher.Runes, text string, from int) (start, end int) {
	if p.prefix != "" {
		i := strings.Index(text[from:], p.prefix)
		if i < 0 {
			return 0, -1
		}
		from += i
	}
	if from == 0 {
		in.Start(text, 0)
		if at := p.first.FindReaderIndex(in); at != nil {
			return at[0], at[1]
		}
		return 0, -1
	}
	_, n := utf8.DecodeLastRuneInString(text[:from])
	in.Start(text, from-n)
	if at := p.next.FindReaderSubmatchIndex(in); at != nil {
		return from - n + at[2], from - n + at[3]
	}
	return 0, -1
}
