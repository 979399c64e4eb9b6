package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

const (
	maxForeign = 600 // how much of a text of an endpoint is looked at, in bytes
	promptEcho = 12  // bytes in common with the prompt that count as an echo
	passage    = 24  // bytes in common with the prompt that are no phrase of the endpoint's own
	keyEcho    = 6   // the same for a key
	minSecret  = 4   // shorter keys are not masked, which would only garble the text
	maxLayers  = 3   // of encodings one inside the other
)

// userinfo matches a user and password in a URL.
var userinfo = regexp.MustCompile(`//[^/@\s]*@`)

// starred matches a word that a server has starred out, such as sk-ab****cdef.
var starred = regexp.MustCompile(`\S*\*{3,}\S*`)

func (c *call) sanitize(text string) string { return c.model.sanitize(c.req, text) }

// sanitize cleans a text from an endpoint or a proxy: an error message, a redirect,
// the name of a model or a tool, a finish reason. Every such text is sanitized
// before it leaves the package.
//
// The result is one line of at most 300 bytes without control characters, and
// repeats neither the key, nor a value of a header, nor a passage of the prompt:
// as they are, percent-, HTML- or JSON-escaped, in hex or base64, in another
// case, or split by spaces and punctuation. Shorter echoes
// of a prompt than 12 bytes stay, since they may be coincidence.
func (m *Model) sanitize(req llm.Request, text string) string {
	if text == "" {
		return ""
	}
	if len(text) > maxForeign {
		text = strings.ToValidUTF8(text[:maxForeign], "")
	}
	text = userinfo.ReplaceAllString(text, "//")
	e := newEchoes(text)
	for _, t := range req.Messages {
		e.find(t.Text, promptEcho, promptMark)
	}
	e.find(req.System, promptEcho, promptMark)
	for _, secret := range m.secrets() {
		e.find(secret, keyEcho, keyMark)
	}
	return oneline.Of(starred.ReplaceAllString(e.masked(), "[key]"))
}

// withoutPassages returns the start of a text of an endpoint with a placeholder for
// each passage of the prompt. Phrases that a prompt may have by chance stay.
func (c *call) withoutPassages(text string) string {
	e := newEchoes(strings.ToValidUTF8(text[:min(len(text), maxForeign)], ""))
	texts := []string{c.req.System}
	for _, m := range c.req.Messages {
		texts = append(texts, m.Text)
	}
	for _, t := range texts {
		if len(t) >= passage {
			e.find(t, passage, promptMark)
		}
	}
	return e.masked()
}

// secrets returns what must not be repeated, besides the prompt.
func (m *Model) secrets() []string {
	all := []string{m.key.secret()}
	for _, values := range m.headers {
		for _, v := range values {
			all = append(all, v)
			if basic, ok := strings.CutPrefix(v, "Basic "); ok {
				if pair, err := base64.StdEncoding.DecodeString(basic); err == nil {
					all = append(all, string(pair))
				}
			}
		}
	}
	return all
}

// A mark says what a byte of a text repeats.
type mark byte

const (
	noMark mark = iota
	promptMark
	keyMark
)

// echoes finds in a short text what it repeats of others.
type echoes struct {
	text  string
	marks []mark // parallel to text
	views []view // the text, as it is and decoded
	plain []view // the same without spaces and punctuation
}

// A view is a text in another form, in lower case.
type view struct {
	text string
	from []int // where each byte of it begins in the original
	to   []int // and where it ends
}

func newEchoes(text string) *echoes {
	v := view{text: text, from: make([]int, len(text)), to: make([]int, len(text))}
	for i := range v.from {
		v.from[i], v.to[i] = i, i+1
	}
	e := &echoes{text: text, marks: make([]mark, len(text))}
	for layer := 0; ; layer++ {
		e.views = append(e.views, v)
		e.views = append(e.views, v.packed()...)
		next := v.unescaped()
		if layer == maxLayers || next.text == v.text {
			break
		}
		v = next
	}
	for i := range e.views {
		e.plain = append(e.plain, e.views[i].squeezed())
		e.views[i].text = lower(e.views[i].text)
	}
	return e
}

// find marks what the text repeats of another: n bytes or more of it, or all of it
// if that is shorter.
func (e *echoes) find(of string, n int, as mark) {
	e.findIn(e.views, lower(of), n, as)
	e.findIn(e.plain, squeeze(of), n, as)
}

func (e *echoes) findIn(views []view, of string, n int, as mark) {
	if n = min(n, len(of)); n < minSecret {
		return
	}
	type place struct{ view, at int }
	var places map[string][]place // made when a passage may be found, which is rare in a short text
	var seen [1 << 11]uint64      // a set: two bits for each passage of the views
	bits := func(s string) (uint64, uint64) {
		first, last := s[:4], s[n-4:n]
		h := uint64(binary.LittleEndian.Uint32([]byte(first)))<<32 | uint64(binary.LittleEndian.Uint32([]byte(last)))
		h *= 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
		return h >> 47, h >> 30 & (1<<17 - 1)
	}
	passages := func(found func(view, at int)) {
		for i := range views {
			for at := 0; at+n <= len(views[i].text); at++ {
				found(i, at)
			}
		}
	}
	passages(func(view, at int) {
		a, b := bits(views[view].text[at:])
		seen[a>>6] |= 1 << (a & 63)
		seen[b>>6] |= 1 << (b & 63)
	})
	for at := 0; at+n <= len(of); at++ {
		if a, b := bits(of[at:]); seen[a>>6]&(1<<(a&63)) == 0 || seen[b>>6]&(1<<(b&63)) == 0 {
			continue
		}
		if places == nil {
			places = map[string][]place{}
			passages(func(view, at int) {
				gram := views[view].text[at : at+n]
				places[gram] = append(places[gram], place{view, at})
			})
		}
		gram := of[at : at+n]
		found, ok := places[gram]
		if !ok {
			continue
		}
		delete(places, gram) // marked once
		for _, p := range found {
			v := &views[p.view]
			for i := v.from[p.at]; i < v.to[p.at+n-1]; i++ {
				e.marks[i] = max(e.marks[i], as)
			}
		}
	}
}

// masked returns the text with a placeholder for what is marked. Around a key,
// the rest of the word is masked too.
func (e *echoes) masked() string {
	for i := 1; i < len(e.marks); i++ {
		if e.marks[i-1] == keyMark && inWord(e.text[i]) {
			e.marks[i] = keyMark
		}
	}
	for i := len(e.marks) - 2; i >= 0; i-- {
		if e.marks[i+1] == keyMark && inWord(e.text[i]) {
			e.marks[i] = keyMark
		}
	}
	var b strings.Builder
	last := noMark
	for i, m := range e.marks {
		switch {
		case m == noMark:
			b.WriteByte(e.text[i])
		case m == last:
		case m == keyMark:
			b.WriteString("[key]")
		default:
			b.WriteString("[prompt]")
		}
		last = m
	}
	return b.String()
}

// inWord reports whether a byte may be part of a key or of its encoded form.
func inWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || strings.IndexByte("-_+%=~", b) >= 0
}

// escape matches one escaped character of a URL, of JSON or another string
// literal, or of HTML.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[\\/"'nrt]|&#?[0-9A-Za-z]{1,8};`)

// unescaped returns the view with one layer of escapes taken away.
func (v *view) unescaped() view {
	var out view
	last := 0
	keep := func(end int) {
		out.text += v.text[last:end]
		out.from, out.to = append(out.from, v.from[last:end]...), append(out.to, v.to[last:end]...)
	}
	for _, m := range escape.FindAllStringIndex(v.text, -1) {
		char, ok := unescape(v.text[m[0]:m[1]])
		if !ok {
			continue
		}
		keep(m[0])
		for i := range len(char) {
			out.text += char[i : i+1]
			out.from, out.to = append(out.from, v.from[m[0]]), append(out.to, v.to[m[1]-1])
		}
		last = m[1]
	}
	keep(len(v.text))
	return out
}

// escaped maps the letter of a backslash escape to its control character.
var escaped = strings.NewReplacer("n", "\n", "r", "\r", "t", "\t")

// unescape decodes one escape. ok is false if it is not valid.
func unescape(s string) (text string, ok bool) {
	digits := ""
	switch {
	case s[0] == '&':
		char := html.UnescapeString(s)
		return char, char != s && char != ""
	case s[0] == '%':
		digits = s[1:]
	case s[1] == 'u' || s[1] == 'x':
		digits = s[2:]
	default:
		return escaped.Replace(s[1:]), true
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return "", false
	}
	if s[0] == '%' || len(digits) == 2 {
		return string([]byte{byte(n)}), true
	}
	return string(utf8.AppendRune(nil, rune(n))), true
}

// packing matches what may be base64 or hex.
var packing = regexp.MustCompile(`[0-9A-Za-z+/_-]{8,}`)

// packed returns what the view holds in base64 and hex.
func (v *view) packed() (all []view) {
	for _, m := range packing.FindAllStringIndex(v.text, -1) {
		run := strings.NewReplacer("-", "+", "_", "/").Replace(v.text[m[0]:m[1]])
		for skip := range 4 {
			all = append(all, v.decoded(run[skip:], m[0]+skip, 4, 3, func(dst []byte, src string) (int, error) {
				return base64.RawStdEncoding.Decode(dst, []byte(src))
			}))
		}
		for skip := range 2 {
			all = append(all, v.decoded(run[skip:], m[0]+skip, 2, 1, func(dst []byte, src string) (int, error) {
				return hex.Decode(dst, []byte(src))
			}))
		}
	}
	return all
}

// decoded decodes a run group by group. Groups that cannot be decoded are left out.
func (v *view) decoded(run string, at, group, size int, decode func(dst []byte, src string) (int, error)) view {
	var out view
	text := make([]byte, 0, len(run))
	for i := 0; i < len(run); i += group {
		end := min(i+group, len(run))
		var chars [3]byte
		n, err := decode(chars[:size], run[i:end])
		if err != nil {
			text, out.from, out.to = append(text, 0), append(out.from, v.from[at+i]), append(out.to, v.from[at+i])
			continue
		}
		for k := range n {
			text, out.from, out.to = append(text, chars[k]), append(out.from, v.from[at+i]), append(out.to, v.to[at+end-1])
		}
	}
	out.text = string(text)
	return out
}

// squeezed returns the letters and digits of the view, in lower case.
func (v *view) squeezed() view {
	var out view
	text := make([]byte, 0, len(v.text))
	for i := range len(v.text) {
		if b, ok := letter(v.text[i]); ok {
			text, out.from, out.to = append(text, b), append(out.from, v.from[i]), append(out.to, v.to[i])
		}
	}
	out.text = string(text)
	return out
}

// squeeze returns the letters and digits of a text, in lower case.
func squeeze(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if b, ok := letter(s[i]); ok {
			out = append(out, b)
		}
	}
	return string(out)
}

// letter returns a letter or digit in lower case. Bytes beyond ASCII count as letters.
func letter(b byte) (byte, bool) {
	switch {
	case b >= 'A' && b <= 'Z':
		return b + 'a' - 'A', true
	case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b >= utf8.RuneSelf:
		return b, true
	}
	return 0, false
}

// lower returns a text with its ASCII letters in lower case. The length stays the same.
func lower(s string) string {
	out := []byte(s)
	for i, b := range out {
		if b >= 'A' && b <= 'Z' {
			out[i] = b + 'a' - 'A'
		}
	}
	return string(out)
}
