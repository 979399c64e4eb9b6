package redact

import "strings"

// filler reports whether a value is obviously no secret: a reference to one (${VAR}, {{ .Token }},
// env names), a gap to fill in (<your-key>, changeme), a mask (xxxx, ****), or the name of a type.
//
// It considers only the value. Calling a secret an example in a comment or elsewhere in the text
// does not hide it.
func filler(h shape) bool {
	return h.masked() || h.elided || reference(h.text) || idle(h)
}

// templateOpeners begin references in templates.
var templateOpeners = strings.Fields("${ $( $[ {{ <% %( #{ @{ !{ &lt; &#x3C; &#60;")

// reference reports whether v is a template or a variable instead of a value.
func reference(v string) bool {
	if v == "" {
		return true
	}
	for _, open := range templateOpeners {
		if strings.HasPrefix(v, open) {
			return referenced(v[len(open):])
		}
	}
	switch v[0] {
	case '$':
		return variable(v[1:])
	case '<', '{', '[', '(':
		return referenced(v[1:])
	case '%':
		return len(v) > 2 && v[len(v)-1] == '%' && variable(v[1:len(v)-1])
	}
	if strings.HasPrefix(v, "__") && strings.HasSuffix(v, "__") {
		return len(v) < 5 || variable(v[2:len(v)-2])
	}
	return strings.HasPrefix(v, "ENC[") || strings.HasPrefix(v, "process.env.") || strings.HasPrefix(v, "os.environ") ||
		strings.HasPrefix(v, "@Microsoft.KeyVault")
}

// referenced reports whether inner, the text after an opening bracket, is the name of a value
// rather than a value. A default (${VAR:-value}) is a value.
func referenced(inner string) bool {
	if _, value, ok := strings.Cut(inner, ":-"); ok {
		inner = value
	}
	inner = strings.TrimRight(inner, "}])>% ")
	if inner == "" {
		return true
	}
	h := shapeOf(inner)
	return !h.random(8) && (h.symbols == 0 || h.spaces > 0 || h.digits == 0)
}

// variable reports whether v is a name as programs and shells write them.
func variable(v string) bool {
	if v == "" || is(v[0], digitChar) {
		return false
	}
	for i := range len(v) {
		if !is(v[i], wordChar) && v[i] != '.' && v[i] != ':' {
			return false
		}
	}
	h := shapeOf(v)
	return h.lowers == 0 || h.digits <= 1 && !h.random(12)
}

// idleWords are values that mean "no value".
var idleWords = wordSet("none null nil undefined true false yes no na tbd todo any empty unset unknown default required mandatory " +
	"optional hidden redacted masked withheld secretstr string str text varchar char bytes byte bool boolean int " +
	"integer number object array password passwort passwd passphrase pass pwd token apikey key credential credentials " +
	"changeme changeit changethis replaceme placeholder example sample dummy auto prompt file env stdin bearer basic " +
	"oauth2 jwt http https username usernamepassword userpass")

// gapWords begin descriptions of what to fill in.
var gapWords = strings.Fields("your insert replace enteryour placeholder changeme example")

// idle reports whether a value is a word for no value.
func idle(h shape) bool {
	v := h.text
	var buf [48]byte
	n := 0
	for i := 0; i < len(v) && n < len(buf); i++ { // lower case, without what is between words
		if is(v[i], alnumChar) {
			buf[n] = toLower(v[i])
			n++
		}
	}
	flat := buf[:n]
	if n == 0 || idleWords[string(flat)] {
		return true
	}
	for _, word := range gapWords {
		if n >= len(word) && string(flat[:len(word)]) == word {
			return h.digits < 3
		}
	}
	return named(h)
}

// named reports whether a value is a reference by name: a secret-like name of several words without
// digits (db_password, userPassword).
func named(h shape) bool {
	v := h.text
	if h.digits+h.symbols+h.spaces > 0 || len(v) > maxName || !strings.ContainsAny(v, "_-.") && (h.uppers == 0 || !is(v[0], lowerChar)) {
		return false
	}
	return allOf(v, nameChar) && classify(v) != noName
}

// specimen reports whether the body of a token only shows its format: it is a mask, or has words
// such as EXAMPLE, which generated tokens do not have.
func (p *pass) specimen(body string) bool {
	h := p.shape(body)
	if h.masked() || h.distinct < 5 {
		return true
	}
	for i := range len(body) {
		var words []string
		switch body[i] | 0x20 {
		case 'e':
			words = specimenWords[0:1]
		case 'p', 'y', 'd':
			words = specimenWords[1:4]
		case 'c', 'r', 'i':
			words = specimenWords[4:]
		}
		for _, word := range words {
			if hasFold(body, i, word) {
				return true
			}
		}
	}
	return false
}

var specimenWords = []string{"example", "placehold", "your", "dummy", "changeme", "replace", "redacted", "insert"}
