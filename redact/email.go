package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// emailDetector finds addresses as RFC 5322 (3.4.1) and RFC 6531 write them, whose domain has a
// top-level domain.
var emailDetector = detector{name: "email", anchors: []anchor{{"@", "", ""}}, find: findEmail, kind: Email, named: namesEmail, leaf: emailLeaf}

const maxDomain, maxMailLabel = 253, 63 // bytes, RFC 1035 2.3.4

// findEmail finds the address around the @ at i. It reads back without a limit: the @ before, if
// any, ends it.
func findEmail(p *pass, i int) {
	end := domainEnd(p, i+1)
	if end == i+1 {
		return
	}
	start := localStart(p, i, end)
	if start == i || hostAccount(p.text[start:i], p.text[end:]) {
		return
	}
	p.consume(Email, start, end)
}

// hostAccount reports whether an address is the account of a version control system on a host, as
// in git@host:path.
func hostAccount(local, behind string) bool {
	return oneOf(local, "git", "hg", "svn") && (has(behind, 0, ":") || has(behind, 0, "/"))
}

// localStart returns where the local part that ends before i begins, or i if there is none. The
// domain ends before end.
func localStart(p *pass, i, end int) int {
	if at(p.text, i-1, quoteChar) {
		return quotedStart(p, i)
	}
	last, _ := utf8.DecodeLastRuneInString(p.text[:i])
	dense := last >= utf8.RuneSelf && endsValue(last) // a script without spaces between words: all that precedes may belong to it
	quoted := has(p.text, end, "'")                   // then an apostrophe before it is the opening quote and not part of a name
	k := i
	for k > 0 {
		b := p.text[k-1]
		if b < utf8.RuneSelf {
			if !mailByte(b) || b == '\'' && quoted {
				break
			}
			k--
			continue
		}
		r, n := utf8.DecodeLastRuneInString(p.text[:k])
		if !mailRune(r) || endsValue(r) && !dense {
			break
		}
		k -= n
	}
	p.work += i - k + 1
	if at(p.text, i-1, dotChar) {
		return i
	}
	for k < i && p.text[k] < utf8.RuneSelf && !is(p.text[k], wordChar) { // dots, emphasis, bullets
		k++
	}
	if has(p.text, k-1, `\`) && k+1 < i && escape(p.text[k]) { // \njane@… of text quoted by JSON
		k++
	}
	return k
}

// escape reports a letter that represents a line end or a tab after a backslash.
func escape(b byte) bool { return b == 'n' || b == 'r' || b == 't' }

// quotedStart returns where the quoted local part that ends before i begins, or i if it is no local
// part.
func quotedStart(p *pass, i int) int {
	const reach = 66
	if p.text[i-1] != '"' {
		return i
	}
	for k := i - 2; k >= 0 && i-k <= reach; k-- {
		p.work++
		switch b := p.text[k]; {
		case b == '"':
			if k == i-2 || at(p.text, k-1, nameChar) || at(p.text, k-1, quoteChar) || has(p.text, k-1, `\`) || is(p.text[k+1], whitespaceChar) || is(p.text[i-2], whitespaceChar) {
				return i
			}
			return k
		case b < ' ' || b == ':' || b == ',' || b == ';' || b == '{' || b == '<': // of another string
			return i
		}
	}
	return i
}

// mailByte reports whether b may be in an unquoted local part. RFC 5322 also allows = & / ? ` { |
// }, which are more often written before an address than in it.
func mailByte(b byte) bool { return is(b, alnumChar) || strings.IndexByte(".-_+%'!#$*^~", b) >= 0 }

// mailRune reports whether r, a character beyond ASCII, may be in a local part or a label.
func mailRune(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.Nd) }

// domainEnd returns the end of the domain that begins at i, or i if it has no top-level domain.
func domainEnd(p *pass, i int) int {
	end, labels := i, 0
	numeric := 0 // leading labels that are numbers of a version
	for k := i; k-i < maxDomain; labels++ {
		to := labelEnd(p, k)
		label := p.text[k:to]
		if label == "" || label[0] == '-' {
			break
		}
		if labels > 0 {
			if n := topLevel(label, labels+1); n > 0 {
				end = k + n
			}
		}
		if labels == numeric && versionLabel(label) {
			numeric++
		}
		if !at(p.text, to, dotChar) {
			break
		}
		k = to + 1
	}
	p.work += end - i + 1
	if numeric > 1 || end > i && fileName(p.text[i:end]) {
		return i
	}
	return end
}

// labelEnd returns the end of the label of a domain that begins at i. A label is in one script: an
// adjacent word of another script does not belong to it.
func labelEnd(p *pass, i int) int {
	k, dense := i, false
	for k < len(p.text) && k-i < maxMailLabel {
		b := p.text[k]
		if b < utf8.RuneSelf {
			if !is(b, alnumChar|dashChar) || dense {
				break
			}
			k++
			continue
		}
		r, n := utf8.DecodeRuneInString(p.text[k:])
		if !mailRune(r) || k > i && endsValue(r) != dense {
			break
		}
		dense = endsValue(r)
		k += n
	}
	p.work += k - i + 1
	p.readTo(k)
	return k
}

// topLevel returns how much of a label, the n-th, is a top-level domain: letters, two or more, or a
// punycode label. A dash after it begins another word of the sentence.
func topLevel(label string, n int) int {
	if len(label) > 4 && hasFold(label, 0, "xn--") {
		return len(label)
	}
	k := 0
	for k < len(label) && (is(label[k], letterChar) || label[k] >= utf8.RuneSelf) {
		k++
	}
	if k < 2 || k < len(label) && label[k] != '-' {
		return 0
	}
	return k
}

// versionLabel reports whether a label is digits, or v and digits, like the 1, 2 and 3 of
// name@v1.2.3.
func versionLabel(label string) bool {
	if label[0] == 'v' && len(label) > 1 {
		label = label[1:]
	}
	return digitsOnly(label)
}

var fileSuffixes = wordSet("service socket timer target slice mount scope png jpg jpeg svg webp gif")

// fileName reports whether a domain is the end of the name of a high-resolution image (icon@2x.png)
// or of a systemd unit (getty@tty1.service).
func fileName(domain string) bool {
	name, _, _ := strings.Cut(domain, "x.")
	if name != "" && name != domain && digitsOnly(name) {
		return true
	}
	k := strings.LastIndexByte(domain, '.') + 1
	return fileSuffixes[domain[k:]]
}
