package redact

import (
	"strings"
	"sync"
)

var ibanDetector = detector{name: "iban", anchors: []anchor{{lowers + uppers, lowers + uppers, digits}}, find: findIBAN, ahead: 4, kind: IBAN, named: namesIBAN, leaf: ibanLeaf}

// ibans has countries, each with the structure of its account number after the check digits, in the
// notation of the registry (ISO 13616): n digits, a letters, c either. The countries of the last
// rows use the format without being registered.
const ibans = `
AD 8n12c  AE 19n  AL 8n16c  AT 16n  AZ 4a20c  BA 16n  BE 12n  BG 4a6n8c  BH 4a14c  BI 23n  BR 23n1a1c  BY 4c4n16c
CH 5n12c  CR 18n  CY 8n16c  CZ 20n  DE 18n  DJ 23n  DK 14n  DO 4c20n  EE 16n  EG 25n  ES 20n  FI 14n  FK 2a12n
FO 14n  FR 10n11c2n  GB 4a14n  GE 2a16n  GI 4a15c  GL 14n  GR 7n16c  GT 24c  HN 4a20n  HR 17n  HU 24n  IE 4a14n
IL 19n  IQ 4a15n  IS 22n  IT 1a10n12c  JO 4a4n18c  KW 4a22c  KZ 3n13c  LB 4n20c  LC 4a24c  LI 5n12c  LT 16n
LU 3n13c  LV 4a13c  LY 21n  MC 10n11c2n  MD 20c  ME 18n  MK 3n10c2n  MN 16n  MR 23n  MT 4a5n18c  MU 4a19n3a
NI 4a20n  NL 4a10n  NO 11n  OM 3n16c  PK 4a16c  PL 24n  PS 4a21c  PT 21n  QA 4a21c  RO 4a16c  RS 18n  RU 14n15c
SA 2n18c  SC 4a20n3a  SD 14n  SE 20n  SI 15n  SK 20n  SM 1a10n12c  SO 19n  ST 21n  SV 4a20n  TL 19n  TN 20n
TR 6n16c  UA 6n19c  VA 18n  VG 4a16n  XK 16n  YE 4a4n18c

AO 21n  BF 2c22n  BJ 2c22n  CF 23n  CG 23n  CI 2c22n  CM 23n  CV 21n  DZ 22n  GA 23n  GQ 23n  GW 2c19n  IR 22n
KM 23n  MA 24n  MG 23n  ML 2c22n  MZ 21n  NE 2a22n  SN 2c22n  TD 23n  TG 2a22n
`

// maxIBAN is the length of the longest number that ISO 13616 allows.
const maxIBAN = 34

// ibanShapes has the classes of the characters after the check digits, by country.
var ibanShapes = sync.OnceValue(func() map[[2]byte][]class {
	of := map[byte]class{'n': digitChar, 'a': letterChar, 'c': alnumChar}
	shapes := make(map[[2]byte][]class)
	fields := strings.Fields(ibans)
	for k := 0; k < len(fields); k += 2 {
		country, notation := fields[k], fields[k+1]
		var shape []class
		n := 0
		for i := range len(notation) {
			if b := notation[i]; is(b, digitChar) {
				n = 10*n + int(b-'0')
				continue
			}
			for ; n > 0; n-- {
				shape = append(shape, of[notation[i]])
			}
		}
		shapes[[2]byte{country[0], country[1]}] = shape
	}
	return shapes
})

// findIBAN finds a number that begins at i, in one run or in groups with one kind of gap, in
// letters of one case.
func findIBAN(p *pass, i int) {
	if !at(p.text, i+3, digitChar) || is(p.text[i], lowerChar) != is(p.text[i+1], lowerChar) || !startsIBAN(p.text, i) {
		return
	}
	country := [2]byte{toUpper(p.text[i]), toUpper(p.text[i+1])}
	shape := ibanShapes()[country]
	if shape == nil {
		return
	}
	var all [maxIBAN]byte
	copy(all[:], p.text[i+2:i+4]) // the check digits, moved to the end below
	n := copy(all[:], country[:]) + 2
	all[2], all[3] = p.text[i+2], p.text[i+3]
	other := upperChar
	if is(p.text[i], upperChar) {
		other = lowerChar
	}
	k, sep := i+4, byte(0)
	for _, want := range shape {
		if !at(p.text, k, alnumChar) {
			g := p.gapAt(k)
			if g.width == 0 || sep != 0 && sep != g.sort {
				return
			}
			sep, k = g.sort, k+g.width
		}
		p.readTo(k)
		if !at(p.text, k, want) || at(p.text, k, other) {
			return
		}
		all[n], n, k = toUpper(p.text[k]), n+1, k+1
	}
	p.work += k - i
	if at(p.text, k, wordChar) || !mod97(all[:n]) {
		return
	}
	p.consume(IBAN, i, k)
}

// startsIBAN reports whether a number may begin at i: not within a word, unless that is the word
// IBAN or the escape of a line end or a tab.
func startsIBAN(text string, i int) bool {
	if !at(text, i-1, alnumChar) {
		return true
	}
	return hasFold(text, i-4, "iban") || at(text, i-1, letterChar) && has(text, i-2, `\`)
}

// mod97 reports whether the check digits of an account number in capitals are right (ISO/IEC 7064,
// MOD 97-10).
func mod97(account []byte) bool {
	if check := number(string(account[2:4])); check < 2 || check > 98 {
		return false
	}
	rest := 0
	for k := range account {
		b := account[(k+4)%len(account)]
		if is(b, digitChar) {
			rest = (10*rest + int(b-'0')) % 97
		} else {
			rest = (100*rest + int(b-'A') + 10) % 97
		}
	}
	return rest == 1
}

func toUpper(b byte) byte {
	if is(b, lowerChar) {
		return b - 'a' + 'A'
	}
	return b
}
