package redact

import "strings"

// markDetectors find tokens that are known by a mark in their middle or by the header that carries them, and values
// of Kubernetes secrets.
var markDetectors = []detector{
	{name: "telegram", anchors: []anchor{{":", "A", "A"}}, find: findTelegram},
	{name: "sendgrid", anchors: []anchor{{"S", "G", "."}}, find: findSendGrid},
	{name: "cookie", anchors: []anchor{{"Cc", "Oo", "Oo"}}, find: findCookie},
	{name: "discord", anchors: []anchor{{".", url64, url64}}, find: findDiscord},
	{name: "azure", anchors: []anchor{{"Q", "~", url64 + ".~"}}, find: findAzure},
	{name: "terraform", anchors: []anchor{{".", "a", "t"}}, find: findTerraform},
	{name: "mailchimp", anchors: []anchor{{"-", "u", "s"}}, find: findMailchimp},
	{name: "facebook", anchors: []anchor{{digits, "|", alnums}}, find: findFacebook},
	{name: "scheme", anchors: []anchor{{"Bb", "EeAa", "AaSs"}}, find: findScheme},
	{name: "kubernetes", anchors: []anchor{{"k", "i", "n"}}, find: findManifest},
}

// findTelegram finds a bot token: an id of 6 to 12 digits, a colon, 35 characters that begin with AA.
func findTelegram(s *scan, i int) int {
	from := s.runStart(i, digitChar, i-13)
	end := s.runEnd(i+1, urlChar, i+1+64)
	if i-from < 6 || i-from > 12 || end-i-1 < 35 || s.specimen(s.text[i+1:i+36]) || s.shape(s.text[i+1:i+36]).wordy() {
		return i
	}
	end = s.runEnd(end, urlChar, len(s.text))
	s.hit(kindToken, from, end)
	return end
}

// findSendGrid finds SG., 22 characters, a dot, 43.
func findSendGrid(s *scan, i int) int {
	const first, second = 22, 43
	dot := i + len("SG.") + first
	if s.runEnd(i+3, urlChar, dot) != dot || !at(s.text, dot, dotChar) || s.runEnd(dot+1, urlChar, dot+1+second) != dot+1+second {
		return i
	}
	if s.specimen(s.text[dot+1 : dot+1+second]) {
		return i
	}
	end := s.runEnd(dot+1, urlChar, len(s.text))
	s.hit(kindToken, i, end)
	return end
}

// findCookie finds values in a Cookie or Set-Cookie header that look random: session ids.
func findCookie(s *scan, i int) int {
	const reach = 4096
	if !hasFold(s.text, i, "cookie:") || at(s.text, i-1, alnumChar) {
		return i
	}
	for k := i + len("cookie:"); k < len(s.text) && k < i+reach; k++ {
		k = s.runEnd(k, blankChar, k+8)
		k = s.runEnd(k, nameChar, k+maxName)
		if !has(s.text, k, "=") {
			break
		}
		from := k + 1
		k = s.runEnd(from, cookieChar, from+maxLook)
		if h := s.shape(s.text[from:k]); h.random(16) && !filler(h) {
			k = s.runEnd(k, cookieChar, len(s.text))
			s.hit(kindToken, from, k)
		}
		if !has(s.text, k, ";") {
			break
		}
	}
	return i
}

// findDiscord finds a bot token: 23 to 28 characters, a dot, 6, a dot, 27 or more. The first part is a number in base64.
func findDiscord(s *scan, i int) int {
	second := i + 7
	if !at(s.text, second, dotChar) || s.runEnd(i+1, urlChar, second) != second {
		return i
	}
	from := s.runStart(i, urlChar, i-29)
	end := s.runEnd(second+1, urlChar, second+1+27)
	if i-from < 23 || end-second-1 < 27 || !strings.ContainsAny(s.text[from:i-22], "MNO") {
		return i
	}
	if !s.shape(s.text[from:i]).random(20) || s.specimen(s.text[second+1:end]) {
		return i
	}
	end = s.runEnd(end, urlChar, len(s.text))
	s.hit(kindToken, from, end)
	return end
}

// findAzure finds a client secret of Entra ID: three characters, a digit, Q~, 31 to 34 characters.
func findAzure(s *scan, i int) int {
	from := i - 4
	if !at(s.text, i-1, digitChar) || from < 0 || !is(s.text[from], azureChar) || !is(s.text[from+1], azureChar) || !is(s.text[from+2], azureChar) {
		return i
	}
	end := s.runEnd(i+2, azureChar, i+2+40)
	if end-i-2 < 31 || end-i-2 > 36 || s.specimen(s.text[i+2:end]) || !s.shape(s.text[from:end]).random(30) {
		return i
	}
	for s.text[end-1] == '.' {
		end--
	}
	s.hit(kindToken, from, end)
	return end
}

// findTerraform finds 14 characters, ".atlasv1.", and 60 or more.
func findTerraform(s *scan, i int) int {
	const mark = ".atlasv1."
	if !has(s.text, i, mark) {
		return i
	}
	from := s.runStart(i, alnumChar, i-14)
	body := i + len(mark)
	end := s.runEnd(body, urlChar, body+60)
	if i-from < 14 || end-body < 60 || s.specimen(s.text[body:end]) {
		return i
	}
	end = s.runEnd(end, urlChar, len(s.text))
	s.hit(kindToken, from, end)
	return end
}

// findMailchimp finds 32 hexadecimal digits with the data centre behind them.
func findMailchimp(s *scan, i int) int {
	from := s.runStart(i, hexChar, i-32)
	end := s.runEnd(i+3, digitChar, i+5)
	if i-from < 32 || at(s.text, from-1, wordChar) || end == i+3 || at(s.text, end, wordChar) || !s.shape(s.text[from:i]).random(32) {
		return i
	}
	s.hit(kindToken, from, end)
	return end
}

// findFacebook finds an app token: 15 or 16 digits, a bar, 27 to 40 characters.
func findFacebook(s *scan, i int) int {
	from := s.runStart(i+1, digitChar, i-16)
	end := s.runEnd(i+2, urlChar, i+2+41)
	if n := i + 1 - from; n < 15 || n > 16 || end-i-2 < 27 || end-i-2 > 40 || !s.shape(s.text[i+2:end]).random(27) {
		return i
	}
	s.hit(kindToken, from, end)
	return end
}

// findScheme finds the credentials behind Bearer and Basic (RFC 6750, RFC 7617), in a header or quoted from one.
func findScheme(s *scan, i int) int {
	kind, k := kindToken, i
	switch {
	case at(s.text, i-1, wordChar):
		return i
	case hasFold(s.text, i, "bearer"):
		k += len("bearer")
	case hasFold(s.text, i, "basic"):
		k, kind = i+len("basic"), kindPassword
	default:
		return i
	}
	from := s.runEnd(k, blankChar, k+4)
	if has(s.text, k, "%20") {
		from = k + 3
	}
	if from == k {
		return i
	}
	end := s.runEnd(from, schemeChar, from+256)
	v := strings.TrimRight(s.text[from:end], ".-~/")
	h := s.shape(v)
	if filler(h) || !h.random(12) && !h.numeric(12) && !(kind == kindPassword && h.random(8) && strings.HasSuffix(v, "=")) {
		return i
	}
	if end == from+256 {
		end = s.runEnd(end, schemeChar, len(s.text))
	} else {
		end = from + len(v)
	}
	s.hit(kind, from, end)
	return i
}

// findManifest finds the values under data and stringData of a Kubernetes Secret: base64 under names of any kind.
func findManifest(s *scan, i int) int {
	const reach = 64 << 10
	if i < s.manifest || !has(s.text, i, "kind:") {
		return i
	}
	k := s.runEnd(i+len("kind:"), blankChar, i+16)
	if at(s.text, k, quoteChar) {
		k++
	}
	if !hasFold(s.text, k, "secret") || at(s.text, k+len("secret"), nameChar) {
		return i
	}
	from, to := 0, len(s.text)
	if n := strings.LastIndex(s.text[max(i-reach, s.manifest, 0):i], "\n---"); n >= 0 {
		from = max(i-reach, s.manifest, 0) + n + 1
	} else {
		from = max(i-reach, s.manifest, 0)
	}
	if n := strings.Index(s.text[i:min(i+reach, to)], "\n---"); n >= 0 {
		to = i + n
	} else {
		to = min(i+reach, to)
	}
	s.work += to - from
	s.manifest = to
	s.manifestData(from, to)
	return i
}

// manifestData records the values of the data blocks in text[from:to].
func (s *scan) manifestData(from, to int) {
	inside, indent := false, 0
	for k := from; k < to; {
		end := to
		if n := strings.IndexByte(s.text[k:to], '\n'); n >= 0 {
			end = k + n
		}
		start := s.runEnd(k, blankChar, end)
		line := s.text[start:end]
		switch {
		case strings.TrimRight(line, " \r") == "data:" || strings.TrimRight(line, " \r") == "stringData:":
			inside, indent = true, start-k
		case line == "" || line[0] == '#':
		case start-k <= indent:
			inside = false
		case inside:
			s.manifestValue(start, end)
		}
		k = end + 1
	}
}

// manifestValue records the value of one line: "name: value", or a line of a block scalar.
func (s *scan) manifestValue(from, to int) {
	line := s.text[from:to]
	value := line
	if _, after, ok := strings.Cut(line, ":"); ok {
		value = after
	}
	value = strings.Trim(value, " \t\r\"'")
	h := s.shape(value[:min(len(value), 256)])
	if len(value) < 10 || h.blanks > 0 || filler(h) || h.letters == 0 {
		return
	}
	end := strings.TrimRight(line, " \t\r\"'")
	at := from + len(end) - len(value)
	if s.runEnd(at, base64Char, at+len(value)) == at+len(value) {
		s.hit(kindPassword, at, at+len(value))
	}
}
