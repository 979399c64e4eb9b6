package matcher

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Limits of an expression.
const (
	MaxExpression = 16 << 10 // bytes
	MaxProgram    = 10_000   // instructions that it compiles to
)

// A Regexp is a regular expression in the syntax of package regexp. Matching takes one step for each
// instruction and byte of the text. It is immutable and safe for concurrent use.
type Regexp struct {
	re     *regexp.Regexp
	size   int    // instructions, at least 1
	prefix string // every match begins with it
}

// Compile returns an expression, or an error if it cannot be read. The error is a [*LimitError] if it
// is too large.
func Compile(expression string) (*Regexp, error) {
	size, err := Size(expression)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	prefix, _ := re.LiteralPrefix()
	return &Regexp{re, size, prefix}, nil
}

// Size returns how many instructions an expression compiles to at most, or the error of [Compile].
func Size(expression string) (int, error) {
	if len(expression) > MaxExpression {
		return 0, &LimitError{expression, fmt.Sprintf("has more than %d bytes", MaxExpression)}
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	size := Instructions(tree)
	if size > MaxProgram {
		return 0, &LimitError{expression, fmt.Sprintf("compiles to more than %d instructions", MaxProgram)}
	}
	return size, nil
}

// Instructions returns how many instructions an expression compiles to at most.
func Instructions(tree *syntax.Regexp) int { return 2 + instructions(tree) }

func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return max(len(re.Rune), 1)
	case syntax.OpCapture:
		return n + 2
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return n + 2
	case syntax.OpAlternate:
		return n + len(re.Sub)
	case syntax.OpRepeat:
		return (n + 2) * max(re.Min+1, re.Max, 1)
	case syntax.OpConcat:
		return max(n, 1)
	}
	return 1
}

// Steps returns how many steps it takes at most to match a text of some bytes.
func (r *Regexp) Steps(bytes int) int { return r.size * (bytes + 1) }

// Spend takes the steps of matching a text of some bytes, some times, for matches that are made elsewhere.
func (r *Regexp) Spend(b *Budget, times, bytes int) error {
	return b.spend(times*r.Steps(bytes), r.String())
}

// String returns the expression.
func (r *Regexp) String() string { return r.re.String() }

// Match reports whether the expression matches somewhere in a text.
func (r *Regexp) Match(b *Budget, text []byte) (bool, error) {
	if r.Steps(len(text)) > often {
		return r.MatchString(b, string(text))
	}
	if err := b.spend(r.Steps(len(text)), r.String()); err != nil {
		return false, err
	}
	return r.re.Match(text), nil
}

// MatchString does what Match does for a string.
func (r *Regexp) MatchString(b *Budget, text string) (bool, error) {
	if err := b.spend(r.Steps(len(text)), r.String()); err != nil {
		return false, err
	}
	if r.Steps(len(text)) <= often {
		return r.re.MatchString(text), nil
	}
	at := strings.Index(text, r.prefix) // no match begins before
	if at < 0 {
		return false, b.look()
	}
	in := NewRunes(b.ctx, r.size)
	in.Start(text, at)
	found := r.re.MatchReader(in)
	return found && in.Err() == nil, in.Err()
}

// Find returns where the first match in a text is, and its groups, as
// [regexp.Regexp.FindStringSubmatchIndex] does.
func (r *Regexp) Find(b *Budget, text string) ([]int, error) {
	if err := b.spend(r.Steps(len(text)), r.String()); err != nil {
		return nil, err
	}
	if r.Steps(len(text)) <= often {
		return r.re.FindStringSubmatchIndex(text), nil
	}
	in := NewRunes(b.ctx, r.size)
	in.Start(text, 0)
	at := r.re.FindReaderSubmatchIndex(in)
	return at, in.Err()
}

// Runes reads a text for a match of package regexp, and ends when its context does. There is no other
// way to stop such a match.
type Runes struct {
	ctx   context.Context //nolint:containedctx // of one operation
	text  string
	at    int
	every int // characters between two looks at ctx
	count int
	err   error
}

// NewRunes returns a reader for matches of an expression of some instructions.
func NewRunes(ctx context.Context, instructions int) *Runes {
	return &Runes{ctx: ctx, every: max(often/max(instructions, 1), 1)}
}

// Start makes the reader begin at a byte of a text.
func (r *Runes) Start(text string, at int) { r.text, r.at = text, at }

// Err returns the cause if ctx ended before a text did: then its match means nothing.
func (r *Runes) Err() error { return r.err }

// ReadRune returns the next character, and the end of the text once ctx has ended.
func (r *Runes) ReadRune() (c rune, n int, err error) {
	if r.count++; r.count >= r.every {
		if r.count = 0; r.ctx.Err() != nil {
			r.err = context.Cause(r.ctx)
		}
	}
	if r.at >= len(r.text) || r.err != nil {
		return 0, 0, io.EOF
	}
	c, n = utf8.DecodeRuneInString(r.text[r.at:])
	r.at += n
	return c, n, nil
}
