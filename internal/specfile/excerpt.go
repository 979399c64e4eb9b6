package specfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Excerpts show the line of a problem and its neighbors, without credentials and control
// characters.

// hidden replaces possible credentials in excerpts.
const hidden = "[hidden]"

// excerpt shows the line of an offset with a caret under the offset, and the lines before
// and after it unless they are empty.
func (s *source) excerpt(offset int) string {
	if s.text == "" {
		return ""
	}
	offset = max(0, min(offset, len(s.text)))
	start, end := s.extent(offset)
	line, _ := s.place(offset)
	width := len(fmt.Sprint(line + 1))
	var b strings.Builder
	if start > 0 && start == s.lineStart(line) {
		s.show(&b, ' ', width, line-1, s.lineStart(line-1), -1)
	}
	s.show(&b, '>', width, line, start, offset)
	if next := s.lineStart(line + 1); next < len(s.text) && end < next {
		s.show(&b, ' ', width, line+1, next, -1)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// show writes one line of an excerpt; with an offset it adds the caret's.
func (s *source) show(b *strings.Builder, sign rune, width, line, start, caret int) {
	_, end := s.extent(start)
	if caret >= 0 {
		_, end = s.extent(caret)
	}
	text, column := s.visible(start, end, caret)
	if caret < 0 && strings.TrimSpace(text) == "" {
		return
	}
	text, column = clip(text, column)
	if withoutSecrets(text) != text {
		text, column = hidden, 0
	}
	fmt.Fprintf(b, "%c %*d | %s\n", sign, width, line, text)
	if caret >= 0 {
		fmt.Fprintf(b, "  %*s | %s^\n", width, "", strings.Repeat(" ", column))
	}
}

// visible returns the bytes from start to end as an excerpt shows them, and the column of
// the caret, from 0.
func (s *source) visible(start, end, caret int) (text string, column int) {
	spans := s.hiddenIn(start, end)
	var b strings.Builder
	characters := 0 // in b
	for i := start; i < end; {
		if i <= caret {
			column = characters
		}
		for len(spans) > 0 && spans[0].end <= i {
			spans = spans[1:]
		}
		if len(spans) > 0 && spans[0].start <= i {
			b.WriteString(hidden)
			characters += len(hidden)
			i = spans[0].end
			continue
		}
		r, size := utf8.DecodeRuneInString(s.text[i:end])
		b.WriteRune(printable(r))
		characters++
		i += size
	}
	if caret >= end {
		column = characters
	}
	return strings.TrimRight(b.String(), " "), column
}

// conceal finds all secrets of the file and all values of keys that sound like credentials,
// once, before the first excerpt.
func (s *source) conceal() {
	s.once.Do(func() {
		s.secrets = s.secretsIn(0, len(s.text))
		if s.tree != nil {
			s.concealBelow(s.tree, false, false, make(map[keyed]bool))
		}
	})
}

// isPath reports whether a value looks like a path or is empty.
func isPath(n *node) bool {
	return n.is == isText && (n.text == "" || strings.HasPrefix(n.text, "/") || strings.Trim(n.text, "*") == "") || n.is == isList || n.is == isNull
}

// A keyed is a key, and whether its value is a number.
type keyed struct {
	key    string
	number bool
}

// concealBelow finds the credentials in the parts of a value. With all, every part is one.
// In a reveal, whose keys are kinds of secrets, paths are not. sounds caches which keys
// sound like credentials.
func (s *source) concealBelow(n *node, all, reveal bool, sounds map[keyed]bool) {
	for i, value := range n.parts() {
		hide, inside := all || isSecretArgument(n, i), reveal
		if n.is == isObject {
			inside = inside || value.key == "reveal" && !all
			hide = hide || secretAt(value.key, value.is == isNumber, sounds)
			s.hideSecrets(value.key, value.keyAt, max(value.at, value.keyAt))
		}
		if value.is == isText {
			s.hideSecrets(value.text, value.at, s.endOf(value))
		}
		if value.len() == 0 && hide && !(reveal && isPath(value)) {
			s.hide(value)
		}
		s.concealBelow(value, hide, inside, sounds)
	}
}

// secretAt reports whether the value of a key may be a credential.
func secretAt(key string, number bool, sounds map[keyed]bool) bool {
	id := keyed{key, number}
	secret, known := sounds[id]
	if known {
		return secret
	}
	secret = soundsSecret(key)
	if len(sounds) < 10_000 {
		secret = secret && !(number && meansCount(key))
		sounds[id] = secret
	}
	return secret
}

// hide keeps a value out of excerpts, unless it only names a variable.
func (s *source) hide(value *node) {
	if value.is == isText && wholeVariable.MatchString(strings.TrimSpace(value.text)) {
		return
	}
	s.secrets = append(s.secrets, span{value.at, s.endOf(value)})
}

// endOf estimates where a part of a list or an object ends.
func (s *source) endOf(n *node) int {
	at, end := n.at, n.end
	if end <= at {
		_, end = s.extent(at)
	}
	return at + len(strings.TrimRight(s.text[at:end], " \t\r\n,"))
}

// hiddenIn returns the parts of a line that may be credentials: those that conceal found,
// secrets, and in a file that could not be parsed the values of keys that sound like
// credentials.
func (s *source) hiddenIn(start, end int) []span {
	spans := s.secretsIn(start, end)
	for _, p := range s.secrets {
		if p.start < end && start < p.end {
			spans = append(spans, span{max(p.start, start), min(p.end, end)})
		}
	}
	if s.prose {
		return merge(spans)
	}
	for _, at := range userInfo.FindAllStringSubmatchIndex(s.text[start:end], -1) {
		spans = append(spans, span{start + at[2], start + at[3]})
	}
	if s.tree != nil {
		return merge(spans)
	}
	if at, ok := credentialIn(s.text[start:end]); ok {
		if variable.MatchString(s.text[start+at : end]) {
			return merge(spans)
		}
		spans = append(spans, span{start + at, end})
	} else if s.underHeaders(start) {
		if colon := strings.IndexByte(s.text[start:end], ':'); colon >= 0 {
			rest := s.text[start+colon+1 : end]
			spans = append(spans, span{end - len(strings.TrimLeft(rest, " \t")), end})
		}
	}
	return merge(spans)
}

// merge sorts spans and joins those that overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	merged := spans[:0]
	for _, p := range spans {
		if n := len(merged); n > 0 && p.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, p.end)
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// underHeaders reports whether a line is indented below a line with headers or with the key
// of a credential. It serves files that could not be parsed, so it only compares
// indentation.
func (s *source) underHeaders(start int) bool {
	depth := indent(s.text[start:])
	line, _ := s.place(start)
	for back := 0; back < 50 && line > 1 && depth > 0; back++ {
		line--
		at := s.lineStart(line)
		_, end := s.extent(at)
		text := s.text[at:end]
		if strings.TrimSpace(text) == "" || indent(text) >= depth {
			continue
		}
		depth = indent(text)
		if _, ok := credentialIn(text); ok {
			return true
		}
	}
	return false
}

func indent(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// credentialIn returns the start of the value of a key in a line that sounds like a
// credential: apiKey, headers, Authorization, a token, or a misspelling of one.
func credentialIn(line string) (value int, ok bool) {
	for from := 0; ; {
		colon := strings.IndexByte(line[from:], ':')
		if colon < 0 {
			return 0, false
		}
		colon += from
		word := strings.TrimRight(line[:colon], " \t\"'")
		if i := strings.LastIndexAny(word, " \t{,[\"'?-"); i >= 0 && !strings.HasSuffix(word[:i], "api") {
			word = word[i+1:]
		}
		rest := line[colon+1:]
		if soundsSecret(word) && !(aNumber.MatchString(rest) && meansCount(word)) {
			return len(line) - len(strings.TrimLeft(rest, " \t")), true
		}
		from = colon + 1
	}
}

// variable matches the rest of a line that is only ${NAME}, which is not a secret.
var variable = regexp.MustCompile(`^\s*["']?\$\{[A-Za-z_][A-Za-z0-9_]*\}["']?[\s,}\]]*$`)

// userInfo matches the user information of a URL.
var userInfo = regexp.MustCompile(`://([^\s/"'@]+)@`)

// clip cuts a long line to a window around the column.
func clip(text string, column int) (string, int) {
	const most, before = 100, 40
	runes := []rune(text)
	if len(runes) <= most {
		return text, column
	}
	from := max(0, min(column-before, len(runes)-most))
	to := min(len(runes), from+most)
	text, column = string(runes[from:to]), column-from
	if from > 0 {
		text, column = "…"+text, column+1
	}
	if to < len(runes) {
		text += "…"
	}
	return text, column
}
