package specfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/yamltext"
)

// Writing YAML. The text is parsed again before it is used, so the rules below only have
// to be right for usual files. If the parser reads something else, all texts are quoted,
// and if that does not help, the file is written as JSON.

// emit returns an object as a text that parses as the same object, or one that is too
// large to be parsed.
func emit(n *node) ([]byte, error) {
	for _, w := range [...]*emitter{{}, {cautious: true}} {
		w.mapping(n, 0)
		if text := w.b.String(); len(text) > maxYAML || parsesAs(text, "", n) {
			return []byte(text), nil
		}
	}
	text, err := n.appendJSON(nil)
	if err == nil && !parsesAs(string(text), "", n) {
		err = fmt.Errorf("%w: it cannot be written as YAML or JSON", ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// An emitter writes one value.
type emitter struct {
	b        strings.Builder
	cautious bool // quote every text
}

// mapping writes the members of an object, each on a line. The first line is indented already.
func (w *emitter) mapping(n *node, depth int) {
	for i, member := range n.parts() {
		if i > 0 {
			w.indent(depth)
		}
		w.b.WriteString(w.scalar(textNode(member.key)) + ":")
		w.value(member, depth)
	}
}

// value writes what follows a colon or a dash.
func (w *emitter) value(n *node, depth int) {
	switch {
	case n.is == isObject && n.len() > 0 && !short(n):
		w.b.WriteByte('\n')
		w.indent(depth + 1)
		w.mapping(n, depth+1)
	case n.is == isList && n.len() > 0 && !short(n):
		w.b.WriteByte('\n')
		w.list(n, depth+1)
	default:
		block, ok := "", false
		if n.is == isText && !w.cautious && strings.Contains(strings.TrimSuffix(n.text, "\n"), "\n") {
			block, ok = yamltext.Block(n.text, indentOf(depth+1))
		}
		if !ok {
			block = w.scalar(n) + "\n"
		}
		w.b.WriteString(" " + block)
	}
}

// list writes the parts of a list, each after a dash.
func (w *emitter) list(n *node, depth int) {
	for _, item := range n.parts() {
		w.indent(depth)
		w.b.WriteString("-")
		if item.is == isObject && item.len() > 0 && !short(item) {
			w.b.WriteByte(' ')
			w.mapping(item, depth+1)
			continue
		}
		w.value(item, depth)
	}
}

func (w *emitter) indent(depth int) { w.b.WriteString(indentOf(depth)) }

func indentOf(depth int) string { return strings.Repeat("  ", depth) }

// scalar returns a value on one line: a scalar, or a short list or object.
func (w *emitter) scalar(n *node) string {
	switch n.is {
	case isNull:
		return "null"
	case isBool, isNumber:
		return n.text
	case isText:
		if !w.cautious && plainText().MatchString(n.text) && !slices.Contains(otherwise, strings.ToLower(n.text)) {
			return n.text
		}
		return yamltext.Quote(n.text)
	}
	items := make([]string, n.len())
	for i, part := range n.parts() {
		if items[i] = w.scalar(part); n.is == isObject {
			items[i] = w.scalar(textNode(part.key)) + ": " + items[i]
		}
	}
	if n.is == isObject {
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// plainText matches texts that need no quotes, even between brackets.
var plainText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\pL[\pL\pN._/-]*( [\pL\pN._/()-]+)*\.?$`)
})

// otherwise lists words that some YAML parsers do not read as texts.
var otherwise = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}

// short reports whether the parts of a list or an object fit on a line.
func short(n *node) bool {
	width := 0
	for _, item := range n.parts() {
		width += len(item.text) + 2
		if n.is == isObject {
			width += len(item.key) + 2
		}
		if item.len() > 0 || width > 80 || strings.Contains(item.text, "\n") {
			return false
		}
	}
	return n.is == isList || n.len() < 4
}
