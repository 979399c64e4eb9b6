package redact

import "strings"

// assignDetectors find values next to secret-like names, as code, configuration, logs, tables and
// letters write them.
var assignDetectors = []detector{
	{name: "assignment", anchors: []anchor{{"=:", "", ""}}, find: findAssignment, ahead: 4, after: true},
	{name: "full width", anchors: []anchor{{"\xef", "\xbc", "\x9a\x9d"}}, find: findFullWidth, ahead: 4}, // ： and ＝
	{name: "element", anchors: []anchor{{">", alnums + "!@#$%^&*+-_./<", ""}}, find: findElement, ahead: 3, after: true},
	{name: "argument", anchors: []anchor{{",", "\"'` ", ""}, {"(", "\"'`", ""}}, find: findArgument, ahead: 3, after: true},
	{name: "flag", anchors: []anchor{{"-", "-", lowers + uppers}}, find: findFlag, ahead: 3},
	{name: "keyword", anchors: []anchor{{" ", "\"'", ""}}, find: findKeyword, ahead: 3, after: true},
	{name: "juxtaposition", anchors: []anchor{{"RWrw", "Dd", " "}}, find: findJuxtaposed, ahead: 3},   // passwoRD …, pWD …
	{name: "juxtaposition", anchors: []anchor{{"Pp", "Ww", " "}}, find: findJuxtaposed, ahead: 3},     // PW …
	{name: "juxtaposition", anchors: []anchor{{"Ee", "YNTynt", " "}}, find: findJuxtaposed, ahead: 3}, // kEY …, tokEN …, secrET …
	{name: "sentence", anchors: []anchor{{" ", "iwel", "sa"}}, find: findSentence, ahead: 10, after: true},
	{name: "topic", anchors: []anchor{{"\xe3", "\x81", "\xaf"}, {"\xe6", "\x98", "\xaf"}}, find: findTopic, ahead: 4}, // は and 是
	{name: "cell", anchors: []anchor{{"|", " ", ""}}, find: findCell, ahead: 3, after: true},
}

// A style is the way in which a value is written next to its name. It decides how much the value
// must look like a secret.
type style uint8

const (
	assigned style = iota // name = value, name: value, <name>value
	inProse               // in a sentence, in a table or on the next line: the value must look a little more like a secret
	compact               // NAME=value of an environment or a query: a plain word is a value too
)

// findAssignment decides on the = or : at i.
func findAssignment(p *pass, i int) {
	t := p.text
	if i < p.values.end || i+1 == len(t) || t[i] == ':' && (t[i+1] == '/' || t[i+1] == ':' || t[i+1] == '=') || i > 0 && t[i-1] == t[i] {
		return
	}
	if t[i] == ':' && is(t[i+1], digitChar) && at(t, i-1, digitChar) && !at(t, i-2, letterChar) { // a time, a port
		return
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
	if t[i] == '=' && after == i+1 && at(t, i-1, nameChar) && after < len(t) && !is(t[after], whitespaceChar|quoteChar) {
		how = compact
	}
	checkAssigned(p, name, after, how)
}

func findFullWidth(p *pass, i int) {
	if i >= p.values.end {
		checkAssigned(p, i, i+3, assigned)
	}
}

// checkAssigned decides on the value after an operator. Its name ends before op; the value begins
// at after, or after spaces there.
func checkAssigned(p *pass, op, after int, how style) {
	if !hasHint(p, op) {
		return
	}
	v, ok := openValue(p, after)
	if !ok {
		return
	}
	v.query = how == compact
	if !v.quoted() && !worthReading(p, v, how) { // most of what follows a colon is prose: look at the value first
		return
	}
	n := nameBefore(p, op)
	if n.class == noName {
		return
	}
	if n.bare && !v.quoted() {
		n.class = weakName
	}
	if how == compact && !n.constant {
		how = assigned
	}
	if v.nextLine && !ownLine(p, v, after) {
		return
	}
	if n.distant || v.nextLine {
		how = inProse
	}
	recordValue(p, v, n.class, how)
}

// ownLine reports whether the value is the only text on the line below a colon.
func ownLine(p *pass, v value, after int) bool {
	end := extendValue(p, v).to
	if v.quoted() {
		end = p.runEnd(end, quoteChar, end+3)
	}
	end = p.runEnd(end, blankChar, end+16)
	return p.text[after-1] != '=' && (end >= len(p.text) || p.text[end] == '\n' || p.text[end] == '\r')
}

// worthReading reports whether an unquoted value could be a secret after some name, by its first
// bytes.
func worthReading(p *pass, v value, how style) bool {
	const enough = 16
	end := valueCloses(p, v, v.from, min(v.from+enough, len(p.text)))
	t := p.text[v.from:end]
	if t == "" || strings.IndexByte(",;)", t[0]) >= 0 {
		return false
	}
	if how == compact || len(t) == enough {
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

// recordValue records v if it is a secret after a name of class c.
func recordValue(p *pass, v value, c nameClass, how style) {
	v = extendValue(p, v)
	if checkList(p, v, c, how) {
		return
	}
	v = afterScheme(p, v)
	if v.to <= v.from || !isSecret(p, v, c, how) {
		return
	}
	end := valueEnd(p, v)
	p.hit(kindPassword, v.from, end)
	p.values.end = end
}

// checkList decides on each quoted value of a list in brackets, and reports whether v is one.
func checkList(p *pass, v value, c nameClass, how style) bool {
	if v.quoted() || p.text[v.from] != '[' || !at(p.text, v.from+1, quoteChar) {
		return false
	}
	const maxItems = 256
	k := v.from + 1
	for range maxItems {
		item, ok := openValue(p, k)
		if !ok || !item.quoted() {
			break
		}
		item = extendValue(p, item)
		end := valueEnd(p, item)
		if item.to > item.from && isSecret(p, item, c, how) {
			p.hit(kindPassword, item.from, end)
		}
		k = p.runEnd(end, quoteChar, end+1)
		if !has(p.text, k, ",") {
			break
		}
		k++
	}
	p.values.end = k
	return true
}

// schemes are those of Authorization headers.
var schemes = wordSet("bearer basic token digest apikey negotiate jwt oauth ssws")

// afterScheme returns the credentials, if v begins with the scheme of an Authorization header.
func afterScheme(p *pass, v value) value {
	t := p.text[v.from:v.to]
	const maxScheme = len("negotiate")
	scheme, _, spaced := strings.Cut(t[:min(len(t), maxScheme+1)], " ")
	if len(scheme) > maxScheme || !lookUp(schemes, scheme) {
		return v
	}
	next := v.from + len(scheme)
	if !spaced && !at(p.text, next, blankChar) {
		return v
	}
	v.from = p.runEnd(next, blankChar, next+8)
	if !v.quoted() && v.from < len(p.text) {
		return extendValue(p, v)
	}
	return v
}

// isSecret reports whether v is a secret after a name of class c. The counts decide on most values,
// so they come first.
func isSecret(p *pass, v value, c nameClass, how style) bool {
	t := p.text[v.from:v.to]
	h := p.shape(t)
	if len(t) < 4 || h.letters+h.digits == 0 || !h.plausible(v, c, how) || filler(h) || h.placed() {
		return false
	}
	if h.spaces > 0 {
		return phrase(t, h)
	}
	if !v.quoted() && isCode(p, v, h, c) || v.quoted() && joined(h) {
		return false
	}
	switch {
	case c == wordName && (how == compact || how == assigned && v.quoted()), h.numeric(6) && c == wordName:
		return true
	case c == wordName:
		return !compound(t, h)
	case c == firmName && how != inProse:
		return h.scattered(8) || !compound(t, h) && (h.symbols > 0 || len(t) > maxName || classify(t) == noName)
	case c == firmName:
		return true
	}
	return !address(t)
}

// plausible reports whether the counts of a value let it be a secret after a name of class c.
func (h shape) plausible(v value, c nameClass, how style) bool {
	switch {
	case h.spaces > 0:
		return v.quoted() && c == wordName && how == assigned
	case c == wordName && how == compact:
		return h.letters >= 4 || h.composed(4) || h.numeric(6)
	case c == wordName && how == assigned && v.quoted():
		return h.foreign == 0 || h.composed(6)
	case c == wordName:
		return h.composed(6) || h.numeric(6)
	case c == weakName && how != inProse:
		return h.scattered(10)
	case c == firmName && how != inProse:
		return h.scattered(8) || h.composed(6)
	case c == firmName:
		return h.scattered(8)
	}
	return h.scattered(12)
}

// joined reports whether a quoted value is the code between two string literals ("password="+p+"&")
// or a path of names.
func joined(h shape) bool {
	v := h.text
	return strings.IndexByte("+,;)", v[0]) >= 0 && !h.random(12) || strings.Contains(v, "this.") || dotted(h)
}

// dotted reports whether the value is names joined by dots: cryptography.x509.Certificate.
func dotted(h shape) bool {
	return h.wordy() && h.symbols == 0 && h.digits*4 < len(h.text) && strings.Count(h.text, ".") >= 2 && !strings.ContainsAny(h.text, "-/")
}

// compound reports whether t is words joined by dashes or underscores with at most one number among
// them: case-insensitive, 8-character.
func compound(t string, h shape) bool {
	return h.wordy() && h.symbols == 0 && h.numbers <= 1 && strings.ContainsAny(t, "-_")
}

// address reports whether t is 20 bytes in hexadecimal after 0x, as addresses on a blockchain are
// written.
func address(t string) bool { return len(t) == 42 && (t[:2] == "0x" || t[:2] == "0X") }
