package matcher

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A globSeq is a glob without braces.
type globSeq struct {
	parts []globPart
	ends  []bool // whether a path may end before each part, and after the last one
}

// newSeq makes a sequence of parts. A ** is a part of its own only as a whole name, followed by a slash
// or by nothing, and only a few forms of stars match the empty end of a path. These are the rules of
// github.com/bmatcuk/doublestar, with which globs were matched before.
func newSeq(parts []globPart) (seq globSeq) {
	for i := 0; i < len(parts); {
		p, from := parts[i], i
		i++
		if p.op == opStar && i < len(parts) && parts[i].op == opStar {
			i++
			startsName := from == 0 || parts[from-1].op == opChar && parts[from-1].char == '/'
			switch {
			case startsName && i == len(parts):
				p.op = opRest
			case startsName && parts[i].isSlash():
				p.op = opFolders
				i++
			}
		}
		seq.parts = append(seq.parts, p)
		seq.ends = append(seq.ends, matchesNothing(parts[from:]))
	}
	seq.ends = append(seq.ends, true)
	return seq
}

func (p *globPart) isSlash() bool { return p.op == opChar && p.char == '/' && !p.escaped }

// matchesNothing reports whether the end of a glob matches the empty end of a path.
func matchesNothing(parts []globPart) bool {
	if len(parts) > len("/**/") {
		return false
	}
	var text strings.Builder
	for _, p := range parts {
		switch {
		case p.op == opStar:
			text.WriteByte('*')
		case p.isSlash():
			text.WriteByte('/')
		default:
			return false
		}
	}
	return slices.Contains([]string{"*", "**", "/**", "**/", "/**/"}, text.String())
}

// match reports whether the sequence matches a path. Of several stars it only moves the last one, and
// the last ** before: what earlier ones stand for never has to grow. So the work is at most the
// length of the path times that of the glob for each folder of the path.
func (seq *globSeq) match(b *Budget, path, pattern string) (bool, error) {
	i, at := 0, 0
	afterStar, starEnd := -1, 0       // the part after the last star, and the end of what that stands for
	afterFolders, foldersEnd := -1, 0 // the same of the last **/
	steps := len(path)
	for at < len(path) {
		if steps++; steps > often {
			if err := b.spend(steps, pattern); err != nil {
				return false, err
			}
			steps = 0
		}
		if i < len(seq.parts) {
			p := &seq.parts[i]
			c, n := rune(path[at]), 1
			if c >= utf8.RuneSelf {
				c, n = utf8.DecodeRuneInString(path[at:])
			}
			switch p.op {
			case opRest:
				return true, b.spend(steps, pattern)
			case opFolders:
				i++
				afterFolders, foldersEnd, afterStar = i, at, -1
				continue
			case opStar:
				i++
				afterStar, starEnd = i, at
				continue
			}
			if steps += len(p.class); p.has(c) {
				i, at = i+1, at+n
				continue
			}
		}
		if afterStar >= 0 {
			if c, n := utf8.DecodeRuneInString(path[starEnd:]); c != '/' {
				starEnd += n
				i, at = afterStar, starEnd
				continue
			}
		}
		slash := -1
		if afterFolders >= 0 {
			slash = strings.IndexByte(path[foldersEnd:], '/')
		}
		if slash < 0 {
			return false, b.spend(steps, pattern)
		}
		foldersEnd += slash + 1
		i, at = afterFolders, foldersEnd
	}
	return seq.ends[i], b.spend(steps, pattern)
}

// has reports whether a part that stands for one character stands for c.
func (p *globPart) has(c rune) bool {
	switch p.op {
	case opChar:
		return c == p.char
	case opAny:
		return c != '/'
	}
	return slices.ContainsFunc(p.class, func(r runeRange) bool { return r.low <= c && c <= r.high }) != p.negated
}
