package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"html"
	"math/bits"
	"net/http"
	"regexp"
	"slices"
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

// A sanitizer cleans the texts of an endpoint or a proxy of one call.
type sanitizer struct {
	prompt  []string
	secrets []string // of the model
}

// newSanitizer returns the sanitizer of one call.
func newSanitizer(m *Model, req *llm.Request) *sanitizer {
	c := &sanitizer{prompt: make([]string, 0, 1+len(req.Messages)), secrets: m.secrets}
	for i := range req.Messages {
		c.prompt = append(c.prompt, req.Messages[i].Text)
	}
	c.prompt = append(c.prompt, req.System)
	return c
}

// sanitize cleans a text: an error message, a redirect, the name of a model or a tool, a
// finish reason. Every such text is sanitized before it leaves the package.
//
// The result is one line of at most 300 bytes without control characters, and
// repeats neither the key, nor a value of a header, nor a passage of the prompt:
// as they are, percent-, HTML- or JSON-escaped, in hex or base64, in another
// case, or split by spaces and punctuation. Shorter echoes
// of a prompt than 12 bytes stay, since they may be coincidence.
func (c *sanitizer) sanitize(text string) string {
	if text == "" {
		return ""
	}
	if len(text) > maxForeign {
		text = strings.ToValidUTF8(text[:maxForeign], "")
	}
	if strings.Contains(text, "//") {
		text = userinfo.ReplaceAllString(text, "//")
	}
	e := newEchoes(text)
	for _, t := range c.prompt {
		e.find(t, promptEcho, promptMark)
	}
	for _, secret := range c.secrets {
		e.find(secret, keyEcho, keyMark)
	}
	text = e.masked()
	if strings.Contains(text, "***") {
		text = starred.ReplaceAllString(text, "[key]")
	}
	return oneline.Of(text)
}

// withoutPassages returns the start of a text with a placeholder for each passage of the
// prompt. Phrases that a prompt may have by chance stay.
func (c *sanitizer) withoutPassages(text string) string {
	e := newEchoes(strings.ToValidUTF8(text[:min(len(text), maxForeign)], ""))
	for _, t := range c.prompt {
		if len(t) >= passage {
			e.find(t, passage, promptMark)
		}
	}
	return e.masked()
}

// secretsOf returns what no text may repeat besides the prompt: the key and the values of
// the headers.
func secretsOf(key Key, headers http.Header) []string {
	all := []string{key.secret()}
	for _, values := range headers {
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
	text    string
	marks   []mark // parallel to text
	views   []view // the text, as it is and decoded, in lower case
	plain   []view // the same without spaces and punctuation
	indexes []*index
}

// A view is a text in another form.
type view struct {
	text string
	at   []span // where each byte of it is in the original
}

// A span is a range of bytes of a text of at most maxForeign bytes.
type span struct{ from, to uint16 }

func newEchoes(text string) *echoes {
	v := view{text: text, at: make([]span, len(text))}
	for i := range v.at {
		v.at[i] = span{uint16(i), uint16(i + 1)}
	}
	e := &echoes{text: text, marks: make([]mark, len(text))}
	for layer := 0; ; layer++ {
		e.views = append(e.views, v)
		e.views = v.appendPacked(e.views)
		next, changed := v.unescaped()
		if layer == maxLayers || !changed {
			break
		}
		v = next
	}
	e.plain = make([]view, len(e.views))
	for i := range e.views {
		e.plain[i] = e.views[i].squeezed()
		e.views[i].text = lower(e.views[i].text)
	}
	return e
}

// find marks what the text repeats of another: n bytes or more of it, or all of it
// if that is shorter.
func (e *echoes) find(of string, n int, as mark) {
	if len(of) < minSecret {
		return
	}
	e.findIn(e.views, of, min(n, len(of)), as)
	squeezed := squeeze(of)
	e.findIn(e.plain, squeezed, min(n, len(squeezed)), as)
}

// findIn marks what the views repeat of a text in any case: n bytes or more.
func (e *echoes) findIn(views []view, of string, n int, as mark) {
	if n < minSecret {
		return
	}
	x := e.index(views, n)
	if x == nil {
		return
	}
	for at := 0; at+n <= len(of); at++ {
		if start := fold(of[at:]); x.starts[start>>6&255]&(1<<(start&63)) == 0 || !x.mayHave(of[at:]) {
			continue
		}
		for _, p := range x.places(lower(of[at : at+n])) {
			v := &views[p.view]
			for i := v.at[p.at].from; i < v.at[p.at+n-1].to; i++ {
				e.marks[i] = max(e.marks[i], as)
			}
		}
	}
}

// index returns the index of the passages of n bytes of views, or nil if there are none.
func (e *echoes) index(views []view, n int) *index {
	for _, x := range e.indexes {
		if x.n == n && &x.views[0] == &views[0] {
			return x
		}
	}
	x := &index{views: views, n: n}
	count := 0
	for i := range views {
		count += max(len(views[i].text)-n+1, 0)
	}
	if count == 0 {
		return nil
	}
	x.shift = 64 - bits.Len(uint(count*64))
	x.seen = make([]uint64, 1<<(64-x.shift)/64+1)
	for i := range views {
		for at := 0; at+n <= len(views[i].text); at++ {
			start := fold(views[i].text[at:])
			x.starts[start>>6&255] |= 1 << (start & 63)
			a, b := x.hash(views[i].text[at:])
			x.seen[a>>6] |= 1 << (a & 63)
			x.seen[b>>6] |= 1 << (b & 63)
		}
	}
	e.indexes = append(e.indexes, x)
	return x
}

// An index finds passages of n bytes in views.
type index struct {
	views  []view
	n      int
	starts [256]uint64        // a set of the first four bytes of passages, which excludes most texts at once
	seen   []uint64           // a set: two bits for each passage
	shift  int                // of a hash, to a number of a bit
	found  map[string][]place // by passage; made when one is found, which is rare in a short text
	missed int                // passages that were looked for without found
}

// maxMissed is how many passages are looked for one by one.
const maxMissed = 16

// A place is where a passage begins.
type place struct{ view, at int }

// fold returns a hash of the four bytes at the start of s, in any case, of 14 bits.
func fold(s string) uint32 {
	const lowerCase = 0x20202020
	return (binary.LittleEndian.Uint32([]byte(s[:4])) | lowerCase) * 0x9E3779B1 >> 18
}

// hash returns two bits that stand for the passage at the start of s, in any case.
func (x *index) hash(s string) (uint64, uint64) {
	const lowerCase = 0x2020202020202020
	first, last := s[:4], s[x.n-4:x.n]
	h := uint64(binary.LittleEndian.Uint32([]byte(first)))<<32 | uint64(binary.LittleEndian.Uint32([]byte(last)))
	h = (h | lowerCase) * 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	return h >> x.shift, h << 24 >> x.shift
}

// mayHave reports whether the views may have the passage at the start of s.
func (x *index) mayHave(s string) bool {
	a, b := x.hash(s)
	return x.seen[a>>6]&(1<<(a&63)) != 0 && x.seen[b>>6]&(1<<(b&63)) != 0
}

// places returns where the views have a passage that was not looked for before.
func (x *index) places(passage string) []place {
	if x.found == nil {
		if !slices.ContainsFunc(x.views, func(v view) bool { return strings.Contains(v.text, passage) }) && x.missed < maxMissed {
			x.missed++
			return nil
		}
		x.found = map[string][]place{}
		for i := range x.views {
			for at := 0; at+x.n <= len(x.views[i].text); at++ {
				gram := x.views[i].text[at : at+x.n]
				x.found[gram] = append(x.found[gram], place{i, at})
			}
		}
	}
	found := x.found[passage]
	delete(x.found, passage) // marked once
	return found
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

// unescaped returns the view with one layer of escapes removed, and whether it had one.
func (v *view) unescaped() (out view, changed bool) {
	if strings.IndexAny(v.text, `%\&`) < 0 {
		return *v, false
	}
	last := 0
	keep := func(end int) {
		out.text += v.text[last:end]
		out.at = append(out.at, v.at[last:end]...)
	}
	for _, m := range escape.FindAllStringIndex(v.text, -1) {
		char, ok := unescape(v.text[m[0]:m[1]])
		if !ok {
			continue
		}
		keep(m[0])
		out.text += char
		for range len(char) {
			out.at = append(out.at, span{v.at[m[0]].from, v.at[m[1]-1].to})
		}
		last = m[1]
	}
	keep(len(v.text))
	return out, out.text != v.text
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

// standard replaces the letters of base64 for URLs by those of the standard.
var standard = strings.NewReplacer("-", "+", "_", "/")

// appendPacked appends what the view holds in base64 and hex.
func (v *view) appendPacked(all []view) []view {
	for _, m := range packing.FindAllStringIndex(v.text, -1) {
		run := standard.Replace(v.text[m[0]:m[1]])
		for skip := range 4 {
			all = v.appendDecoded(all, run[skip:], m[0]+skip, 4, 3, base64.RawStdEncoding.Decode)
		}
		for skip := range 2 {
			all = v.appendDecoded(all, run[skip:], m[0]+skip, 2, 1, hex.Decode)
		}
	}
	return all
}

// appendDecoded appends a run decoded group by group, unless that is too short to repeat
// anything. Groups that cannot be decoded are left out.
func (v *view) appendDecoded(all []view, run string, at, group, size int, decode func(dst, src []byte) (int, error)) []view {
	text, where := make([]byte, 0, len(run)), make([]span, 0, len(run))
	valid := 0
	for i := 0; i < len(run); i += group {
		end := min(i+group, len(run))
		var chars [3]byte
		var src [4]byte
		n, err := decode(chars[:size], src[:copy(src[:], run[i:end])])
		from := v.at[at+i].from
		if err != nil {
			text, where = append(text, 0), append(where, span{from, from})
			continue
		}
		for k := range n {
			text, where = append(text, chars[k]), append(where, span{from, v.at[at+end-1].to})
		}
		valid += n
	}
	if valid < minSecret {
		return all
	}
	return append(all, view{string(text), where})
}

// squeezed returns the letters and digits of the view, in lower case.
func (v *view) squeezed() view {
	text, at := make([]byte, 0, len(v.text)), make([]span, 0, len(v.text))
	for i := range len(v.text) {
		if b := letters[v.text[i]]; b != 0 {
			text, at = append(text, b), append(at, v.at[i])
		}
	}
	return view{string(text), at}
}

// squeeze returns the letters and digits of a text, in lower case.
func squeeze(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if b := letters[s[i]]; b != 0 {
			out = append(out, b)
		}
	}
	return string(out)
}

// letters maps each letter and digit to its lower case, and other characters to zero.
// Bytes beyond ASCII count as letters.
var letters = func() (table [256]byte) {
	for i := range table {
		switch b := byte(i); {
		case b >= 'A' && b <= 'Z':
			table[i] = b + 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b >= utf8.RuneSelf:
			table[i] = b
		}
	}
	return table
}()

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
