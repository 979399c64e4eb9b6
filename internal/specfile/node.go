package specfile

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// A node is a value of a YAML or JSON file.
type node struct {
	src  *source
	at   int // offset in bytes
	is   shape
	form form
	text string // of a scalar; a number as it is written

	key   string // of a member of an object
	keyAt int    // where the key begins
	end   int    // of a part: where the next one begins, or else where the list or object ends

	kids []node // the parts of a list or an object
}

// shape is the type of a value.
type shape uint8

const (
	isNull shape = iota
	isBool
	isNumber
	isText
	isList
	isObject
)

// form says how a text is written, on which the positions of its lines depend.
type form uint8

const (
	plain   form = iota // YAML, plain, quoted or folded: lines are joined
	literal             // YAML, after a |: line by line
	quoted              // JSON: all on one line, with escapes
)

// get returns the value of a key of an object, or nil.
func (n *node) get(key string) *node {
	if n == nil || n.is != isObject {
		return nil
	}
	for _, member := range n.parts() {
		if member.key == key {
			return member
		}
	}
	return nil
}

// parts returns the parts of a list or an object in order; a nil node has none.
func (n *node) parts() iter.Seq2[int, *node] {
	return func(yield func(int, *node) bool) {
		for i := range n.len() {
			if !yield(i, &n.kids[i]) {
				return
			}
		}
	}
}

// close sets the ends of the parts of a list or an object that ends at an offset.
func (n *node) close(end int) {
	for i, part := range slices.Backward(n.kids) {
		n.kids[i].end = end
		if end = part.at; n.is == isObject {
			end = part.keyAt
		}
	}
}

// len returns the number of parts of a list or an object.
func (n *node) len() int {
	if n == nil {
		return 0
	}
	return len(n.kids)
}

// describe names the value in a message: its type, and a short value.
func (n *node) describe() string {
	switch n.is {
	case isNull:
		return "nothing"
	case isBool:
		return n.text
	case isNumber:
		return "the number " + cut(n.text, 30)
	case isText:
		return "the text " + quote(n.text)
	case isList:
		return "a list"
	default:
		return "a mapping"
	}
}

// quote quotes a word of the user for a message: without secrets and control characters,
// and shortened.
func quote(word string) string { return strconv.Quote(cut(withoutSecrets(word), 60)) }

func cut(word string, most int) string {
	if utf8.RuneCountInString(word) > most {
		return string([]rune(word)[:most-1]) + "…"
	}
	return word
}

// nearHint suggests the known word with the most similar spelling, or returns otherwise.
func nearHint(word, otherwise string, known ...string) string {
	if best := nearestOf(word, known...); best != "" {
		return "did you mean " + best + "?"
	}
	return otherwise
}

// nearestOf returns the known word with the most similar spelling, or "".
func nearestOf(word string, known ...string) string {
	best, _ := naming.Nearest(word, known)
	return best
}

// float returns a number; ok is false for another value and for a number that is too large.
func (n *node) float() (f float64, ok bool) {
	if n.is != isNumber {
		return 0, false
	}
	if i, err := strconv.ParseInt(yamlDigits(n.text), 0, 64); err == nil {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// whole returns a whole number; ok is false for another value.
func (n *node) whole() (int, bool) {
	f, ok := n.float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

// yamlDigits writes a whole number of YAML in the syntax of Go: without underscores, and
// with 0o for octal numbers.
func yamlDigits(text string) string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "+"), "_", "")
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	}
	if len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		return sign + "0o" + text[1:]
	}
	return sign + text
}

// appendJSON appends the value as JSON, keys in the order of the file.
func (n *node) appendJSON(dst []byte) ([]byte, error) {
	switch n.is {
	case isNull:
		return append(dst, "null"...), nil
	case isBool:
		return append(dst, n.text...), nil
	case isNumber:
		if json.Valid([]byte(n.text)) {
			return append(dst, n.text...), nil
		}
		f, ok := n.float()
		if !ok {
			return nil, fmt.Errorf("%s is not a JSON number", cut(n.text, 30))
		}
		return strconv.AppendFloat(dst, f, 'g', -1, 64), nil
	case isText:
		return appendText(dst, n.text), nil
	}
	open, shut := byte('['), byte(']')
	if n.is == isObject {
		open, shut = '{', '}'
	}
	dst = append(dst, open)
	var err error
	for i, part := range n.parts() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if n.is == isObject {
			dst = append(appendText(dst, part.key), ':')
		}
		if dst, err = part.appendJSON(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, shut), nil
}

func appendText(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("spec: a string did not marshal: " + err.Error())
	}
	return append(dst, quoted...)
}

// duplicates reports the repeated keys of an object.
func (n *node) duplicates() (found []fault) {
	if n.is != isObject || n.len() < 2 {
		return nil
	}
	first := make(map[string]int, n.len())
	for _, member := range n.parts() {
		at, twice := first[member.key]
		if !twice {
			first[member.key] = member.keyAt
		} else if len(found) < maxProblems {
			line, column := n.src.place(at)
			found = append(found, fault{
				at: member.keyAt, message: fmt.Sprintf("%s: duplicate key; the first is in line %d, column %d", quote(member.key), line, column),
				hint: "keep one of them",
			})
		}
	}
	return found
}
