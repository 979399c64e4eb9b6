package redact

import (
	"strings"
	"unicode/utf8"
)

// A value is the text after a name: text[from:to]. At most maxLook bytes of it are examined.
type value struct {
	from, to int
	closing  string // for a quoted value, the bytes that may close it
	escapes  int    // backslashes before its opening quote, when the whole is a string inside a string
	long     bool   // continues after to
	query    bool   // one of several name=value, which & and ? end
	nextLine bool   // on the line below its name
}

func (v value) quoted() bool { return v.closing != "" }

// maxLook bounds how much of a value is examined. The rest is redacted with it.
const maxLook = 128

// openValue returns where the value after an operator at k begins, and how it is quoted. It skips
// emphasis, placeholders, the marks of a YAML block, one line break, the letter before a quote, and
// the scheme of a header.
func openValue(p *pass, k int) (v value, ok bool) {
	t := p.text
	if k = valueLine(p, k, &v); k+1 < len(t) && strings.IndexByte("bBrRuUfF@L", t[k]) >= 0 && is(t[k+1], quoteChar) {
		k++
	}
	if k >= len(t) || t[k] == '\n' || t[k] == '\r' {
		return v, false
	}
	slashes := 0
	for slashes < 8 && has(t, k+slashes, "\\") {
		slashes++
	}
	switch {
	case at(t, k+slashes, quoteChar):
		v.escapes = slashes
		k += slashes
		v.closing = t[k : k+1]
		quotes := 1
		for quotes < 3 && has(t, k+quotes, v.closing) {
			quotes++
		}
		if quotes == 2 { // an empty value
			return v, false
		}
		k += quotes
	case t[k] >= utf8.RuneSelf:
		r, n := utf8.DecodeRuneInString(t[k:])
		if strings.ContainsRune("“”„«‹‘‚「『", r) {
			v.closing, k = "“”’‘»›」』", k+n
		}
	}
	v.from = k
	return v, true
}

// valueLine returns where a value begins, at k or behind what may precede it: blanks, emphasis, the
// mark of a block in YAML, the end of the line, and placeholders.
func valueLine(p *pass, k int, v *value) int {
	t := p.text
	k = p.runEnd(k, blankChar, k+64)
	for n := 0; n < 3 && has(t, k, "*"); n++ {
		k++
	}
	k = p.runEnd(k, blankChar, k+8)
	if k+1 < len(t) && (t[k] == '|' || t[k] == '>') && strings.IndexByte("\n\r+-", t[k+1]) >= 0 {
		k++
		if !is(t[k], whitespaceChar) {
			k++
		}
	}
	if has(t, k, "\r") {
		k++
	}
	if has(t, k, "\n") {
		k = p.runEnd(k+1, blankChar, k+64)
		v.nextLine = true
	}
	for {
		end := p.placeholderEnd(k)
		if end == k {
			break
		}
		p.work += end - k
		k = p.runEnd(end, blankChar, end+8)
	}
	p.readTo(k + 16)
	return k
}

// extendValue sets v.to: where the value ends, or maxLook bytes after its beginning.
func extendValue(p *pass, v value) value {
	limit := min(v.from+maxLook, len(p.text))
	v.to = valueCloses(p, v, v.from, limit)
	v.long = v.to == limit && limit < len(p.text) && !valueStops(p, v, limit)
	for v.long && v.to > v.from && !utf8.RuneStart(p.text[v.to]) {
		v.to--
	}
	if !v.quoted() && !v.long {
		v.to = v.from + len(trimEnd(p.text[v.from:v.to]))
	}
	return v
}

// valueEnd returns the end of a value that is known to be a secret.
func valueEnd(p *pass, v value) int {
	if !v.long {
		return v.to
	}
	end := valueCloses(p, v, v.to, len(p.text))
	if v.quoted() {
		return end
	}
	return v.to + len(trimEnd(p.text[v.to:end]))
}

// An openRun is the last stretch of the text in which [valueCloses] found no end of an unquoted
// value. Only a value that begins with > in it ends there, at its own first byte.
type openRun struct {
	from, to int
	query    bool // for values that & and ? may end
}

// valueCloses returns the first offset from k to limit at which v ends. After names that repeat,
// unquoted values overlap; text without an end is not read again.
func valueCloses(p *pass, v value, k, limit int) int {
	if v.quoted() {
		from := k
		for k < limit && (!is(p.text[k], stopChar) || !valueStops(p, v, k)) {
			if v.escapes == 0 && p.text[k] == '\\' && k+1 < limit && p.text[k+1] != '\n' {
				k++
			}
			k++
		}
		p.work += k - from
		p.readTo(k + stopLook)
		return min(k, limit)
	}
	o := &p.values.open
	if o.query != v.query || k < o.from || k > o.to {
		*o = openRun{k, k, v.query}
	}
	for k < limit && (!is(p.text[k], stopChar) || !valueStops(p, v, k)) {
		k = min(max(k+1, o.to), limit)
	}
	p.work += max(k-o.to, 0) + 1
	p.readTo(k + stopLook)
	o.to = max(o.to, k)
	return k
}

// stopLook bounds how far behind k [valueStops] looks, names of further pairs aside.
const stopLook = 12

// valueStops reports whether v ends before the byte at k.
func valueStops(p *pass, v value, k int) bool {
	t, b := p.text, p.text[k]
	if v.quoted() {
		switch {
		case b == '\n' || b == '\r':
			return true
		case b == '\\' && v.escapes > 0: // at or below the level of the opening quote
			n := k
			for n < len(t) && n-k <= v.escapes && t[n] == '\\' {
				n++
			}
			return n-k <= v.escapes && n < len(t) && strings.IndexByte(v.closing, t[n]) >= 0
		case b < utf8.RuneSelf:
			return strings.IndexByte(v.closing, b) >= 0
		case len(v.closing) > 1:
			r, _ := utf8.DecodeRuneInString(t[k:])
			return r != utf8.RuneError && strings.ContainsRune(v.closing, r)
		}
		return false
	}
	switch {
	case is(b, whitespaceChar|quoteChar), b == '<':
		return true
	case b == '>':
		return k == v.from || t[k-1] != '-'

	case b == '\\':
		return k+1 < len(t) && strings.IndexByte("nrt\"'", t[k+1]) >= 0
	case b == '&' && entity(t[k:]):
		return true
	case b == '&' || b == '?':
		return v.query && (b == '&' && (k+1 == len(t) || is(t[k+1], whitespaceChar|quoteChar)) || assigns(p, k+1))
	case b == ',', b == ';':
		return k+1 == len(t) || is(t[k+1], whitespaceChar|quoteChar) || assigns(p, k+1)
	case b == ')':
		return k+1 == len(t) || is(t[k+1], whitespaceChar|quoteChar) || strings.IndexByte(".;,){", t[k+1]) >= 0
	case b == '[':
		return p.placeholderEnd(k) > k
	case b >= utf8.RuneSelf:
		if !utf8.RuneStart(b) {
			return false
		}
		r, _ := utf8.DecodeRuneInString(t[k:])
		return r != utf8.RuneError && endsValue(r)
	}
	return false
}

// entity reports whether t begins with a character reference of HTML: &quot; &#39;
func entity(t string) bool {
	end := 1
	for end < len(t) && end < 8 && (is(t[end], alnumChar) || t[end] == '#') {
		end++
	}
	return end > 2 && end < len(t) && t[end] == ';'
}

// assigns reports whether a name with an operator begins at k, the next pair of a list.
func assigns(p *pass, k int) bool {
	end := k
	for end < len(p.text) && end < k+40 && is(p.text[end], nameChar|blankChar) {
		end++
	}
	p.readTo(end)
	return end > k && end < len(p.text) && (p.text[end] == '=' || p.text[end] == ':' || p.text[end] == ';')
}

// trimEnd cuts what belongs to the sentence or the line of code around a value.
func trimEnd(v string) string {
	for len(v) > 0 {
		switch b := v[len(v)-1]; {
		case strings.IndexByte(".,;:*\\", b) >= 0,
			b == ')' && strings.Count(v, "(") < strings.Count(v, ")"),
			b == ']' && strings.Count(v, "[") < strings.Count(v, "]"),
			b == '}' && strings.Count(v, "{") < strings.Count(v, "}"):
			v = v[:len(v)-1]
		default:
			return v
		}
	}
	return v
}

// operators are parts of expressions of programs.
var operators = strings.Fields("this. => -> += && || ){")

// isCode reports whether an unquoted value is an expression of a program: a call, an index, a path
// of names.
func isCode(p *pass, v value, h shape, c nameClass) bool {
	t := p.text[v.from:v.to]
	if !h.restless() {
		for _, operator := range operators {
			if strings.Contains(t, operator) {
				return true
			}
		}
	}
	if strings.HasPrefix(t, "[]") {
		return true
	}
	if !is(t[0], letterChar) && t[0] != '_' && t[0] != '&' && t[0] != '*' && t[0] != '@' && t[0] != '!' && t[0] != '$' {
		return false
	}
	dots, k := 0, 1
	for k < len(t) && (is(t[k], wordChar) || t[k] == '.' || t[k] == ':' || t[k] == '-' && k+1 < len(t) && t[k+1] == '>' || t[k] == '>') {
		if t[k] == '.' || t[k] == '>' {
			dots++
		}
		k++
	}
	if k == len(t)-1 && t[k] == '=' && len(t)%4 != 0 && h.digits == 0 { // the next name= of a list
		return true
	}
	if k < len(t) {
		return t[k] == '(' || t[k] == '[' || t[k] == '{'
	}
	if has(p.text, v.to, "(") || has(p.text, v.to, "[") {
		return true
	}
	if !is(t[0], wordChar) && h.digits == 0 && h.symbols == 1 { // &key, *key, !key
		return true
	}
	few := h.digits <= 2 || c != wordName && h.digits <= 4
	return dots > 0 && !h.random(16) || few && h.symbols == 0 && len(t) <= maxName && (classify(t) != noName || hasFold(t, len(t)-3, "key"))
}
