package redact

import "strings"

// urlDetectors find user and password as RFC 3986 (3.2.1) and data source names write them.
var urlDetectors = []detector{
	{name: "userinfo", anchors: []anchor{{":", "/", "/"}, {":", "\\", "/"}}, find: findUserinfo},
	{name: "dsn", anchors: []anchor{{"@", "tu", "cdn"}}, find: findDSN},
	{name: "curl user", anchors: []anchor{{" \t\n", "-", "u-"}}, find: findCurlUser},
	{name: "-p", anchors: []anchor{{" \t\n", "-", "p"}}, find: findDashP},
}

const maxAuthority = 512

// findUserinfo finds user:password@ behind the :// at i, which JSON may write :\/\/. A user alone is a name, unless it looks like a key.
func findUserinfo(s *scan, i int) int {
	if !at(s.text, i-1, alnumChar) {
		return i
	}
	from, at := i+3, -1
	if s.text[i+1] == '\\' {
		if !has(s.text, i, `:\/\/`) {
			return i
		}
		from = i + 5
	}
	limit := min(from+maxAuthority, len(s.text))
	k := from
	for ; k < limit; k++ {
		b := s.text[k]
		if b == '@' {
			at = k
		}
		if b == '[' { // of a placeholder; of an address in IPv6, behind userinfo; or of a synopsis
			if end := placeholderEnd(s.text, k); end > k {
				k = min(end, limit) - 1
				continue
			}
			break
		}
		if b == '/' || b == '?' || b == '#' && at >= 0 || b == '\\' || b == '<' || b == '>' || is(b, spaceChar|quoteChar) {
			break
		}
	}
	s.work += k - from
	if at <= from {
		return i
	}
	user, password, ok := cutUserinfo(s.text[from:at])
	if ok && !s.openPassword(password) {
		s.hit(kindPassword, from, at)
	} else if h := s.shape(user); !ok && h.random(20) && !filler(h) {
		s.hit(kindPassword, from, at)
	}
	return i
}

// cutUserinfo cuts at the first colon that is not the colon of a placeholder.
func cutUserinfo(info string) (user, password string, ok bool) {
	for k := 0; k < len(info); k++ {
		if end := placeholderEnd(info, k); end > k {
			k = end - 1
		} else if info[k] == ':' {
			return info[:k], info[k+1:], true
		}
	}
	return info, "", false
}

// openPassword reports a password that hides nothing: none, a reference, or a mask. The word "password" is one that
// people use, and scanners do not agree to pass it.
func (s *scan) openPassword(p string) bool {
	for end := placeholderEnd(p, 0); end > 0; end = placeholderEnd(p, 0) {
		p = p[end:]
	}
	if p == "" {
		return true
	}
	h := s.shape(p)
	return h.masked() && (len(p) > 3 || is(p[0], maskChar)) || h.elided || reference(p)
}

// findDSN finds user:password@tcp(host) and @unix(path), the data source names of Go's MySQL driver.
func findDSN(s *scan, i int) int {
	if !has(s.text, i, "@tcp(") && !has(s.text, i, "@unix(") {
		return i
	}
	from := i
	for from > 0 && i-from < 128 && !is(s.text[from-1], spaceChar|quoteChar) && s.text[from-1] != '=' && s.text[from-1] != '/' {
		from--
	}
	s.work += i - from
	if _, password, ok := cutUserinfo(s.text[from:i]); ok && !s.openPassword(password) {
		s.hit(kindPassword, from, i)
	}
	return i
}

// findCurlUser finds the argument of -u or --user on a command line of curl.
func findCurlUser(s *scan, i int) int {
	k := i + 1
	switch {
	case has(s.text, k, "--user"):
		k += len("--user")
	case has(s.text, k, "-u"):
		k += len("-u")
	default:
		return i
	}
	if at(s.text, k, nameChar) {
		return i
	}
	if has(s.text, k, "=") {
		k++
	}
	k = s.runEnd(k, blankChar, k+8)
	from := k
	var closing byte
	if at(s.text, k, quoteChar) {
		closing = s.text[k]
		from++
	}
	colon, end := -1, from
	for ; end < len(s.text) && end < from+256; end++ {
		b := s.text[end]
		if b == '\n' || b == closing || closing == 0 && is(b, spaceChar) {
			break
		}
		if b == ':' && colon < 0 {
			colon = end
		}
	}
	s.work += end - from
	if colon < 0 || end-colon < 4 || end == from+256 || !s.commandBefore(i, "curl") {
		return i
	}
	user, password := s.text[from:colon], strings.Trim(s.text[colon+1:end], "\"'`")
	if h := s.shape(password); s.openPassword(password) || idle(h) || password == user || h.numeric(1) {
		return i
	}
	s.hit(kindPassword, from, end)
	return end
}

// findDashP finds the password in sshpass -p … and mysql -p….
func findDashP(s *scan, i int) int {
	from := i + len(" -p")
	apart := at(s.text, from, blankChar)
	if apart {
		from = s.runEnd(from, blankChar, from+4)
	}
	if at(s.text, from, quoteChar) {
		from++
	}
	end := from
	for end < len(s.text) && end < from+128 && !is(s.text[end], spaceChar|quoteChar) {
		end++
	}
	h := s.shape(s.text[from:end])
	if len(h.text) < 4 || h.letters == 0 || end == from+128 || filler(h) {
		return i
	}
	if apart && s.commandBefore(i, "sshpass") || !apart && (s.commandBefore(i, "mysql") || s.commandBefore(i, "mariadb")) {
		s.hit(kindPassword, from, end)
		return end
	}
	return i
}

// commandBefore reports a program in the command before i.
func (s *scan) commandBefore(i int, program string) bool {
	const reach = 512
	before := s.text[max(i-reach, 0):i]
	if line := strings.LastIndexByte(before, '\n'); line > 0 && before[line-1] != '\\' && program != "curl" {
		before = before[line:]
	}
	s.work += len(before)
	return strings.Contains(before, program)
}
