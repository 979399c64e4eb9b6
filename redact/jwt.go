package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

var jwtDetector = detector{name: "jwt", anchors: []anchor{{"e", "y", "J"}}, find: findJWT}

const (
	maxJOSE   = 1024 // bytes of an encoded header that are looked at; usual ones have 36 to 200
	minClaims = 10   // bytes of an encoded payload
)

// findJWT finds a JSON Web Token (RFC 7519): parts of base64url joined by dots. The first is a JOSE
// header. Unsigned tokens (two parts, or an empty third) and encrypted ones (five) count too.
func findJWT(p *pass, i int) {
	end := p.runEnd(max(i, p.tokens.headers), urlChar, i+maxJOSE+1)
	p.tokens.headers = end
	if end-i > maxJOSE || !at(p.text, end, dotChar) || !isJOSE(p, p.text[i:end]) {
		return
	}
	if p.runEnd(end+1, urlChar, end+1+minClaims)-end-1 < minClaims {
		return
	}
	for part := 2; part <= 5 && at(p.text, end, dotChar); part++ {
		next := p.runEnd(end+1, urlChar, len(p.text))
		if next == end+1 && part > 3 {
			break
		}
		end = next
	}
	if p.text[end-1] == '.' { // of a sentence; an unsigned token is complete without it
		end--
	}
	p.consume(kindJWT, i, end)
}

// isJOSE reports whether a header decodes to a JSON object with one of the members that every JOSE
// header has.
func isJOSE(p *pass, encoded string) bool {
	var text, raw [maxJOSE]byte
	tail := encoded[len(encoded)/4*4:]
	if tail == "" {
		tail = encoded[len(encoded)-4:]
	}
	if n, err := base64.RawURLEncoding.Decode(raw[:], text[:copy(text[:], tail)]); err != nil || n == 0 || raw[n-1] != '}' && raw[n-1] > ' ' {
		return false // this excludes most other texts
	}
	p.work += len(encoded)
	n, err := base64.RawURLEncoding.Decode(raw[:], text[:copy(text[:], encoded)])
	if err != nil {
		return false
	}
	header := bytes.TrimSpace(raw[:n])
	if len(header) < 2 || header[0] != '{' || header[len(header)-1] != '}' || !json.Valid(header) {
		return false
	}
	for _, member := range [...]string{`"alg"`, `"typ"`, `"enc"`, `"kid"`} {
		if bytes.Contains(header, []byte(member)) {
			return true
		}
	}
	return false
}
