package redact

import "strings"

// markDetectors find tokens in a known header, and values of Kubernetes secrets.
var markDetectors = []detector{
	{name: "cookie", anchors: []anchor{{"Cc", "Oo", "Oo"}}, find: findCookie},
	{name: "scheme", anchors: []anchor{{"Bb", "EeAa", "AaSs"}}, find: findScheme},
	{name: "kubernetes", anchors: []anchor{{"k", "i", "n"}}, find: findManifest},
}

// findCookie finds values in a Cookie or Set-Cookie header that look random: session ids.
func findCookie(p *pass, i int) {
	const reach = 4096
	if !hasFold(p.text, i, "cookie:") || at(p.text, i-1, alnumChar) {
		return
	}
	for k := i + len("cookie:"); k < len(p.text) && k < i+reach; k++ {
		k = p.runEnd(k, blankChar, k+8)
		k = p.runEnd(k, nameChar, k+maxName)
		if !has(p.text, k, "=") {
			break
		}
		from := k + 1
		k = p.runEnd(from, cookieChar, from+maxLook)
		if h := p.shape(p.text[from:k]); h.random(16) && !filler(h) {
			k = p.runEnd(k, cookieChar, len(p.text))
			p.hit(kindToken, from, k)
		}
		if !has(p.text, k, ";") {
			break
		}
	}
}

// findScheme finds the credentials after Bearer and Basic (RFC 6750, RFC 7617), in a header or
// quoted from one.
func findScheme(p *pass, i int) {
	kind, k := kindToken, i
	switch {
	case at(p.text, i-1, wordChar):
		return
	case hasFold(p.text, i, "bearer"):
		k += len("bearer")
	case hasFold(p.text, i, "basic"):
		k, kind = i+len("basic"), kindPassword
	default:
		return
	}
	from := p.runEnd(k, blankChar, k+4)
	if has(p.text, k, "%20") {
		from = k + 3
	}
	if from == k {
		return
	}
	end := p.runEnd(from, schemeChar, from+256)
	v := strings.TrimRight(p.text[from:end], ".-~/")
	h := p.shape(v)
	if filler(h) || !h.random(12) && !h.numeric(12) && !(kind == kindPassword && h.random(8) && strings.HasSuffix(v, "=")) {
		return
	}
	if end == from+256 {
		end = p.runEnd(end, schemeChar, len(p.text))
	} else {
		end = from + len(v)
	}
	p.hit(kind, from, end)
}

// manifestReach is how far from its kind the data of a manifest may be.
const manifestReach = 64 << 10

// findManifest finds the values under data and stringData of a Kubernetes Secret: base64 under
// names of any kind.
func findManifest(p *pass, i int) {
	if i < p.tokens.manifest || !has(p.text, i, "kind:") {
		return
	}
	k := p.runEnd(i+len("kind:"), blankChar, i+16)
	if at(p.text, k, quoteChar) {
		k++
	}
	if !hasFold(p.text, k, "secret") || at(p.text, k+len("secret"), nameChar) {
		return
	}
	from, to := max(i-manifestReach, p.tokens.manifest, 0), min(i+manifestReach, len(p.text))
	if n := strings.LastIndex(p.text[from:i], "\n---"); n >= 0 {
		from += n + 1
	} else if from > 0 && from > p.tokens.manifest { // not in the middle of a line
		from += max(strings.IndexByte(p.text[from:i], '\n'), 0)
	}
	if n := strings.Index(p.text[i:to], "\n---"); n >= 0 {
		to = i + n
		p.readTo(to + len("\n---"))
	} else {
		p.readTo(i + manifestReach)
	}
	p.work += to - from
	p.tokens.manifest = to
	manifestData(p, from, to)
}

// manifestData records the values of the data blocks in text[from:to].
func manifestData(p *pass, from, to int) {
	inside, indent := false, 0
	for k := from; k < to; {
		end := to
		if n := strings.IndexByte(p.text[k:to], '\n'); n >= 0 {
			end = k + n
		}
		start := p.runEnd(k, blankChar, end)
		line := p.text[start:end]
		switch {
		case opensData(line):
			inside, indent = true, start-k
		case line == "" || line[0] == '#':
		case start-k <= indent:
			inside = false
		case inside:
			manifestValue(p, start, end)
		}
		k = end + 1
	}
}

// opensData reports whether a line without its indentation is the key of values.
func opensData(line string) bool {
	line = strings.TrimRight(line, " \r")
	return line == "data:" || line == "stringData:"
}

// manifestValue records the value of one line: "name: value", or a line of a block scalar.
func manifestValue(p *pass, from, to int) {
	line := p.text[from:to]
	value := line
	if _, after, ok := strings.Cut(line, ":"); ok {
		value = after
	}
	value = strings.Trim(value, " \t\r\"'")
	h := p.shape(value[:min(len(value), 256)])
	if len(value) < 10 || h.spaces > 0 || filler(h) || h.letters == 0 {
		return
	}
	end := strings.TrimRight(line, " \t\r\"'")
	at := from + len(end) - len(value)
	if p.runEnd(at, base64Char, at+len(value)) == at+len(value) {
		p.hit(kindPassword, at, at+len(value))
	}
}
