package redact

import (
	"strings"
	"unicode/utf8"
)

// A neighbour is the name that stands before a value.
type neighbour struct {
	class    nameClass
	constant bool // stands where NAME=value stands: an environment, a query, a connection string
	distant  bool // words stand between the secret-like one and the value
	bare     bool // "pass", which is also what a test does
}

// hints are three letters of every name that means something here: PASsword, PASSphrase, PWD, PSWd, PSK, keNNWort, SENha,
// wachTWOord, sECRet, CREd, TOKen, KEY, aUTH, OTP, SIGnature, VALue, x-JFRog-art-api, phpseSSId. PW alone has two. Each pair
// of hintLetters has a bit for each third.
var hints = func() (t [1 << 10]uint32) {
	for _, h := range [...]string{"pas", "pwd", "psw", "psk", "nnw", "sen", "two", "ecr", "cre", "tok", "key", "uth", "otp", "sig", "val", "jfr", "ssi"} {
		t[pairOf(h[0]-'a', h[1]-'a')] |= 1 << (h[2] - 'a')
	}
	t[pairOf('p'-'a', 'w'-'a')] = 1<<32 - 1
	return t
}()

func pairOf(a, b byte) uint { return uint(a&31)<<5 | uint(b&31) }

// hintLetters maps letters to 0 to 25, what else may stand in a name or about it to noLetter, and the rest to beyondName.
var hintLetters = func() (t [256]byte) {
	for b := range t {
		switch c := byte(b); {
		case is(c, letterChar):
			t[b] = toLower(c) - 'a'
		case is(c, nameChar|blankChar|closerChar) || c == '(' || c == ':':
			t[b] = noLetter
		default:
			t[b] = beyondName
		}
	}
	return t
}()

const (
	noLetter = 26 + iota
	beyondName
)

// A hintMark is what [scan.hinted] has read of a text: everything up to to. last is where the last three letters of
// [hints] begin, and barrier where the last byte stands that no name has; both are -1 if there is none.
type hintMark struct{ to, last, barrier int }

// hinted reports whether the name before op may mean something. It costs a fraction of nameBefore, and most names end
// here. Operators come in the order of the text, so each byte is read once.
func (s *scan) hinted(op int) bool {
	t, floor, m := s.text, max(op-2*maxName, 0), &s.hints
	k := op - 1
	for k > floor && is(t[k], blankChar|closerChar) {
		k--
	}
	s.work += op - k
	if k >= 0 && t[k] >= utf8.RuneSelf && closingQuote(t[:k+1]) || foreignName(t[:max(k+1, 0)]) != noName {
		return true
	}
	if op < m.to || m.to < floor { // nothing that was read is of use
		*m = hintMark{floor, -1, -1}
	}
	s.work += op - m.to
	b, c := byte(noLetter), byte(noLetter)
	if m.to > floor {
		c = hintLetters[t[m.to-1]]
		if m.to-1 > floor {
			b = hintLetters[t[m.to-2]]
		}
	}
	for i := m.to; i < op; i++ {
		a := b
		b, c = c, hintLetters[t[i]]
		switch {
		case c == beyondName:
			m.barrier, c = i, noLetter
		case hints[pairOf(a, b)]&(1<<c) != 0:
			m.last = i - 2
		}
	}
	m.to = op
	if hints[pairOf(b, c)]&(1<<noLetter) != 0 { // two letters are enough before the operator
		m.last = op - 2
	}
	if m.last < floor || m.last <= m.barrier {
		return false
	}
	return m.last > m.barrier+1 || m.last+len("key") < op || !hasFold(t, m.last, "key") // "key" alone is a place in a map
}

// closingQuote reports a closing quote or bracket beyond ASCII at the end of t.
func closingQuote(t string) bool {
	r, _ := utf8.DecodeLastRuneInString(t[max(len(t)-utf8.UTFMax, 0):])
	return strings.ContainsRune("”’»›」』】", r)
}

// nameBefore returns the name that ends before op, past blanks, quotes and brackets, in up to six words on the line.
func (s *scan) nameBefore(op int) neighbour {
	t := s.text
	k := s.runStart(op, blankChar, op-40)
	for n := 0; n < 8 && k > 0; n++ {
		if b := t[k-1]; is(b, closerChar) {
			if b == ']' && s.placeholderBefore(k) {
				return neighbour{}
			}
			k--
			continue
		}
		if t[k-1] < utf8.RuneSelf || !closingQuote(t[:k]) {
			break
		}
		_, size := utf8.DecodeLastRuneInString(t[:k])
		k -= size
	}
	from := s.runStart(k, nameChar, k-maxName)
	if from == k {
		return neighbour{}
	}
	last := t[from:k]
	if b := t[k-1]; b == '.' || b == '$' || b == '-' {
		return neighbour{}
	}
	s.work += 2 * len(last)
	if k == op && at(t, op+1, quoteChar) && from > 0 && t[from-1] == t[op+1] { // "password=" + x: the quote closes
		return neighbour{}
	}
	if c := classify(last); c != noName {
		if len(last) >= 20 && s.shape(last).random(20) { // a digest or a key, not a name
			return neighbour{}
		}
		return neighbour{class: c, constant: s.constant(from, last), bare: c == firmName && strings.EqualFold(strings.Trim(last, "$_-."), "pass")}
	}
	if sibling(last) {
		return neighbour{class: s.siblingName(from)}
	}
	if c := signature(t, from, last); c != noName {
		return neighbour{class: c}
	}
	if s.annotates(op, from) {
		return s.nameBefore(s.runStart(from, blankChar, from-8) - 1)
	}
	first := from
	for words := 0; words < 5 && first > 0; words++ {
		gap := first
		for gap > 0 && first-gap < 2 && (t[gap-1] == ' ' || t[gap-1] == '(') {
			gap--
		}
		start := s.runStart(gap, nameChar, k-maxName)
		if gap == first || start == gap {
			break
		}
		first = start
	}
	if first == from {
		return neighbour{}
	}
	s.work += 2 * (k - first)
	phrase := t[first:k]
	c := classify(phrase)
	return neighbour{class: c, distant: c != noName && !hasFold(last, len(last)-len("key"), "key") && !strings.EqualFold(last, "phrase")}
}

// annotates reports a type between a name and the operator at op: name: Type = value.
func (s *scan) annotates(op, from int) bool {
	colon := s.runStart(from, blankChar, from-8)
	return has(s.text, op, "=") && colon > 1 && s.text[colon-1] == ':' && at(s.text, colon-2, nameChar|closerChar)
}

// placeholderBefore reports a placeholder that ends at k: the kind in it is no name.
func (s *scan) placeholderBefore(k int) bool {
	open := strings.LastIndexByte(s.text[max(k-64, 0):k], '[')
	s.work += 64
	return open >= 0 && placeholderEnd(s.text, max(k-64, 0)+open) == k
}

// constant reports a name that is assigned to outside of programs: DB_PASSWORD=…, ?password=…, ;Password=….
func (s *scan) constant(from int, name string) bool {
	if from > 0 && strings.IndexByte("?&;", s.text[from-1]) >= 0 {
		return true
	}
	return capital(name)
}

// signature returns the class of the signature parameter of a signed URL.
func signature(t string, from int, name string) nameClass {
	if from == 0 || strings.IndexByte("?&;", t[from-1]) < 0 {
		return noName
	}
	if strings.EqualFold(name, "sig") || hasFold(name, len(name)-len("signature"), "signature") {
		return weakName
	}
	return noName
}

// sibling reports the name of the half of a pair whose other half is the name: name: DB_PASSWORD, value: ….
func sibling(name string) bool {
	return oneOf(name, "value", "val", "defaultValue")
}

// siblingName returns the class of the name in the pair before from: key="ClearTextPassword" value=.
func (s *scan) siblingName(from int) nameClass {
	const between = " \t\r\n\"'`,-\\"
	t, floor := s.text, max(from-64, 0)
	back := func(k int, set string) int {
		for k > floor && strings.IndexByte(set, t[k-1]) >= 0 {
			k--
		}
		return k
	}
	s.work += 2 * maxName
	end := back(from, between)
	start := s.runStart(end, nameChar, end-maxName)
	key := back(start, " \t\"'`\\")
	if start == end || end == from || key == 0 || t[key-1] != '=' && t[key-1] != ':' {
		return noName
	}
	key = back(key-1, " \t\"'`\\")
	if oneOf(t[s.runStart(key, wordChar, key-16):key], "name", "key", "variable", "header", "field", "setting", "property") {
		return classify(t[start:end])
	}
	return noName
}

// findElement rules on the text of an element whose tag is a secret-like name.
func findElement(s *scan, i int) int {
	if i < s.valueEnd || !at(s.text, i-1, nameChar) {
		return i
	}
	from := s.runStart(i, nameChar, i-maxName)
	if from == 0 || s.text[from-1] != '<' && s.text[from-1] != ':' {
		return i
	}
	after := i + 1
	if has(s.text, after, "<![CDATA[") {
		after += len("<![CDATA[")
	}
	if v, ok := s.opening(after); ok && !v.nextLine {
		if v = s.extent(v); v.to > v.from && (has(s.text, v.to, "<") || has(s.text, v.to, "]]>")) {
			v.closing = "<" // the tags are quotes enough
			if c := classify(s.text[from:i]); c != noName && s.secret(v, c, assigned) {
				s.hit(kindPassword, v.from, v.to)
				s.valueEnd = v.to
			}
		}
	}
	return i
}

// findArgument rules on a quoted value in a call: put("password", "…") and setPassword("…").
func findArgument(s *scan, i int) int {
	if i < s.valueEnd {
		return i
	}
	after := s.runEnd(i+1, blankChar, i+4)
	if !at(s.text, after, quoteChar) {
		return i
	}
	end := i
	if s.text[i] == ',' {
		if !at(s.text, i-1, quoteChar) {
			return i
		}
		end--
	}
	from := s.runStart(end, nameChar, end-maxName)
	if from == end || !is(s.text[end-1], wordChar) || s.text[i] == ',' && !at(s.text, from-1, quoteChar) {
		return i
	}
	s.work += 2 * (end - from)
	if c := classify(s.text[from:end]); c != noName {
		if v, ok := s.opening(after); ok {
			s.settleValue(v, c, spoken)
		}
	}
	return i
}

// findFlag rules on the argument behind --name.
func findFlag(s *scan, i int) int {
	if i < s.valueEnd || at(s.text, i-1, nameChar) {
		return i
	}
	end := s.runEnd(i+2, nameChar, i+2+maxName)
	if !at(s.text, end, blankChar) {
		return i
	}
	s.work += 2 * (end - i)
	if c := classify(s.text[i+2 : end]); c != noName {
		if v, ok := s.opening(end); ok && !v.nextLine && s.text[v.from] != '-' {
			s.settleValue(v, c, assigned)
		}
	}
	return i
}

// findKeyword rules on a quoted value behind a word: WITH PASSWORD '…', IDENTIFIED BY '…'.
func findKeyword(s *scan, i int) int {
	if i < s.valueEnd || !at(s.text, i-1, letterChar) {
		return i
	}
	from := s.runStart(i, nameChar, i-maxName)
	c := classify(s.text[from:i])
	if c == noName && hasFold(s.text, from-11, "identified by") {
		c = wordName
	}
	if c != noName {
		if v, ok := s.opening(i); ok {
			s.settleValue(v, c, spoken)
		}
	}
	return i
}

// findSentence rules on what follows is, was, ist, est, es and lautet.
func findSentence(s *scan, i int) int {
	if i < s.valueEnd {
		return i
	}
	for _, verb := range [...]string{" is", " was", " ist", " est", " es", " lautet"} {
		after := i + len(verb)
		if !hasFold(s.text, i, verb) {
			continue
		}
		if has(s.text, after, ":") {
			after++
		}
		if at(s.text, after, blankChar) {
			s.rule(i, after, spoken)
		}
	}
	return i
}

// findJuxtaposed rules on what follows a name with nothing but a space between: user anna, password Xk9#mP2q.
func findJuxtaposed(s *scan, i int) int {
	op := i + 2
	if op < s.valueEnd || !s.hinted(op) {
		return i
	}
	v, ok := s.opening(op)
	if !ok || v.quoted() || v.nextLine || !s.worth(v, spoken) {
		return i
	}
	n := s.nameBefore(op)
	from := s.runStart(op, alnumChar, op-maxName)
	if n.class == noName || n.distant || from > 0 && strings.IndexByte("/\\._-$", s.text[from-1]) >= 0 || strings.ContainsAny(s.text[from:op], digits) {
		return i
	}
	v = s.extent(v)
	h := s.shape(s.text[v.from:v.to])
	if h.digits == 0 || n.class != wordName && !h.random(12) {
		return i
	}
	s.settleValue(v, n.class, spoken)
	return i
}

// findTopic rules on what follows a name and the particle of its sentence.
func findTopic(s *scan, i int) int {
	if i < s.valueEnd {
		return i
	}
	for _, name := range [...]string{"パスワード", "密码", "密碼", "口令"} {
		if strings.HasSuffix(s.text[max(i-len(name), 0):i], name) {
			s.rule(i, i+3, spoken)
		}
	}
	return i
}

// findCell rules on a cell of a table whose left neighbour is a secret-like name.
func findCell(s *scan, i int) int {
	if i < s.valueEnd {
		return i
	}
	end := s.runStart(i, blankChar, i-40)
	from := s.runStart(end, nameChar, end-maxName)
	bar := s.runStart(from, blankChar, from-8)
	if from == end || bar == 0 || s.text[bar-1] != '|' {
		return i
	}
	s.rule(end, i+1, spoken)
	return i
}
