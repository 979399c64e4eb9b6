package pick

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// MaxSegments is how many segments a path may have.
const MaxSegments = 64

// ErrPath reports a path that cannot be one. Errors of this package wrap it
// and say what to write instead.
var ErrPath = errors.New("not a path")

// CheckAllow reports why p cannot grant anything. An allow path is "", the
// whole value, or an RFC 6901 pointer of at most [MaxSegments] segments with
// "*" for one array element or member, and perhaps "/**" at its end.
func CheckAllow(p task.Path) error {
	_, err := parseAllow(p)
	return err
}

// CheckBlock reports why p cannot block anything. A block is an RFC 6901
// pointer with "*" or a number for one array element, or a bare name or
// "/**/name", which block at any depth. A "/**" at its end changes nothing.
// What would block everything is refused, and so is "*" as a part of a name,
// which would look as if it blocked more than it does.
func CheckBlock(p task.Path) error {
	_, err := parseBlock(p)
	return err
}

// A pattern is a path made ready to compare.
type pattern struct {
	text     task.Path
	steps    []step
	deep     bool // covers what is beneath too; of a block always
	anywhere bool // a block of one step that counts at any depth
	list     int  // the number of the list that it is in
}

// A step is one segment of a pattern.
type step struct {
	any   bool   // "*"
	name  string // after NFC
	loose string // as blocks compare
	index int    // the array element that a block means, or -1
}

var anyStep = step{any: true, index: -1}

func (p pattern) isWhole() bool { return p.deep && len(p.steps) == 0 }

func parseAllow(p task.Path) (pattern, error) {
	out, err := parseFiles(p)
	if err != nil {
		return pattern{}, err
	}
	segments := Tokens(p)
	for i, s := range segments {
		if isNumber(s) {
			segments[i] = "*"
			return pattern{}, refuse(p, "%q is the number of one array element: write %s", s, join(segments, out.deep))
		}
	}
	return out, nil
}

// parseFiles parses an allow path of files, whose names can be numbers.
func parseFiles(p task.Path) (pattern, error) {
	rest, deep := trimDeep(string(p))
	segments, err := split(p, rest)
	if err != nil {
		return pattern{}, err
	}
	return pattern{text: p, steps: steps(segments), deep: deep || rest == ""}, nil
}

func parseBlock(p task.Path) (pattern, error) {
	rest, _ := trimDeep(string(p))
	name, anywhere := strings.CutPrefix(rest, "/**/")
	if !anywhere && rest != "" && !strings.Contains(rest, "/") {
		name, anywhere = rest, true
	}
	if anywhere {
		if strings.Contains(name, "/") {
			return pattern{}, refuse(p, "only one name can be blocked at any depth: write a pointer from the root, or one name")
		}
		rest = "/" + name
	}
	if rest == "" || anywhere && name == "*" {
		return pattern{}, refuse(p, "it would block everything: write mode minimal")
	}
	segments, err := split(p, rest)
	if err != nil {
		return pattern{}, err
	}
	for _, s := range segments {
		if s != "*" && strings.Contains(s, "*") {
			return pattern{}, refuse(p, `"*" stands for a whole segment, not for a part of %q: write "*" or the name`, s)
		}
	}
	out := pattern{text: p, steps: steps(segments), deep: true, anywhere: anywhere}
	if anywhere && out.steps[0].loose == "" {
		return pattern{}, refuse(p, "the name has no visible character: write the name to block")
	}
	return out, nil
}

// trimDeep takes "/**" off the end of a path.
func trimDeep(p string) (rest string, deep bool) { return strings.CutSuffix(p, "/**") }

// Tokens returns the segments of an allow path, not escaped and without a "/**"
// at its end: none of the whole. It does not check the path; [CheckAllow] does.
func Tokens(p task.Path) []string {
	rest, _ := trimDeep(string(p))
	if rest == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	for i, s := range tokens {
		tokens[i] = naming.Unescape(s)
	}
	return tokens
}

// BlockTokens returns the segments of a block, not escaped, and whether it is one
// name that counts at any depth. It does not check the block; [CheckBlock] does.
func BlockTokens(p task.Path) (tokens []string, anywhere bool) {
	rest, _ := trimDeep(string(p))
	name, anywhere := strings.CutPrefix(rest, "/**/")
	if anywhere || !strings.Contains(rest, "/") {
		return []string{naming.Unescape(name)}, true
	}
	return Tokens(p), false
}

// split takes a pointer, p or most of it, into its unescaped segments.
func split(p task.Path, pointer string) ([]string, error) {
	if fault := charFault(string(p)); fault != "" {
		return nil, refuse(p, "%s: write the name as JSON decodes it, without", fault)
	}
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, refuse(p, "a path begins with a slash: write /%s", string(p))
	}
	segments := strings.Split(pointer[1:], "/")
	if len(segments) > MaxSegments {
		return nil, refuse(p, "%d segments, more than %d: write a shorter one, with /** at its end", len(segments), MaxSegments)
	}
	for i, s := range segments {
		if s == "**" {
			return nil, refuse(p, `"**" stands at the end of a path only: write "*" for one segment`)
		}
		if badEscape(s) {
			return nil, refuse(p, `"~" in %q stands alone: write ~0 for "~" and ~1 for "/"`, s)
		}
		if strings.Contains(s, "~") {
			segments[i] = naming.Unescape(s)
		}
	}
	return segments, nil
}

func badEscape(s string) bool {
	return strings.Count(s, "~") != strings.Count(s, "~0")+strings.Count(s, "~1")
}

func charFault(p string) string {
	if !utf8.ValidString(p) {
		return "it is not valid UTF-8"
	}
	for i, r := range p {
		if unicode.IsControl(r) || naming.EndsLine(r) {
			return fmt.Sprintf("it has a control character (%U) at byte %d", r, i)
		}
	}
	return ""
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func steps(segments []string) []step {
	out := make([]step, len(segments))
	for i, s := range segments {
		if s == "*" {
			out[i] = anyStep
			continue
		}
		out[i] = step{name: Exact(s), loose: Loose(s), index: -1}
		if isNumber(out[i].loose) {
			if n, err := strconv.Atoi(out[i].loose); err == nil {
				out[i].index = n
			}
		}
	}
	return out
}

func join(segments []string, deep bool) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(naming.Escape(s))
	}
	if deep {
		b.WriteString("/**")
	}
	return b.String()
}

func refuse(p task.Path, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s", ErrPath, string(p), fmt.Sprintf(format, args...))
}
