package redact

import "strings"

// markDetectors find tokens with a known mark in the middle or in a known header, and values of
// Kubernetes secrets.
var markDetectors = []detector{
	{name: "telegram", anchors: []anchor{{":", "A", "A"}}, find: findTelegram},
	{name: "sendgrid", anchors: []anchor{{"S", "G", "."}}, find: findSendGrid},
	{name: "cookie", anchors: []anchor{{"Cc", "Oo", "Oo"}}, find: findCookie},
	{name: "discord", anchors: []anchor{{".", url64, url64}}, find: findDiscord, ahead: 8},
	{name: "azure", anchors: []anchor{{"Q", "~", url64 + ".~"}}, find: findAzure},
	{name: "terraform", anchors: []anchor{{".", "a", "t"}}, find: findTerraform},
	{name: "mailchimp", anchors: []anchor{{"-", "u", "s"}}, find: findMailchimp},
	{name: "facebook", anchors: []anchor{{digits, "|", alnums}}, find: findFacebook},
	{name: "scheme", anchors: []anchor{{"Bb", "EeAa", "AaSs"}}, find: findScheme},
	{name: "kubernetes", anchors: []anchor{{"k", "i", "n"}}, find: findManifest},
}

// findTelegram finds a bot token: an id of 6 to 12 digits, a colon, 35 characters that begin with
// AA.
func findTelegram(p *pass, i int) {
	from := p.runStart(i, digitChar, i-13)
	end := p.runEnd(i+1, urlChar, i+1+64)
	if i-from < 6 || i-from > 12 || end-i-1 < 35 || p.specimen(p.text[i+1:i+36]) || p.shape(p.text[i+1:i+36]).wordy() {
		return
	}
	end = p.runEnd(end, urlChar, len(p.text))
	p.consume(kindToken, from, end)
}

// findSendGrid finds SG., 22 characters, a dot, 43.
func findSendGrid(p *pass, i int) {
	const first, second = 22, 43
	dot := i + len("SG.") + first
	if p.runEnd(i+3, urlChar, dot) != dot || !at(p.text, dot, dotChar) || p.runEnd(dot+1, urlChar, dot+1+second) != dot+1+second {
		return
	}
	if p.specimen(p.text[dot+1 : dot+1+second]) {
		return
	}
	end := p.runEnd(dot+1, urlChar, len(p.text))
	p.consume(kindToken, i, end)
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

// findDiscord finds a bot token: 23 to 28 characters, a dot, 6, a dot, 27 or more. The first part
// is a number in base64.
func findDiscord(p *pass, i int) {
	second := i + 7
	if !at(p.text, second, dotChar) || p.runEnd(i+1, urlChar, second) != second {
		return
	}
	from := p.runStart(i, urlChar, i-29)
	end := p.runEnd(second+1, urlChar, second+1+27)
	if i-from < 23 || end-second-1 < 27 || !strings.ContainsAny(p.text[from:i-22], "MNO") {
		return
	}
	if !p.shape(p.text[from:i]).random(20) || p.specimen(p.text[second+1:end]) {
		return
	}
	end = p.runEnd(end, urlChar, len(p.text))
	p.consume(kindToken, from, end)
}

// findAzure finds a client secret of Entra ID: three characters, a digit, Q~, 31 to 34 characters.
func findAzure(p *pass, i int) {
	from := i - 4
	if !at(p.text, i-1, digitChar) || from < 0 || !is(p.text[from], azureChar) || !is(p.text[from+1], azureChar) || !is(p.text[from+2], azureChar) {
		return
	}
	end := p.runEnd(i+2, azureChar, i+2+40)
	if end-i-2 < 31 || end-i-2 > 36 || p.specimen(p.text[i+2:end]) || !p.shape(p.text[from:end]).random(30) {
		return
	}
	for p.text[end-1] == '.' {
		end--
	}
	p.consume(kindToken, from, end)
}

// findTerraform finds 14 characters, ".atlasv1.", and 60 or more.
func findTerraform(p *pass, i int) {
	const mark = ".atlasv1."
	if !has(p.text, i, mark) {
		return
	}
	from := p.runStart(i, alnumChar, i-14)
	body := i + len(mark)
	end := p.runEnd(body, urlChar, body+60)
	if i-from < 14 || end-body < 60 || p.specimen(p.text[body:end]) {
		return
	}
	end = p.runEnd(end, urlChar, len(p.text))
	p.consume(kindToken, from, end)
}

// findMailchimp finds 32 hexadecimal digits with the data centre after them.
func findMailchimp(p *pass, i int) {
	from := p.runStart(i, hexChar, i-32)
	end := p.runEnd(i+3, digitChar, i+5)
	if i-from < 32 || at(p.text, from-1, wordChar) || end == i+3 || at(p.text, end, wordChar) || !p.shape(p.text[from:i]).random(32) {
		return
	}
	p.consume(kindToken, from, end)
}

// findFacebook finds an app token: 15 or 16 digits, a bar, 27 to 40 characters.
func findFacebook(p *pass, i int) {
	from := p.runStart(i+1, digitChar, i-16)
	end := p.runEnd(i+2, urlChar, i+2+41)
	if n := i + 1 - from; n < 15 || n > 16 || end-i-2 < 27 || end-i-2 > 40 || !p.shape(p.text[i+2:end]).random(27) {
		return
	}
	p.consume(kindToken, from, end)
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
