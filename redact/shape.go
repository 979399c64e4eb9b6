package redact

import "strings"

// A shape is what the checks know of a value: counts over its bytes, taken in one pass.
type shape struct {
	text           string
	letters        int
	digits         int
	uppers, lowers int
	symbols        int // the marks that people put into passwords, and that identifiers and prose words do not have
	spaces         int
	foreign        int  // bytes beyond ASCII
	numbers        int  // runs of digits
	pairs, common  int  // neighboring letters, and how many of them are frequent in prose
	flips          int  // changes between lower case, upper case and digits; the capital of a word is one change
	number         int  // the longest run of digits
	masks          int  // bytes in runs of four or more of one masking character
	longest        int  // the longest run of one byte
	distinct       int  // different bytes
	elided         bool // has ... or … in it
	hex            bool // hexadecimal digits and dashes only
}

// shape is shapeOf, counted as work. It keeps the last result: a text that repeats a name has the
// same value after each.
func (p *pass) shape(v string) shape {
	if v == "" || v != p.lastShape.text {
		p.work += len(v)
		p.lastShape = shapeOf(v)
	}
	return p.lastShape
}

func shapeOf(v string) shape {
	h := shape{text: v, hex: true}
	var seen [256]bool
	prev, number, run, capitals := byte(0), 0, 0, 0
	for i := range len(v) {
		b := v[i]
		if run++; b != prev {
			run = 1
		}
		if h.longest = max(h.longest, run); run >= 3 && is(b, maskChar) {
			h.elided = h.elided || b == '.'
			if run == 4 {
				h.masks += 3
			}
			if run >= 4 {
				h.masks++
			}
		}
		if !seen[b] {
			seen[b] = true
			h.distinct++
		}
		c := classes[b]
		h.hex = h.hex && (c&hexChar != 0 || b == '-')
		if kind := c & (lowerChar | upperChar | digitChar); kind != 0 && is(prev, alnumChar) && classes[prev]&kind == 0 {
			if kind != lowerChar || capitals != 1 {
				h.flips++
			}
		}
		if c&upperChar != 0 {
			capitals++
		} else {
			capitals = 0
		}
		switch {
		case c&letterChar != 0:
			h.letter(prev, b)
		case c&digitChar != 0:
			h.digits++
			if !is(prev, digitChar) {
				h.numbers++
				number = 0
			}
			number++
			h.number = max(h.number, number)
		case c&whitespaceChar != 0:
			h.spaces++
		case b >= 0x80:
			h.foreign++
			h.elided = h.elided || has(v, i, "…") || has(v, i, "•••")
		case c&symbolChar != 0:
			h.symbols++
		}
		prev = b
	}
	return h
}

// letter counts the letter b, which follows prev.
func (h *shape) letter(prev, b byte) {
	h.letters++
	if is(b, upperChar) {
		h.uppers++
	} else {
		h.lowers++
	}
	if is(prev, letterChar) {
		h.pairs++
		if frequent(prev, b) {
			h.common++
		}
	}
}

// masked reports a value that is for a quarter or more runs of a masking character, for half or
// more one run of any byte, or that has under three different bytes.
func (h shape) masked() bool {
	n := len(h.text)
	return h.distinct < 2 || h.distinct == 2 && n > 3 || h.masks*4 >= n || h.longest >= 4 && h.longest*2 >= n
}

// wordy reports letters that follow one another as they do in words, in the case and with the
// digits of identifiers.
func (h shape) wordy() bool { return h.pairs >= 4 && h.common*4 >= h.pairs*3 && !h.restless() }

// restless reports letters and digits that change from one sort to the other as they do in no
// identifier.
func (h shape) restless() bool { return h.flips*10 >= 3*len(h.text) }

// random reports whether a value of at least n bytes looks like the output of a key generator.
func (h shape) random(n int) bool { return h.scattered(n) && !h.placed() }

// scattered is random by the counts alone, which cost nothing more.
func (h shape) scattered(n int) bool {
	switch {
	case len(h.text) < n, h.spaces > 0, h.foreign > 0, h.distinct < 5, h.letters == 0:
		return false
	case h.hex:
		return len(h.text) >= max(n, 12) && h.digits > 0 && h.distinct >= 6
	case h.digits == 0:
		return len(h.text) >= max(n, 12) && (h.restless() || h.pairs >= 8 && h.common*2 < h.pairs || h.pairs >= 12 && h.common*5 < h.pairs*3)
	case h.wordy(), h.number >= 8 && len(h.text)-h.number < 12: // words; a number with a name before it
		return false
	}
	return true
}

// mixed reports a value of at least n bytes in which letters be next to digits or marks, or
// capitals in no order: what people make up.
func (h shape) mixed(n int) bool { return h.composed(n) && !h.placed() }

// composed is mixed by the counts alone.
func (h shape) composed(n int) bool {
	return len(h.text) >= n && h.spaces == 0 && h.letters > 0 && (h.digits+h.symbols > 0 || h.restless() || h.scattered(n)) && h.distinct >= 3
}

// numeric reports a value of at least n digits and nothing else.
func (h shape) numeric(n int) bool { return h.digits >= n && h.digits == len(h.text) }

// placed reports a path, a URL, a date, a version, a constant, an expression, or the name of an
// algorithm: what is beside secret-like names without being a secret.
func (h shape) placed() bool {
	return h.located() || dated(h.text) || versioned(h.text) || algorithm(h.text) || h.constant() || expression(h.text)
}

// located reports a path or a URL.
func (h shape) located() bool {
	v := h.text
	switch {
	case v == "":
		return false
	case strings.Contains(v, "://"), strings.HasPrefix(v, "arn:"):
		return true
	case (v[0] == '/' || v[0] == '~' || v[0] == '.') && h.wordy():
		return true
	case len(v) > 3 && (v[1:3] == ":\\" || v[:2] == "\\\\") && h.wordy():
		return true
	case v[0] == '-' && !h.hex: // an option, a list mark
		return h.wordy() || h.letters < 4
	}
	return false
}

// constant reports a number of up to 64 bits in hexadecimal, or a name like NL80211_CMD_DEL_KEY.
func (h shape) constant() bool {
	if h.symbols > 0 {
		return false
	}
	return len(h.text) <= 19 && hasFold(h.text, 0, "0x") || h.lowers == 0 && h.digits*3 < len(h.text) && strings.Count(h.text, "_") >= 2
}

// expressions are parts of regular expressions.
var expressions = strings.Fields(`[0-9 [a-z [A-Z [a-f (? \d \w qr/`)

// expression reports a regular expression.
func expression(v string) bool {
	for _, part := range expressions {
		if strings.Contains(v, part) {
			return true
		}
	}
	return false
}

// dated reports a date at the start: 2024-01-31.
func dated(v string) bool {
	return len(v) >= 10 && v[4] == '-' && v[7] == '-' && at(v, 0, digitChar) && at(v, 3, digitChar) && at(v, 5, digitChar) && at(v, 9, digitChar)
}

// versioned reports two numbers with a dot between at the start: v1.27.3-rc1, 10.0.0.1:8080.
func versioned(v string) bool {
	i := 0
	if hasFold(v, 0, "v") {
		i++
	}
	k := i
	for at(v, k, digitChar) {
		k++
	}
	return k > i && k-i <= 4 && at(v, k+1, digitChar) && v[k] == '.'
}

// algorithms are how names of encodings and hashes begin, numericTypes are types of numbers.
var (
	algorithms = strings.Fields("sha1 sha2 sha3 sha5 sha- md5 base64 base32 utf8 utf- aes1 aes2 aes- rsa- rsa2 rsa4 ed25519 x509 x.509 x25519 argon2 " +
		"pbkdf2 pkcs oauth hs256 rs256 es256 bcrypt scrypt crc32")
	numericTypes = wordSet("uint int float varchar nvarchar char decimal binary complex timestamp")
)

// algorithm reports the name of an encoding or a hash, alone or with a word after it (sha256,
// base64-encoded), or of a type of numbers.
func algorithm(v string) bool {
	for _, a := range algorithms {
		if hasFold(v, 0, a) {
			return len(v) < len(a)+12 && shapeOf(v[len(a):]).numbers <= 1
		}
	}
	return lookUp(numericTypes, strings.TrimRight(v, digits))
}

// frequent reports whether two letters, in any case, often follow one another in prose.
func frequent(a, b byte) bool {
	return bigrams[(a|0x20)-'a']&(1<<((b|0x20)-'a')) != 0
}

// bigrams has, for each first letter, a bit for each second letter: the pairs that make up about 93
// % of those in English technical prose (counted over the comments of the Go distribution), and
// doubled letters. Other languages in Latin script share most of them.
var bigrams = func() (t [26]uint32) {
	for first, seconds := range [26]string{
		'a' - 'a': "bcdfgiklmnprstuvwy", 'b' - 'a': "aeiloruy", 'c' - 'a': "acehikloqrtuy", 'd' - 'a': "adeilorsuy",
		'e' - 'a': "acdefgilmnpqrstvwxy", 'f' - 'a': "aefilortu", 'g' - 'a': "aeghilnorsu", 'h' - 'a': "aeiortuy",
		'i' - 'a': "abcdefglmnoprstvz", 'j' - 'a': "eou", 'k' - 'a': "eins", 'l' - 'a': "adefilostuvy",
		'm' - 'a': "abeimopsuy", 'n' - 'a': "acdefgiknostuvy", 'o' - 'a': "bcdfgiklmnoprstuvw", 'p' - 'a': "aehiloprstu",
		'q' - 'a': "u", 'r' - 'a': "acdefgiklmnorstuvy", 's' - 'a': "acehiklmopqstuwy", 't' - 'a': "acehilorstuwy",
		'u' - 'a': "abcdegilmnprst", 'v' - 'a': "aeio", 'w' - 'a': "aehinors", 'x' - 'a': "aceipt", 'y' - 'a': "aelmnopst",
		'z' - 'a': "aeiz",
	} {
		for i := range len(seconds) {
			t[first] |= 1 << (seconds[i] - 'a')
		}
	}
	return t
}()
