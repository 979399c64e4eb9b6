package redact

import (
	"strings"
	"unicode/utf8"
)

// urlDetectors find user and password as RFC 3986 (3.2.1) and data source names write them.
var urlDetectors = []detector{
	{name: "userinfo", anchors: []anchor{{":", "/", "/"}, {":", "\\", "/"}}, find: findUserinfo},
	{name: "dsn", anchors: []anchor{{"@", "tu", "cdn"}}, find: findDSN},
	{name: "curl user", anchors: []anchor{{" \t\n", "-", "u-"}}, find: findCurlUser, after: true},
	{name: "-p", anchors: []anchor{{" \t\n", "-", "p"}}, find: findDashP, after: true},
}

const maxAuthority = 512

// findUserinfo finds user:password@ after the :// at i, which JSON may write :\/\/. A user without
// a password is a name, unless it looks like a key.
func findUserinfo(p *pass, i int) {
	if !at(p.text, i-1, alnumChar) {
		return
	}
	from, at := i+3, -1
	if p.text[i+1] == '\\' {
		if !has(p.text, i, `:\/\/`) {
			return
		}
		from = i + 5
	}
	limit := min(from+maxAuthority, len(p.text))
	k := from
	for ; k < limit; k++ {
		b := p.text[k]
		if b == '@' {
			at = k
		}
		if b == '[' { // of a placeholder; of an address in IPv6, after userinfo; or of a synopsis
			if end := p.placeholderEnd(k); end > k {
				k = min(end, limit) - 1
				continue
			}
			break
		}
		if b == '/' || b == '?' || b == '#' && at >= 0 || b == '\\' || b == '<' || b == '>' || is(b, whitespaceChar|quoteChar) {
			break
		}
	}
	p.work += k - from
	p.readTo(k)
	if at <= from {
		return
	}
	user, password, ok := cutUserinfo(p.text[from:at])
	if ok && !openPassword(p, password) {
		p.hit(kindPassword, from, at)
	} else if h := p.shape(user); !ok && h.random(20) && !filler(h) {
		p.hit(kindPassword, from, at)
	}
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

// openPassword reports whether a password is none: empty, a reference or a mask. The word
// "password" does not count, since people use it as one.
func openPassword(p *pass, password string) bool {
	for end := placeholderEnd(password, 0); end > 0; end = placeholderEnd(password, 0) {
		password = password[end:]
	}
	if password == "" {
		return true
	}
	h := p.shape(password)
	return h.masked() && (len(password) > 3 || is(password[0], maskChar)) || h.elided || reference(password)
}

// findDSN finds user:password@tcp(host) and @unix(path), the data source names of Go's MySQL
// driver.
func findDSN(p *pass, i int) {
	if !has(p.text, i, "@tcp(") && !has(p.text, i, "@unix(") {
		return
	}
	from := i
	for from > 0 && i-from < 128 && !is(p.text[from-1], whitespaceChar|quoteChar) && p.text[from-1] != '=' && p.text[from-1] != '/' {
		if r, n := utf8.DecodeLastRuneInString(p.text[:from]); r >= utf8.RuneSelf {
			if endsValue(r) {
				break
			}
			from -= n - 1
		}
		from--
	}
	p.work += i - from
	if _, password, ok := cutUserinfo(p.text[from:i]); ok && !openPassword(p, password) {
		p.hit(kindPassword, from, i)
	}
}

// findCurlUser finds the argument of -u or --user on a command line of curl.
func findCurlUser(p *pass, i int) {
	k := i + 1
	switch {
	case has(p.text, k, "--user"):
		k += len("--user")
	case has(p.text, k, "-u"):
		k += len("-u")
	default:
		return
	}
	if at(p.text, k, nameChar) {
		return
	}
	if has(p.text, k, "=") {
		k++
	}
	k = p.runEnd(k, blankChar, k+8)
	from := k
	var closing byte
	if at(p.text, k, quoteChar) {
		closing = p.text[k]
		from++
	}
	colon, end := -1, from
	for ; end < len(p.text) && end < from+256; end++ {
		b := p.text[end]
		if b == '\n' || b == closing || closing == 0 && is(b, whitespaceChar) {
			break
		}
		if b == ':' && colon < 0 {
			colon = end
		}
	}
	p.work += end - from
	p.readTo(end)
	if colon < 0 || end-colon < 4 || end == from+256 || !commandBefore(p, i, "curl") {
		return
	}
	user, password := p.text[from:colon], strings.Trim(p.text[colon+1:end], "\"'`")
	if h := p.shape(password); openPassword(p, password) || idle(h) || password == user || h.numeric(1) {
		return
	}
	p.consume(kindPassword, from, end)
}

// findDashP finds the password in sshpass -p … and mysql -p….
func findDashP(p *pass, i int) {
	from := i + len(" -p")
	apart := at(p.text, from, blankChar)
	if apart {
		from = p.runEnd(from, blankChar, from+4)
	}
	if at(p.text, from, quoteChar) {
		from++
	}
	end := from
	for end < len(p.text) && end < from+128 && !is(p.text[end], whitespaceChar|quoteChar) {
		end++
	}
	p.readTo(end)
	h := p.shape(p.text[from:end])
	if len(h.text) < 4 || h.letters == 0 || end == from+128 || filler(h) {
		return
	}
	if apart && commandBefore(p, i, "sshpass") || !apart && (commandBefore(p, i, "mysql") || commandBefore(p, i, "mariadb")) {
		p.consume(kindPassword, from, end)
		return
	}
}

// commandBefore reports whether a program is in the command before i.
func commandBefore(p *pass, i int, program string) bool {
	const reach = 512
	before := p.text[max(i-reach, 0):i]
	if line := strings.LastIndexByte(before, '\n'); line > 0 && before[line-1] != '\\' && program != "curl" {
		before = before[line:]
	}
	p.work += len(before)
	return strings.Contains(before, program)
}
