package redact

// jwkDetector finds the private members of JSON Web Keys (RFC 7518 6): d, p, q, dp, dq and qi of
// pairs of keys, k of symmetric ones.
var jwkDetector = detector{name: "jwk", anchors: []anchor{{"\"'", "dkpq", "\"'pqi"}}, find: findJWK, kind: kindKey, named: namesJWK, leaf: jwkLeaf}

// maxJWK is the length of the private exponent of an RSA key of 4096 bits.
const maxJWK = 683

// findJWK finds the value of the member whose name begins with the quotation mark at i.
func findJWK(p *pass, i int) {
	quote := p.text[i : i+1]
	k := p.runEnd(i+1, lowerChar, i+4)
	if kindWords()[p.text[i+1:k]] != namesJWK || !has(p.text, k, quote) {
		return
	}
	k = p.runEnd(k+1, whitespaceChar, k+9)
	if !has(p.text, k, ":") {
		return
	}
	k = p.runEnd(k+1, whitespaceChar, k+9)
	if !has(p.text, k, quote) {
		return
	}
	from := k + 1
	end := p.runEnd(from, urlChar, from+maxJWK+1)
	if has(p.text, end, quote) && jwkLeaf(p.text[from:end], false) {
		p.work += end - from
		p.hit(kindKey, from, end)
	}
}

// jwkLeaf accepts base64url of as many bytes as keys have: curves of 255 to 521 bits, symmetric keys
// of 256 to 512, and RSA of 2048 to 4096, whose numbers may be a byte shorter.
func jwkLeaf(text string, _ bool) bool {
	switch len(text) * 3 / 4 {
	case 32, 48, 56, 57, 64, 66, 127, 128, 191, 192, 255, 256, 383, 384, 511, 512:
		h := shapeOf(text)
		return allOf(text, urlChar) && h.random(43) && h.digits > 0 && h.uppers > 0 && h.lowers > 0 && !filler(h)
	}
	return false
}
