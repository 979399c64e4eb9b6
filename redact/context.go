package redact

import (
	"strings"
	"unicode/utf8"
)

// A precedingName is the name that precedes a value.
type precedingName struct {
	class    nameClass
	constant bool // written as in an environment, a query or a connection string: NAME=value
	distant  bool // other words are between the secret-like word and the value
	bare     bool // the word "pass", which tests use too
}

// hints are three letters of every secret-like name: PASsword, PASSphrase, PWD, PSWd, PSK,
// keNNWort, SENha, wachTWOord, sECRet, CREd, TOKen, KEY, aUTH, OTP, SIGnature, VALue,
// x-JFRog-art-api, phpseSSId. PW alone has two. Each pair of hintLetters has a bit for each third.
var hints = func() (t [1 << 10]uint32) {
	for _, h := range [...]string{"pas", "pwd", "psw", "psk", "nnw", "sen", "two", "ecr", "cre", "tok", "key", "uth", "otp", "sig", "val", "jfr", "ssi"} {
		t[pairOf(h[0]-'a', h[1]-'a')] |= 1 << (h[2] - 'a')
	}
	t[pairOf('p'-'a', 'w'-'a')] = 1<<32 - 1
	return t
}()

func pairOf(a, b byte) uint { return uint(a&31)<<5 | uint(b&31) }

// hintLetters maps letters to 0 to 25, other bytes that may be in or around a name to noLetter, and
// the rest to beyondName.
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

// A hintMark records how far [hasHint] has read a text: up to to. The last three letters of [hints]
// begin at last, and the last byte that no name has is at barrier; both are -1 if there is none.
type hintMark struct{ to, last, barrier int }

// hasHint reports whether the name before op may be secret-like. It is much faster than nameBefore
// and rules out most names. Operators come in the order of the text, so each byte is read once.
func hasHint(p *pass, op int) bool {
	t, floor, m := p.text, max(op-2*maxName, 0), &p.values.hints
	k := op - 1
	for k > floor && is(t[k], blankChar|closerChar) {
		k--
	}
	p.work += op - k
	if k >= 0 && t[k] >= utf8.RuneSelf && closingQuote(t[:k+1]) || foreignNames.class(t[:max(k+1, 0)]) != noName {
		return true
	}
	p.work += m.read(t, floor, op)
	if m.last < floor || m.last <= m.barrier {
		return false
	}
	return m.last > m.barrier+1 || m.last+len("key") < op || !hasFold(t, m.last, "key") // "key" alone is an index of a map
}

// read reads t up to op, from floor at the earliest, and returns how many bytes it read.
func (m *hintMark) read(t string, floor, op int) int {
	if op < m.to || m.to < floor { // nothing that was read applies
		*m = hintMark{floor, -1, -1}
	}
	from := m.to
	b, c := byte(noLetter), byte(noLetter)
	if from > floor {
		c = hintLetters[t[from-1]]
		if from-1 > floor {
			b = hintLetters[t[from-2]]
		}
	}
	for i := from; i < op; i++ {
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
	return op - from
}

// closingQuote reports whether t ends with a closing quote or bracket beyond ASCII.
func closingQuote(t string) bool {
	r, _ := utf8.DecodeLastRuneInString(t[max(len(t)-utf8.UTFMax, 0):])
	return strings.ContainsRune("”’»›」』】", r)
}

// nameBefore returns the name that ends before op, past spaces, quotes and brackets, in up to six
// words on the line.
func nameBefore(p *pass, op int) precedingName {
	t := p.text
	from, k := lastWord(p, op)
	if from == k {
		return precedingName{}
	}
	last := t[from:k]
	p.work += 2 * len(last)
	if k == op && at(t, op+1, quoteChar) && from > 0 && t[from-1] == t[op+1] { // "password=" + x: the quote closes
		return precedingName{}
	}
	if c := classify(last); c != noName {
		if len(last) >= 20 && p.shape(last).random(20) { // a digest or a key, not a name
			return precedingName{}
		}
		return precedingName{class: c, constant: isConstant(p, from, last), bare: c == firmName && strings.EqualFold(strings.Trim(last, "$_-."), "pass")}
	}
	if sibling(last) {
		return precedingName{class: siblingName(p, from)}
	}
	if c := signature(t, from, last); c != noName {
		return precedingName{class: c}
	}
	if annotates(p, op, from) {
		return nameBefore(p, p.runStart(from, blankChar, from-8)-1)
	}
	first := firstWord(p, from, k)
	if first == from {
		return precedingName{}
	}
	p.work += 2 * (k - first)
	c := classify(t[first:k])
	return precedingName{class: c, distant: c != noName && !hasFold(last, len(last)-len("key"), "key") && !strings.EqualFold(last, "phrase")}
}

// lastWord returns where the word before op begins and ends, past spaces, quotes and brackets; it
// is empty if no name ends there.
func lastWord(p *pass, op int) (from, to int) {
	t := p.text
	k := p.runStart(op, blankChar, op-40)
	for n := 0; n < 8 && k > 0; n++ {
		if b := t[k-1]; is(b, closerChar) {
			if b == ']' && placeholderBefore(p, k) {
				return k, k
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
	from = p.runStart(k, nameChar, k-maxName)
	if from < k && strings.IndexByte(".$-", t[k-1]) >= 0 {
		return k, k
	}
	return from, k
}

// firstWord returns where the first of up to five words begins that precede the word from from to
// to.
func firstWord(p *pass, from, to int) int {
	t, first := p.text, from
	for words := 0; words < 5 && first > 0; words++ {
		gap := first
		for gap > 0 && first-gap < 2 && (t[gap-1] == ' ' || t[gap-1] == '(') {
			gap--
		}
		start := p.runStart(gap, nameChar, to-maxName)
		if gap == first || start == gap {
			break
		}
		first = start
	}
	return first
}

// annotates reports whether a type is between the name and the operator at op: name: Type = value.
func annotates(p *pass, op, from int) bool {
	colon := p.runStart(from, blankChar, from-8)
	return has(p.text, op, "=") && colon > 1 && p.text[colon-1] == ':' && at(p.text, colon-2, nameChar|closerChar)
}

// placeholderBefore reports whether a placeholder ends at k. The kind in it is not a name.
func placeholderBefore(p *pass, k int) bool {
	open := strings.LastIndexByte(p.text[max(k-64, 0):k], '[')
	p.work += 64
	return open >= 0 && placeholderEnd(p.text, max(k-64, 0)+open) == k
}

// isConstant reports whether a name is written as outside of programs: DB_PASSWORD=…, ?password=…,
// ;Password=….
func isConstant(p *pass, from int, name string) bool {
	if from > 0 && strings.IndexByte("?&;", p.text[from-1]) >= 0 {
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

// sibling reports whether name is the key of the value in a pair such as name: DB_PASSWORD, value:
// ….
func sibling(name string) bool {
	return oneOf(name, "value", "val", "defaultValue")
}

// namingKeys are the keys of the name in such a pair.
var namingKeys = wordSet("name key variable header field setting property")

// siblingName returns the class of the name in the pair before from: key="ClearTextPassword"
// value=.
func siblingName(p *pass, from int) nameClass {
	const between = " \t\r\n\"'`,-\\"
	t, floor := p.text, max(from-64, 0)
	back := func(k int, set string) int {
		for k > floor && strings.IndexByte(set, t[k-1]) >= 0 {
			k--
		}
		return k
	}
	p.work += 2 * maxName
	end := back(from, between)
	start := p.runStart(end, nameChar, end-maxName)
	key := back(start, " \t\"'`\\")
	if start == end || end == from || key == 0 || t[key-1] != '=' && t[key-1] != ':' {
		return noName
	}
	key = back(key-1, " \t\"'`\\")
	if lookUp(namingKeys, t[p.runStart(key, wordChar, key-16):key]) {
		return classify(t[start:end])
	}
	return noName
}

// findElement decides on the text of an element whose tag is a secret-like name.
func findElement(p *pass, i int) {
	if i < p.values.end || !at(p.text, i-1, nameChar) {
		return
	}
	from := p.runStart(i, nameChar, i-maxName)
	if from == 0 || p.text[from-1] != '<' && p.text[from-1] != ':' {
		return
	}
	after := i + 1
	if p.has(after, "<![CDATA[") {
		after += len("<![CDATA[")
	}
	if v, ok := openValue(p, after); ok && !v.nextLine {
		if v = extendValue(p, v); v.to > v.from && (has(p.text, v.to, "<") || has(p.text, v.to, "]]>")) {
			v.closing = "<" // the tags are quotes enough
			if c := classify(p.text[from:i]); c != noName && isSecret(p, v, c, assigned) {
				p.hit(kindPassword, v.from, v.to)
				p.values.end = v.to
			}
		}
	}
}

// findArgument decides on a quoted value in a call: put("password", "…") and setPassword("…").
func findArgument(p *pass, i int) {
	if i < p.values.end {
		return
	}
	after := p.runEnd(i+1, blankChar, i+4)
	if !at(p.text, after, quoteChar) {
		return
	}
	end := i
	if p.text[i] == ',' {
		if !at(p.text, i-1, quoteChar) {
			return
		}
		end--
	}
	from := p.runStart(end, nameChar, end-maxName)
	if from == end || !is(p.text[end-1], wordChar) || p.text[i] == ',' && !at(p.text, from-1, quoteChar) {
		return
	}
	p.work += 2 * (end - from)
	if c := classify(p.text[from:end]); c != noName {
		if v, ok := openValue(p, after); ok {
			recordValue(p, v, c, inProse)
		}
	}
}

// findFlag decides on the argument after --name.
func findFlag(p *pass, i int) {
	if i < p.values.end || at(p.text, i-1, nameChar) {
		return
	}
	end := p.runEnd(i+2, nameChar, i+2+maxName)
	if !at(p.text, end, blankChar) {
		return
	}
	p.work += 2 * (end - i)
	if c := classify(p.text[i+2 : end]); c != noName {
		if v, ok := openValue(p, end); ok && !v.nextLine && p.text[v.from] != '-' {
			recordValue(p, v, c, assigned)
		}
	}
}

// findKeyword decides on a quoted value after a word: WITH PASSWORD '…', IDENTIFIED BY '…'.
func findKeyword(p *pass, i int) {
	if i < p.values.end || !at(p.text, i-1, letterChar) {
		return
	}
	from := p.runStart(i, nameChar, i-maxName)
	c := classify(p.text[from:i])
	if c == noName && hasFold(p.text, from-11, "identified by") {
		c = wordName
	}
	if c != noName {
		if v, ok := openValue(p, i); ok {
			recordValue(p, v, c, inProse)
		}
	}
}

// findSentence decides on what follows is, was, ist, est, es and lautet.
func findSentence(p *pass, i int) {
	if i < p.values.end {
		return
	}
	for _, verb := range [...]string{" is", " was", " ist", " est", " es", " lautet"} {
		after := i + len(verb)
		if !hasFold(p.text, i, verb) {
			continue
		}
		if has(p.text, after, ":") {
			after++
		}
		if at(p.text, after, blankChar) {
			checkAssigned(p, i, after, inProse)
		}
	}
}

// findJuxtaposed decides on what follows a name with nothing but a space between: user anna,
// password Xk9#mP2q.
func findJuxtaposed(p *pass, i int) {
	op := i + 2
	if op < p.values.end || !hasHint(p, op) {
		return
	}
	v, ok := openValue(p, op)
	if !ok || v.quoted() || v.nextLine || !worthReading(p, v, inProse) {
		return
	}
	n := nameBefore(p, op)
	from := p.runStart(op, alnumChar, op-maxName)
	if n.class == noName || n.distant || from > 0 && strings.IndexByte("/\\._-$", p.text[from-1]) >= 0 || strings.ContainsAny(p.text[from:op], digits) {
		return
	}
	v = extendValue(p, v)
	h := p.shape(p.text[v.from:v.to])
	if h.digits == 0 || n.class != wordName && !h.random(12) {
		return
	}
	recordValue(p, v, n.class, inProse)
}

// findTopic decides on what follows a name and the particle of its sentence.
func findTopic(p *pass, i int) {
	if i < p.values.end {
		return
	}
	for _, name := range [...]string{"パスワード", "密码", "密碼", "口令"} {
		if strings.HasSuffix(p.text[max(i-len(name), 0):i], name) {
			checkAssigned(p, i, i+3, inProse)
		}
	}
}

// findCell decides on a cell of a table whose left neighbor is a secret-like name.
func findCell(p *pass, i int) {
	if i < p.values.end {
		return
	}
	end := p.runStart(i, blankChar, i-40)
	from := p.runStart(end, nameChar, end-maxName)
	bar := p.runStart(from, blankChar, from-8)
	if from == end || bar == 0 || p.text[bar-1] != '|' {
		return
	}
	checkAssigned(p, end, i+1, inProse)
}
