package redact

import "strings"

// assignDetectors find values of secret-like names, in the ways in which code, configuration, logs, tables and
// letters put the two beside each other.
var assignDetectors = []detector{
	{name: "assignment", anchors: []anchor{{"=:", "", ""}}, find: findAssignment},
	{name: "full width", anchors: []anchor{{"\xef", "\xbc", "\x9a\x9d"}}, find: findFullWidth}, // ： and ＝
	{name: "element", anchors: []anchor{{">", alnums + "!@#$%^&*+-_./<", ""}}, find: findElement},
	{name: "argument", anchors: []anchor{{",", "\"'` ", ""}, {"(", "\"'`", ""}}, find: findArgument},
	{name: "flag", anchors: []anchor{{"-", "-", lowers + uppers}}, find: findFlag},
	{name: "keyword", anchors: []anchor{{" ", "\"'", ""}}, find: findKeyword},
	{name: "juxtaposition", anchors: []anchor{{"RWrw", "Dd", " "}}, find: findJuxtaposed},   // passwoRD …, pWD …
	{name: "juxtaposition", anchors: []anchor{{"Pp", "Ww", " "}}, find: findJuxtaposed},     // PW …
	{name: "juxtaposition", anchors: []anchor{{"Ee", "YNTynt", " "}}, find: findJuxtaposed}, // kEY …, tokEN …, secrET …
	{name: "sentence", anchors: []anchor{{" ", "iwel", "sa"}}, find: findSentence},
	{name: "topic", anchors: []anchor{{"\xe3", "\x81", "\xaf"}, {"\xe6", "\x98", "\xaf"}}, find: findTopic}, // は and 是
	{name: "cell", anchors: []anchor{{"|", " ", ""}}, find: findCell},
}

// A manner says how a value stands beside its name, which decides how much the value must look like a secret.
type manner uint8

const (
	assigned manner = iota // name = value, name: value, <name>value
	spoken                 // in a sentence, a table or on the next line: a little more is asked of the value
	tight                  // NAME=value of an environment or a query: a word is a value too
)

// findAssignment rules on the = or : at i.
func findAssignment(s *scan, i int) int {
	t := s.text
	if i < s.valueEnd || i+1 == len(t) || t[i] == ':' && (t[i+1] == '/' || t[i+1] == ':' || t[i+1] == '=') || i > 0 && t[i-1] == t[i] {
		return i
	}
	if t[i] == ':' && is(t[i+1], digitChar) && at(t, i-1, digitChar) && !at(t, i-2, letterChar) { // a time, a port
		return i
	}
	after := i + 1
	for n := 0; n < 2 && after < len(t) && (t[after] == '=' || t[after] == '>' || t[after] == '~'); n++ {
		after++
	}
	name := i
	for n := 0; n < 2 && name > 0 && is(t[name-1], operatorChar); n++ {
		name--
	}
	how := assigned
	if t[i] == '=' && after == i+1 && at(t, i-1, nameChar) && after < len(t) && !is(t[after], spaceChar|quoteChar) {
		how = tight
	}
	s.rule(name, after, how)
	return i
}

func findFullWidth(s *scan, i int) int {
	if i >= s.valueEnd {
		s.rule(i, i+3, assigned)
	}
	return i
}

// rule rules on the value behind an operator: its name ends before op, it begins at after or behind blanks.
func (s *scan) rule(op, after int, how manner) {
	if !s.hinted(op) {
		return
	}
	v, ok := s.opening(after)
	if !ok {
		return
	}
	v.query = how == tight
	if !v.quoted() && !s.worth(v, how) { // most of what stands behind a colon is prose: look at the value first
		return
	}
	n := s.nameBefore(op)
	if n.class == noName {
		return
	}
	if n.bare && !v.quoted() {
		n.class = weakName
	}
	if how == tight && !n.constant {
		how = assigned
	}
	if v.nextLine && !s.alone(v, after) {
		return
	}
	if n.distant || v.nextLine {
		how = spoken
	}
	s.settleValue(v, n.class, how)
}

// alone reports a value that has the line below a colon to itself.
func (s *scan) alone(v value, after int) bool {
	end := s.extent(v).to
	if v.quoted() {
		end = s.runEnd(end, quoteChar, end+3)
	}
	end = s.runEnd(end, blankChar, end+16)
	return s.text[after-1] != '=' && (end >= len(s.text) || s.text[end] == '\n' || s.text[end] == '\r')
}

// worth reports whether an unquoted value could be a secret beside some name, by its first bytes.
func (s *scan) worth(v value, how manner) bool {
	const enough = 16
	end := s.closes(v, v.from, min(v.from+enough, len(s.text)))
	t := s.text[v.from:end]
	if t == "" || strings.IndexByte(",;)", t[0]) >= 0 {
		return false
	}
	if how == tight || len(t) == enough {
		return len(t) >= 4
	}
	if len(t) < 6 {
		return oneOf(t, "basic", "token") || strings.HasPrefix(t, "[")
	}
	for i := range len(t) {
		if !is(t[i], letterChar) || i > 0 && is(t[i], upperChar) {
			return true
		}
	}
	return oneOf(t, "bearer", "digest", "apikey")
}

// settleValue records v if it is a secret beside a name of class c.
func (s *scan) settleValue(v value, c nameClass, how manner) {
	v = s.extent(v)
	if s.listed(v, c, how) {
		return
	}
	v = s.behindScheme(v)
	if v.to <= v.from || !s.secret(v, c, how) {
		return
	}
	end := s.rest(v)
	s.hit(kindPassword, v.from, end)
	s.valueEnd = end
}

// listed rules on each quoted value of a list in brackets, and reports whether v is one.
func (s *scan) listed(v value, c nameClass, how manner) bool {
	if v.quoted() || s.text[v.from] != '[' || !at(s.text, v.from+1, quoteChar) {
		return false
	}
	const maxItems = 256
	k := v.from + 1
	for range maxItems {
		item, ok := s.opening(k)
		if !ok || !item.quoted() {
			break
		}
		item = s.extent(item)
		end := s.rest(item)
		if item.to > item.from && s.secret(item, c, how) {
			s.hit(kindPassword, item.from, end)
		}
		k = s.runEnd(end, quoteChar, end+1)
		if !has(s.text, k, ",") {
			break
		}
		k++
	}
	s.valueEnd = k
	return true
}

// behindScheme returns the credentials, if v begins with the scheme of an Authorization header.
func (s *scan) behindScheme(v value) value {
	t := s.text[v.from:v.to]
	const maxScheme = len("negotiate")
	scheme, _, spaced := strings.Cut(t[:min(len(t), maxScheme+1)], " ")
	if len(scheme) > maxScheme || !oneOf(scheme, "bearer", "basic", "token", "digest", "apikey", "negotiate", "jwt", "oauth", "ssws") {
		return v
	}
	next := v.from + len(scheme)
	if !spaced && !at(s.text, next, blankChar) {
		return v
	}
	v.from = s.runEnd(next, blankChar, next+8)
	if !v.quoted() && v.from < len(s.text) {
		return s.extent(v)
	}
	return v
}

// secret reports whether v is a secret beside a name of class c. The counts decide on most values, so they come first.
func (s *scan) secret(v value, c nameClass, how manner) bool {
	t := s.text[v.from:v.to]
	h := s.shape(t)
	if len(t) < 4 || h.letters+h.digits == 0 || !h.plausible(v, c, how) || filler(h) || h.placed() {
		return false
	}
	if h.blanks > 0 {
		return phrase(t, h)
	}
	if !v.quoted() && s.coded(v, h, c) || v.quoted() && joined(h) {
		return false
	}
	switch {
	case c == wordName && (how == tight || how == assigned && v.quoted()), h.numeric(6) && c == wordName:
		return true
	case c == wordName:
		return !compound(t, h)
	case c == firmName && how != spoken:
		return h.scattered(8) || !compound(t, h) && (h.symbols > 0 || len(t) > maxName || classify(t) == noName)
	case c == firmName:
		return true
	}
	return !address(t)
}

// plausible reports whether the counts of a value let it be a secret beside a name of class c.
func (h shape) plausible(v value, c nameClass, how manner) bool {
	switch {
	case h.blanks > 0:
		return v.quoted() && c == wordName && how == assigned
	case c == wordName && how == tight:
		return h.letters >= 4 || h.composed(4) || h.numeric(6)
	case c == wordName && how == assigned && v.quoted():
		return h.foreign == 0 || h.composed(6)
	case c == wordName:
		return h.composed(6) || h.numeric(6)
	case c == weakName && how != spoken:
		return h.scattered(10)
	case c == firmName && how != spoken:
		return h.scattered(8) || h.composed(6)
	case c == firmName:
		return h.scattered(8)
	}
	return h.scattered(12)
}

// joined reports what stands between two string literals of an expression, taken for a literal ("password="+p+"&"), and
// a path of names.
func joined(h shape) bool {
	v := h.text
	return strings.IndexByte("+,;)", v[0]) >= 0 && !h.random(12) || strings.Contains(v, "this.") || dotted(h)
}

// dotted reports names joined by dots: cryptography.x509.Certificate.
func dotted(h shape) bool {
	return h.wordy() && h.symbols == 0 && h.digits*4 < len(h.text) && strings.Count(h.text, ".") >= 2 && !strings.ContainsAny(h.text, "-/")
}

// compound reports words joined by dashes or underscores with at most one number among them: case-insensitive, 8-character.
func compound(t string, h shape) bool {
	return h.wordy() && h.symbols == 0 && h.islands <= 1 && strings.ContainsAny(t, "-_")
}

// address reports 20 bytes in hexadecimal behind 0x: where a token of a ledger lives.
func address(t string) bool { return len(t) == 42 && (t[:2] == "0x" || t[:2] == "0X") }
