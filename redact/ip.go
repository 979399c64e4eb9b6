package redact

import (
	"net/netip"
	"strings"
)

// ipDetector finds addresses at the first separator in them.
var ipDetector = detector{name: "ip", anchors: []anchor{{":.", digits + "abcdefABCDEF:", ""}}, find: findIP, kind: IP, ahead: 8}

func findIP(p *pass, i int) {
	if p.text[i] == '.' {
		findIPv4(p, i)
		return
	}
	findIPv6(p, i)
}

// findIPv4 finds four octets, the first of which ends before i.
func findIPv4(p *pass, i int) {
	start := p.runStart(i, digitChar, i-4)
	end := start
	for octet := range 4 {
		if octet > 0 {
			if !at(p.text, end, dotChar) {
				return
			}
			end++
		}
		to := p.runEnd(end, digitChar, end+4)
		if to == end || to-end > 3 || number(p.text[end:to]) > 255 {
			return
		}
		end = to
	}
	if !endsIPv4(p.text, end) || !startsIPv4(p.text, start) || isVersion(p, start, end) {
		return
	}
	end = prefixEnd(p.text, end, 32)
	p.consume(IP, start, end)
}

// startsIPv4 reports whether an address may begin at i: not in a word, not in a longer number with
// dots, and not after the name of a package. It may begin after a colon, which cuts no IPv6 address
// there.
func startsIPv4(text string, i int) bool {
	switch {
	case i == 0:
		return true
	case insideWord(text, i):
		return false
	case text[i-1] == '.':
		return !at(text, i-2, wordChar)
	case text[i-1] == '-':
		return !at(text, i-2, letterChar)
	}
	return true
}

func endsIPv4(text string, i int) bool {
	if at(text, i, dotChar) || at(text, i, dashChar) && !at(text, i+1, digitChar) {
		return !at(text, i+1, wordChar)
	}
	return !at(text, i, wordChar)
}

// versionWords precede versions, numbers of sections and object identifiers.
var versionWords = wordSet("v ver version versions release build section sec rfc chapter clause table figure fig appendix step oid upgrade firmware " +
	"fileversion productversion assemblyversion")

// isVersion reports whether four numbers are a version, the number of a section or an object
// identifier, according to the word before them, or the frozen version of a browser.
func isVersion(p *pass, start, end int) bool {
	if has(p.text, start-1, "/") && at(p.text, start-2, letterChar) && strings.HasSuffix(p.text[start:end], ".0.0") {
		return true
	}
	if start > 0 && !is(p.text[start-1], blankChar) && p.text[start-1] != ':' && p.text[start-1] != '=' {
		return false
	}
	word, _ := p.wordBefore(start, max(start-16, 0))
	return lookUp(versionWords, word)
}

// prefixEnd returns the end of a prefix length of at most bits after the address that ends before
// i, or i.
func prefixEnd(text string, i, bits int) int {
	if !has(text, i, "/") {
		return i
	}
	k := i + 1
	for k < len(text) && k < i+5 && is(text[k], digitChar) {
		k++
	}
	if k == i+1 || k > i+4 || number(text[i+1:k]) > bits || at(text, k, wordChar) {
		return i
	}
	return k
}

const maxIPv6 = 45 // 39 in full, 45 with an IPv4 address in it

// findIPv6 finds an address whose first colon is at i.
func findIPv6(p *pass, i int) {
	if has(p.text, i-1, ":") {
		return
	}
	start := p.runStart(i, hexChar, i-5)
	if i-start > 4 || i == start && !has(p.text, i, "::") || !startsIPv6(p.text, start) {
		return
	}
	end := ipv6End(p, start)
	if end == start || !plausibleIPv6(p, start, end) {
		return
	}
	end = prefixEnd(p.text, zoneEnd(p, end), 128)
	p.consume(IP, start, end)
}

// startsIPv6 reports whether an address may begin at i.
func startsIPv6(text string, i int) bool {
	switch {
	case i == 0:
		return true
	case text[i-1] == ':' || text[i-1] == '.':
		return !hexGroupBefore(text, i-1)
	}
	return !insideWord(text, i)
}

// insideWord reports whether a word that begins before i > 0 continues at i. The letter of an
// escape such as \n begins none.
func insideWord(text string, i int) bool {
	if is(text[i-1], letterChar) {
		return !has(text, i-2, `\`) || !escape(text[i-1])
	}
	return is(text[i-1], wordChar)
}

// ipv6End returns the end of the address that begins at start, or start.
func ipv6End(p *pass, start int) int {
	end, colons := start, 0
	for end < len(p.text) && end-start <= maxIPv6 && (is(p.text[end], hexChar|dotChar) || p.text[end] == ':') {
		if p.text[end] == ':' {
			colons++
		}
		end++
	}
	p.work += 2 * (end - start)
	p.readTo(end)
	if colons < 2 || end-start > maxIPv6 || at(p.text, end, wordChar) {
		return start
	}
	for p.text[end-1] == '.' { // of a sentence
		end--
	}
	if p.text[end-1] == ':' && p.text[end-2] != ':' {
		end--
	}
	if address, err := netip.ParseAddr(p.text[start:end]); err != nil || !address.Is6() {
		return start
	}
	return end
}

// plausibleIPv6 reports whether text that reads as an IPv6 address is one. Names in code (a::b)
// have no digit, slices (x[1::2]) are in brackets, addresses of eight bytes are hardware addresses,
// and two colons alone are mostly an operator.
func plausibleIPv6(p *pass, start, end int) bool {
	address := p.text[start:end]
	switch {
	case p.keyNames(namesIP):
		return true
	case address == "::":
		return unspecified(p, start, end)
	case strings.HasSuffix(address, "::") && has(p.text, end, "/") && at(p.text, end+1, letterChar): // of a control group: 0::/user
		return false
	case !strings.ContainsAny(address, digits):
		return strings.Count(address, ":") > 3
	case len(address) == 8*2+7 && pairs(address):
		return false
	case has(p.text, start-1, "[") && at(p.text, start-2, wordChar) && has(p.text, end, "]") && address != "::1":
		return strings.ContainsAny(address, "abcdefABCDEF")
	}
	return true
}

// pairs reports whether an address is pairs of hexadecimal digits.
func pairs(address string) bool {
	for k := 2; k < len(address); k += 3 {
		if address[k] != ':' {
			return false
		}
	}
	return true
}

// addressWords precede addresses.
var addressWords = wordSet("ip ips ip6 ipv6 inet6 addr address src dst host listen listening bind gateway route any")

// unspecified reports whether :: is an address: it has a prefix length, is in brackets before a
// port, or follows a word for addresses.
func unspecified(p *pass, start, end int) bool {
	if has(p.text, end, "/") {
		return prefixEnd(p.text, end, 128) > end
	}
	if has(p.text, start-1, "[") && has(p.text, end, "]:") && at(p.text, end+2, digitChar) {
		return true
	}
	k := start
	for k > 0 && start-k < 4 && strings.IndexByte(" \t=:([\"'", p.text[k-1]) >= 0 {
		k--
	}
	word := p.text[p.runStart(k, alnumChar, k-16):k]
	return lookUp(addressWords, word)
}

// zoneEnd returns the end of the zone after the address that ends before i, or i.
func zoneEnd(p *pass, i int) int {
	if !has(p.text, i, "%") {
		return i
	}
	end := p.runEnd(i+1, urlChar|dotChar, i+33)
	for end > i+1 && p.text[end-1] == '.' {
		end--
	}
	if end == i+1 {
		return i
	}
	return end
}
